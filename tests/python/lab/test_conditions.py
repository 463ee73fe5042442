"""The names and the order of a report's conditions."""

from pathlib import Path
from typing import Any

import pytest
from lab.conditions import by_facet, read_conditions, short_keys
from lab.figures import add_legend, number_text
from lab.gap import limit_axis
from lab.results import read_sweep
from lab.study import Part, facet_names
from lab.style import use_style
from matplotlib.figure import Figure


def test_axes_with_one_last_part_have_their_whole_names(lab: Any, tmp_path: Path) -> None:
    assert short_keys(["topology.kind", "run.peers"]) == {
        "topology.kind": "topology",
        "run.peers": "peers",
    }
    axes = ("codec.fraction=0.1,0.2", "data.fraction=0.1,0.2", "run.peers=4,5")
    done = lab("sweep", "small.toml", *axes, "--out", "out")
    assert done.returncode == 0, done.stderr
    conditions = read_conditions(read_sweep(tmp_path / "out"))
    assert conditions[1].series == "codec.fraction = 0.1"
    assert conditions[1].facet == "data.fraction = 0.1, peers = 5"
    assert len({(c.series, c.facet) for c in conditions}) == len(conditions) == 8
    part = Part("runs", "run.toml", axes[:2])
    assert facet_names(part)[1] == "codec.fraction = 0.1, data.fraction = 0.2"


def test_facets_are_in_the_order_of_the_grid(lab: Any, gossamer: Path, tmp_path: Path) -> None:
    """Also where the first series cannot be in the first facet."""
    axes = ("topology.kind=hypercube,ring", "run.peers=6,4", "run.rounds=2", "log.every=1")
    options = ("--skip-impossible", "--out", "out")
    done = lab("sweep", "small.toml", *axes, *options, program=gossamer)
    assert done.returncode == 0, done.stderr
    conditions = read_conditions(read_sweep(tmp_path / "out"))
    facets = {
        facet: [condition.series for condition in members]
        for facet, members in by_facet(conditions).items()
    }
    assert list(facets) == ["peers = 6", "peers = 4"]
    assert list(facets.values()) == [["ring"], ["hypercube", "ring"]]


@pytest.mark.parametrize("gaps", [(1.0, 1.0), (0.02, 1.0), (0.3, 0.9), (0.01, 0.02)])
def test_the_axis_of_gaps_ends_at_one(gaps: tuple[float, float]) -> None:
    axes = Figure().subplots()
    axes.set(xscale="log")
    limit_axis(axes, "x", *gaps, number_text, most=1)
    low, high = axes.get_xlim()
    assert low < gaps[0] and gaps[1] <= high <= 1 and high >= 5.9 * low


def test_a_long_legend_leaves_the_panels_their_height() -> None:
    use_style()
    heights = []
    for count in (3, 40):
        figure = Figure(figsize=(7.2, 3.3), layout="constrained")
        axes = figure.subplots()
        names = [f"a series with a long name, and its number {i}" for i in range(count)]
        for name in names:
            axes.plot([0, 1], label=name)
        add_legend(figure, "Title", {name: {} for name in names})
        figure.draw_without_rendering()
        heights.append(axes.get_position().height * figure.get_figheight())
    assert heights[1] == pytest.approx(heights[0], abs=0.5)
