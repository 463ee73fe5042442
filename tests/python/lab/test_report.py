"""The report of a sweep: figures, page and table, and warnings on missing runs."""

import base64
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw_only
from lab import captions
from lab.conditions import read_conditions
from lab.curves import consensus_from_sketches, read_curves
from lab.errors import LabError
from lab.figures import ReportFigure, bytes_text, curve_figure, number_text
from lab.metric import CONSENSUS, choose_metric
from lab.page import inline_svg
from lab.predictions import Predictions
from lab.results import Sweep, read_sweep
from lab.selection import Choice
from report import trained


FIGURES = ("learning", "consensus", "gap", "graphs")


def make(lab: Any, tmp_path: Path, *axes: str) -> tuple[str, str]:
    """Runs a sweep and its report. Returns the page and the standard output."""
    swept = lab("sweep", "small.toml", *axes, "--out", "out")
    assert swept.returncode in (0, 1), swept.stderr
    reported = lab("report", "out")
    assert reported.returncode == 0, reported.stderr
    return (tmp_path / "out" / "report.html").read_text(encoding="utf-8"), reported.stdout


def test_the_page_is_self_contained_and_describes_its_figures(lab: Any, tmp_path: Path) -> None:
    page, output = make(
        lab,
        tmp_path,
        "topology.kind=ring,torus,complete",
        "run.seed=0..2",
        "run.peers=16",
        "run.rounds=60",
    )
    assert page.count("<svg") == len(FIGURES) and page.count('role="img"') == len(FIGURES)
    assert not re.search(r'(src|href)="(?!#)', page), "the page has no external resource"
    assert "<script" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "ids are unique on the page"
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
    assert used <= set(ids)
    for text in (
        "mean over 3 seeds",
        "lowest to the highest seed",
        "90% of the best",
        "Commands that reproduce this page",
        "experiments/sweep.py small.toml",
    ):
        assert text in page
    assert (
        "ring" in output
        and "rounds to target" in output
        and str(tmp_path / "out" / "report.html") in output
    )
    for stem in FIGURES:
        ElementTree.parse(tmp_path / "out" / "figures" / f"{stem}.svg")
        assert (tmp_path / "out" / "figures" / f"{stem}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("without_drawing")
def test_failed_runs_and_missing_seeds_are_named(lab: Any, tmp_path: Path) -> None:
    page, output = make(lab, tmp_path, "topology.kind=ring,complete", "run.seed=0,13")
    for text in (page, output):
        assert "2 of 4 runs failed" in text and "ring-seed13" in text and "1 of 2 seeds" in text
    assert "One seed only" in page


def test_a_topology_without_spectral_gap_has_no_gap_figure(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "gap")
    assert (
        lab(
            "sweep", "small.toml", "topology.kind=ring,complete", "run.seed=0..1", "--out", "out"
        ).returncode
        == 0
    )
    for path in [
        *(tmp_path / "out").glob("*/log-0.jsonl"),
        *(tmp_path / "out").glob("*/summary.json"),
    ]:
        text = re.sub(
            r'"(spectral_gap|diameter)": ?[-+.e0-9]+',
            r'"\1":null',
            path.read_text(encoding="utf-8"),
        )
        path.write_text(text, encoding="utf-8")
    reported = lab("report", "out")
    assert reported.returncode == 0, reported.stderr
    assert "no spectral gap in these logs" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.usefixtures("without_drawing")
def test_step_sizes_at_the_edge_are_flagged(lab: Any, tmp_path: Path) -> None:
    page, output = make(
        lab, tmp_path, "topology.kind=ring,complete", "run.seed=0..1", "--rates", "0.2,0.5,2"
    )
    assert "edge" not in output.replace(str(tmp_path), "") and "diverged" in page
    page, output = make(
        lab, tmp_path, "topology.kind=ring,complete", "run.seed=0..1", "--rates", "0.2,0.5"
    )
    assert "0.5 (edge!)" in output and "at the edge of the grid (0.2, 0.5)" in page


@pytest.mark.usefixtures("without_drawing")
def test_the_averaged_model_is_shown_at_its_own_step_size(lab: Any, tmp_path: Path) -> None:
    command = ("sweep", "small.toml", "run.seed=0..1", "--rates", "0.1,0.5,0.9", "--out", "out")
    lab(*command, "--select", "consensus_distance at 1")
    page = lab("report", "out").stdout
    assert "Averaged model: at the step size selected for" in page
    lab(*command, "--select", "consensus_distance at 1", "--select", "averaged_accuracy")
    lab("report", "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<td>0.1 (edge!)</td>" in page and re.search(r"<td>0\.\d+ ± 0\.\d+ at 0\.9 ", page)
    assert "the step size that is selected for it" in page
    assert "The best step size is at the edge of the grid (0.1, 0.5, 0.9)" in page
    assert "step size for the averaged model is at the edge of the grid (0.1, 0.5, 0.9)" in page


@pytest.mark.usefixtures("without_drawing")
def test_warnings_are_of_the_selection_for_the_averaged_model_too(lab: Any) -> None:
    command = ("sweep", "small.toml", "run.seed=0..1", "--rates", "0.1,0.5,0.9", "--out", "out")
    unreached = "rounds until averaged_accuracy 1"
    lab(*command, "--select", "consensus_distance at 1", "--select", unreached)
    page = lab("report", "out").stdout
    assert page.count("No step size reaches the target") == 1
    assert f"target of the selection for the averaged model ({unreached}) with every" in page


def test_a_condition_without_a_step_size_for_any_measure_is_named_once() -> None:
    choices = [
        Choice({"topology.kind": "ring"}, measure, None, False, {}, ["0.1"])
        for measure in ("test_accuracy", "averaged_accuracy")
    ]
    metadata = {"shard": "", "impossible": {}}
    (line,) = captions.warnings(Sweep(Path(), metadata, [], choices), [], [])
    assert line.endswith("every step size has a failed seed: topology.kind = ring.")


@pytest.mark.usefixtures("without_drawing")
def test_a_report_names_the_seeds_of_the_selection(lab: Any, tmp_path: Path) -> None:
    page, output = make(
        lab, tmp_path, "run.seed=0..1", "--rates", "0.2,0.5,2", "--selection-seeds", "5,6"
    )
    assert "2 of 2 runs are compared; 6 other runs select step sizes" in page
    assert "with the seeds 5, 6" in page and "The selection reads the test set" in page
    assert "half the width of its 95 % interval" in output


def test_a_sweep_without_finished_runs_is_an_error(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "run.seed=13", "--out", "out")
    done = lab("report", "out")
    assert done.returncode == 2 and "no run" in done.stderr
    assert "sweep.json" in lab("report", tmp_path).stderr
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "sweep.json").write_text('{"schema": 1', encoding="utf-8")
    assert lab("report", "torn").returncode == 2


def test_a_finished_run_with_a_torn_log_is_an_error(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "run.seed=0", "--out", "out")
    log = tmp_path / "out" / "seed0" / "log-0.jsonl"
    log.write_text(log.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    done = lab("report", "out")
    assert done.returncode == 2 and "log-0.jsonl, line" in done.stderr


@pytest.mark.usefixtures("without_drawing")
def test_a_deleted_run_is_missing_not_counted(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "run.seed=0..1", "--out", "out")
    (tmp_path / "out" / "seed1" / "summary.json").unlink()
    assert "1 of 2 runs have not been run to the end: seed1" in lab("report", "out").stdout


@pytest.mark.usefixtures("without_drawing")
def test_two_axes_make_panels_and_a_target_can_be_set(lab: Any, tmp_path: Path) -> None:
    swept = lab(
        "sweep",
        "small.toml",
        "topology.kind=ring,complete",
        "data.alpha=0.1,1",
        "run.rounds=20",
        "--out",
        "out",
    )
    assert swept.returncode == 0, swept.stderr
    percent = lab("report", "out", "--target", "90")
    assert percent.returncode == 2 and percent.stderr == (
        "report: --target 90: accuracies lie between 0 and 1: write 0.9 for 90 %\n"
    )
    done = lab("report", "out", "--target", "0.3", "--out", "elsewhere", "--title", "Two <axes>")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "elsewhere" / "report.html").read_text(encoding="utf-8")
    assert (
        "alpha = 0.1" in page
        and "test accuracy 0.3, as given by --target" in page
        and "Two &lt;axes&gt;" in page
    )


@pytest.mark.usefixtures("without_drawing")
def test_networked_runs_show_the_sketched_consensus(lab: Any, tmp_path: Path) -> None:
    page, _ = make(lab, tmp_path, "--processes", "log.sketch=on")
    assert "Estimated from sketches" in page
    curves = read_curves(tmp_path / "out" / "sketchon")
    assert curves.sketched and curves.has("consensus_distance")


def test_consensus_from_full_rank_sketches_is_exact() -> None:
    rows = np.random.default_rng(0).normal(size=(5, 7)).astype("<f4").astype(float)
    exact = math.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1)))
    records = [
        {"round": 3, "sketch": base64.b64encode(row.astype("<f4").tobytes()).decode()}
        for row in rows
    ]
    assert consensus_from_sketches(records) == pytest.approx(exact)


