"""Sweeps with the fake program: which cells run, which results count, and which are rejected."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from lab.axes import Axis, parse_axis, parse_rates
from lab.cells import cell_name, configuration_hash, make_cells
from lab.errors import LabError


def sweep_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "sweep.json").read_text(encoding="utf-8"))


def statuses(folder: Path) -> dict[str, str]:
    return {cell["name"]: cell["status"] for cell in sweep_json(folder)["cells"]}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("topology.kind=ring,torus", ("ring", "torus")),
        ("run.seed=0..2", ("0", "1", "2")),
        ("run.seed=-1..0,7", ("-1", "0", "7")),
        ("data.alpha=0.1,1", ("0.1", "1")),
        ("topology.shape=[2, 8],[4,4]", ("[2, 8]", "[4,4]")),
        ("data.path=../a,../b.1/0..9", ("../a", "../b.1/0..9")),
        ("data.path=..,a/..", ("..", "a/..")),
        ("run.seed=9007199254740992,9007199254740993", ("9007199254740992", "9007199254740993")),
        ("data.test=true,1,nan,inf", ("true", "1", "nan", "inf")),
    ],
)
def test_axis(text: str, values: tuple[str, ...]) -> None:
    assert parse_axis(text).values == values


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("run.seed=3..1", "run.seed"),
        ("run.seed=", "run.seed"),
        ("seed=1", "seed=1"),
        ("run.seed", "run.seed"),
        ("run.seed=1,1", "run.seed"),
        ("run.rate=0.1..0.5", "run.rate"),
        ("run.seed=1..", "run.seed"),
        ("run.seed=..3", "run.seed"),
        ("a.b=1,,2", "a.b"),
        ("run.seed=1,01", "twice in '1,01', as 1 and as 01"),
        ("run.seed=0..2,+1", "as 1 and as +1"),
        ("optimizer.rate=0.5,0.50", "as 0.5 and as 0.50"),
        ("optimizer.rate=1,1e0", "as 1 and as 1e0"),
        ('topology.kind=ring,"ring"', "axis topology.kind: a value is given twice"),
        ("topology.shape=[2, 8],[2,8]", "axis topology.shape: a value is given twice"),
    ],
)
def test_an_invalid_axis_is_named(text: str, named: str) -> None:
    with pytest.raises(LabError, match=re.escape(named)):
        parse_axis(text)


@pytest.mark.parametrize("text", ["0.1,-1", "0.1,x", "0.1,0.10", ""])
def test_invalid_rates_are_rejected(text: str) -> None:
    with pytest.raises(LabError, match="--rates"):
        parse_rates(text)


def test_rates_are_sorted_as_numbers() -> None:
    assert parse_rates("1e-1,0.02,5") == ("0.02", "1e-1", "5")


def test_cell_names_are_readable() -> None:
    assert (
        cell_name({"topology.kind": "ring", "data.alpha": "0.1", "run.seed": "2"})
        == "ring-alpha0.1-seed2"
    )
    assert cell_name({}) == "run"


def test_seeds_and_rates_are_innermost() -> None:
    cells = make_cells(
        [Axis("run.seed", ("0", "1")), Axis("topology.kind", ("ring", "star"))], ("0.1",), Path("x")
    )
    assert [cell.name for cell in cells] == [
        "ring-seed0-rate0.1",
        "ring-seed1-rate0.1",
        "star-seed0-rate0.1",
        "star-seed1-rate0.1",
    ]


def test_the_configuration_hash_depends_on_keys_that_change_a_result() -> None:
    config = {"run": {"seed": 0}, "local": {"threads": 1}, "net": {"listen": "a"}}
    base = configuration_hash(config, {}, False)
    assert base == configuration_hash(
        config, {"run.seed": "0", "local.threads": "4", "net.listen": "b"}, False
    )
    assert base != configuration_hash(config, {"run.seed": "1"}, False)
    assert base != configuration_hash(config, {}, True)


def test_a_sweep_runs_continues_and_writes_results(lab: Any, tmp_path: Path) -> None:
    command = (
        "sweep",
        "small.toml",
        "topology.kind=ring,complete",
        "-j",
        "2",
        "run.seed=0..1",
        "--out",
        "out",
    )
    first = lab(*command)
    assert first.returncode == 0, first.stderr
    assert set(statuses(tmp_path / "out").values()) == {"finished"}
    before = (tmp_path / "out" / "ring-seed0" / "summary.json").stat().st_mtime_ns
    second = lab(*command)
    assert second.returncode == 0 and "4 of them complete" in second.stderr
    assert (tmp_path / "out" / "ring-seed0" / "summary.json").stat().st_mtime_ns == before
    assert lab(*command, "--again").returncode == 0
    assert (tmp_path / "out" / "ring-seed0" / "summary.json").stat().st_mtime_ns != before
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["run"] for row in rows] == [
        "ring-seed0",
        "ring-seed1",
        "complete-seed0",
        "complete-seed1",
    ]
    assert all(float(row["test_accuracy_mean"]) > 0 and row["final_hash"] for row in rows)


@pytest.mark.parametrize("processes", [(), ("--processes",)], ids=["run", "peers"])
def test_only_a_sweep_that_is_told_to_keeps_the_parameters(
    lab: Any, tmp_path: Path, processes: tuple[str, ...]
) -> None:
    for out, options in (("out", ()), ("kept", ("--keep-parameters",))):
        done = lab("sweep", "small.toml", "run.seed=0,1", "--out", out, *options, *processes)
        assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "out").rglob("*.safetensors"))
    kept = {path.parent.name for path in (tmp_path / "kept").rglob("final-*.safetensors")}
    assert kept == {"seed0", "seed1"}


def test_a_changed_configuration_is_run_again(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "--out", "out")
    config = (tmp_path / "small.toml").read_text(encoding="utf-8")
    (tmp_path / "small.toml").write_text("# a comment\n" + config, encoding="utf-8")
    assert "1 of them complete" in lab("sweep", "small.toml", "--out", "out").stderr
    (tmp_path / "small.toml").write_text(
        config.replace("rounds = 6", "rounds = 7"), encoding="utf-8"
    )
    assert "0 of them complete" in lab("sweep", "small.toml", "--out", "out").stderr


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (13, "the thirteenth file is missing"),
        (14, "no complete summary.json"),
        (16, "no complete summary.json"),
    ],
)
def test_a_failed_run_is_reported_and_never_counted(
    lab: Any, tmp_path: Path, seed: int, message: str
) -> None:
    done = lab("sweep", "small.toml", f"run.seed=0,{seed}", "--out", "out")
    assert done.returncode == 1 and message in done.stderr
    assert statuses(tmp_path / "out") == {"seed0": "finished", f"seed{seed}": "failed"}
    again = lab("sweep", "small.toml", f"run.seed=0,{seed}", "--out", "out")
    assert again.returncode == 1 and "1 of them complete" in again.stderr


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("topology.kind=ring,rong", "'rong'"),
        ("run.unknown=1", "run.unknown"),
        ("rum.seed=1", "rum"),
        ("run.seed=2..1", "run.seed"),
    ],
)
def test_an_invalid_axis_is_rejected_before_the_first_run(
    lab: Any, tmp_path: Path, axis: str, message: str
) -> None:
    done = lab("sweep", "small.toml", axis, "--out", "out")
    assert done.returncode == 2 and message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_files_is_not_deleted(lab: Any, tmp_path: Path) -> None:
    foreign = tmp_path / "out" / "seed1"
    foreign.mkdir(parents=True)
    (foreign / "thesis.tex").write_text("years of work", encoding="utf-8")
    done = lab("sweep", "small.toml", "run.seed=1", "--out", "out")
    assert done.returncode == 2 and "not a cell" in done.stderr
    assert (foreign / "thesis.tex").exists()


TASK = """
import numpy as np

