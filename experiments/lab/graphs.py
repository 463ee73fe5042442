"""Draws the topologies of a sweep: a torus as a grid, a hypercube as a projection, or a circle."""

import math
from typing import Any

import networkx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from lab.conditions import Condition
from lab.figures import ReportFigure, number_or_dash, styles_of
from lab.style import INK, WIDTH_INCHES

Edge = tuple[int, int]
Positions = dict[int, tuple[float, float]]
_MOST_PEERS_ON_A_CIRCLE = 64


def graphs_figure(conditions: list[Condition], caption: str) -> ReportFigure:
    """One panel for each topology of the sweep."""
    shown = {_identity(condition): condition for condition in reversed(conditions)}
    members = [condition for condition in conditions if shown[_identity(condition)] is condition]
    columns = len(members) if len(members) <= 4 else 3 if len(members) <= 6 else 4
    rows = math.ceil(len(members) / columns)
    side = min(WIDTH_INCHES / columns, 2.6)
    figure = Figure(figsize=(WIDTH_INCHES, 0.45 + rows * (side + 0.5)), layout="constrained")
    styles = styles_of(conditions)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(members) :]:
        axes.set_visible(False)
    for axes, condition in zip(panels, members, strict=False):
        style = styles[condition.series]
        draw_graph(axes, condition.topology, str(style["color"]))
        topology = condition.topology
        axes.set_title(
            f"{topology['topology'].replace('_', ' ')}",
            loc="center",
            fontweight="bold",
            fontsize=10,
        )
        axes.text(
            0.5,
            -0.04,
            _facts(topology),
            transform=axes.transAxes,
            ha="center",
            va="top",
            fontsize=8.5,
        )
    title = "The topologies"
    figure.suptitle(title, x=0.012, ha="left")
    return ReportFigure("graphs", title, caption, figure)


def _identity(condition: Condition) -> str:
    topology = condition.topology
    return (
        f"{topology['topology']} {topology['weights']} {topology['peers']} {topology['edge_list']}"
    )


def _facts(topology: dict[str, object]) -> str:
    low, high = topology["degree_min"], topology["degree_max"]
    degree = f"degree {low}" if low == high else f"degrees {low}–{high}"
    period = f", period {topology['period']}" if topology["period"] != 1 else ""
    diameter, gap = (number_or_dash(topology[key]) for key in ("diameter", "spectral_gap"))
    return f"{degree}, diameter {diameter}{period}\nspectral gap {gap}"


def draw_graph(axes: Axes, topology: dict[str, Any], colour: str) -> None:
    n = int(topology["peers"])
    edges: list[Edge] = [(int(i), int(j)) for i, j in topology["edge_list"] or []]
    directed = not topology["symmetric"]
    positions, curvature = layout(
        n,
        {(min(e), max(e)) for e in edges} if not directed else set(edges),
        str(topology["topology"]),
    )
    width = max(0.35, min(1.3, 60 / max(len(edges), 1)))
    margin = 4 if directed else 0  # so that an arrow's head ends at the dot
    for edge in edges:
        bend = curvature.get((min(edge), max(edge)), 0.0) if not directed else 0.12
        axes.add_patch(
            FancyArrowPatch(
                positions[edge[0]],
                positions[edge[1]],
                arrowstyle="-|>" if directed else "-",
                connectionstyle=f"arc3,rad={bend}",
                linewidth=width,
                color="#777777",
                zorder=1,
                mutation_scale=6,
                clip_on=False,
                shrinkA=margin,
                shrinkB=margin,
            )
        )
    dots = np.array([positions[i] for i in range(n)])
    size = 120 if n <= 16 else max(8.0, 1600 / n)
    axes.scatter(
        dots[:, 0], dots[:, 1], s=size, color=colour, edgecolors="white", linewidths=0.8, zorder=2
    )
    if n <= 16:
        for i, (x, y) in positions.items():
            axes.text(
                x,
                y,
                str(i),
                ha="center",
                va="center_baseline",
                fontsize=6,
                color="white",
                zorder=3,
                fontweight="bold",
            )
    middle, reach = (
        (dots.max(axis=0) + dots.min(axis=0)) / 2,
        max(float(np.ptp(dots, axis=0).max()) / 2, 0.5) * 1.22,
    )
    axes.set(
        xlim=(middle[0] - reach, middle[0] + reach),
        ylim=(middle[1] - reach, middle[1] + reach),
        aspect="equal",
    )
    axes.axis("off")
    axes.title.set_color(INK)


def layout(n: int, edges: set[Edge], kind: str) -> tuple[Positions, dict[Edge, float]]:
    """The positions of the peers, and the curvature of edges that must avoid peers between them."""
    for rows in range(int(math.isqrt(n)), 1, -1):
        if n % rows == 0:
            for wrapped in (True, False):
                if edges == grid_edges(rows, n // rows, wrapped):
                    return _grid(rows, n // rows, edges)
    if 8 <= n <= 64 and n & (n - 1) == 0 and edges == hypercube_edges(n):
        return _hypercube(n), {}
    graph = networkx.Graph(list(edges))
    graph.add_nodes_from(range(n))
    hubs = [i for i in range(n) if n > 3 and graph.degree(i) == n - 1]
    if len(hubs) == 1:
        rim = [i for i in range(n) if i != hubs[0]]
        return {hubs[0]: (0.0, 0.0)} | _circle(rim), {}
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


def _circle(peers: list[int]) -> Positions:
    """Clockwise from the top."""
    turn = 2 * math.pi / max(len(peers), 1)
    return {peer: (math.sin(k * turn), math.cos(k * turn)) for k, peer in enumerate(peers)}
