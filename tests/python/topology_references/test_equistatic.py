"""D-EquiStatic and U-EquiStatic against Song et al. 2022 (arXiv:2210.07881), in numpy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import keyed_draws
import numpy as np
import pytest
from reference_matrices import circulant, lazily, report, reports, setting, spectral_gap, weighted

LARGEST = 64
directions = pytest.mark.parametrize("directed", [False, True])


def expected(n: int, shifts: list[int], directed: bool) -> np.ndarray:
    w = circulant(n, shifts)
    return w if directed else (w + w.T) / 2


def default_m(n: int, directed: bool) -> int:
    """⌈log2 n⌉ shifts, or half as many, each in both directions."""
    bits = (n - 1).bit_length()
    return bits if directed else (bits + 1) // 2


def gap_by_fourier(w: np.ndarray) -> float:
    """A circulant matrix has the discrete Fourier transform of its first column as eigenvalues."""
    return float(1 - max(abs(np.fft.fft(w[:, 0])[1:]), default=0.0))


def counts_of(found: dict[str, Any], m: int, directed: bool) -> np.ndarray:
    """How often each shift was drawn, from the weights; of s and n − s together if undirected."""
    (w,) = np.array(found["matrix"])
    n = len(w)
    for offset in range(n):  # circulant
        diagonal = w[(np.arange(n) + offset) % n, np.arange(n)]
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=0, atol=1e-14)
    counts: np.ndarray = w[1:, 0] * m * n / (n - 1) * (1 if directed else 2)
    np.testing.assert_allclose(counts, counts.round(), rtol=0, atol=1e-9)
    return counts.round()


@directions
@pytest.mark.parametrize("m", [0, 1, 2, 5])
@pytest.mark.parametrize("seed", [0, 7])
def test_weights_and_gap_are_those_of_the_keyed_shifts(
    gossamer: Path, directed: bool, m: int, seed: int
) -> None:
    sets = [*setting(m=m, directed=directed), "--seed", str(seed)]
    for found in reports(gossamer, "equistatic", f"2..{LARGEST}", *sets):
        n = found["peers"]
        shifts = keyed_draws.shifts(n, m or default_m(n, directed), seed)
        w = expected(n, shifts, directed)
        (matrix,) = np.array(found["matrix"])
        np.testing.assert_allclose(matrix, w, rtol=0, atol=1e-14, err_msg=f"n = {n}")
        np.testing.assert_allclose(w.sum(axis=0), 1, rtol=0, atol=1e-13)
        np.testing.assert_allclose(w.sum(axis=1), 1, rtol=0, atol=1e-13)
        assert found["spectral_gap"] == pytest.approx(spectral_gap(w), abs=1e-9), n
        assert found["spectral_gap"] == pytest.approx(gap_by_fourier(w), abs=1e-9), n
        offsets = {a % n for s in shifts for a in ((s,) if directed else (s, -s))}
        assert found["degree_min"] == found["degree_max"] == len(offsets)
        symmetric = np.allclose(w, w.T, rtol=0, atol=1e-14)
        assert found["symmetric"] is symmetric
        assert found["edges"] == n * len(offsets) // (2 if symmetric else 1)
        assert found["weights"] == "given" and found["connected"]


@directions
@pytest.mark.parametrize("n", [2, 3, 6, 16, 31])
def test_shifts_are_counted_by_the_weights(gossamer: Path, n: int, directed: bool) -> None:
    """Without the random numbers: W is circulant, and of M shifts, for every seed."""
    for seed in range(6):
        for m in (1, 3):
            sets = [*setting(m=m, directed=directed), "--seed", str(seed)]
            found = report(gossamer, "equistatic", n, *sets)
            counts = counts_of(found, m, directed)
            assert counts.sum() == (m if directed else 2 * m) and (counts >= 0).all()
            drawn = [s for s in range(1, n) if counts[s - 1] > 0]
            assert math.gcd(n, *drawn) == 1  # connected
            w = found["matrix"][0]
            assert found["spectral_gap"] == pytest.approx(gap_by_fourier(np.array(w)), abs=1e-9)


@directions
@pytest.mark.parametrize("n", [11, 16])
def test_shifts_are_uniform(gossamer: Path, n: int, directed: bool) -> None:
    """Of 4,096 shifts, within five deviations of the chi-square's mean."""
    m = 4096
    for seed in (0, 1, 2):
        sets = [*setting(m=m, directed=directed), "--seed", str(seed)]
        counts = counts_of(report(gossamer, "equistatic", n, *sets), m, directed)
        if not directed:  # shifts s and n − s; n/2 is its own mirror image, and counted twice
            counts = np.array([counts[s - 1] / (2 if 2 * s == n else 1) for s in range(1, n)])
            counts = counts[: n // 2]
        shares = np.full(len(counts), (1 if directed else 2) / (n - 1))
        if not directed and n % 2 == 0:
            shares[-1] /= 2
        assert counts.sum() == m
        statistic = float(((counts - m * shares) ** 2 / (m * shares)).sum())
        freedom = len(counts) - 1
        assert abs(statistic - freedom) <= 5 * math.sqrt(2 * freedom)


@directions
def test_the_rate_of_the_theorem(gossamer: Path, directed: bool) -> None:
    """With M ≥ 8 ln(2n/p)/(3ρ²), ‖W − 11ᵀ/n‖ ≤ ρ with probability 1 − p, by Bernstein."""
    rate, p, seeds = 0.8, 0.1, 20
    for n in (16, 64):
        m = math.ceil(8 * math.log(2 * n / p) / (3 * rate**2))
        sets = setting(m=m, directed=directed)
        drawn = [report(gossamer, "equistatic", n, *sets, "--seed", str(s)) for s in range(seeds)]
        norms = [np.linalg.norm(np.array(found["matrix"][0]) - 1 / n, 2) for found in drawn]
        assert sum(norm <= rate for norm in norms) >= (1 - p) * seeds


@directions
@pytest.mark.parametrize("rule", ["metropolis", "uniform"])
def test_other_weights_and_lazy_ones(gossamer: Path, directed: bool, rule: str) -> None:
    sets = setting(m=3, directed=directed)
    plain = reports(gossamer, "equistatic", "2..40", *sets, "--weights", rule)
    halved = reports(gossamer, "equistatic", "2..40", *sets, "--lazy")
    for found, lazy in zip(plain, halved, strict=True):
        n = found["peers"]
        w = expected(n, keyed_draws.shifts(n, 3, 0), directed)
        ruled = weighted(((w > 0) & ~np.eye(n, dtype=bool)).astype(float), rule)
        np.testing.assert_allclose(found["matrix"][0], ruled, rtol=0, atol=1e-14)
        assert found["spectral_gap"] == pytest.approx(spectral_gap(ruled), abs=1e-9), n
        np.testing.assert_allclose(lazy["matrix"][0], lazily(w), rtol=0, atol=1e-14)
        assert lazy["spectral_gap"] == pytest.approx(spectral_gap(lazily(w)), abs=1e-9), n
