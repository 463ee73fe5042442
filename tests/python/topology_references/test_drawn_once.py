"""Erdős–Rényi and random regular graphs: edges, weights, rates and laws, in numpy.

W is built here from the edges that the seed draws, by the definition of each weight rule, and its
eigenvalues are numpy's. The laws are held against draws of the program for many seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import keyed_draws
import networkx as nx
import numpy as np
import pytest
from reference_matrices import (
    RULES,
    adjacency,
    excess_of_pairs,
    lazily,
    report,
    reports,
    setting,
    spectral_gap,
    weighted,
)

Draw = Callable[[int, int], set[tuple[int, int]]]  # of n peers, by the seed


def default_p(n: int) -> float:
    return min(1.0, 2 * math.log(n) / n)


def regular_of(degree: int) -> Draw:
    return lambda n, seed: keyed_draws.random_regular(n, degree, seed)


# The kind, its parameters, the sizes, and the edges.
DRAWS: list[tuple[str, dict[str, object], list[int], Draw]] = [
    (
        "erdos_renyi",
        {},
        [*range(2, 41), 64, 100],
        lambda n, seed: keyed_draws.erdos_renyi(n, default_p(n), seed),
    ),
    (
        "erdos_renyi",
        {"p": 0.35},
        [*range(10, 30), 50],
        lambda n, seed: keyed_draws.erdos_renyi(n, 0.35, seed),
    ),
    ("erdos_renyi", {"p": 1}, [2, 3, 9], lambda n, seed: keyed_draws.erdos_renyi(n, 1, seed)),
]
for d in (3, 4, 7):
    possible = [n for n in [*range(d + 1, 33), 48, 65, 100] if n * d % 2 == 0]
    DRAWS.append(("random_regular", {"degree": d}, possible, regular_of(d)))
every_draw = pytest.mark.parametrize(
    ("kind", "values", "sizes", "draw"),
    DRAWS,
    ids=[f"{kind}-{'-'.join(map(str, values.values()))}" for kind, values, _, _ in DRAWS],
)


def check(found: dict[str, Any], w: np.ndarray, edges: set[tuple[int, int]]) -> None:
    n = found["peers"]
    (matrix,) = np.array(found["matrix"])
    np.testing.assert_allclose(matrix, w, rtol=0, atol=1e-13, err_msg=f"n = {n}")
    graph = nx.Graph(list(edges))
    assert graph.number_of_nodes() == n and nx.is_connected(graph)
    degrees = [degree for _, degree in graph.degree]
    symmetric = np.allclose(w, w.T, rtol=0, atol=1e-14)  # else edges are counted by direction
    assert found["symmetric"] is symmetric
    assert found["edges"] == len(edges) * (1 if symmetric else 2)
    assert (found["degree_min"], found["degree_max"]) == (min(degrees), max(degrees))
    assert found["spectral_gap"] == pytest.approx(spectral_gap(w), abs=1e-9), n


@every_draw
@pytest.mark.parametrize("rule", RULES)
def test_weights_and_gap_are_those_of_the_keyed_edges(
    gossamer: Path,
    kind: str,
    values: dict[str, object],
    sizes: list[int],
    draw: Draw,
    rule: str,
) -> None:
    seed = 3
    sets = [*setting(**values), "--seed", str(seed), "--weights", rule, "--allow-negative"]
    names = ",".join(map(str, sizes))
    plain, halved = (
        reports(gossamer, kind, names, *sets),
        reports(gossamer, kind, names, *sets, "--lazy"),
    )
    assert [found["peers"] for found in plain] == sizes
    for found, lazy in zip(plain, halved, strict=True):
        n = found["peers"]
        edges = draw(n, seed)
        w = weighted(adjacency(n, edges), rule)
        check(found, w, edges)
        check(lazy, lazily(w), edges)


@every_draw
def test_other_seeds(
    gossamer: Path, kind: str, values: dict[str, object], sizes: list[int], draw: Draw
) -> None:
    n = sizes[len(sizes) // 2]
    for seed in (0, 1, 2, 12345678901, 2**64 - 1):
        found = report(gossamer, kind, n, *setting(**values), "--seed", str(seed))
        edges = draw(n, seed)
        check(found, weighted(adjacency(n, edges), "metropolis"), edges)


@cache
def edges_by_seed(gossamer: Path, kind: str, n: int, seeds: int, *sets: str) -> np.ndarray:
    """The graphs that the program draws from the seeds 0, 1, …, as adjacency matrices."""
    drawn = []
    for seed in range(seeds):
        (w,) = np.array(report(gossamer, kind, n, *sets, "--seed", str(seed))["matrix"])
        a = (w > 0) & ~np.eye(n, dtype=bool)
        np.testing.assert_array_equal(a, a.T)
        assert nx.is_connected(nx.from_numpy_array(a))
        drawn.append(a)
    return np.array(drawn)


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_each_pair_is_an_edge_with_probability_p(gossamer: Path, p: float) -> None:
    """A binomial number of edges, and a chi-square over the pairs, within five deviations.

    A graph of 40 peers is not connected with a probability below 40 (1 − p)^39, 4e-5 for p = 0.3,
    so that the graphs that are drawn again do not matter.
    """
    n, seeds = 40, 50
    edges = edges_by_seed(gossamer, "erdos_renyi", n, seeds, *setting(p=p))
    pairs = edges[:, *np.triu_indices(n, 1)]
    trials = pairs.size
    assert abs(pairs.sum() - trials * p) <= 5 * math.sqrt(trials * p * (1 - p))
    of_pairs, of_graphs = pairs.sum(axis=0), pairs.sum(axis=1)
    for counts, each in ((of_pairs, seeds), (of_graphs, pairs.shape[1])):
        statistic = float(((counts - each * p) ** 2).sum() / (each * p * (1 - p)))
        assert abs(statistic - len(counts)) <= 5 * math.sqrt(2 * len(counts))
    # Edges with a peer in common, and the two halves of a graph, are independent.
    centred = edges - p
    for i, j, k in ((0, 1, 2), (n - 1, 0, n // 2), (5, 6, 30)):
        together = float((centred[:, i, j] * centred[:, j, k]).sum())
        assert abs(together) <= 5 * p * (1 - p) * math.sqrt(seeds)


def test_the_default_probability_is_twice_the_threshold(gossamer: Path) -> None:
    for n in (200, 500):
        found = report(gossamer, "erdos_renyi", n)
        pairs, p = n * (n - 1) / 2, 2 * math.log(n) / n
        assert abs(found["edges"] - pairs * p) <= 5 * math.sqrt(pairs * p * (1 - p))


@pytest.mark.parametrize(("n", "degree"), [(14, 3), (13, 4), (10, 7)])
def test_regular_graphs_are_simple_connected_and_of_a_law_without_preference(
    gossamer: Path, n: int, degree: int
) -> None:
    """Each pair is an edge with probability d/(n − 1), for sparse and for dense graphs."""
    seeds = 60
    edges = edges_by_seed(gossamer, "random_regular", n, seeds, *setting(degree=degree))
    assert (edges.sum(axis=2) == degree).all() and not edges.diagonal(axis1=1, axis2=2).any()
    assert len({a.tobytes() for a in edges}) > seeds // 2
    excess = excess_of_pairs(edges.sum(axis=0), seeds, degree / (n - 1))
    assert abs(excess) <= 5


def test_regular_graphs_are_expanders(gossamer: Path) -> None:
    """Friedman 2008: the second eigenvalue of the edges is 2 √(d − 1) + ε, almost always."""
    n, degree = 256, 4
    for seed in range(4):
        edges = keyed_draws.random_regular(n, degree, seed)
        values = np.linalg.eigvalsh(adjacency(n, edges))
        assert values[-1] == pytest.approx(degree, abs=1e-9)
        second = max(values[-2], -values[0])
        assert second <= 2 * math.sqrt(degree - 1) + 0.2
        found = report(gossamer, "random_regular", n, "--seed", str(seed))
        gap = 1 - max(abs(1 + values[-2]), abs(1 + values[0])) / (1 + degree)
        assert found["spectral_gap"] == pytest.approx(gap, abs=1e-9)
