"""Selection of step sizes with the fake program, and logs that would not show a whole period."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab.cells import Cell
from lab.conditions import read_conditions
from lab.curves import read_curves
from lab.measure import parse_measure
from lab.results import read_sweep
from lab.selection import choose, evaluating_cell


def sweep_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "sweep.json").read_text(encoding="utf-8"))


def statuses(folder: Path) -> dict[str, str]:
    return {cell["name"]: cell["status"] for cell in sweep_json(folder)["cells"]}


def test_step_sizes_are_selected_per_cell(lab: Any, tmp_path: Path) -> None:
    done = lab(
        "sweep",
        "small.toml",
        "topology.kind=ring,complete",
        "run.seed=0..1",
        "--rates",
        "0.1,0.5,2",
        "--out",
        "out",
    )
    assert done.returncode == 0, "a diverged run only rules out its step size"
    choices = {
        choice["condition"]["topology.kind"]: choice
        for choice in sweep_json(tmp_path / "out")["choices"]
    }
    assert {(c["rate"], c["at_edge"], tuple(c["ruled_out"])) for c in choices.values()} == {
        ("0.5", False, ("2",))
    }
    edge = lab("sweep", "small.toml", "--rates", "0.1,0.5", "--out", "out")
    assert edge.returncode == 0 and "edge" in edge.stderr
    assert statuses(tmp_path / "out")["rate0.5"] == "finished"
    assert "rate0.1" not in statuses(tmp_path / "out"), "only the selected step size is reported"
    assert lab("sweep", "small.toml", "--rates", "2,3", "--out", "none").returncode == 1
    assert lab("sweep", "small.toml", "optimizer.rate=2", "--out", "axis").returncode == 1, (
        "without --rates a diverged run is a failure"
    )
    assert lab("sweep", "small.toml", "optimizer.rate=1", "--rates", "1,2").returncode == 2


def test_step_sizes_are_selected_with_other_seeds_than_those_reported(
    lab: Any, tmp_path: Path
) -> None:
    command = ("sweep", "small.toml", "run.seed=0..1", "--rates", "0.1,0.5", "--out", "out")
    done = lab(*command, "--selection-seeds", "7,9")
    assert done.returncode == 0, done.stderr
    content = sweep_json(tmp_path / "out")
    selecting = {cell["name"] for cell in content["cells"] if cell["selects"]}
    assert selecting == {f"seed{seed}-rate{rate}" for seed in (7, 9) for rate in (0.1, 0.5)}
    reported = {cell["name"] for cell in content["cells"]} - selecting
    assert reported == {"seed0-rate0.5", "seed1-rate0.5"}
    (condition,) = read_conditions(read_sweep(tmp_path / "out"))
    assert {run.name for run in condition.runs} == reported
    assert content["choices"][0]["scores"]["0.5"] == pytest.approx(
        np.mean([final_loss(tmp_path / "out" / f"seed{seed}-rate0.5") for seed in (7, 9)])
    ), "the score is that of the selection seeds"
    for seeds in ("1,2", "0..3", "00"):
        same = lab(*command, "--selection-seeds", seeds)
        assert same.returncode == 2 and "selects step sizes and is reported" in same.stderr
    without_axis = lab("sweep", "small.toml", "--rates", "0.1,0.5", "--selection-seeds", "0")
    assert without_axis.returncode == 2 and "the seed 0 selects" in without_axis.stderr


@pytest.mark.usefixtures("without_drawing")
def test_validation_samples_select_if_a_run_holds_them_out(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the fake program, the smallest step is best on them, and the largest on the test set."""
    monkeypatch.setenv("FAKE_GOSSAMER_CALLS", str(tmp_path / "calls"))
    command = ("sweep", "small.toml", "run.seed=0..1", "--rates", "0.1,0.5", "--out", "out")
    done = lab(*command, "data.validation=0,0.1")
    assert done.returncode == 0, done.stderr
    choices = sweep_json(tmp_path / "out")["choices"]
    assert {c["condition"]["data.validation"]: (c["split"], c["rate"]) for c in choices} == {
        "0": ("test", "0.5"),
        "0.1": ("validation", "0.1"),
    }
    runs = [
        line.split(" --out ")[0]
        for line in (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
        if line.startswith("run") and "--check" not in line
    ]
    selecting = [run for run in runs if "run.seed=100" in run]
    assert len(selecting) == 12 and len(runs) == 16
    for run in runs:
        holds_out = run in selecting and "data.validation=0.1" in run
        assert ("data.evaluate=validation" in run) == holds_out, run
    assert lab("report", "out").returncode == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "The selection reads the test or validation set" in page


@pytest.mark.parametrize("place", ["file", "variant"])
def test_the_held_out_samples_may_be_named_in_a_file_or_variant(
    lab: Any, tmp_path: Path, place: str
) -> None:
    settings = tmp_path / "small.toml"
    text = settings.read_text(encoding="utf-8")
    (tmp_path / "v.toml").write_text(
        '[variants.a]\n"topology.kind" = "star"\n'
        + ('"data.validation" = 0.2\n' if place == "variant" else ""),
        encoding="utf-8",
    )
    if place == "file":
        settings.write_text(text.replace("[data]", "[data]\nvalidation = 0.2"), encoding="utf-8")
    done = lab("sweep", "small.toml", "--variants", "v.toml", "--rates", "0.1,0.5", "--out", "out")
    assert done.returncode == 0, done.stderr
    (choice,) = sweep_json(tmp_path / "out")["choices"]
    assert (choice["split"], choice["rate"]) == ("validation", "0.1")


def test_held_out_samples_of_a_task_in_python_select_too() -> None:
    cell = Cell("a", Path(), {"optimizer.rate": "1"}, {}, selects=True)
    data = {"data": {"validation": 0.1}}
    assert evaluating_cell(cell, data).overrides["data.evaluate"] == "validation"
    task = {**data, "model": {"file": "task.py"}}
    assert evaluating_cell(cell, task).overrides["data.evaluate"] == "validation"
    assert evaluating_cell(cell, {"data": {"validation": 0}}) == cell


def final_loss(folder: Path) -> float:
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return float(summary["final"]["test_loss"]["mean"])


def test_each_measure_has_its_own_step_size(lab: Any, tmp_path: Path) -> None:
    """The fake program learns fastest with the largest step, which moves the peers apart."""
    command = ("sweep", "small.toml", "run.seed=0..1", "--rates", "0.1,0.5,0.9", "--out", "out")
    done = lab(*command, "--select", "test_accuracy", "--select", "consensus_distance at 1")
    assert done.returncode == 0, done.stderr
    sweep = read_sweep(tmp_path / "out")
    rates = {choice.measure: choice.rate for choice in sweep.choices}
    assert rates == {"test_accuracy": "0.9", "consensus_distance at 1": "0.1"}
    for measure, rate in rates.items():
        (condition,) = read_conditions(sweep, measure)
        assert {run.name for run in condition.runs} == {f"seed0-rate{rate}", f"seed1-rate{rate}"}


@pytest.mark.usefixtures("without_drawing")
def test_a_target_that_no_run_reaches_is_named(lab: Any) -> None:
    """It is no reason for the step size that is selected; the best final value is."""
    command = ("sweep", "small.toml", "topology.kind=ring,complete", "--rates", "0.1,0.5,0.9")
    measure = "rounds until test_accuracy 1"
    done = lab(*command, "--out", "out", "--select", measure)
    assert done.returncode == 0, done.stderr
    unreached = f"no step size reaches the target of '{measure}' with every selection seed"
    assert (
        f"sweep: {unreached}; the best final test_accuracy selects 0.9:\n"
        "  topology.kind=ring\n  topology.kind=complete\n" in done.stderr
    )
    report = lab("report", "out")
    assert report.returncode == 0, report.stderr
    assert f"target of the selection ({measure}) with every selection seed" in report.stdout
    reached = lab(*command, "--out", "other", "--select", "rounds until test_accuracy 0.1")
    assert reached.returncode == 0 and "no step size" not in reached.stderr


@pytest.mark.parametrize(
    ("every", "rounds", "message", "remedy"),
    [
        (6, 60, "log.every = 6 shows 2 of the 4 rounds", "choose log.every = 7"),
        (0, 60, "log.every = 0 shows 1 of the 4 rounds", "choose log.every = 1"),
        (3, 9, "log.every = 3 shows 3 of the 4 rounds", "choose log.every = 1"),
        (1, 2, "log.every = 1 shows 2 of the 4 rounds", "run at least 4 rounds"),
        (3, 12, "", ""),
        (1, 60, "", ""),
        ("6 log.last=3", 60, "log.every = 6 shows 3 of the 4 rounds", "or log.last = 4 for"),
        ("6 log.last=4", 60, "", ""),
    ],
)
def test_a_log_that_does_not_show_every_round_of_a_period_is_rejected(
    lab: Any, gossamer: Path, every: int | str, rounds: int, message: str, remedy: str
) -> None:
    """The one-peer exponential graph of 16 peers repeats after 4 rounds."""
    settings = ("run.peers=16", f"run.rounds={rounds}", *f"log.every={every}".split())
    graphs = "topology.kind=ring,random_matching,one_peer_exponential"
    done = lab("sweep", "small.toml", graphs, *settings, "--out", "out", program=gossamer)
    assert done.returncode == (2 if message else 0), done.stderr
    assert message in done.stderr and remedy in done.stderr


def test_an_algorithm_without_a_graph_has_no_period(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    """All-reduce does the same on both graphs, of which one repeats after 2 rounds. A log that does
    not show both of them is no fault.
    """
    graphs = ("topology.kind=ring,one_peer_exponential", "--set", "algorithm.kind=allreduce")
    options = ("--set", "run.rounds=4", "--set", "log.every=2", "--selection-seeds", "7")
    rates = ("--rates", "0.1,0.2", "--select", "test_loss", "--select", "rounds until test_loss 2")
    done = lab("sweep", "small.toml", *graphs, *options, *rates, "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    sweep = read_sweep(tmp_path / "out")
    for select in sweep.metadata["select"]:
        one, other = sweep.choices_for(select).values()
        assert replace(one, condition={}) == replace(other, condition={})
    for text in ("test_accuracy", "test_loss at 2", "rounds until test_loss 2"):
        values = {
            parse_measure(text).value(read_curves(result.cell.folder))
            for result in sweep.comparable_results("test_loss")
        }
        assert len(values) == 1, text
    ring, exponential = read_conditions(sweep)
    assert exponential.topology["period"] == 2
    assert ring.runs[0].final("test_loss") == exponential.runs[0].final("test_loss")


def test_a_step_size_with_a_missing_seed_is_ruled_out() -> None:
    cells = [
        Cell(f"{r}-{s}", Path(), {"run.seed": s, "optimizer.rate": r}, {"run.seed": s})
        for r in ("0.1", "0.2", "0.4")
        for s in "01"
    ]
    summaries = {
        c.name: {"final": {"test_loss": {"mean": 1 - float(c.overrides["optimizer.rate"])}}}
        for c in cells
    }
    del summaries["0.4-1"]
    (choice,) = choose(cells, summaries, ("0.1", "0.2", "0.4"), "test_loss")
    assert (choice.rate, choice.at_edge, choice.ruled_out) == ("0.2", False, ["0.4"])


def test_a_missing_metric_is_named(lab: Any) -> None:
    done = lab(
        "sweep",
        "small.toml",
        "--rates",
        "0.1,0.2",
        "--select",
        "distance_to_optimum",
        "--out",
        "out",
    )
    assert done.returncode == 1 and "runs on these data have no distance_to_optimum" in done.stderr
    assert "diverged" not in done.stderr
