"""Draws the cost of reaching a target against the spectral gap."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.conditions import Condition, by_facet
from lab.figures import (
    ReportFigure,
    Styles,
    add_legend,
    bytes_text,
    number_text,
    set_ticks,
    set_titles,
    styles_of,
)
from lab.metric import Metric, Target, rounds_and_bytes_to
from lab.style import WIDTH_INCHES

# Markers that the end of the axis, a gap of 1, does not cut.
_WHOLE: dict[str, Any] = {"clip_on": False, "in_layout": False}


def gap_figure(
    conditions: list[Condition], metric: Metric, targets: dict[str, Target], caption: str
) -> ReportFigure:
    """Rounds and bytes to the target against the spectral gap: a point per seed, and the means."""
    rows = by_facet(conditions)
    styles = styles_of(conditions)
    figure = Figure(figsize=(WIDTH_INCHES, 0.75 + 2.7 * len(rows)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08)
    axes = figure.subplots(len(rows), 2, squeeze=False)
    for row, (facet, members) in zip(axes, rows.items(), strict=True):
        for column, panel in enumerate(row):
            _draw_gap_panel(panel, members, metric, targets[facet], styles, column)
        set_titles(row, facet, ["rounds", "bytes"])
        row[0].set_ylabel("rounds to the target")
        row[1].set_ylabel("bytes per peer to the target")
    title = f"Spectral gap against rounds and bytes to a target {metric.label}"
    add_legend(figure, title, styles)
    return ReportFigure("gap", title, caption, figure)


@dataclass(frozen=True)
class _Points:
    """Of each seed of a condition: the spectral gap of its graph, and its cost; NaN: never."""

    condition: Condition
    gaps: np.ndarray
    costs: np.ndarray


def _draw_gap_panel(
    axes: Axes,
    members: list[Condition],
    metric: Metric,
    target: Target,
    styles: Styles,
    column: int,
) -> None:
    shown, reason = _points(members, metric, target, column)
    if not shown:
        axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center")
        axes.set(xticks=[], yticks=[])
        return
    for points in shown:
        style = _marker_style(styles, points)
        there = np.isfinite(points.costs)
        axes.plot(
            points.gaps[there],
            points.costs[there],
            linestyle="",
            markersize=4.5,
            alpha=0.5,
            markeredgewidth=0,
            **_WHOLE,
            **style,
        )
        if there.all():
            axes.plot(
                [points.gaps.mean()],
                [points.costs.mean()],
                linestyle="",
                markersize=9,
                markeredgecolor="white",
                label=points.condition.series,
                **_WHOLE,
                **style,
            )
    axes.set(xscale="log", yscale="log", xlabel="spectral gap (logarithmic)")
    gaps = np.concatenate([points.gaps for points in shown])
    limit_axis(axes, "x", gaps.min(), gaps.max(), number_text, most=1)
    low, high = _cost_limits(axes, shown, column)
    limit_axis(axes, "y", low, high, bytes_text if column else number_text)
    _mark_unreached(axes, shown, styles, float(gaps.min() * gaps.max()) ** 0.5)


def _points(
    members: list[Condition], metric: Metric, target: Target, column: int
) -> tuple[list[_Points], str]:
    """The points of a panel. If there are none, also the reason."""
    used = [member for member in members if member.uses_graph]
    if not used:
        return [], "the algorithms do not use the graph"
    known = [
        member
        for member in used
        if all(graph["spectral_gap"] is not None for graph in member.last_graphs)
    ]
    if not known:
        return [], "no spectral gap in these logs"
    dated = [member for member in known if member.dates_targets]
    if not dated:
        return [], "the logs do not show every round of a period (log.every)"
    sending = [member for member in dated if not column or member.finals("bytes_sent").any()]
    if not sending:
        return [], "no bytes are sent"
    shown = []
    for member in sending:
        gaps = [float(graph["spectral_gap"]) for graph in member.last_graphs]
        costs = np.array([cost[column] for cost in rounds_and_bytes_to(member, metric, target)])
        if (costs != 0).any():  # a logarithmic axis has no zero
            shown.append(_Points(member, np.maximum(gaps, 1e-12), costs))
    return shown, "" if shown else "the target is reached at the start"


def _marker_style(styles: Styles, points: _Points) -> dict[str, object]:
    style = styles[points.condition.series]
    return {key: value for key, value in style.items() if key != "linestyle"}


def _cost_limits(axes: Axes, shown: list[_Points], column: int) -> tuple[float, float]:
    """The limits of the points; where no seed has reached the target, of the logged costs."""
    costs = np.concatenate([points.costs for points in shown])
    if (costs > 0).any():
        return axes.get_ylim()
    curves = [run.curves for points in shown for run in points.condition.runs]
    logged = np.concatenate([c.values["bytes_sent"] if column else c.rounds for c in curves])
    return logged[logged > 0].min(), logged.max()


def _mark_unreached(axes: Axes, shown: list[_Points], styles: Styles, middle: float) -> None:
    """Open dots under the upper rim, beyond what was run: seeds that do not reach the target."""
    never = [points for points in shown if np.isnan(points.costs).any()]
    for level, points in enumerate(sorted(never, key=lambda points: points.gaps.mean())):
        gap, height = points.gaps.mean(), 0.96 - 0.08 * level
        axes.plot(
            [gap],
            [height],
            transform=axes.get_xaxis_transform(),
            linestyle="",
            markersize=9,
            fillstyle="none",
            **_WHOLE,
            label=points.condition.series,
            **_marker_style(styles, points),
        )
        axes.annotate(
            f"{np.isnan(points.costs).sum()} of {points.costs.size} never",
            (gap, height),
            xycoords=axes.get_xaxis_transform(),
            fontsize=8,
            va="center",
            ha="right" if gap > middle else "left",
            xytext=(-8 if gap > middle else 8, 0),
            textcoords="offset points",
        )


def limit_axis(
    axes: Axes,
    which: str,
    low: float,
    high: float,
    text: Callable[[float], str],
    most: float = np.inf,
) -> None:
    """Sets the limits of a logarithmic axis, with a margin, at least a factor of 6 apart.

    `most`: the largest possible value, beyond which the axis does not go.
    """
    low, high = low / 1.35, high * 1.35
    if high / low < 6:
        middle = (low * high) ** 0.5
        low, high = middle / 6**0.5, middle * 6**0.5
    if high > most:
        low, high = min(low, most / 6), most
    axes.set(**{f"{which}lim": (low, high)})
    set_ticks(axes, which, text)
