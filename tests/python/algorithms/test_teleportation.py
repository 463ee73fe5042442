"""Teleportation against its iteration in numpy, over 200 rounds."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from iteration_test_util import check_iteration
from lab.curves import read_curves
from philox_reference import NO_PEER, below, stream
from softmax_problem import PEERS, RATE, Problem, Rows

SEED, ACTIVE_PEERS = 3, 23  # the purpose of random streams, src/base/philox.hpp


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize(("graph", "active"), [("ring", 3), ("one_peer_exponential", 4)])
def test_teleportation(problem: Problem, graph: str, active: int) -> None:
    """Takezawa and Stich 2025: models go from place to place of a small graph, and from holder to
    holder. These are drawn anew in each round."""
    rounds, x = 200, problem.start
    holders = []
    for t in range(rounds + 1):
        order, numbers = list(range(PEERS)), stream(SEED, NO_PEER, ACTIVE_PEERS, t)
        for place in range(active):
            other = place + below(numbers, PEERS - place)
            order[place], order[other] = order[other], order[place]
        holders.append(order[:active])
    assert len({tuple(each) for each in holders}) > rounds / 4

    def step(t: int) -> Rows:
        nonlocal x
        hops = (1, active - 1) if graph == "ring" else (2 ** (t % 2),)
        w = np.eye(active) * (1 - len(hops) / (len(hops) + 1))
        for place, hop in itertools.product(range(active), hops):
            w[(place + hop) % active, place] += 1 / (len(hops) + 1)
        trained = (x - RATE * problem.gradients(x))[holders[t]]
        x = x.copy()
        x[holders[t + 1]] = w @ trained
        # After the last round the holders give their models to the other peers.
        last = x.copy()
        others = [peer for peer in range(PEERS) if peer not in holders[t + 1]]
        for k, peer in enumerate(others):
            last[peer] = x[holders[t + 1][k % active]]
        return last

    check_iteration(
        problem,
        step,
        "teleportation",
        "ring",
        f"algorithm.active={active}",
        f"algorithm.graph={graph}",
    )


def test_metrics_are_of_the_models(problem: Problem) -> None:
    """A record says where a peer has no model of its round; means and the summary leave it out."""
    problem.run("teleportation", "ring", 7, "algorithm.active=2", "log.every=1")
    records = [json.loads(line) for line in (problem.out / "log-0.jsonl").read_text().splitlines()]
    rounds = [record for record in records if record["record"] == "round"]
    assert len(rounds) == 8 * PEERS
    for t in range(8):
        of_round = [record for record in rounds if record["round"] == t]
        current = [record for record in of_round if record.get("current", True)]
        assert len(current) == 2
        assert all(record["test_loss"] is not None for record in current)
        assert all(r["test_loss"] is None for r in of_round if r not in current)
    networks = [record for record in records if record["record"] == "network"]
    assert [record["round"] for record in networks] == list(range(8))
    last = [r["test_loss"] for r in rounds if r["round"] == 7 and r.get("current", True)]
    summary = json.loads((problem.out / "summary.json").read_text())
    assert summary["final"]["test_loss"]["mean"] == pytest.approx(np.mean(last))
    curves = read_curves(problem.out)
    assert curves.values["test_loss"][-1] == pytest.approx(np.mean(last))


def test_a_round_of_hostile_models_alone_has_no_network_record(problem: Problem) -> None:
    attack = ("attack.peers=[0]", "attack.kind=label_flip", "algorithm.active=1", "log.every=1")
    problem.run("teleportation", "ring", 30, *attack)
    text = (problem.out / "log-0.jsonl").read_text()
    held = [json.loads(line) for line in text.splitlines()]
    networks = {record["round"] for record in held if record["record"] == "network"}
    hostile = {
        record["round"]
        for record in held
        if record["record"] == "round" and record["peer"] == 0 and record.get("current", True)
    }
    assert hostile and networks == set(range(31)) - hostile


def test_a_network_keeps_no_checkpoints(problem: Problem) -> None:
    command = problem.command("teleportation", "ring", 5, "checkpoint.every=1", "net.insecure=true")
    command.remove("--json")
    command[1:2] = ["peer", "--id", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "checkpoint.every: with 'teleportation'" in done.stderr
