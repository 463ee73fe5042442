"""Draws the cost of reaching a target against the spectral gap."""

from collections.abc import Callable

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


def _draw_gap_panel(
    axes: Axes,
    members: list[Condition],
    metric: Metric,
    target: Target,
    styles: Styles,
    column: int,
) -> None:
    never = []
    members = [member for member in members if member.topology["spectral_gap"] is not None]
    dated = [member for member in members if member.dates_targets]
    costs = {
        id(member): np.array([p[column] for p in rounds_and_bytes_to(member, metric, target)])
        for member in dated
    }
    # A logarithmic axis has no zero: runs that send nothing, and a target reached at the start.
    shown = [member for member in dated if not (costs[id(member)] == 0).all()]
    if not shown:
        reason = (
            "no bytes are sent"
            if dated
            else "the logs do not show every round of a period (log.every)"
            if members
            else "no spectral gap in these logs"
        )
        axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center")
        axes.set(xticks=[], yticks=[])
        return
    for condition in shown:
        gap = max(float(condition.topology["spectral_gap"]), 1e-12)
        points = costs[id(condition)]
        style = {
            key: value for key, value in styles[condition.series].items() if key != "linestyle"
        }
        there = points[np.isfinite(points)]
        axes.plot(
            np.full(there.size, gap),
            there,
            linestyle="",
            markersize=4.5,
            alpha=0.5,
            markeredgewidth=0,
            **style,
        )
        if there.size == points.size:
            axes.plot(
                [gap],
                [there.mean()],
                linestyle="",
                markersize=9,
                markeredgecolor="white",
                label=condition.series,
                **style,
            )
        else:
            never.append(
                (gap, f"{points.size - there.size} of {points.size} never", style, condition.series)
            )
    axes.set(xscale="log", yscale="log", xlabel="spectral gap (logarithmic)")
    gaps = [max(float(condition.topology["spectral_gap"]), 1e-12) for condition in shown]
    limit_axis(axes, "x", min(gaps), max(gaps), number_text)
    low, high = axes.get_ylim()
    limit_axis(axes, "y", low, high, bytes_text if column else number_text)
    for level, (gap, text, style, series) in enumerate(sorted(never, key=lambda entry: entry[0])):
        height = 0.96 - 0.08 * level  # under the upper rim: beyond what was run
        axes.plot(
            [gap],
            [height],
            transform=axes.get_xaxis_transform(),
            linestyle="",
            markersize=9,
            fillstyle="none",
            label=series,
            **style,
        )
        right = gap > (min(gaps) * max(gaps)) ** 0.5
        axes.annotate(
            text,
            (gap, height),
            xycoords=axes.get_xaxis_transform(),
            fontsize=8,
            va="center",
            ha="right" if right else "left",
            xytext=(-8 if right else 8, 0),
            textcoords="offset points",
        )


def limit_axis(
    axes: Axes, which: str, low: float, high: float, text: Callable[[float], str]
) -> None:
    """Sets the limits of a logarithmic axis, with a margin, at least a factor of 6 apart."""
    low, high = low / 1.35, high * 1.35
    if high / low < 6:
        middle = (low * high) ** 0.5
        low, high = middle / 6**0.5, middle * 6**0.5
    axes.set(**{f"{which}lim": (low, high)})
    set_ticks(axes, which, text)
