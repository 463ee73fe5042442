"""Where a drawing of a graph places the peers."""

import math

import networkx
import numpy as np

Edge = tuple[int, int]
Positions = dict[int, tuple[float, float]]
_MOST_PEERS_ON_A_CIRCLE = 64


def layout(n: int, edges: set[Edge], kind: str) -> tuple[Positions, dict[Edge, float]]:
    """The positions of the peers, and the curvature of edges that must avoid peers between them."""
    for rows in range(int(math.isqrt(n)), 1, -1):
        if n % rows == 0:
            for wrapped in (True, False):
                if edges == grid_edges(rows, n // rows, wrapped):
                    return _grid(rows, n // rows, edges)
    if 8 <= n <= 64 and n & (n - 1) == 0 and edges == hypercube_edges(n):
        return _hypercube(n), {}
    graph = networkx.Graph(sorted(edges))
    graph.add_nodes_from(range(n))
    hubs = [i for i in range(n) if n > 3 and graph.degree(i) == n - 1]
    if len(hubs) == 1:
        rim = [i for i in range(n) if i != hubs[0]]
        return {hubs[0]: (0.0, 0.0)} | _circle(rim), {}
    if n > 3 and networkx.is_tree(graph):
        ends = [i for i in range(n) if graph.degree(i) == 1]
        return (_snake(graph, ends[0]) if len(ends) == 2 else _tree(graph)), {}
    if cliques := _joined_cliques(graph):
        return _two_circles(*cliques), {}
    if n <= _MOST_PEERS_ON_A_CIRCLE or kind in ("ring", "complete"):
        return _circle(list(range(n))), {}
    return {
        i: (float(x), float(y)) for i, (x, y) in networkx.spring_layout(graph, seed=0).items()
    }, {}


def grid_edges(rows: int, columns: int, wrapped: bool) -> set[Edge]:
    """Edges of the rows × columns grid, peers numbered row by row; a torus when wrapped."""
    edges = set()
    for r in range(rows):
        for c in range(columns):
            here = r * columns + c
            for down, right in ((r + 1, c), (r, c + 1)):
                if wrapped or (down < rows and right < columns):
                    there = down % rows * columns + right % columns
                    if there != here:
                        edges.add((min(here, there), max(here, there)))
    return edges


def _grid(rows: int, columns: int, edges: set[Edge]) -> tuple[Positions, dict[Edge, float]]:
    positions = {
        r * columns + c: (float(c), float(-r)) for r in range(rows) for c in range(columns)
    }
    curvature = {}
    for i, j in edges:
        distance = abs(positions[i][0] - positions[j][0]) + abs(positions[i][1] - positions[j][1])
        if distance > 1:
            curvature[(i, j)] = 0.22 if positions[i][1] == positions[j][1] else -0.22
    return positions, curvature


def hypercube_edges(n: int) -> set[Edge]:
    """Peers whose numbers differ in one bit."""
    return {
        (i, i | 1 << bit) for i in range(n) for bit in range(n.bit_length() - 1) if not i >> bit & 1
    }


def _hypercube(n: int) -> Positions:
    """Each bit is a direction in the plane (Coxeter's projection).

    For other than four bits the directions differ in length, so that no two dots coincide.
    """
    bits = n.bit_length() - 1
    stretch = 0.0 if bits == 4 else 0.6
    directions = [
        (1 + stretch * b) * np.array([math.cos(math.pi * b / bits), math.sin(math.pi * b / bits)])
        for b in range(bits)
    ]
    positions = {}
    for i in range(n):
        x, y = sum((directions[b] * (1 if i >> b & 1 else -1) for b in range(bits)), np.zeros(2))
        positions[i] = (float(x), float(y))
    return positions


def _snake(path: networkx.Graph, end: int) -> Positions:
    """A path in rows, alternately from left to right and from right to left."""
    peers = list(networkx.dfs_preorder_nodes(path, end))
    columns = math.ceil(math.sqrt(len(peers)))
    positions = {}
    for place, peer in enumerate(peers):
        row, column = divmod(place, columns)
        positions[peer] = (float(columns - 1 - column if row % 2 else column), float(-row))
    return positions


def _tree(tree: networkx.Graph) -> Positions:
    """A row for each distance to the tree's centre, in a square. A parent is above its children."""
    root = min(networkx.center(tree))
    depths = networkx.single_source_shortest_path_length(tree, root)
    leaves = 0
    across: dict[int, float] = {}
    for peer in networkx.dfs_postorder_nodes(tree, root):
        children = [across[other] for other in tree[peer] if depths[other] > depths[peer]]
        across[peer] = sum(children) / len(children) if children else float(leaves)
        leaves += not children
    wide, deep = max(1, leaves - 1), max(depths.values())
    return {peer: (x / wide, -depths[peer] / deep) for peer, x in across.items()}


def _joined_cliques(graph: networkx.Graph) -> tuple[list[int], list[int]] | None:
    """Two complete graphs that one edge joins, each as a list that begins at that edge's end."""
    bridges = list(networkx.bridges(graph))
    if len(bridges) != 1:
        return None
    ends = bridges[0]
    parts = networkx.Graph(graph)
    parts.remove_edge(*ends)
    sides = [sorted(networkx.node_connected_component(parts, end)) for end in ends]
    if any(parts.degree(i) != len(side) - 1 for side in sides for i in side):
        return None
    first, second = ([end, *(i for i in side if i != end)] for end, side in zip(ends, sides))
    return None if len(first) + len(second) < len(graph) else (first, second)


def _two_circles(first: list[int], second: list[int]) -> Positions:
    """Two circles side by side, whose first peers face each other."""
    left = {peer: (y - 1.4, x) for peer, (x, y) in _circle(first).items()}
    right = {peer: (1.4 - y, x) for peer, (x, y) in _circle(second).items()}
    return left | right


def _circle(peers: list[int]) -> Positions:
    """Clockwise from the top."""
    turn = 2 * math.pi / max(len(peers), 1)
    return {peer: (math.sin(k * turn), math.cos(k * turn)) for k, peer in enumerate(peers)}