class Mean:  # f(x) = |x - 1|^2 / 2
    def __init__(self, rate): self.own = rate
    def tensors(self): return {"x": [3]}
    def initial(self, peer): return np.zeros(3)
    def gradient(self, peer, step, values): return 0.5 * ((values - 1) ** 2).sum(), values - 1
    def update(self, peer, step, values, gradient): return values - self.own * gradient
    def evaluate(self, values): return ((values - 1) ** 2).sum(), 0

def task(config, *, rate=0.1): return Mean(rate)
"""


@pytest.mark.parametrize("processes", [[], ["--processes"]], ids=["simulated", "processes"])
def test_a_task_in_python_is_swept_by_its_step_size(
    lab: Any, gossamer: Path, tmp_path: Path, processes: list[str]
) -> None:
    (tmp_path / "mean_task.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "task.toml").write_text(
        '[run]\npeers = 2\nrounds = 3\n[model]\nkind = "external"\nfile = "mean_task.py"\n',
        encoding="utf-8",
    )
    command = ["sweep", "task.toml", "--rates", "0.1,0.9,1.7", "--selection-seeds", "7"]
    command += ["--out", "out", *processes]
    done = lab(*command, program=gossamer)
    assert done.returncode == 0, done.stderr
    (choice,) = sweep_json(tmp_path / "out")["choices"]
    assert (choice["rate"], choice["at_edge"]) == ("0.9", False)
    again = lab(*command, program=gossamer)
    assert "3 run(s) to select step sizes in out, 3 of them complete" in again.stderr
    assert (
        "1 run(s) in out, 1 of them complete" in again.stderr
        and "another build" not in again.stderr
    )
    (tmp_path / "mean_task.py").write_text(TASK + "\n", encoding="utf-8")
    assert "3 run(s) to select step sizes in out, 0 of" in lab(*command, program=gossamer).stderr
    bad = lab("sweep", "task.toml", "model.raet=1", "--out", "bad", program=gossamer)
    assert bad.returncode == 2 and "model.raet: task() in " in bad.stderr


def test_a_model_file_is_no_task_in_python(lab: Any, gossamer: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(
        '[run]\npeers = 2\nrounds = 2\n[model]\nkind = "graph"\nfile = "model.toml"\n'
        '[data]\nkind = "digits"\n[log]\nevery = 1\n',
        encoding="utf-8",
    )
    (tmp_path / "model.toml").write_text(
        '[[operation]]\nname = "classes"\nkind = "dense"\n', encoding="utf-8"
    )
    command = ("sweep", "graph.toml", "--rates", "0.1,0.2", "--selection-seeds", "7")
    done = lab(*command, "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    (choice,) = sweep_json(tmp_path / "out")["choices"]
    assert choice["rate"] in ("0.1", "0.2")
    assert all(
        "optimizer.rate" in cell["overrides"] for cell in sweep_json(tmp_path / "out")["cells"]
    )


def test_one_process_per_peer(lab: Any, tmp_path: Path) -> None:
    done = lab("sweep", "small.toml", "--processes", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "run").glob("log-*.jsonl"))) == 4
    failed = lab("sweep", "small.toml", "run.seed=13", "--processes", "--out", "out")
    assert (
        failed.returncode == 1 and "peer-1 (exit status 7): gossamer: port in use" in failed.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_runs_and_the_sweep_can_continue(
    lab: Any, tmp_path: Path, fake_gossamer: Path, number: signal.Signals
) -> None:
    assert lab("sweep", "small.toml", "run.seed=0", "--out", "out").returncode == 0
    command = [
        sys.executable,
        str(ROOT / "experiments" / "sweep.py"),
        "small.toml",
        "run.seed=0,15,1",
        "--out",
        "out",
    ]
    environment = {**os.environ, "GOSSAMER_BIN": str(fake_gossamer)}
    sweep = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "out" / "seed15" / "log-0.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and '"round": 6' in log.read_text(encoding="utf-8")):  # until it runs
        assert time.monotonic() < deadline and sweep.poll() is None
        time.sleep(0.01)
    sweep.send_signal(number)
    _, stderr = sweep.communicate(timeout=60)
    assert sweep.returncode == 130 and "interrupted" in stderr
    summary = json.loads((tmp_path / "out" / "seed15" / "summary.json").read_text(encoding="utf-8"))
    assert summary["reason"] == "interrupted", (
        "the run ended after the interrupt and was not killed"
    )
    assert statuses(tmp_path / "out") == {
        "seed0": "finished",
        "seed15": "missing",
        "seed1": "missing",
    }
    assert lab("sweep", "small.toml", "run.seed=0,1", "--out", "out").returncode == 0


def test_a_second_sweep_in_the_same_folder_is_rejected(lab: Any, tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = lab("sweep", "small.toml", "--out", "out")
    assert done.returncode == 2 and "another sweep" in done.stderr


@pytest.mark.parametrize("out", ["small.toml", "small.toml/sweep"])
def test_a_file_as_output_folder_is_rejected(lab: Any, out: str) -> None:
    done = lab("sweep", "small.toml", "--out", out)
    assert done.returncode == 2 and f"--out {out}: " in done.stderr
