"""The comparison of a run with an iteration in numpy, round by round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from philox_reference import NO_PEER, random_order, stream
from softmax_problem import PEERS, Problem, Rows

ROUNDS, TOLERANCE = 200, 1e-6
SEED = 3  # run.seed of a Problem's runs


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
            check_rows(actual, x, f"round {t + 1}", tolerance)


def check_rows(actual: Rows, x: Rows, what: object, tolerance: float = TOLERANCE) -> None:
    """Of each row, the norm of the difference over the norm of the reference."""
    errors = np.linalg.norm(actual - x, axis=1) / np.linalg.norm(x, axis=1)
    assert errors.max() <= tolerance, f"{what}: {errors}"


def lazy_ring() -> Rows:
    w = np.zeros((PEERS, PEERS))
    for i in range(PEERS):
        w[i, i], w[i, i - 1], w[i, (i + 1) % PEERS] = 2 / 3, 1 / 6, 1 / 6
    return w


def order_of_peers(purpose: int, t: int) -> list[int]:
    """The peers in a random order of round t. Purposes: src/base/philox.hpp."""
    return random_order(PEERS, stream(SEED, NO_PEER, purpose, t))


LAZY = "topology.lazy=true"
# Without a decay, softmax regression has directions along which nothing pulls a model back, and
# float32's rounding adds up along them: test_nothing_moves_where_no_gradient_points.
DECAY = 0.1
DECAYED = f"optimizer.weight_decay={DECAY}"
