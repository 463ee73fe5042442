"""`gossamer topology` against networkx and numpy, for every kind, weighting and n up to 64.

The expected values are independent of the program: graphs are from networkx's generators (or from
the paper's formula if networkx has none), weights from their definition, and spectra from numpy.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import base_graph_reference
import networkx as nx
import numpy as np
import pytest

LARGEST = 64
# Their reports have no matrix to compare, and take the program a time that grows fast with n.
RANDOM_IN_EACH_ROUND = ("epidemic", "equidyn", "matcha", "random_matching")
PARAMETERS = 1000
WEIGHTINGS = [("metropolis", False), ("metropolis", True), ("uniform", False), ("uniform", True)]
KEYS = """topology peers weights edges degree_min degree_max diameter period symmetric
          doubly_stochastic connected spectral_gap bytes_per_round_per_peer matrix""".split()


def run(gossamer: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), "topology", *arguments], capture_output=True, text=True, timeout=120
    )


@cache
def reports(gossamer: Path, kind: str, weights: str, lazy: bool) -> dict[int, dict]:
    """The program's reports for n = 1..LARGEST by n, from one process; fewer if it is slow."""
    random = kind in RANDOM_IN_EACH_ROUND
    sizes = [*range(1, 25), 33, 48, LARGEST] if random else [*range(1, LARGEST + 1)]
    flags = ["--weights", weights] + (["--lazy"] if lazy else [])
    result = run(
        gossamer,
        kind,
        "-n",
        ",".join(map(str, sizes)),
        "--json",
        "--matrix",
        "--parameters",
        str(PARAMETERS),
        *flags,
    )
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["peers"] for line in lines] == sizes
    assert all(line["topology"] == kind for line in lines)
    return {line["peers"]: line for line in lines}


# The graphs of each kind, one for every round of the period, or None if n is not possible. An edge
# (j, i) means that j is an in-neighbour of i.

Rounds = list[nx.DiGraph]


def undirected(n: int, graph: nx.Graph) -> Rounds:
    """A static graph on 0..n−1, without the self-loops of networkx's smallest cycles."""
    graph = graph.copy()
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert sorted(graph) == list(range(n))
    return [graph.to_directed()]


def squarest(n: int) -> tuple[int, int]:
    rows = max(side for side in range(1, math.isqrt(n) + 1) if n % side == 0)
    return rows, n // rows


def lattice(n: int, periodic: bool) -> Rounds:
    rows, cols = squarest(n)
    graph = nx.grid_2d_graph(rows, cols, periodic=periodic)
    return undirected(
        n, nx.relabel_nodes(graph, {(row, col): row * cols + col for row, col in graph})
    )


def torus(n: int) -> Rounds | None:
    return lattice(n, True) if n == 1 or min(squarest(n)) >= 3 else None


def grid(n: int) -> Rounds | None:
    return lattice(n, False) if n == 1 or min(squarest(n)) >= 2 else None


def hypercube(n: int) -> Rounds | None:
    dimension = n.bit_length() - 1
    if n != 1 << dimension:
        return None
    if n <= 2:  # networkx numbers the corners of its smallest cubes differently
        return undirected(n, nx.complete_graph(n))
    graph = nx.hypercube_graph(dimension)
    return undirected(
        n, nx.relabel_nodes(graph, {bits: int("".join(map(str, bits)), 2) for bits in graph})
    )


def one_peer_exponential(n: int) -> Rounds:
    rounds = []
    for t in range(max(1, math.ceil(math.log2(n)))):
        graph = nx.empty_graph(n, create_using=nx.DiGraph)
        graph.add_edges_from(((i - 2**t) % n, i) for i in range(n) if n > 1)
        rounds.append(graph)
    return rounds


def exponential(n: int) -> Rounds:
    graph = nx.empty_graph(n, create_using=nx.DiGraph)
    graph.add_edges_from(
        ((i - 2**j) % n, i) for i in range(n) for j in range(n.bit_length()) if 2**j < n
    )
    return [graph]


def binary_tree(n: int) -> Rounds:
    return undirected(n, nx.full_rary_tree(2, n))


