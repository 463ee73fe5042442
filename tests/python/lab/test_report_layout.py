"""Figures, tables and warnings of reports with many conditions and long names fit the page."""

import io
import itertools
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from lab import captions, tables
from lab.conditions import Condition, read_conditions
from lab.figures import ReportFigure, bytes_text, curve_figure, number_text, set_ticks
from lab.gap import gap_figure
from lab.metric import CONSENSUS, choose_metric, make_target
from lab.predictions import Predictions
from lab.results import read_sweep
from lab.style import WIDTH_INCHES, use_style
from lab.tables import TextTable, print_table
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

use_style()
LONG = "a complete graph whose name takes half of a line"


def swept(lab: Any, folder: Path, *axes: str, **options: Any) -> list[Condition]:
    done = lab("sweep", "small.toml", *axes, "--out", "out", **options)
    assert done.returncode == 0, done.stderr
    return read_conditions(read_sweep(folder / "out"))


def curves(conditions: list[Condition], metric: Any, folder: Path) -> ReportFigure:
    return curve_figure("x", "x", "", conditions, metric, Predictions(conditions, folder))


def draw(figure: Figure) -> None:
    """Draws a figure, but no pixels. A warning, as of a layout that does not fit, is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()


def extent(text: Text) -> Any:
    return text.get_window_extent()


@pytest.fixture
def variants(tmp_path: Path) -> tuple[str, ...]:
    """A ring, and five series whose peers agree: they are below the axis of the consensus."""
    tables = ['[variants.ring]\n"topology.kind" = "ring"']
    tables += [f'[variants."{LONG} {i}"]\n"topology.kind" = "complete"' for i in range(5)]
    (tmp_path / "variants.toml").write_text("\n".join(tables), encoding="utf-8")
    return ("--variants", "variants.toml", "run.peers=4,6", "optimizer.weight_decay=0.001,0.01")


def test_many_conditions_below_the_axis_fit_their_panel(
    lab: Any, tmp_path: Path, variants: tuple[str, ...]
) -> None:
    figure = curves(swept(lab, tmp_path, *variants), CONSENSUS, tmp_path).figure
    draw(figure)
    noted = [panel for panel in figure.axes if panel.texts]
    assert len(noted) == 4  # the first panel of each row
    for panel in noted:
        (note,) = panel.texts
        assert note.get_text().startswith("below the axis: a complete")
        assert panel.get_window_extent().x1 >= extent(note).x1
        lowest = min(
            panel.transData.transform(line.get_xydata())[:, 1].min() for line in panel.lines
        )
        assert lowest > extent(note).y1


def test_titles_of_panels_neither_overlap_nor_are_cut(
    lab: Any, tmp_path: Path, variants: tuple[str, ...]
) -> None:
    conditions = swept(lab, tmp_path, *variants, "data.a_key_with_a_long_name=10000,20000")
    metric = choose_metric(conditions)
    target = make_target(metric, conditions, None)
    targets = {condition.facet: target for condition in conditions}
    for figure in (
        curves(conditions, metric, tmp_path).figure,
        gap_figure(conditions, metric, targets, "").figure,
    ):
        draw(figure)
        titles = {panel.get_title(loc="left") for panel in figure.axes} - {""}
        assert len(titles) == 8  # one in each row
        boxes = [extent(text) for text in figure.findobj(Text) if text.get_text() in titles]
        assert len(boxes) == 8
        width = figure.bbox.width
        assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_facets_in_which_all_peers_agree_have_no_panels(lab: Any, tmp_path: Path) -> None:
    conditions = swept(lab, tmp_path, "optimizer.rate=0.1,0.2", "topology.kind=complete,ring")
    conditions = [c for c in conditions if (c.series, c.facet) != ("ring", "rate = 0.2")]
    figure = curves(conditions, CONSENSUS, tmp_path).figure
    assert {panel.get_title(loc="left") for panel in figure.axes} == {"rate = 0.1", ""}
    caption = captions.consensus_caption(conditions)
    assert "all their peers agree up to rounding: rate = 0.2" in caption
    assert "complete (at most 0)" in caption


def test_runs_that_send_nothing_have_a_note_and_no_axis(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    axes = ("run.peers=1", "run.rounds=4", "log.every=1")
    conditions = swept(lab, tmp_path, *axes, program=gossamer)
    metric = choose_metric(conditions)
    for figure in (
        curves(conditions, metric, tmp_path).figure,
        gaps(conditions),
        gaps(conditions, target=1),  # it is never reached
    ):
        draw(figure)
        assert notes(figure.axes[1]) == ["no bytes are sent"]
        assert figure.axes[0].lines and not figure.axes[1].lines


def test_a_target_that_no_run_reaches_has_open_dots(lab: Any, tmp_path: Path) -> None:
    figure = gaps(swept(lab, tmp_path, "topology.kind=ring,complete"), target=1)
    draw(figure)
    for panel, logged in zip(figure.axes, ((1, 6), (5200, 46800)), strict=True):
        assert notes(panel) == ["1 of 1 never", "1 of 1 never"]
        assert [line.get_fillstyle() for line in panel.lines if line.get_label()[0] != "_"] == [
            "none",
            "none",
        ]
        low, high = panel.get_ylim()
        assert 0 < low < logged[0] and logged[1] < high


def test_a_target_that_is_reached_at_the_start_has_no_dots(lab: Any, tmp_path: Path) -> None:
    figure = gaps(swept(lab, tmp_path, "topology.kind=ring"), target=0)
    draw(figure)
    for panel in figure.axes:
        assert notes(panel) == ["the target is reached at the start"]


@pytest.mark.parametrize("gap", [0.1563, 0.1953, 1.0, 2e-5])
def test_texts_of_ticks_do_not_overlap_for_a_single_gap(
    lab: Any, tmp_path: Path, gap: float
) -> None:
    swept(lab, tmp_path, "topology.kind=ring")
    log = tmp_path / "out" / "ring" / "log-0.jsonl"
    text = re.sub(r'("spectral_gap": )[-+.e0-9]+', rf"\g<1>{gap}", log.read_text("utf-8"))
    log.write_text(text, "utf-8")
    figure = gaps(read_conditions(read_sweep(tmp_path / "out")))
    draw(figure)
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            shown = [each for each in axis.get_ticklabels() if each.get_text()]
            assert len(shown) > 1
            for one, other in itertools.pairwise(shown):
                assert not extent(one).overlaps(extent(other)), (one, other)


def test_each_seed_of_a_random_graph_has_its_own_gap(lab: Any, tmp_path: Path) -> None:
    swept(lab, tmp_path, "topology.kind=ring", "run.seed=0..2")
    for seed, gap in enumerate((0.1, 0.3, 0.5)):
        log = tmp_path / "out" / f"ring-seed{seed}" / "log-0.jsonl"
        text = re.sub(r'("spectral_gap": )[-+.e0-9]+', rf"\g<1>{gap}", log.read_text("utf-8"))
        log.write_text(text.replace('"degree_max": 2', f'"degree_max": {3 + seed}'), "utf-8")
    conditions = read_conditions(read_sweep(tmp_path / "out"))
    for panel in gaps(conditions).axes:
        seeds, mean = (line.get_xdata() for line in panel.lines)
        assert list(seeds) == [0.1, 0.3, 0.5] and list(mean) == pytest.approx([0.3])
    metric = choose_metric(conditions)
    table = tables.make_table(conditions, metric, {"": make_target(metric, conditions, None)}, [])
    assert table.rows[0][1:3] == ["0.1–0.5", "2–5"]


def gaps(conditions: list[Condition], target: float | None = None) -> Figure:
    metric = choose_metric(conditions)
    targets = {"": make_target(metric, conditions, target)}
    return gap_figure(conditions, metric, targets, "").figure


def notes(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("limits", [(0.93, 1.6), (1.05, 2.9), (0.35, 0.9), (0.5, 4), (1e-3, 1)])
def test_a_logarithmic_axis_has_enough_ticks(limits: tuple[float, float]) -> None:
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=limits)
    set_ticks(axes, "y", number_text)
    assert 2 < len(axes.get_yticks()) <= 6
    assert all(limits[0] <= tick <= limits[1] for tick in axes.get_yticks())


@pytest.mark.parametrize(
    "limits",
    [(1, 1.0001), (0.001234, 0.001236), (99990, 100010), (1.05e6, 2.9e6), (1.2e-5, 1.3e-5)],
)
@pytest.mark.parametrize("text", [number_text, bytes_text])
def test_texts_of_ticks_in_a_narrow_range_neither_overlap_nor_repeat(
    limits: tuple[float, float], text: Any
) -> None:
    """In a row of three panels and of two, with the most ticks that each may have."""
    for panels, most in ((3, 4), (3, 3), (2, 6)):
        figure = Figure(figsize=(WIDTH_INCHES, 3), layout="constrained")
        axes = figure.subplots(1, panels)[0]
        axes.set(xscale="log", xlim=limits)
        set_ticks(axes, "x", text, most)
        draw(figure)
        shown = [each for each in axes.get_xticklabels() if each.get_text()]
        assert len({each.get_text() for each in shown}) == len(shown) > 0
        for one, other in itertools.pairwise(shown):
            assert not extent(one).overlaps(extent(other)), (one, other)


TABLE = TextTable(
    ["condition", *(f"column {i}" for i in range(12))],
    [[f"{LONG} {row}", *(f"{row}.{i} ± 0.001" for i in range(12))] for row in range(3)],
    [],
)


def printed(monkeypatch: pytest.MonkeyPatch, terminal: bool, width: int) -> str:
    output = io.StringIO()

    def console(width: int = width) -> Console:
        return Console(file=output, force_terminal=terminal, width=width, color_system=None)

    monkeypatch.setattr(tables, "Console", console)
    print_table(TABLE, "A title")
    return output.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_on_a_terminal_continues_below(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    output = printed(monkeypatch, True, width)
    assert max(map(len, output.splitlines())) <= width and "…" not in output
    for cell in (*TABLE.header[1:], *(text for row in TABLE.rows for text in row[1:])):
        assert len(re.findall(rf"(?<!\S){re.escape(cell)}(?!\S)", output)) == 1, cell
    assert output.count("condition") > 1


def test_a_table_in_a_file_has_a_line_for_each_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    output = printed(monkeypatch, False, 80)
    for row in TABLE.rows:
        assert [cell.strip() for cell in row] in [
            [cell.strip() for cell in line.strip("│ ").split("│")] for line in output.splitlines()
        ]


@pytest.mark.usefixtures("without_drawing")
def test_warnings_of_a_kind_are_one_warning(lab: Any) -> None:
    axes = ("topology.kind=ring,star", "data.alpha=0.1,1", "run.seed=0,13")
    done = lab("sweep", "small.toml", *axes, "--rates", "0.2,0.5", "--out", "out")
    assert done.stderr.count("is at the edge of the grid") == 1
    for condition in ("ring, data.alpha=0.1", "ring, data.alpha=1", "star, data.alpha=1"):
        assert f"\n  topology.kind={condition}\n" in done.stderr
    lines = lab("report", "out").stdout.splitlines()
    notes = [line for line in lines if line.startswith("note:") and "No predicted" not in line]
    assert len(notes) == 3  # failed runs, missing seeds, the edge of the grid
    assert "1 of 2 seeds in ring (alpha = 0.1); ring (alpha = 1); star (alpha = 0.1);" in notes[1]
    assert "(0.2, 0.5), and a better one may lie outside: 0.5 in ring (alpha = 0.1);" in notes[2]
