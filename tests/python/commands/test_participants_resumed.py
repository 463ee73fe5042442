"""Runs whose participants change, resumed: before, at and after a change, in one process and in
several, with the bits of the run that never stopped."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from network_test_util import NetworkFactory, wait_until

RUN = (
    'run.participants=["0-3", "4: 0-7", "8: 2-6"]',
    "run.peers=8",
    "run.rounds=12",
    "data.batch=8",
    "log.every=2",
    "local.threads=1",
    "checkpoint.every=1",
    "checkpoint.keep=100",
)


def run(program: Path, out: Path, *options: str, sets: tuple[str, ...] = RUN) -> dict:
    overrides = [argument for each in sets for argument in ("--set", each)]
    command = [str(program), "run", "--out", str(out), *overrides, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("algorithm", ["gradient_tracking", "push_sum", "qg_momentum"])
def test_a_run_resumes_from_every_round(gossamer: Path, tmp_path: Path, algorithm: str) -> None:
    sets = (*RUN, f"algorithm.kind={algorithm}")
    whole = run(gossamer, tmp_path / "whole", sets=sets)
    checkpoints = sorted((tmp_path / "whole" / "checkpoints").glob("*.json"))
    assert len(checkpoints) == 12
    log = (tmp_path / "whole" / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    for checkpoint in checkpoints[:-1]:
        out = tmp_path / checkpoint.stem
        shutil.copytree(tmp_path / "whole", out)
        resumed = run(
            gossamer, out, "--resume", str(out / "checkpoints" / checkpoint.name), sets=sets
        )
        assert resumed["final_hash"] == whole["final_hash"], checkpoint.name
        assert resumed["absent_peers"] == [0, 1, 7]
        rounds = [
            [(r["round"], r["peer"]) for r in map(json.loads, lines) if r["record"] == "round"]
            for lines in (log, (out / "log-0.jsonl").read_text(encoding="utf-8").splitlines())
        ]
        assert sorted(rounds[0]) == sorted(rounds[1])
        shutil.rmtree(out)


def test_a_checkpoint_has_the_states_of_those_that_took_part(
    gossamer: Path, tmp_path: Path
) -> None:
    run(gossamer, tmp_path / "whole")
    for name, peers in {4: range(4), 5: range(8), 8: range(8), 9: range(2, 7)}.items():
        path = tmp_path / "whole" / "checkpoints" / f"round-{name:08}-0.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        assert [node["node"] for node in manifest["nodes"]] == list(peers)


@pytest.mark.parametrize("newest", [2, 4, 6, 8, 9])
def test_a_network_resumes_before_and_after_its_changes(
    gossamer: Path, network: NetworkFactory, tmp_path: Path, newest: int
) -> None:
    """The first process has only peers that leave, and the last one that joins and leaves."""
    whole = run(gossamer, tmp_path / "whole")
    net = network(8, *RUN)
    for ids in ("0-1", "2-6", "7"):
        net.start(ids)
    assert net.wait() == [0, 0, 0]
    for path in list(net.out.rglob("checkpoints/*")):
        if int(path.name.split("-")[1]) > newest:
            path.unlink()
    for ids in ("0-1", "2-6", "7"):
        net.start(ids, resume="auto")
    assert net.wait() == [0] * 6
    for process in net.processes[3:]:
        assert f"resuming from the checkpoint of round {newest}" in process.stderr
    assert net.summary()["final_hash"] == whole["final_hash"]


@pytest.mark.parametrize("least", [500, 1500, 2500])
@pytest.mark.parametrize("algorithm", ["gradient_tracking", "push_sum"])
def test_a_network_that_is_killed_resumes(
    network: NetworkFactory, algorithm: str, least: int
) -> None:
    """All processes are killed in the part of the run in which round `least` is, or later."""
    net = network(
        8,
        'run.participants=["0-3", "1000: 0-7", "2000: 2-6"]',
        "run.rounds=8000",
        "log.every=100",
        "checkpoint.every=100",
        "checkpoint.keep=3",
        "net.on_loss=stop",
        "topology.kind=base",
        f"algorithm.kind={algorithm}",
    )
    groups = ("0-1", "2-6", "7")
    for ids in groups:
        net.start(ids)
    wait_until(
        f"a checkpoint of round {least}, or a later one",
        lambda: max(net.kept_rounds(2), default=0) >= least,
    )
    # The other two may have ended already, because their peers had left.
    assert net.kill_at_once()[1] == -signal.SIGKILL, net.processes[1].stderr
    net.processes.clear()
    for ids in groups:
        net.start(ids, resume="auto")
    assert net.wait() == [0, 0, 0], [process.stderr for process in net.processes]
    for process in net.processes:
        assert "resuming from the checkpoint of round " in process.stderr
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
