"""Runs whose participants change (run.participants): results, logs, resumption and errors."""

import json
import subprocess
from pathlib import Path

import pytest
from network_test_util import NetworkFactory

CHANGES = 'run.participants=["0-3", "4: 0-7", "8: 2-6"]'
RUN = ("run.peers=8", "run.rounds=12", "data.batch=8", "log.every=2", "local.threads=1")


def run(program: Path, out: Path, *sets: str) -> subprocess.CompletedProcess[str]:
    overrides = [argument for each in (*RUN, *sets) for argument in ("--set", each)]
    command = [str(program), "run", "--out", str(out), *overrides]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def summary(program: Path, out: Path, *sets: str) -> dict:
    done = run(program, out, *sets)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("algorithm", ["dpsgd", "gradient_tracking", "push_sum"])
@pytest.mark.parametrize("topology", ["base", "ring"])
def test_processes_compute_what_one_computes(
    gossamer: Path, network: NetworkFactory, tmp_path: Path, algorithm: str, topology: str
) -> None:
    sets = (CHANGES, f"algorithm.kind={algorithm}", f"topology.kind={topology}", "run.rounds=12")
    whole = summary(gossamer, tmp_path / "whole", *sets)
    net = network(8, *sets)
    for ids in ("0-1", "2-6", "7"):  # the first only leaves; the last joins and leaves
        net.start(ids)
    assert net.wait() == [0, 0, 0]
    assert net.summary()["final_hash"] == whole["final_hash"]


def test_only_participants_have_records(gossamer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert summary(gossamer, out, CHANGES)["absent_peers"] == [0, 1, 7]
    lines = (out / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    changes = records[0]["topology"]["changes"]
    assert [change["round"] for change in changes] == [0, 4, 8]
    last = {r["peer"] for r in records if r["record"] == "round" and r["round"] == 12}
    assert last == {2, 3, 4, 5, 6}
    distances = [r for r in records if r["record"] == "network"][-1]["distances_from_mean"]
    assert [d is None for d in distances] == [peer in (0, 1, 7) for peer in range(8)]


@pytest.mark.parametrize(
    ("participants", "other"),
    [
        ('["100: x"]', ""),
        ('["0-99"]', ""),
        ('["0-3", "5: 0-7", "3: 0-3"]', ""),
        ('["3: 0-3"]', ""),
        ('["0-3", "4: 0-3"]', ""),
        ('["0-3", "4: 4-7"]', ""),
        ('["0-3", "12: 0-7"]', ""),
        ('["0-3", "99999999999999999999999: 0-7"]', ""),
        ('["0-3", "4: 0-7"]', "algorithm.kind=d2"),
        ('["0-3", "4: 0-7"]', "algorithm.kind=allreduce"),
        ('["0-3", "4: 0-7"]', "algorithm.kind=choco"),
        ('["0-3", "4: 0-2"]', "topology.kind=hypercube"),
    ],
)
def test_wrong_participants(gossamer: Path, tmp_path: Path, participants: str, other: str) -> None:
    sets = (f"run.participants={participants}", *([other] if other else []))
    done = run(gossamer, tmp_path / "out", *sets)
    assert done.returncode == 2, done.stderr
    assert "run.participants: " in done.stderr
