"""Mixing matrices and rates by their definitions, in numpy, and the program's reports."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from random_topology_reference import od_equidyn, ou_equidyn

Matrix = np.ndarray
RULES = ("metropolis", "uniform", "best_constant", "in_degree", "out_degree")


def reports(gossamer: Path, kind: str, sizes: str, *arguments: str) -> list[dict[str, Any]]:
    command = [str(gossamer), "topology", kind, "-n", sizes, "--json", "--matrix", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def report(gossamer: Path, kind: str, n: int, *arguments: str) -> dict[str, Any]:
    (only,) = reports(gossamer, kind, str(n), *arguments)
    return only


def setting(**values: object) -> list[str]:
    return [
        word
        for key, value in values.items()
        for word in ("--set", f"{key}={str(value).lower() if value in (True, False) else value}")
    ]


def adjacency(n: int, edges: Iterable[tuple[int, int]]) -> Matrix:
    a = np.zeros((n, n))
    for i, j in edges:
        a[i, j] = a[j, i] = 1
    return a


def weighted(a: Matrix, rule: str) -> Matrix:
    """W of the graph in which row i of `a` marks the in-neighbours of peer i."""
    received, sent = a.sum(axis=1), a.sum(axis=0)
    w: Matrix
    if rule == "metropolis":  # Xiao, Boyd and Lall 2005
        w = a / (1 + np.maximum.outer(received, received))
    elif rule == "uniform":
        w = a / (1 + received.max())
    elif rule == "best_constant":  # Xiao and Boyd 2004, eq. 21
        values = np.linalg.eigvalsh(np.diag(received) - a)
        w = a * 2 / (values[1] + values[-1])
    elif rule == "in_degree":
        w = a / (1 + received[:, None])
    else:
        assert rule == "out_degree"  # Kempe, Dobra and Gehrke 2003: columns sum to 1
        w = a / (1 + sent[None, :])
        w += np.diag(1 - w.sum(axis=0))
        return w
    w += np.diag(1 - w.sum(axis=1))
    return w


def lazily(w: Matrix) -> Matrix:
    halved: Matrix = (np.eye(len(w)) + w) / 2
    return halved


def spectral_gap(w: Matrix) -> float:
    """1 − the second largest modulus of an eigenvalue."""
    symmetric = np.allclose(w, w.T, rtol=0, atol=1e-15)
    values = np.linalg.eigvalsh(w) if symmetric else np.linalg.eigvals(w)
    others = np.delete(values, np.argmin(abs(values - 1)))
    return float(1 - max(abs(others), default=0.0))


def circulant(n: int, shifts: list[int]) -> Matrix:
    """1/M Σ A(a), where A(a) takes (n − 1)/n of row i − a, and 1/n of row i, to peer i.

    D-EquiStatic of Song et al. 2022: A(a) is a power of the cyclic permutation, with its diagonal.
    """
    turn = np.roll(np.eye(n), 1, axis=0)  # takes row i − 1 to peer i
    powers = [np.linalg.matrix_power(turn, a) for a in shifts]
    w: Matrix = np.mean([((n - 1) * power + np.eye(n)) / n for power in powers], axis=0)
    return w


def shifted_round(n: int, shift: int, start: int, directed: bool, eta: float = 0.5) -> Matrix:
    """A round of EquiDyn. Directed, a peer weighs the one that is `shift` before it."""
    if directed:
        return od_equidyn(n, n - shift, eta)
    return ou_equidyn(n, shift, start, eta)


def excess_of_pairs(counts: Matrix, rounds: int, probability: float) -> float:
    """A chi-square of how often each pair of n peers was an edge, less its mean, in deviations.

    All graphs are regular of one degree, and the law is the same for all numberings of the peers.
    The covariance of the counts is then a multiple of the projection on those of degree zero, a
    space of n (n − 3)/2 dimensions, and its trace is n (n − 1)/2 times a pair's variance.
    """
    n = len(counts)
    pairs, dimensions = n * (n - 1) / 2, n * (n - 3) / 2
    upper = counts[np.triu_indices(n, 1)]
    variance = rounds * probability * (1 - probability) * pairs / dimensions
    statistic = float(((upper - rounds * probability) ** 2).sum() / variance)
    return (statistic - dimensions) / float(np.sqrt(2 * dimensions))