@pytest.mark.parametrize("sketch", ["AAAA*===", "AAAA", "AACAPw==", [1.0, 2.0], None])
def test_a_damaged_sketch_is_named(sketch: Any) -> None:
    whole = base64.b64encode(np.ones(7, "<f4").tobytes()).decode()
    records = [{"round": 3, "sketch": whole}, {"round": 3, "sketch": sketch}]
    with pytest.raises(LabError, match="sketches of the peers in round 3 cannot be read"):
        consensus_from_sketches(records)


def test_text_of_numbers() -> None:
    assert [bytes_text(v) for v in (900, 1500, 2_340_000, 5e9)] == [
        "900 B",
        "1.5 kB",
        "2.34 MB",
        "5 GB",
    ]
    assert [number_text(v) for v in (0.05, 1, 2000)] == ["0.05", "1", "2000"]
    assert number_text(1e-6) == "$10^{-6}$" and number_text(3e-7) == r"$3\times10^{-7}$"


def test_inlined_ids_are_unique() -> None:
    svg = inline_svg(
        '<?xml?><svg a="b"><g id="p1"/><use href="#p1" clip-path="url(#p1)"/></svg>',
        "one",
        'A "title"',
    )
    assert (
        'id="one-p1"' in svg
        and 'href="#one-p1"' in svg
        and "url(#one-p1)" in svg
        and "&quot;title" in svg
    )


