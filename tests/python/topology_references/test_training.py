"""D-PSGD on every random topology against numpy, over 200 rounds, with W_t built here.

The random numbers are Philox's, keyed by (seed, peer, purpose, step); the weights are those of the
papers. The program's matrices are compared with them too, but give no value to the iteration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import keyed_draws
import numpy as np
import pytest
from philox_reference import philox
from random_topology_reference import laplacians, matcha_alpha
from reference_matrices import (
    adjacency,
    circulant,
    report,
    setting,
    shifted_round,
    weighted,
)
from softmax_problem import PEERS, RATE, Problem

ROUNDS, TOLERANCE, SEED = 200, 1e-6, 3
DECAY = 0.1  # without it, rounding adds up along directions in which no gradient points

Rounds = Callable[[int, int], np.ndarray]  # W of a number of peers, in round t


def undirected(edges: set[tuple[int, int]], n: int) -> np.ndarray:
    return weighted(adjacency(n, edges), "metropolis")


def random_matching(n: int, t: int) -> np.ndarray:
    return undirected(keyed_draws.matching(n, SEED, t), n)


def oracle(n: int, t: int) -> np.ndarray:
    return undirected(keyed_draws.oracle(n, 3, SEED, t), n)


def local(n: int, t: int) -> np.ndarray:
    """A peer averages its row with those that it receives."""
    a = np.zeros((n, n))
    for sender in range(n):
        a[list(keyed_draws.receivers(n, 2, SEED, t, sender)), sender] = 1
    return weighted(a, "in_degree")


def pairs_of_shifts(n: int, t: int) -> np.ndarray:
    choices = list(range(1, n))
    return shifted_round(n, *keyed_draws.shift_and_start(n, choices, SEED, t), directed=False)


def directed_shifts(n: int, t: int) -> np.ndarray:
    choices = keyed_draws.shifts(n, 2, SEED)
    shift, start = keyed_draws.shift_and_start(n, choices, SEED, t)
    return shifted_round(n, shift, start, directed=True, eta=0.8)


@cache
def alpha_of_star(n: int) -> float:
    """MATCHA's α for a star: n − 1 matchings of one edge, each active half of the time.

    The program documents that α is rounded down to a multiple of 2^−20.
    """
    parts = laplacians(n, [[(0, i)] for i in range(1, n)])
    best = matcha_alpha(parts, np.full(n - 1, 0.5), 1 / (n - 1))
    return math.floor(best * 2**20) / 2**20


def matcha(n: int, t: int) -> np.ndarray:
    """I − α Σ B_j L_j.

    The paper leaves the order of the matchings open. Misra and Gries colour the edges of a star one
    by one, and move the colours of earlier edges along: the last two edges end with the first two
    colours, in reverse, and the others with the third colour, the fourth, …
    """
    colours = [*range(2, n - 1), 1, 0]
    on = keyed_draws.active([0.5] * (n - 1), SEED, t)
    a = adjacency(n, [(0, i) for i, colour in enumerate(colours, 1) if on[colour]])
    w: np.ndarray = np.eye(n) - alpha_of_star(n) * (np.diag(a.sum(axis=1)) - a)
    return w


def erdos_renyi(n: int, _: int) -> np.ndarray:
    return undirected(keyed_draws.erdos_renyi(n, 0.5, SEED), n)


def random_regular(n: int, _: int) -> np.ndarray:
    return undirected(keyed_draws.random_regular(n, 3, SEED), n)


def d_equistatic(n: int, _: int) -> np.ndarray:
    return circulant(n, keyed_draws.shifts(n, 2, SEED))


def u_equistatic(n: int, _: int) -> np.ndarray:
    w = circulant(n, keyed_draws.shifts(n, 2, SEED))
    mean: np.ndarray = (w + w.T) / 2
    return mean


CASES: dict[str, tuple[str, dict[str, object], Rounds]] = {
    "random_matching": ("random_matching", {}, random_matching),
    "epidemic": ("epidemic", {"degree": 3}, oracle),
    "epidemic-local": ("epidemic", {"degree": 2, "local": True}, local),
    "equidyn": ("equidyn", {}, pairs_of_shifts),
    "equidyn-directed": ("equidyn", {"directed": True, "m": 2, "eta": 0.8}, directed_shifts),
    "matcha": ("matcha", {"base": "star", "budget": 0.5}, matcha),
    "erdos_renyi": ("erdos_renyi", {"p": 0.5}, erdos_renyi),
    "random_regular": ("random_regular", {"degree": 3}, random_regular),
    "equistatic-directed": ("equistatic", {"directed": True, "m": 2}, d_equistatic),
    "equistatic": ("equistatic", {"m": 2}, u_equistatic),
}
every_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


def test_philox_has_the_published_answers() -> None:
    """The known answers of Random123 (Salmon et al. 2011) for Philox4x32-10."""
    ones = 2**32 - 1
    pi = philox(0x299F31D0A4093822, 0x13198A2E, 0x0D, 0x30734485A308D3, 4, 0x243F6A88)
    for actual, answer in (
        (philox(0, 0, 0, 0, 4), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (philox(2**64 - 1, ones, 0x3FF, 2**54 - 1, 4, ones), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (pi, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ):
        assert [f"{value:08x}" for value in actual.tolist()] == answer.split()


@every_case
@pytest.mark.parametrize("n", [PEERS, 12, 26])
def test_the_printed_rounds_are_those_of_the_keyed_numbers(
    gossamer: Path, case: str, n: int
) -> None:
    kind, values, w = CASES[case]
    rounds = ROUNDS if n == PEERS else 40
    sets = [*setting(**values), "--seed", str(SEED), "--rounds", str(rounds)]
    matrices = np.array(report(gossamer, kind, n, *sets)["matrix"])
    assert len(matrices) in (1, rounds)
    for t, matrix in enumerate(matrices):
        np.testing.assert_allclose(matrix, w(n, t), rtol=0, atol=1e-14, err_msg=f"round {t}")


@every_case
def test_dpsgd_in_200_rounds(problem: Problem, case: str) -> None:
    """x⁺ = W_t (x − γ (∇f(x) + λ x)), in double."""
    kind, values, w = CASES[case]
    sets = [f"topology.{word}" for word in setting(**values) if word != "--set"]
    sets.append(f"optimizer.weight_decay={DECAY}")
    x = problem.start
    for t in range(ROUNDS):
        x = w(PEERS, t) @ (x - RATE * (problem.gradients(x) + DECAY * x))
        if t in (0, 1, 2, ROUNDS - 1):
            models = problem.run("dpsgd", kind, t + 1, *sets)
            errors = np.linalg.norm(models - x, axis=1) / np.linalg.norm(x, axis=1)
            assert errors.max() <= TOLERANCE, f"round {t + 1}: {errors}"
    spread = np.linalg.norm(x - x.mean(axis=0), axis=1) / np.linalg.norm(x, axis=1)
    assert spread.max() > 1e-2  # models differ, so that W_t matters


def test_the_rounds_differ() -> None:
    """Of a topology that is drawn anew, W_t is not that of the next round."""
    for case, (kind, _, w) in CASES.items():
        changes = [
            not np.array_equal(x, y)
            for x, y in itertools.pairwise([w(PEERS, t) for t in range(ROUNDS)])
        ]
        static = kind in ("erdos_renyi", "random_regular", "equistatic")
        assert (sum(changes) == 0) if static else (sum(changes) > ROUNDS // 4), case
