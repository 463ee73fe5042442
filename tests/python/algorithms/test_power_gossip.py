"""PowerGossip against a reference in numpy: the iteration in double, and in float32 bit by bit.

Without a weight decay the directions are chaotic while peers train, or have not met: a difference
of one rounding grows by e in about ten products. There the iteration in double is followed for a
few rounds only, and 200 rounds are compared bit by bit, with the sums in the program's order. A
weight decay of 1 shrinks differences faster than they grow, so that the iteration in double stays
with training peers for 200 rounds, although each round uses directions of all the rounds before.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iteration_test_util import LAZY, ROUNDS, check_iteration, lazy_ring
from philox_reference import philox
from softmax_problem import PEERS, PIXELS, RATE, Problem, Rows

DIRECTIONS, SEED, CLASSES = 22, 3, PEERS
W = lazy_ring()
EDGES = [(i, j) for i, j in itertools.combinations(range(PEERS), 2) if W[i, j] > 0]
Vector = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


def first_direction(i: int, j: int) -> Vector:
    """Random signs of the edge between i < j, for the first product, from the right."""
    (word,) = philox(SEED, i, DIRECTIONS, j, 1)
    return 1 - 2.0 * (int(word) >> np.arange(CLASSES) & 1)


def settings(products: int, rate: float, decay: float = 0) -> list[str]:
    return [
        LAZY,
        "run.init=different",
        f"algorithm.products={products}",
        f"optimizer.rate={rate}",
        f"optimizer.weight_decay={decay}",
    ]


@pytest.mark.parametrize(
    ("products", "rate", "decay", "rounds"),
    [(1, RATE, 0, 20), (3, RATE, 0, 4), *((k, RATE / 4, 1, ROUNDS) for k in (1, 2, 3))],
)
def test_the_iteration(
    problem: Problem, products: int, rate: float, decay: float, rounds: int
) -> None:
    """Vogels et al. 2020: each edge mixes its matrices along a direction, and biases whole."""
    sets = settings(products, rate, decay)
    x = problem.run("power_gossip", "ring", 0, *sets)
    vectors = {edge: first_direction(*edge) for edge in EDGES}
    done = 0

    def step(_: int) -> Rows:
        nonlocal x, done
        x = x - rate * (problem.gradients(x) + decay * x)
        for _product in range(products):
            m = x.reshape(PEERS, CLASSES, PIXELS + 1)
            moved = m.copy()
            for i, j in EDGES:
                v = vectors[i, j] / np.linalg.norm(vectors[i, j])
                difference = (m[j] - m[i])[:, :PIXELS].T  # [pixels, classes]
                along = v @ difference if done % 2 else difference @ v
                change = np.zeros_like(m[i])
                change[:, :PIXELS] = (np.outer(v, along) if done % 2 else np.outer(along, v)).T
                change[:, PIXELS] = m[j, :, PIXELS] - m[i, :, PIXELS]
                moved[i] += W[i, j] * change
                moved[j] -= W[i, j] * change
                vectors[i, j] = along
            x = moved.reshape(x.shape)
            done += 1
        return x

    check_iteration(problem, step, "power_gossip", "ring", *sets, rounds=rounds)


def lane_sum(terms: Vector, lanes: int) -> Any:
    """The sum of at most `lanes` terms, as a tree over the lanes."""
    sums = np.zeros(lanes, terms.dtype)
    sums[: len(terms)] = terms
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0]


def product(matrix: Vector, v: Vector, left: bool) -> Vector:
    if not left:
        return np.array([lane_sum(row * v, 16) for row in matrix])
    out = np.zeros(matrix.shape[1], np.float32)
    for row, value in zip(matrix, v, strict=True):
        out = out + value * row
    return out


def test_200_rounds_bit_by_bit(problem: Problem) -> None:
    """Peers that take no steps: in float32 a step size of 1e-46 is 0."""
    sets = settings(1, 1e-46)
    start = problem.run("power_gossip", "ring", 0, *sets).astype(np.float32)
    start = start.reshape(PEERS, CLASSES, PIXELS + 1)
    matrices = [np.ascontiguousarray(m[:, :PIXELS].T) for m in start]
    biases = [m[:, PIXELS].copy() for m in start]
    vectors = {edge: first_direction(*edge).astype(np.float32) for edge in EDGES}
    for t in range(ROUNDS):
        left = t % 2 == 1
        units, sent = {}, {}
        for i, j in EDGES:
            v = vectors[i, j]
            norm = np.sqrt(lane_sum(v.astype(np.float64) ** 2, 256))
            units[i, j] = (v.astype(np.float64) / norm).astype(np.float32)
            sent[i, j] = product(matrices[i], units[i, j], left)
            sent[j, i] = product(matrices[j], units[i, j], left)
            vectors[i, j] = sent[j, i] - sent[i, j]
        before = [bias.copy() for bias in biases]
        for i in range(PEERS):
            for j in sorted({(i - 1) % PEERS, (i + 1) % PEERS}):
                edge = (min(i, j), max(i, j))
                weight, v = np.float32(W[i, j]), units[edge]
                difference = sent[j, i] - sent[i, j]
                if left:
                    matrices[i] += np.outer(weight * v, difference)
                else:
                    matrices[i] += np.outer(weight * difference, v)
                biases[i] += weight * (before[j] - before[i])
    expected = np.array(
        [np.column_stack([m.T, b]).ravel() for m, b in zip(matrices, biases, strict=True)]
    )
    actual = problem.run("power_gossip", "ring", ROUNDS, *sets)
    assert (actual.astype(np.float32) == expected).all()
    assert (actual != start.reshape(PEERS, -1)).any()
