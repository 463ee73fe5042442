"""Teleportation against its iteration in numpy, over 200 rounds."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from iteration_test_util import check_iteration
from philox_reference import philox
from softmax_problem import PEERS, RATE, Problem, Rows


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize(("graph", "active"), [("ring", 3), ("one_peer_exponential", 4)])
def test_teleportation(problem: Problem, graph: str, active: int) -> None:
    """Takezawa and Stich 2025: models go from place to place of a small graph, and from holder to
    holder, who are drawn anew in each round."""
    rounds, x = 200, problem.start
    random = [iter(philox(3, 0xFFFFFFFF, 23, t, 32).tolist()) for t in range(rounds + 1)]

    def below(t: int, bound: int) -> int:  # Lemire 2019
        while True:
            product = next(random[t]) * bound
            if product & 0xFFFFFFFF >= 2**32 % bound:
                return int(product >> 32)

    holders = []
    for t in range(rounds + 1):
        order = list(range(PEERS))
        for place in range(active):
            other = place + below(t, PEERS - place)
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
