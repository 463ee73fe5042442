"""Draws the figures of a report with matplotlib."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lab.conditions import Condition, by_facet
from lab.metric import Metric, Target, rounds_and_bytes_to
from lab.predictions import Predictions
from lab.style import INK, PREDICTED, WIDTH_INCHES, series_style

Styles = dict[str, dict[str, object]]
_LEGEND_LETTERS, _HANDLE_LETTERS = 104, 11  # widths of a legend and of a line sample in it


@dataclass(frozen=True)
class ReportFigure:
    stem: str  # file name without suffix
    title: str
    caption: str
    figure: Figure


def styles_of(conditions: list[Condition]) -> Styles:
    return {
        name: series_style(i) for i, name in enumerate(dict.fromkeys(c.series for c in conditions))
    }


def curve_figure(
    stem: str,
    title: str,
    caption: str,
    conditions: list[Condition],
    metric: Metric,
    predictions: Predictions,
) -> ReportFigure:
    """A row of panels per facet: the metric against rounds, bytes per peer, and virtual seconds.

    Panels against seconds are drawn if all runs have virtual time. Each panel also has the
    predicted curves.
    """
    rows = by_facet(conditions)
    costs = cost_axes(conditions)
    styles = styles_of(conditions)
    figure = Figure(figsize=(WIDTH_INCHES, 0.75 + 2.6 * len(rows)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08)  # keeps the tick labels of two panels apart
    axes = figure.subplots(len(rows), len(costs), squeeze=False, sharey="row")
    for row, (facet, members) in zip(axes, rows.items(), strict=True):
        omitted = negligible(members, metric)
        if metric.logarithmic:
            row[0].set_yscale("log")
        shown = [condition for condition in members if condition not in omitted]
        for panel, cost in zip(row, costs, strict=True):
            for condition in shown:
                _draw_curve(panel, condition, metric, styles, cost)
            _draw_predictions(panel, shown, metric, predictions, cost)
            _note_omitted(panel, omitted)
            _label_cost_axis(panel, cost, f"{facet}: " if facet else "", wide=len(costs) < 3)
        row[0].set_ylabel(metric.label)
        if metric.logarithmic:
            set_ticks(row[0], "y", number_text)
        else:
            row[0].yaxis.set_major_locator(MaxNLocator(6))
    add_legend(figure, title, styles)
    return ReportFigure(stem, title, caption, figure)


def cost_axes(conditions: list[Condition]) -> tuple[str, ...]:
    """The costs against which curves are drawn; seconds if every run has virtual time."""
    timed = all(condition.has_virtual_time for condition in conditions)
    return ("round", "bytes_sent", "seconds") if timed else ("round", "bytes_sent")


def _label_cost_axis(axes: Axes, cost: str, prefix: str, wide: bool) -> None:
    if cost == "round":
        axes.set(title=f"{prefix}by round", xlabel="round")
        axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4, integer=True))
    elif cost == "seconds":
        axes.set(title=f"{prefix}by time", xlabel="virtual seconds (log.)", xscale="log")
        set_ticks(axes, "x", number_text, most=4)
    else:
        axes.set(
            title=f"{prefix}by bytes",
            xlabel="bytes sent per peer (logarithmic)" if wide else "bytes sent per peer (log.)",
            xscale="log",
        )
        set_ticks(axes, "x", bytes_text, most=6 if wide else 3)


def negligible(members: list[Condition], metric: Metric) -> list[Condition]:
    """Conditions whose values on a logarithmic axis are always below 10⁻⁴ of the largest value.

    Their peers agree up to rounding. They are named in the panel and not drawn, because their range
    would compress all other curves.
    """
    if not metric.logarithmic:
        return []
    highest = {id(c): float(np.nanmax(c.band(metric.name).high)) for c in members}
    top = max(highest.values())
    return [c for c in members if highest[id(c)] < 1e-4 * top]


def _note_omitted(axes: Axes, omitted: list[Condition]) -> None:
    if omitted:
        axes.text(
            0.98,
            0.03,
            f"{', '.join(c.series for c in omitted)}: below the axis",
            transform=axes.transAxes,
            ha="right",
            fontsize=8,
        )


def _draw_curve(
    axes: Axes, condition: Condition, metric: Metric, styles: Styles, cost: str
) -> None:
    logarithmic = cost != "round"
    x, band = condition.curve_against(cost, metric.name, logarithmic=logarithmic)
    # Zero (no cost yet, or exact agreement) cannot be drawn on a logarithmic axis.
    shown = (
        np.isfinite(band.mean)
        & ((x > 0) | (not logarithmic))
        & ((band.mean > 0) | (not metric.logarithmic))
    )
    if not shown.any():
        return
    style = styles[condition.series]
    low = np.where(band.low > 0, band.low, np.nan) if metric.logarithmic else band.low
    axes.fill_between(
        x[shown], low[shown], band.high[shown], color=style["color"], alpha=0.18, linewidth=0
    )
    axes.plot(
        x[shown],
        band.mean[shown],
        label=condition.series,
        markevery=_marker_positions(x[shown], logarithmic),
        markeredgecolor="white",
        markeredgewidth=0.6,
        **style,
    )


def _draw_predictions(
    axes: Axes, members: list[Condition], metric: Metric, predictions: Predictions, cost: str
) -> None:
    """Draws the predicted curves over the measured ones, without extending the y axis downwards.

    Predictions have no rounding error, so they continue below the values that float32 reaches.
    """
    limits = axes.get_ylim()
    highest = limits[1]
    for condition in members:
        predicted = predictions.curve(condition, metric.name)
        if predicted is None:
            continue
        rounds, values = predicted
        measured = condition.band("bytes_sent" if cost == "round" else cost)
        x = rounds if cost == "round" else np.interp(rounds, measured.rounds, measured.mean)
        shown = np.isfinite(values) & (values > 0) & ((x > 0) | (cost == "round"))
        if not shown.any():
            continue
        axes.plot(x[shown], values[shown], label="predicted", zorder=3, **PREDICTED)
        highest = max(highest, float(values[shown].max()))
    axes.set_ylim(limits[0], highest)


def _marker_positions(x: np.ndarray, logarithmic: bool) -> list[int]:
    """About eight markers, evenly spaced on the axis as drawn."""
    position = np.log(x) if logarithmic else x
    wanted = np.linspace(position[0], position[-1], 8)
    return sorted({int(np.abs(position - value).argmin()) for value in wanted})


def gap_figure(
    conditions: list[Condition], metric: Metric, targets: dict[str, Target], caption: str
) -> ReportFigure:
    """Rounds and bytes to the target against the spectral gap: a point per seed, and the means."""
    rows = by_facet(conditions)
    styles = styles_of(conditions)
    figure = Figure(figsize=(WIDTH_INCHES, 0.75 + 2.7 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), 2, squeeze=False)
    for row, (facet, members) in zip(axes, rows.items(), strict=True):
        prefix = f"{facet}: " if facet else ""
        for column, panel in enumerate(row):
            _draw_gap_panel(panel, members, metric, targets[facet], styles, column)
        row[0].set(title=f"{prefix}rounds", ylabel="rounds to the target")
        row[1].set(title=f"{prefix}bytes", ylabel="bytes per peer to the target")
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
    if not members:  # networks too large for their spectrum to be computed at a run's start
        axes.text(
            0.5,
            0.5,
            "no spectral gap in these logs",
            transform=axes.transAxes,
            ha="center",
            fontsize=9,
        )
        return
    for condition in members:
        gap = max(float(condition.topology["spectral_gap"]), 1e-12)
        points = np.array(
            [point[column] for point in rounds_and_bytes_to(condition, metric, target)]
        )
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
    gaps = [max(float(condition.topology["spectral_gap"]), 1e-12) for condition in members]
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


def number_or_dash(value: object) -> str:
    """A topology's number, or a dash if it is null because the network was too large for it."""
    return "–" if value is None else f"{value:.3g}"


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


