"""Draws the topologies of a sweep, each in a layout of its own (lab/graph_layout.py)."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from lab.conditions import Condition
from lab.figures import ReportFigure, number_or_dash, styles_of
from lab.graph_layout import Edge, layout
from lab.participants import peers_drawn, recorded_changes
from lab.style import INK, WIDTH_INCHES


def graphs_figure(conditions: list[Condition], caption: str) -> ReportFigure:
    """One panel for each topology of the sweep that a condition uses."""
    used = [condition for condition in conditions if condition.uses_graph]
    shown = {_identity(condition): condition for condition in reversed(used)}
    members = [condition for condition in used if shown[_identity(condition)] is condition]
    columns = len(members) if len(members) <= 4 else 3 if len(members) <= 6 else 4
    rows = math.ceil(len(members) / columns)
    side = min(WIDTH_INCHES / columns, 2.6)
    figure = Figure(figsize=(WIDTH_INCHES, 0.45 + rows * (side + 0.7)), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08)
    styles = styles_of(conditions)
    sizes = {peers_drawn(condition.topology) for condition in members}
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
            (f"{peers_drawn(topology)} peers\n" if len(sizes) > 1 else "") + _facts(topology),
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


def _facts(topology: dict[str, Any]) -> str:
    changes = recorded_changes(topology)
    if len(changes) > 1:
        sizes = ", ".join(str(len(change.peers)) for change in changes)
        return f"the edges of all rounds;\n{sizes} peers take part in turn"
    low, high = topology["degree_min"], topology["degree_max"]
    degree = f"degree {low}" if low == high else f"degrees {low}–{high}"
    diameter, gap = (number_or_dash(topology[key]) for key in ("diameter", "spectral_gap"))
    period = {0: ", random", 1: ""}.get(topology["period"], f", period {topology['period']}")
    return f"{degree}, diameter {diameter}\nspectral gap {gap}{period}"


def draw_graph(axes: Axes, topology: dict[str, Any], colour: str) -> None:
    n = peers_drawn(topology)
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
