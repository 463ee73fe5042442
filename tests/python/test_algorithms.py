"""The program against the iterations of the papers in numpy, over 200 rounds.

Where the program keeps a sum in place of the paper's two last iterates (D², EXTRA), the reference
is the paper's form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from softmax_problem import PEERS, RATE, UNEVEN, Problem, Rows, edge_list


@pytest.fixture(scope="module", params=["peers", "samples"])
def problem(
    request: pytest.FixtureRequest, gossamer: Path, tmp_path_factory: pytest.TempPathFactory
) -> Problem:
    """With both objectives; shards have three to eight samples."""
    problem = Problem(gossamer, tmp_path_factory.mktemp("classes"))
    problem.weights = request.param
    return problem


ROUNDS, TOLERANCE = 200, 1e-6
# A correction, of the size of a step, is rounded to float32 in each round, and stays.
OF_CORRECTIONS = 2e-6


def check_iteration(
    problem: Problem,
    step: Callable[[int], Rows],
    algorithm: str,
    topology: str,
    *sets: str,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
) -> None:
    """Compares the program with `step`, the models after round t, in the first and last rounds."""
    for t in range(rounds):
        x = step(t)
        if t < 3 or t == rounds - 1:
            actual = problem.run(algorithm, topology, t + 1, *sets)
            errors = np.linalg.norm(actual - x, axis=1) / np.linalg.norm(x, axis=1)
            assert errors.max() <= tolerance, f"round {t + 1}: {errors}"


def lazy_ring() -> Rows:
    w = np.zeros((PEERS, PEERS))
    for i in range(PEERS):
        w[i, i], w[i, i - 1], w[i, (i + 1) % PEERS] = 2 / 3, 1 / 6, 1 / 6
    return w


LAZY = "topology.lazy=true"
# Without a decay, softmax regression has directions along which nothing pulls a model back, and
# float32's rounding adds up along them: test_nothing_moves_where_no_gradient_points.
DECAY = 0.1
DECAYED = f"optimizer.weight_decay={DECAY}"


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
        way = x - RATE * fresh if before is None else 2 * x - before - RATE * (fresh - g)
        before, g, x = x, fresh, w @ way
        return x

    check_iteration(problem, step, "d2", "ring", LAZY, DECAYED, tolerance=OF_CORRECTIONS)


def test_extra(problem: Problem) -> None:
    """x⁺ = (I + W) x − ½ (I + W) x⁻ − γ (∇f(x) − ∇f(x⁻)), from x₁ = W x₀ − γ ∇f(x₀)."""
    w, x = lazy_ring(), problem.start
    both = np.eye(PEERS) + w
    before, g = None, np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, before, g
        fresh = problem.gradients(x) + DECAY * (w @ x)
        following = (
            w @ x - RATE * fresh
            if before is None
            else both @ x - both @ before / 2 - RATE * (fresh - g)
        )
        before, g, x = x, fresh, following
        return x

    check_iteration(problem, step, "extra", "ring", LAZY, DECAYED, tolerance=OF_CORRECTIONS)


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


def test_quasi_global_momentum(problem: Problem) -> None:
    """Lin et al. 2021, Alg. 1: m follows (x − x⁺)/γ."""
    w, x, mu = lazy_ring(), problem.start, 0.9
    m = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, m
        following = w @ (x - RATE * (problem.gradients(x) + DECAY * x + mu * m))
        m = mu * m + (1 - mu) * (x - following) / RATE
        x = following
        return x

    sets = (LAZY, DECAYED, f"algorithm.momentum={mu}")
    check_iteration(problem, step, "qg_momentum", "ring", *sets)


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


@pytest.mark.parametrize("kind", ["allreduce", "server"])
def test_mean_gradient(problem: Problem, kind: str) -> None:
    x = np.tile(problem.start.mean(axis=0), (PEERS, 1))

    def step(_: int) -> Rows:
        nonlocal x
        x = x - RATE * problem.gradients(x).mean(axis=0)
        return x

    check_iteration(problem, step, kind, "complete", "run.init=same")


def test_consensus(problem: Problem) -> None:
    w = lazy_ring()
    x = start = problem.rows("consensus", "ring", 0, LAZY)
    for t in range(1, 31):
        x = w @ x
        if t in (1, 2, 30):
            actual = problem.rows("consensus", "ring", t, LAZY)
            assert np.abs(actual - x).max() <= TOLERANCE * np.abs(start).max()


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


def test_noloco(problem: Problem) -> None:
    alpha, beta, gamma, rounds = 0.5, 0.7, 0.9, 40
    x = problem.start
    delta = np.zeros_like(x)
    pairs = matchings(problem, rounds)

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
        rounds=rounds,
    )


def matchings(problem: Problem, rounds: int) -> list[Any]:
    """The partner of each peer in each round.

    Without their local steps, two partners have equal models after a round of D-PSGD.
    """
    models = [
        problem.run("dpsgd", "random_matching", t, "algorithm.order=awc", "run.init=different")
        for t in range(rounds + 1)
    ]
    pairs = []
    for before, after in itertools.pairwise(models):
        mixed = after + RATE * problem.gradients(before)
        distance = np.abs(mixed[:, None] - mixed[None]).max(axis=2) + np.eye(PEERS)
        assert distance.min(axis=1).max() < 1e-5
        assert (np.sort(distance)[:, 1] > 1e-2).all()
        pairs.append(distance.argmin(axis=1))
    return pairs
