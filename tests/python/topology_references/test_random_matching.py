"""Random matchings: the rounds, their law and their rate, in numpy.

With an even n, each pair is matched with probability 1/(n − 1), with an odd n, where one peer
rests, with probability 1/n. W_t is a projection, so E W_tᵀW_t = E W_t. Beside consensus, the
eigenvalue of E W_t is (n − 2)/(2 (n − 1)) with an even n, and 1/2 with an odd n.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import keyed_draws
import numpy as np
import pytest
from reference_matrices import (
    adjacency,
    excess_of_pairs,
    lazily,
    report,
    reports,
    weighted,
)


def factor_of(n: int, lazy: bool = False) -> float:
    factor = 0.5 if n % 2 else (n - 2) / (2 * (n - 1))
    # (I + W)²/4 = (I + 3 W)/4 of a projection W.
    return (1 + 3 * factor) / 4 if lazy else factor


def drawn(gossamer: Path, n: int, rounds: int, *arguments: str) -> np.ndarray:
    found = report(gossamer, "random_matching", n, "--rounds", str(rounds), *arguments)
    matrices = np.array(found["matrix"])
    assert matrices.shape == (rounds, n, n)
    return matrices


def every_matching(peers: list[int]) -> list[list[tuple[int, int]]]:
    """All matchings that leave no two peers alone."""
    if len(peers) <= 1:
        return [[]]
    found = []
    if len(peers) % 2:
        for alone in peers:
            found += every_matching([peer for peer in peers if peer != alone])
        return found
    first, *others = peers
    for partner in others:
        rest = [peer for peer in others if peer != partner]
        found += [[(first, partner), *matching] for matching in every_matching(rest)]
    return found


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize("lazy", [False, True])
def test_the_closed_form_is_the_rate_over_every_matching(n: int, lazy: bool) -> None:
    outcomes = [weighted(adjacency(n, m), "metropolis") for m in every_matching(list(range(n)))]
    count = math.factorial(n + n % 2) // (2 ** ((n + 1) // 2) * math.factorial((n + 1) // 2))
    assert len(outcomes) == count
    outcomes = [lazily(w) for w in outcomes] if lazy else outcomes
    gram = np.mean([w.T @ w for w in outcomes], axis=0)
    worst = np.linalg.eigvalsh(gram - 1 / n)[-1]
    assert worst == pytest.approx(factor_of(n, lazy), abs=1e-12)


@pytest.mark.parametrize("lazy", [False, True])
def test_the_rate_is_the_closed_form(gossamer: Path, lazy: bool) -> None:
    flags = ["--lazy"] if lazy else []
    sizes = ",".join(map(str, [*range(2, 25), 33, 48, 64]))
    found = {each["peers"]: each for each in reports(gossamer, "random_matching", sizes, *flags)}
    for n, each in found.items():
        gap = 1 - math.sqrt(factor_of(n, lazy))
        assert each["spectral_gap"] == pytest.approx(gap, abs=1e-12), n
        assert each["period"] == 0 and each["spectral_gap_expected"]
        assert each["doubly_stochastic"] and each["symmetric"]
        assert (each["degree_min"], each["degree_max"]) == (1 - n % 2, 1)
    if not lazy:
        assert found[4]["spectral_gap"] == pytest.approx(0.42265, abs=5e-6)
        assert found[8]["spectral_gap"] == pytest.approx(0.34535, abs=5e-6)


@pytest.mark.parametrize("n", [2, 3, 6, 9, 16, 33])
def test_rounds_are_matchings_that_average(gossamer: Path, n: int) -> None:
    """W is that of the keyed pairs: 1/2 and 1/2 for each pair, and 1 for a peer that rests."""
    for seed in (0, 11):
        for t, w in enumerate(drawn(gossamer, n, 60, "--seed", str(seed))):
            assert set(np.unique(w)) <= {0.0, 0.5, 1.0}
            np.testing.assert_array_equal(w, w.T)
            assert ((w > 0).sum(axis=1) == 2).sum() == n - n % 2
            assert (w.diagonal() == 1).sum() == n % 2
            np.testing.assert_array_equal(w @ w, w)
            expected = weighted(adjacency(n, keyed_draws.matching(n, seed, t)), "metropolis")
            np.testing.assert_array_equal(w, expected)


@pytest.mark.parametrize("n", [6, 7, 12])
def test_pairs_are_uniform(gossamer: Path, n: int) -> None:
    """A chi-square over the pairs; the peer that rests is paired with a peer that is added."""
    rounds = 3000
    for seed in (0, 1):
        edges = (drawn(gossamer, n, rounds, "--seed", str(seed)) == 0.5) & ~np.eye(n, dtype=bool)
        size = n + n % 2
        padded = np.zeros((rounds, size, size), dtype=bool)
        padded[:, :n, :n] = edges
        if n % 2:
            padded[:, n, :n] = padded[:, :n, n] = ~edges.any(axis=2)
        assert (padded.sum(axis=2) == 1).all()
        assert abs(excess_of_pairs(padded.sum(axis=0), rounds, 1 / (size - 1))) <= 5


@pytest.mark.parametrize("n", [4, 6])
def test_matchings_are_uniform_and_rounds_independent(gossamer: Path, n: int) -> None:
    """All 3 or 15 matchings are equally likely, and so are all that follow each of them."""
    rounds = 6000
    place = {
        adjacency(n, m).astype(bool).tobytes(): k
        for k, m in enumerate(every_matching(list(range(n))))
    }
    edges = (drawn(gossamer, n, rounds) == 0.5) & ~np.eye(n, dtype=bool)
    sequence = np.array([place[a.tobytes()] for a in edges])
    single = np.bincount(sequence, minlength=len(place))
    joint = np.bincount(sequence[:-1] * len(place) + sequence[1:], minlength=len(place) ** 2)
    for counts in (single, joint):
        mean = counts.sum() / len(counts)
        statistic, freedom = float(((counts - mean) ** 2).sum() / mean), len(counts) - 1
        assert abs(statistic - freedom) <= 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("n", [4, 5, 8, 9, 13])
@pytest.mark.parametrize("lazy", [False, True])
def test_the_rate_by_monte_carlo(gossamer: Path, n: int, lazy: bool) -> None:
    """The mean of ‖W_t x‖² for several x of norm 1 and mean 0, within five deviations."""
    rounds = 4000
    matrices = drawn(gossamer, n, rounds, *(["--lazy"] if lazy else []))
    noise = np.random.default_rng(0).normal(size=(n, 4))
    steps = np.zeros((n, 2))
    for column, (i, j) in enumerate(list(combinations(range(n), 2))[:: n * (n - 1) // 2 - 1]):
        steps[i, column], steps[j, column] = 1, -1
    x = np.concatenate([noise - noise.mean(axis=0), steps], axis=1)
    x /= np.linalg.norm(x, axis=0)
    squares = ((matrices @ x) ** 2).sum(axis=1)
    errors = squares.mean(axis=0) - factor_of(n, lazy)
    assert (abs(errors) <= 5 * squares.std(axis=0) / math.sqrt(rounds)).all()
    # The squared norm after k rounds, in expectation, is the factor to the power of k.
    state, k = np.broadcast_to(x, (rounds // 3, *x.shape)), 3
    for t in range(k):
        state = matrices[t : rounds // 3 * 3 : 3] @ state
    powers = (state**2).sum(axis=1)
    errors = powers.mean(axis=0) - factor_of(n, lazy) ** k
    assert (abs(errors) <= 5 * powers.std(axis=0) / math.sqrt(len(powers))).all()
