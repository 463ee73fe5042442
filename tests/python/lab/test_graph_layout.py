"""Graphs of a report are drawn in their own layouts."""

import math

import networkx
import numpy as np
import pytest
from fake_gossamer import edge_list
from lab.graph_layout import Edge, grid_edges, layout


def graph_of(kind: str, n: int) -> set[Edge]:
    """The edges of a topology, as the program defines them."""
    half = n // 2
    return {
        "binary_tree": {((i - 1) // 2, i) for i in range(1, n)},
        "path": {(i, i + 1) for i in range(n - 1)},
        "star": {(0, i) for i in range(1, n)},
        "dumbbell": {
            (i, j)
            for j in range(n)
            for i in range(j)
            if (i < half) == (j < half) or (i, j) == (half - 1, half)
        },
    }[kind]


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("ring", 16),
        ("torus", 16),
        ("complete", 16),
        ("star", 16),
        ("hypercube", 8),
        ("hypercube", 16),
        ("hypercube", 32),
        ("hypercube", 64),
    ],
)
def test_layout_separates_all_peers(kind: str, n: int) -> None:
    places, _ = layout(n, set(edge_list(kind, n)), kind)
    points = np.array([places[i] for i in range(n)])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 10 * np.eye(n)
    assert apart.min() > 0.02 * np.ptp(points)


def test_torus_and_grid_are_drawn_as_grids() -> None:
    for wrapped in (True, False):
        places, bent = layout(12, grid_edges(3, 4, wrapped), "torus")
        assert places[0] == (0, 0) and places[11] == (3, -2)
        assert bool(bent) == wrapped


@pytest.mark.parametrize("n", [7, 8, 16, 36])
def test_a_tree_has_its_root_above_and_no_crossing_edges(n: int) -> None:
    places, _ = layout(n, graph_of("binary_tree", n), "binary_tree")
    depth = {i: int(math.log2(i + 1)) for i in range(n)}
    deepest = max(depth.values())
    for i, (_, y) in places.items():
        assert y == pytest.approx(-depth[i] / deepest)
    for level in range(deepest + 1):
        across = [places[i][0] for i in range(n) if depth[i] == level]
        assert all(right > left for left, right in zip(across, across[1:], strict=False))
    assert places[1][0] < places[0][0] < places[2][0]


@pytest.mark.parametrize("n", [4, 7, 16, 36])
def test_a_path_is_drawn_in_rows_of_steps_of_equal_length(n: int) -> None:
    edges = graph_of("path", n)
    places, bent = layout(n, edges, "path")
    assert len(edges) == n - 1 and len(set(places.values())) == n and not bent
    assert all(math.dist(places[i], places[j]) == pytest.approx(1) for i, j in edges)
    assert np.ptp(np.array(list(places.values())), axis=0).max() <= math.ceil(math.sqrt(n)) - 1


def test_a_star_has_its_centre_in_the_middle() -> None:
    places, _ = layout(9, graph_of("star", 9), "star")
    assert places[0] == (0, 0)
    assert [math.dist(places[0], places[i]) for i in range(1, 9)] == pytest.approx([1] * 8)


@pytest.mark.parametrize("n", [7, 16])
def test_two_cliques_face_each_other(n: int) -> None:
    edges = graph_of("dumbbell", n)
    places, _ = layout(n, edges, "dumbbell")
    ((i, j),) = networkx.bridges(networkx.Graph(edges))
    left, right = sorted((places[i], places[j]))
    assert left == pytest.approx((-0.4, 0)) and right == pytest.approx((0.4, 0))
    assert sum(x < 0 for x, _ in places.values()) == n // 2
    assert all(places[a][0] * places[b][0] > 0 for a, b in edges - {(i, j)})


def test_a_bridge_between_other_graphs_than_cliques_stays_on_a_circle() -> None:
    square = {(0, 1), (1, 2), (2, 3), (0, 3)}
    edges = square | {(i + 4, j + 4) for i, j in square} | {(3, 4)}
    places, _ = layout(8, edges, "file")
    assert [math.hypot(*place) for place in places.values()] == pytest.approx([1] * 8)