def dumbbell(n: int) -> Rounds:
    graph = nx.disjoint_union(nx.complete_graph(n // 2), nx.complete_graph(n - n // 2))
    if n > 1:
        graph.add_edge(n // 2 - 1, n // 2)
    return undirected(n, graph)


def most_equal_sides(n: int, count: int) -> tuple[int, ...]:
    """Ascending sides of at least 3 with the shortest longest side; empty if there are none."""
    sides = [
        s
        for s in combinations_with_replacement(range(3, n + 1), count - 1)
        if n % math.prod(s) == 0
    ]
    factorings = [(*s, n // math.prod(s)) for s in sides if n // math.prod(s) >= s[-1]]
    return min(factorings, key=lambda s: (s[-1], s), default=())


@cache
def hypertorus(n: int) -> Rounds | None:
    sides = (1,) if n == 1 else most_equal_sides(n, 3) or most_equal_sides(n, 2)
    if not sides:
        return None
    # networkx has the last dimension first.
    graph = nx.grid_graph(list(reversed(sides)), periodic=True)
    points = sorted(graph)
    return undirected(n, nx.relabel_nodes(graph, {point: i for i, point in enumerate(points)}))


EXPECTED: dict[str, Callable[[int], Rounds | None]] = {
    "binary_tree": binary_tree,
    "complete": lambda n: undirected(n, nx.complete_graph(n)),
    "dumbbell": dumbbell,
    "exponential": exponential,
    "grid": grid,
    "hypercube": hypercube,
    "hypertorus": hypertorus,
    "one_peer_exponential": one_peer_exponential,
    "path": lambda n: undirected(n, nx.path_graph(n)),
    "ring": lambda n: undirected(n, nx.cycle_graph(n)),
    "star": lambda n: undirected(n, nx.star_graph(n - 1)),
    "torus": torus,
}


def mixing_matrix(graph: nx.DiGraph, weights: str, lazy: bool) -> np.ndarray:
    """W of one round: W[i, j] is the weight of the row of j in the mix of i."""
    n = graph.number_of_nodes()
    degrees = dict(graph.in_degree())
    w = np.zeros((n, n))
    for j, i in graph.edges:
        degree = max(degrees.values()) if weights == "uniform" else max(degrees[i], degrees[j])
        w[i, j] = 1 / (1 + degree)
    w += np.diag(1 - w.sum(axis=1))
    return (np.eye(n) + w) / 2 if lazy else w


def spectral_gap(matrices: list[np.ndarray]) -> float:
    """From the product of a period of τ rounds: 1 − ρ, with ρ^τ its second largest modulus."""
    product = np.linalg.multi_dot(matrices[::-1]) if len(matrices) > 1 else matrices[0]
    symmetric = np.array_equal(product, product.T)
    eigenvalues = np.linalg.eigvalsh(product) if symmetric else np.linalg.eigvals(product)
    others = np.delete(eigenvalues, np.argmin(abs(eigenvalues - 1)))
    radius = max(abs(others), default=0.0)
    return 1 - (radius if radius > 1e-13 else 0.0) ** (1 / len(matrices))


def possible(gossamer: Path, kind: str, weights: str, lazy: bool) -> list[tuple[int, dict, Rounds]]:
    """(n, report, expected graphs) for every n that the kind allows."""
    return [
        (n, report, graphs)
        for n, report in reports(gossamer, kind, weights, lazy).items()
        if (graphs := EXPECTED[kind](n)) is not None and "error" not in report
    ]


def grouped(kinds: Iterable[str]) -> list[Any]:
    """The kinds as parameters. Tests of one kind run in one process, which caches its reports."""
    return [pytest.param(kind, marks=pytest.mark.xdist_group(f"topology-{kind}")) for kind in kinds]


every_kind = pytest.mark.parametrize("kind", grouped(sorted(EXPECTED)))
every_weighting = pytest.mark.parametrize(
    "weights,lazy", WEIGHTINGS, ids=lambda v: v if isinstance(v, str) else f"lazy={v}"
)


@every_kind
def test_an_error_names_an_n_that_is_possible(gossamer: Path, kind: str) -> None:
    lines = reports(gossamer, kind, "metropolis", False)
    for n, line in lines.items():
        assert ("error" in line) == (EXPECTED[kind](n) is None), (n, line.get("error"))
        if "error" not in line:
            assert set(KEYS) <= set(line)
            continue
        sizes = [int(size) for size in re.findall(r"n = (\d+)", line["error"])]
        assert sizes, line["error"]
        for size in sizes:
            assert EXPECTED[kind](size) is not None, line["error"]
            assert size > LARGEST or "error" not in lines[size]


@every_kind
def test_graph_properties(gossamer: Path, kind: str) -> None:
    for n, report, graphs in possible(gossamer, kind, "metropolis", False):
        for graph, matrix in zip(graphs, report["matrix"], strict=True):
            support = {
                (j, i)
                for i, row in enumerate(matrix)
                for j, weight in enumerate(row)
                if weight != 0 and i != j
            }
            assert support == set(graph.edges), n
        union = nx.compose_all(graphs)
        symmetric = all(set(graph.edges) == set(graph.reverse().edges) for graph in graphs)
        degrees = [degree for graph in graphs for _, degree in graph.in_degree()]
        out_degrees = [max(degree for _, degree in graph.out_degree()) for graph in graphs]
        assert report["edges"] == union.number_of_edges() // (2 if symmetric else 1), n
        assert (report["degree_min"], report["degree_max"]) == (min(degrees), max(degrees)), n
        assert report["diameter"] == nx.diameter(union), n
        assert report["period"] == len(graphs), n
        assert report["symmetric"] is symmetric, n
        assert report["connected"] is True, n
        assert report["bytes_per_round_per_peer"] == 4 * PARAMETERS * np.mean(out_degrees), n


@every_kind
@every_weighting
def test_weights_and_spectral_gap(gossamer: Path, kind: str, weights: str, lazy: bool) -> None:
    for n, report, graphs in possible(gossamer, kind, weights, lazy):
        matrices = [np.array(matrix) for matrix in report["matrix"]]
        for matrix, graph in zip(matrices, graphs, strict=True):
            assert matrix.shape == (n, n)
            np.testing.assert_allclose(
                matrix, mixing_matrix(graph, weights, lazy), rtol=0, atol=1e-14, err_msg=f"n = {n}"
            )
            np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=0, atol=1e-12)
            np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert report["weights"] == ("lazy " if lazy else "") + weights
        assert report["doubly_stochastic"] is True
        assert report["spectral_gap"] == pytest.approx(spectral_gap(matrices), abs=1e-9), n


WITHOUT_GENERATOR = [
    "base",
    "simple_base",
    "double_binary_tree",
    "epidemic",
    "equidyn",
    "equistatic",
    "erdos_renyi",
    "matcha",
    "random_matching",
    "random_regular",
]


def matrices_of(report: dict) -> list[np.ndarray]:
    return [np.array(matrix) for matrix in report["matrix"]]


@pytest.mark.parametrize("kind", grouped(WITHOUT_GENERATOR))
def test_random_graphs_and_graphs_without_networkx_generator(gossamer: Path, kind: str) -> None:
    """Checks connectivity, degrees and diameter with networkx, and the properties of W."""
    for n, report in reports(gossamer, kind, "auto", False).items():
        if "error" in report or report["period"] == 0:
            continue
        matrices = matrices_of(report)
        for matrix in matrices:
            np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=0, atol=1e-12)
            np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
            assert (matrix >= 0).all()
        union = nx.from_numpy_array((sum(matrices) > 0) & ~np.eye(n, dtype=bool))
        assert nx.is_connected(union)
        assert report["diameter"] == nx.diameter(union), n
        assert report["edges"] == union.number_of_edges(), n
        assert report["spectral_gap"] == pytest.approx(spectral_gap(matrices), abs=1e-9), n
        if kind == "random_regular" and n > 1:
            assert nx.is_regular(union) and report["degree_max"] == 4


@pytest.mark.parametrize("kind", ["base", "simple_base"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_base_graphs_average_exactly(gossamer: Path, kind: str, k: int) -> None:
    result = run(gossamer, kind, "-n", f"1..{LARGEST}", "--json", "--matrix", "--set", f"k={k}")
    assert result.returncode == 0, result.stderr
    for report in map(json.loads, result.stdout.splitlines()):
        n = report["peers"]
        product = np.eye(n)
        for matrix in matrices_of(report):
            product = matrix @ product
            assert ((matrix > 0).sum(axis=1) - 1 <= k).all()
            np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_allclose(product, np.full((n, n), 1 / n), rtol=0, atol=1e-14)
        assert report["rounds_to_exact"] == (report["period"] if n > 1 else 0)


@pytest.mark.parametrize(
    ("kind", "reference"),
    [("base", base_graph_reference.base), ("simple_base", base_graph_reference.simple_base)],
)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_base_graphs_are_the_published_ones(
    gossamer: Path, kind: str, reference: Callable[[int, int], list[np.ndarray]], k: int
) -> None:
    result = run(gossamer, kind, "-n", "1..126", "--json", "--matrix", "--set", f"k={k}")
    assert result.returncode == 0, result.stderr
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    assert [report["peers"] for report in reports] == [*range(1, 127)]
    for report in reports:
        expected = reference(report["peers"], k)
        np.testing.assert_allclose(matrices_of(report), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", grouped(sorted(EXPECTED) + WITHOUT_GENERATOR))
def test_predicted_convergence(gossamer: Path, kind: str) -> None:
    """Effective neighbours by definition, gaps of rounds by the 2-norm, costs by the gap."""
    for n, report in reports(gossamer, kind, "auto", False).items():
        if "error" in report or report["period"] == 0 or n > 24:
            continue
        matrices, decay = matrices_of(report), report["decay"]
        for gap, matrix in zip(report["round_gaps"], matrices, strict=True):
            assert gap == pytest.approx(1 - np.linalg.norm(matrix - 1 / n, 2), abs=1e-9), n
        variance, traces = np.zeros((n, n)), []
        for t in range(300 + len(matrices) - 300 % len(matrices)):
            matrix = matrices[t % len(matrices)]
            variance = matrix @ (decay * variance + np.eye(n)) @ matrix.T
            traces.append(np.trace(variance) / n)
        neighbours = 1 / (1 - decay) / np.mean(traces[-len(matrices) :])
        assert report["effective_neighbours"] == pytest.approx(neighbours, rel=1e-9), n
        gap, exact = spectral_gap(matrices), report["rounds_to_exact"]
        assert (exact is None) == (gap < 1 - 1e-12), n
        rounds = exact if exact is not None else report["rounds_to_millionth"]
        if exact is None:
            assert abs(rounds - math.log(1e-6) / math.log(1 - gap)) <= 1 + 1e-6 * rounds, n
        messages = [int((matrix > 0).sum() - n) for matrix in matrices]
        assert report["rounds_to_millionth"] == rounds
        assert report["messages_to_millionth"] == sum(
            messages[t % len(messages)] for t in range(rounds)
        )
        assert report["bytes_to_millionth"] == 4 * PARAMETERS * report["messages_to_millionth"]