def set_ticks(axes: Axes, which: str, text: Callable[[float], str], most: int = 6) -> None:
    """Sets at most `most` ticks of a logarithmic axis at round values."""
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            step * 10.0**power
            for power in powers
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(ticks) <= most:
            break
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks(ticks[:: math.ceil(len(ticks) / most)] if ticks else [low, high])
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axes.set(**{f"{which}lim": (low, high)})


def number_text(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"
    power = math.floor(math.log10(value) + 1e-9)
    lead = value / 10.0**power
    return f"$10^{{{power}}}$" if abs(lead - 1) < 1e-6 else f"${lead:.2g}\\times10^{{{power}}}$"


def bytes_text(value: float) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"


def _legend_columns(names: list[str]) -> int:
    """The largest number of legend columns that fits the page; the names fill column by column."""
    for columns in range(min(len(names), 6), 1, -1):
        rows, longer = divmod(len(names), columns)  # the first columns are a name longer
        starts = [column * rows + min(column, longer) for column in range(columns + 1)]
        widest = [
            max(len(name) for name in names[first:last])
            for first, last in itertools.pairwise(starts)
        ]
        if sum(widest) + _HANDLE_LETTERS * columns <= _LEGEND_LETTERS:
            return columns
    return 1


def add_legend(figure: Figure, title: str, styles: Styles) -> None:
    """Adds the title and one legend for all panels, with the series in the order of `styles`."""
    drawn = {
        label: handle
        for panel in figure.axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in (*styles, "predicted") if name in drawn]
    legend = figure.legend(
        [drawn[name] for name in names],
        names,
        loc="outside upper left",
        ncols=_legend_columns(names),
        title=title,
        alignment="left",
        borderaxespad=0.2,
        columnspacing=1.6,
    )
    legend.get_title().set(fontweight="bold", fontsize=11, color=INK)
