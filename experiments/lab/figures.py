"""The figures of a report as matplotlib objects, each with its file name, title, caption and text for screen readers."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lab.conditions import Condition, facets
from lab.metric import Metric, Target, reached
from lab.predictions import Predictions
from lab.style import INK, PREDICTED, WIDTH_INCHES, series_style

Styles = dict[str, dict[str, object]]
_PAGE_LETTERS, _HANDLE_LETTERS = 104, 11  # of a legend's line, and what a handle takes of it


@dataclass(frozen=True)
class Picture:
    stem: str  # file name without its ending
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
) -> Picture:
    """A row of panels per facet: the metric by round, by bytes that a peer has sent, and where runs took virtual time by that;
    over each what is predicted."""
    rows = facets(conditions)
    spent = spent_in(conditions)
    styles = styles_of(conditions)
    figure = Figure(figsize=(WIDTH_INCHES, 0.75 + 2.6 * len(rows)), layout="constrained")
    figure.get_layout_engine().set(
        w_pad=0.08
    )  # or the last tick of a panel meets the next one's first
    axes = figure.subplots(len(rows), len(spent), squeeze=False, sharey="row")
    for row, (facet, members) in zip(axes, rows.items(), strict=True):
        small = negligible(members, metric)
        if metric.logarithmic:
            row[0].set_yscale("log")
        shown = [condition for condition in members if condition not in small]
        for panel, by in zip(row, spent, strict=True):
            for condition in shown:
                _draw_curve(panel, condition, metric, styles, by)
            _draw_predictions(panel, shown, metric, predictions, by)
            _say_below(panel, small)
            _say_spent(panel, by, f"{facet}: " if facet else "", wide=len(spent) < 3)
        row[0].set_ylabel(metric.label)
        if metric.logarithmic:
            set_ticks(row[0], "y", number_text)
        else:
            row[0].yaxis.set_major_locator(MaxNLocator(6))
    finish(figure, title, styles)
    return Picture(stem, title, caption, figure)


def spent_in(conditions: list[Condition]) -> tuple[str, ...]:
    """What a curve may be held against: time, where every run took some."""
    timed = all(condition.takes_virtual_time for condition in conditions)
    return ("round", "bytes_sent", "seconds") if timed else ("round", "bytes_sent")


def _say_spent(axes: Axes, by: str, prefix: str, wide: bool) -> None:
    if by == "round":
        axes.set(title=f"{prefix}by round", xlabel="round")
        axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4, integer=True))
    elif by == "seconds":
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
    """Conditions that never come within a factor 10⁴ of the others on a logarithmic axis: agreement but for rounding, which
    would flatten all else. They are named, not drawn."""
    if not metric.logarithmic:
        return []
    highest = {id(c): float(np.nanmax(c.band(metric.name).high)) for c in members}
    top = max(highest.values())
    return [c for c in members if highest[id(c)] < 1e-4 * top]


def _say_below(axes: Axes, small: list[Condition]) -> None:
    if small:
        axes.text(
            0.98,
            0.03,
            f"{', '.join(c.series for c in small)}: below the axis",
            transform=axes.transAxes,
            ha="right",
            fontsize=8,
        )


def _draw_curve(axes: Axes, condition: Condition, metric: Metric, styles: Styles, by: str) -> None:
    logarithmic = by != "round"
    x, band = condition.along(by, metric.name, logarithmic=logarithmic)
    # A logarithmic axis has no zero: nothing spent yet, or exact agreement.
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
        markevery=_marks(x[shown], logarithmic),
        markeredgecolor="white",
        markeredgewidth=0.6,
        **style,
    )


def _draw_predictions(
    axes: Axes, members: list[Condition], metric: Metric, predictions: Predictions, by: str
) -> None:
    """Theory's curves over the measured ones. The axis stays as those have it: predictions know no rounding, and go on below
    where float32 ends."""
    limits = axes.get_ylim()
    highest = limits[1]
    for condition in members:
        predicted = predictions.curve(condition, metric.name)
        if predicted is None:
            continue
        rounds, values = predicted
        measured = condition.band("bytes_sent" if by == "round" else by)
        x = rounds if by == "round" else np.interp(rounds, measured.rounds, measured.mean)
        shown = np.isfinite(values) & (values > 0) & ((x > 0) | (by == "round"))
        if not shown.any():
            continue
        axes.plot(x[shown], values[shown], label="predicted", zorder=3, **PREDICTED)
        highest = max(highest, float(values[shown].max()))
    axes.set_ylim(limits[0], highest)


def _marks(x: np.ndarray, logarithmic: bool) -> list[int]:
    """About eight markers, evenly spaced on the axis as drawn."""
    position = np.log(x) if logarithmic else x
    wanted = np.linspace(position[0], position[-1], 8)
    return sorted({int(np.abs(position - value).argmin()) for value in wanted})


def gap_figure(
    conditions: list[Condition], metric: Metric, targets: dict[str, Target], caption: str
) -> Picture:
    """Spectral gap against rounds, and against bytes, to the target: a point per seed and the mean of each condition."""
    rows = facets(conditions)
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
    finish(figure, title, styles)
    return Picture("gap", title, caption, figure)


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
        points = np.array([point[column] for point in reached(condition, metric, target)])
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


def known_number(value: object) -> str:
    """A figure of a topology that a run may have left out (null): a network too large to compute it at the start."""
    return "–" if value is None else f"{value:.3g}"


def limit_axis(
    axes: Axes, which: str, low: float, high: float, text: Callable[[float], str]
) -> None:
    """A logarithmic axis with some air, at least a factor of 6 long so that close points are not blown up."""
    low, high = low / 1.35, high * 1.35
    if high / low < 6:
        middle = (low * high) ** 0.5
        low, high = middle / 6**0.5, middle * 6**0.5
    axes.set(**{f"{which}lim": (low, high)})
    set_ticks(axes, which, text)


def set_ticks(axes: Axes, which: str, text: Callable[[float], str], most: int = 6) -> None:
    """Ticks of a logarithmic axis at round values, written out; as many as fit, and no more."""
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


def _columns(names: list[str]) -> int:
    """As many columns of a legend as the page is wide: names are set column by column, each with its line before it."""
    for columns in range(min(len(names), 6), 1, -1):
        rows, longer = divmod(len(names), columns)  # the first columns are a name longer
        starts = [column * rows + min(column, longer) for column in range(columns + 1)]
        widest = [
            max(len(name) for name in names[first:last])
            for first, last in itertools.pairwise(starts)
        ]
        if sum(widest) + _HANDLE_LETTERS * columns <= _PAGE_LETTERS:
            return columns
    return 1


def finish(figure: Figure, title: str, styles: Styles) -> None:
    """The title at the left, and below it one legend in the order of the series."""
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
        ncols=_columns(names),
        title=title,
        alignment="left",
        borderaxespad=0.2,
        columnspacing=1.6,
    )
    legend.get_title().set(fontweight="bold", fontsize=11, color=INK)
