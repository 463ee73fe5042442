"""The program against the iterations of the papers in numpy, over 200 rounds.

Where the program keeps a sum in place of the paper's two last iterates (D², EXTRA), the reference
is the paper's form.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iteration_test_util import (
    DECAY,
    DECAYED,
    LAZY,
    ROUNDS,
    check_iteration,
    check_rows,
    lazy_ring,
    order_of_peers,
)
from softmax_problem import PEERS, RATE, UNEVEN, Problem, Rows, edge_list

TOPOLOGY = 6  # the purpose of random streams, src/base/philox.hpp
# The corrections of D² and EXTRA, of the size of a step, are rounded to float32 in each round, and
# the errors stay: with steps of RATE they are 2e-6 of a model after 200 rounds.
SMALL_RATE = RATE / 16


def test_every_algorithm_is_in_these_tests(gossamer: Path) -> None:
    done = subprocess.run(
        [str(gossamer), "list", "--json"], capture_output=True, text=True, check=True, timeout=60
    )
    texts = "".join(each.read_text("utf-8") for each in Path(__file__).parent.glob("test_*.py"))
    assert {
        kind for kind in json.loads(done.stdout)["algorithm"] if f'"{kind}"' not in texts
    } == set()


@pytest.mark.parametrize("order", ["atc", "awc"])
@pytest.mark.parametrize(
    ("steps", "momentum", "nesterov"),
    [(1, 0, False), (3, 0, False), (2, 0.5, False), (1, 0.5, True)],
)
def test_dpsgd(problem: Problem, order: str, steps: int, momentum: float, nesterov: bool) -> None:
    """x⁺ = W u, or W x + (u − x), with u after the local steps."""
    w, x = lazy_ring(), problem.start
    v = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, v
        u = x
        for _step in range(steps):
            g = problem.gradients(u)
            v = momentum * v + g
            u = u - RATE * (g + momentum * v if nesterov else v)
        x = w @ u if order == "atc" else w @ x + (u - x)
        return x

    check_iteration(
        problem,
        step,
        "dpsgd",
        "ring",
        LAZY,
        f"algorithm.order={order}",
        f"algorithm.local_steps={steps}",
        f"optimizer.momentum={momentum}",
        f"optimizer.nesterov={str(nesterov).lower()}",
    )


@pytest.mark.parametrize("order", ["atc", "awc"])
def test_gradient_tracking(problem: Problem, order: str) -> None:
    """x⁺ = W (x − γ y), or W x − γ y;  y⁺ = W y + ∇f(x⁺) − ∇f(x);  y₀ = ∇f(x₀)."""
    w, x = lazy_ring(), problem.start
    y = g = problem.gradients(x)

    def step(_: int) -> Rows:
        nonlocal x, y, g
        x = w @ (x - RATE * y) if order == "atc" else w @ x - RATE * y
        fresh = problem.gradients(x)
        y, g = w @ y + fresh - g, fresh
        return x

    check_iteration(problem, step, "gradient_tracking", "ring", LAZY, f"algorithm.order={order}")


def test_d2(problem: Problem) -> None:
    """x⁺ = W (2 x − x⁻ − γ (∇f(x) − ∇f(x⁻))), from x₁ = W (x₀ − γ ∇f(x₀))."""
    w, x = lazy_ring(), problem.start
    before, g = None, np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, before, g
        fresh = problem.gradients(x) + DECAY * x
        way = (
            x - SMALL_RATE * fresh if before is None else 2 * x - before - SMALL_RATE * (fresh - g)
        )
        before, g, x = x, fresh, w @ way
        return x

    sets = (LAZY, DECAYED, f"optimizer.rate={SMALL_RATE}")
    check_iteration(problem, step, "d2", "ring", *sets)


def test_extra(problem: Problem) -> None:
    """x⁺ = (I + W) x − ½ (I + W) x⁻ − γ (∇f(x) − ∇f(x⁻)), from x₁ = W x₀ − γ ∇f(x₀)."""
    w, x = lazy_ring(), problem.start
    both = np.eye(PEERS) + w
    before, g = None, np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, before, g
        fresh = problem.gradients(x) + DECAY * (w @ x)
        following = (
            w @ x - SMALL_RATE * fresh
            if before is None
            else both @ x - both @ before / 2 - SMALL_RATE * (fresh - g)
        )
        before, g, x = x, fresh, following
        return x

    sets = (LAZY, DECAYED, f"optimizer.rate={SMALL_RATE}")
    check_iteration(problem, step, "extra", "ring", *sets)


@pytest.mark.parametrize("kind", ["d2", "extra"])
def test_nothing_moves_where_no_gradient_points(problem: Problem, kind: str) -> None:
    """No gradient changes the sum of a feature's weights over the classes, and mixing keeps means.

    A correction that gathers the rounding errors of mixed rows moves the peers' mean along such
    directions by the square of the number of rounds: it was a tenth after 8,000.
    """

    def sums(x: Rows) -> Rows:
        return x.reshape(PEERS, PEERS, -1).sum(axis=1).mean(axis=0)

    start, end = sums(problem.start), sums(problem.run(kind, "ring", 8000, LAZY))
    assert np.linalg.norm(end - start) / np.linalg.norm(start) < 5e-3


def test_choco_without_a_codec(problem: Problem) -> None:
    """Koloskova et al. 2019, Alg. 2, with Q the identity: x⁺ = u + γ_c (W − I) u.

    tests/python/test_codecs.py has CHOCO with codecs.
    """
    w, x, rate = lazy_ring(), problem.start, 0.4

    def step(_: int) -> Rows:
        nonlocal x
        u, _v = problem.local_steps(x, 2)
        x = u + rate * (w @ u - u)
        return x

    sets = (LAZY, f"algorithm.consensus_rate={rate}", "algorithm.local_steps=2")
    check_iteration(problem, step, "choco", "ring", *sets)


def test_centralized(problem: Problem) -> None:
    """One model, which steps with the mean of the gradients of all shards at it."""

    def models(rounds: int) -> Rows:
        tensors = problem.tensors("centralized", "complete", rounds)
        assert len(tensors) == 2
        weights, bias = (tensors[f"peer0.0.dense.{name}"] for name in ("weights", "bias"))
        return np.column_stack([weights.T, bias]).reshape(1, -1).astype(np.float64)

    x = models(0)
    for t in range(1, ROUNDS + 1):
        x = x - RATE * problem.gradients(np.repeat(x, PEERS, axis=0)).mean(axis=0)
        if t in (1, 2, 3, ROUNDS):
            check_rows(models(t), x, t)


@pytest.mark.parametrize("kind", ["allreduce", "server"])
def test_mean_gradient(problem: Problem, kind: str) -> None:
    x = np.tile(problem.start.mean(axis=0), (PEERS, 1))

    def step(_: int) -> Rows:
        nonlocal x
        x = x - RATE * problem.gradients(x).mean(axis=0)
        return x

    check_iteration(problem, step, kind, "complete", "run.init=same")


def test_consensus(problem: Problem) -> None:
    """On a path: on the ring, peers would agree to 1e-6 after 80 rounds."""
    w = np.eye(PEERS)
    for i in range(PEERS - 1):
        w[[i, i + 1], [i + 1, i]] = 1 / 6
        w[[i, i + 1], [i, i + 1]] -= 1 / 6
    x = problem.rows("consensus", "path", 0, LAZY)
    for t in range(1, ROUNDS + 1):
        x = w @ x
        if t in (1, 2, 3, 30, ROUNDS):
            check_rows(problem.rows("consensus", "path", t, LAZY), x, t)


@pytest.mark.parametrize("kind", ["push_sum", "async_push_sum"])
def test_push_sum(problem: Problem, kind: str) -> None:
    w = np.eye(PEERS)
    for a, b in UNEVEN:
        w[b, a] = 1
    w /= w.sum(axis=0)
    x, weight = problem.start, np.ones((PEERS, 1))
    z = x.copy()

    def step(_: int) -> Rows:
        nonlocal x, weight, z
        x = w @ (x - RATE * problem.gradients(z))
        weight = w @ weight
        z = x / weight
        return z

    check_iteration(problem, step, kind, "file", *edge_list(problem, "uneven", UNEVEN))


def test_push_pull(problem: Problem) -> None:
    """Pu et al. 2021, Alg. 1: x⁺ = A (x − γ y), y⁺ = B y + ∇f(x⁺) − ∇f(x), y₀ = ∇f(x₀).

    B has equal weights in its columns, and A is B with its rows divided by their sums.
    """
    b = np.eye(PEERS)
    for sender, receiver in UNEVEN:
        b[receiver, sender] = 1
    b /= b.sum(axis=0)
    a = b / b.sum(axis=1, keepdims=True)
    assert np.abs(a.sum(axis=0) - 1).max() > 0.05  # only its rows sum to 1
    x = problem.start
    y = g = problem.gradients(x)

    def step(_: int) -> Rows:
        nonlocal x, y, g
        x = a @ (x - RATE / 2 * y)
        fresh = problem.gradients(x)
        y, g = b @ y + fresh - g, fresh
        return x

    sets = (*edge_list(problem, "uneven", UNEVEN), f"optimizer.rate={RATE / 2}")
    check_iteration(problem, step, "push_pull", "file", *sets)


@pytest.mark.parametrize("kind", ["path", "binary_tree", "star"])
def test_relay_sgd(problem: Problem, kind: str) -> None:
    parents = {"path": lambda i: i - 1, "binary_tree": lambda i: (i - 1) // 2, "star": lambda _: 0}[
        kind
    ]
    edges = [(i, parents(i)) for i in range(1, PEERS)]
    neighbours = {
        i: [b for a, b in edges if a == i] + [a for a, b in edges if b == i] for i in range(PEERS)
    }
    x = problem.start
    messages = {(i, j): np.zeros_like(x[0]) for i in range(PEERS) for j in neighbours[i]}
    counts = dict.fromkeys(messages, 0)

    def step(_: int) -> Rows:
        nonlocal x, messages, counts
        half = x - RATE * (problem.gradients(x) + DECAY * x)
        messages, counts = (
            {
                (i, j): half[i] + sum(messages[k, i] for k in neighbours[i] if k != j)
                for i, j in messages
            },
            {(i, j): 1 + sum(counts[k, i] for k in neighbours[i] if k != j) for i, j in counts},
        )
        x = np.array(
            [
                (half[i] + sum(messages[j, i] for j in neighbours[i]))
                / (1 + sum(counts[j, i] for j in neighbours[i]))
                for i in range(PEERS)
            ]
        )
        return x

    check_iteration(problem, step, "relay_sgd", kind, DECAYED)


def test_diloco(problem: Problem) -> None:
    outer_rate, outer_momentum, inner = 0.7, 0.9, 0.5
    x = problem.start
    velocity, v = np.zeros_like(x), np.zeros_like(x[0])

    def step(_: int) -> Rows:
        nonlocal x, velocity, v
        theta, velocity = problem.local_steps(x, 5, inner, velocity, DECAY)
        outer = (x - theta).mean(axis=0)
        v = outer_momentum * v + outer
        x = x - outer_rate * (outer + outer_momentum * v)
        return x

    check_iteration(
        problem,
        step,
        "diloco",
        "complete",
        "algorithm.local_steps=5",
        f"optimizer.momentum={inner}",
        DECAYED,
    )


def test_sparseloco(problem: Problem) -> None:
    """Sarfi et al. 2025: the largest values of decayed errors and ways are sent, the rest kept."""
    decay, outer_rate, kept = 0.95, 0.8, 14  # a quarter of 54 values
    x = problem.start
    error = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, error
        theta, _v = problem.local_steps(x, 5, decay=DECAY)
        error = decay * error + x - theta
        sent = np.zeros_like(error)
        for own, chosen in zip(error, sent, strict=True):
            largest = np.argsort(-np.abs(own))[:kept]
            chosen[largest] = own[largest]
        error = error - sent
        x = x - outer_rate * sent.mean(axis=0)
        return x

    check_iteration(
        problem,
        step,
        "sparseloco",
        "complete",
        "run.init=same",
        "algorithm.local_steps=5",
        f"algorithm.outer_rate={outer_rate}",
        "codec.kind=topk",
        "codec.fraction=0.25",
        DECAYED,
    )


def test_noloco(problem: Problem) -> None:
    alpha, beta, gamma = 0.5, 0.7, 0.9
    x = problem.start
    delta = np.zeros_like(x)
    pairs = matchings(ROUNDS)

    def step(t: int) -> Rows:
        nonlocal x, delta
        theta, _v = problem.local_steps(x, 4)
        other = pairs[t]
        way = (theta - x + theta[other] - x[other]) / 2
        delta = alpha * delta + beta * way - gamma * (x - (x + x[other]) / 2)
        x = x + delta
        return x

    check_iteration(
        problem,
        step,
        "noloco",
        "random_matching",
        "algorithm.local_steps=4",
        f"algorithm.pull={gamma}",
    )


def matchings(rounds: int) -> list[Any]:
    """The partner of each peer in each round: of a random order, the 1st and 2nd, 3rd and 4th, …"""
    pairs = []
    for t in range(rounds):
        order = order_of_peers(TOPOLOGY, t)
        partner = np.zeros(PEERS, int)
        partner[order[0::2]], partner[order[1::2]] = order[1::2], order[0::2]
        pairs.append(partner)
    return pairs