@pytest.mark.usefixtures("without_drawing")
def test_runs_in_virtual_time_are_shown_against_it(lab: Any, tmp_path: Path) -> None:
    page, table = make(lab, tmp_path, "run.seed=0..1")
    assert "and virtual time on the simulated network" in page
    conditions = read_conditions(read_sweep(tmp_path / "out"))
    metric = choose_metric(conditions)
    report_figure = curve_figure(
        "x", "x", "", conditions, metric, Predictions(conditions, tmp_path / "out")
    )
    by_time = [
        panel
        for panel in report_figure.figure.axes
        if panel.get_xlabel().startswith("virtual seconds")
    ]
    assert len(by_time) == 1
    for line, condition in zip(by_time[0].lines, conditions, strict=True):
        assert line.get_xdata()[0] > 0
        assert line.get_xdata()[-1] == pytest.approx(condition.band("seconds").mean[-1])
        assert line.get_ydata()[-1] == pytest.approx(condition.band(metric.name).mean[-1])
    assert "seconds to target" in table


SMALL_QUADRATIC = (
    "model.kind=linear",
    "data.kind=quadratic",
    "data.batch=0",
    "data.dimension=4",
    "optimizer.rate=0.2",
    "log.every=5",
)


def predicted_lines(report_figure: ReportFigure) -> list[np.ndarray]:
    return [
        line.get_xydata()
        for panel in report_figure.figure.axes
        for line in panel.lines
        if line.get_label() == "predicted"
    ]


@pytest.mark.usefixtures("without_drawing")
def test_predicted_curves_lie_over_the_measured_ones(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    swept = lab(
        "sweep",
        "small.toml",
        "topology.kind=ring,star",
        "run.seed=0..1",
        *SMALL_QUADRATIC,
        "run.rounds=40",
        "--out",
        "out",
        program=gossamer,
    )
    assert swept.returncode == 0, swept.stderr
    reported = lab("report", "out", program=gossamer)
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("Thin dashed lines, predicted") == 2  # distance to the optimum, and consensus
    assert "No predicted curves" not in page
    sweep = read_sweep(tmp_path / "out")
    conditions = read_conditions(sweep)
    predictions = Predictions(conditions, sweep.folder)
    for metric in (CONSENSUS, choose_metric(conditions)):
        report_figure = curve_figure("x", "x", "", conditions, metric, predictions)
        lines = predicted_lines(report_figure)
        assert len(lines) == 4  # two conditions by round and by bytes
        measured = [condition.band(metric.name) for condition in conditions]
        for line, band in zip((lines[0], lines[1]), measured, strict=True):
            assert line[-1, 0] == band.rounds[-1] and line[-1, 1] == pytest.approx(
                band.mean[-1], rel=1e-3
            )


@pytest.mark.usefixtures("without_drawing")
def test_a_report_without_the_program_warns_that_nothing_is_predicted(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    lab(
        "sweep",
        "small.toml",
        "topology.kind=ring",
        *SMALL_QUADRATIC,
        "--out",
        "out",
        program=gossamer,
    )
    reported = lab("report", "out", program=tmp_path / "nowhere")
    assert reported.returncode == 0, reported.stderr
    assert "No predicted curves are drawn: no gossamer program at" in reported.stdout


def test_a_task_brings_its_own_data() -> None:
    own = {"model": {"kind": "external", "file": "/a/gpt.py"}, "data": {"kind": "digits"}}
    assert trained(own) == {"model": "the task in gpt.py"}
    assert trained({"model": {"kind": "external"}}) == {"model": "the task in Python"}
    both = {"model": {"kind": "mlp"}, "data": {"kind": "digits"}, "run": {"peers": 3}}
    assert trained(both) == {"model": "mlp", "data": "digits"}
