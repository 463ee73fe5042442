"""Open runs: a loop in Python joins a network that no configuration announced, and leaves it."""

import json
from pathlib import Path

import gossamer
import gossamer.torch as gossip
import pytest
import torch
from conftest import Configure
from process_test_util import Processes, Program

OPEN = ("run.open=true", "run.participants=0-1", "topology.kind=base")


def test_a_loop_joins_and_leaves_for_good(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    config = configure(4, 10**6)
    leave, enough = tmp_path / "leave", tmp_path / "enough"

    def start(peer: int, option: str) -> Program:
        return processes.start("loop.py", config, peer, tmp_path / "out", option, *OPEN)

    others = [start(peer, f"until={enough}") for peer in (0, 1)]
    for each in others:
        each.wait_for("step 10")
    newcomer = start(3, f"leave={leave}")
    newcomer.wait_for("step 10")
    leave.touch()
    end = newcomer.result()
    assert end["end"]["reason"] == "left" and end["accuracy"] > 0.4
    enough.touch()
    assert all(each.result()["accuracy"] > 0.7 for each in others)
    log = (tmp_path / "out" / "log-0.jsonl").read_text().splitlines()
    changes = [json.loads(line) for line in log if '"event":"participants"' in line]
    assert [each["participants"] for each in changes] == ["0,1,3", "0,1"]


def test_only_an_open_run_is_left_before_its_end(configure: Configure, tmp_path: Path) -> None:
    parameters = [torch.nn.Parameter(torch.ones(2))]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    with gossip.Optimizer(optimizer, configure(1, 5), 0, out=tmp_path / "out") as wrapped:
        with pytest.raises(gossamer.Error, match="leave.*: only a peer of an open run"):
            wrapped.leave()
