"""Draws the figures of a report with matplotlib."""

import itertools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lab.conditions import Condition, by_facet, series_list
from lab.metric import Metric
from lab.predictions import Predictions
from lab.style import INK, PREDICTED, WIDTH_INCHES, series_style

Styles = dict[str, dict[str, object]]
_COST_NAMES = {"round": "round", "bytes_sent": "bytes", "seconds": "time"}
_TITLE_LETTERS = 100  # width of a title across the page
_NOTE_LETTERS = 90  # width of the notes in all panels of a row
_LINE_SHARE = 0.06  # of a panel's height, for the text of a tick
_LETTER_SHARE = 0.16  # of the width that a panel has for each of its ticks, for a letter of one
_LEGEND_LETTERS, _HANDLE_LETTERS = 104, 11  # widths of a legend and of a line sample in it

_LEGEND_LINES, _LINE_INCHES = 4, 0.19  # for which a figure has room, and the height of one more


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
    rows = drawn_facets(conditions, metric)
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
            _label_cost_axis(panel, cost, wide=len(costs) < 3)
        set_titles(row, facet, [f"by {_COST_NAMES[cost]}" for cost in costs])
        row[0].set_ylabel(metric.label)
        if omitted:
            _note_omitted(row[0], omitted, _NOTE_LETTERS // len(costs))
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


def drawn_facets(conditions: list[Condition], metric: Metric) -> dict[str, list[Condition]]:
    """The facets with a condition that is not negligible. They have a row of panels each."""
    return {
        facet: members
        for facet, members in by_facet(conditions).items()
        if len(negligible(members, metric)) < len(members)
    }


def set_titles(row: Sequence[Axes], facet: str, titles: list[str]) -> None:
    """The title of a row of panels: its facet, across the row. Without facets, one per panel."""
    if facet:
        row[0].set_title(textwrap.fill(facet, _TITLE_LETTERS))
    else:
        for panel, title in zip(row, titles, strict=True):
            panel.set_title(title)


def _label_cost_axis(axes: Axes, cost: str, wide: bool) -> None:
    if cost != "round" and not axes.lines:
        axes.text(0.5, 0.5, "no bytes are sent", transform=axes.transAxes, ha="center")
        axes.set(xlabel=_COST_NAMES[cost], xticks=[])
    elif cost == "round":
        axes.set_xlabel("round")
        axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4, integer=True))
    elif cost == "seconds":
        axes.set(xlabel="virtual seconds (log.)", xscale="log")
        set_ticks(axes, "x", number_text, most=4)
    else:
        axes.set(
            xlabel="bytes sent per peer (logarithmic)" if wide else "bytes sent per peer (log.)",
            xscale="log",
        )
        set_ticks(axes, "x", bytes_text, most=6 if wide else 3)


def negligible(members: list[Condition], metric: Metric) -> list[Condition]:
    """Conditions whose values on a logarithmic axis are 0 or always below 10⁻⁴ of the largest.

    Their peers agree up to rounding. They are named in the panel and not drawn, because their range
    would compress all other curves.
    """
    if not metric.logarithmic:
        return []
    highest = {id(c): float(np.nanmax(c.band(metric.name).high)) for c in members}
    top = max(highest.values())
    return [c for c in members if highest[id(c)] == 0 or highest[id(c)] < 1e-4 * top]


def _note_omitted(axes: Axes, omitted: list[Condition], letters: int) -> None:
    """Names conditions in a strip below the curves. The caption names all of them."""
    text = f"below the axis: {series_list(omitted)}"
    lines = textwrap.wrap(text, letters, max_lines=4, placeholder=" …")
    strip = 0.03 + 0.075 * len(lines)  # of the height
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** (strip / (1 - strip)), high)
    note = axes.text(0.02, 0.03, "\n".join(lines), transform=axes.transAxes, fontsize=8)
    note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    note.set_in_layout(False)


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


def number_or_dash(value: object) -> str:
    """A topology's number, or a dash if it is null because the network was too large for it."""
    return "–" if value is None else f"{value:.3g}"


def set_ticks(axes: Axes, which: str, text: Callable[[float], str], most: int = 6) -> None:
    """Sets at most `most` ticks of a logarithmic axis at round values, whose texts fit."""
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    choose = _close_ticks if high < 3 * low else _round_ticks
    ticks = choose(low, high, most, text, which == "x")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks(ticks[:: math.ceil(len(ticks) / most)] if ticks else [low, high])
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axes.set(**{f"{which}lim": (low, high)})


def _close_ticks(
    low: float, high: float, most: int, text: Callable[[float], str], beside: bool
) -> list[float]:
    """Evenly spaced values, for a range in which the round values of a decade are too far apart.

    As many as have different texts that fit, or one. `beside`: the texts stand side by side.
    """
    chosen: list[float] = []
    for steps, stride in itertools.product(range(most - 1, 0, -1), (1, 2, 3)):
        values = MaxNLocator(steps, steps=[1, 2, 5, 10]).tick_values(low, high)
        ticks = [float(value) for value in values if low <= value <= high][::stride]
        if not len(chosen) < len(ticks) <= most:
            continue
        differ = len({text(tick) for tick in ticks}) == len(ticks)
        if len(ticks) == 1 or (differ and _fit(ticks, low, high, most, text, beside)):
            chosen = ticks
    return chosen or [math.sqrt(low * high)]


def _round_ticks(
    low: float, high: float, most: int, text: Callable[[float], str], beside: bool
) -> list[float]:
    """The closest round values that are no more than `most` and far enough apart.

    `text`: that of a tick. `beside`: the texts stand side by side.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tenths = [step / 10 for step in range(10, 100)]
    chosen: list[float] = []
    for steps in (
        tenths,
        tenths[::2],
        tenths[::5],
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        (1, 2, 3, 5, 7),
        (1, 2, 5),
        (1, 3),
        (1,),
    ):
        values = [step * 10.0**power for power in powers for step in steps]
        ticks = [value for value in values if low <= value <= high]
        if len(ticks) < 2:
            break
        chosen = ticks
        if len(ticks) <= most and _fit(ticks, low, high, most, text, beside):
            break
    return chosen


def _fit(
    ticks: list[float],
    low: float,
    high: float,
    most: int,
    text: Callable[[float], str],
    beside: bool,
) -> bool:
    """If the texts of ticks have space on a logarithmic axis that goes from `low` to `high`."""
    closest = min(b / a for a, b in itertools.pairwise(ticks))
    needed = _LINE_SHARE
    if beside:
        needed = _LETTER_SHARE / most * max(len(_plain(text(tick))) for tick in ticks)
    return math.log(closest) >= needed * math.log(high / low)


def _plain(text: str) -> str:
    """The letters of a text that are seen, without the marks of a formula."""
    return re.sub(r"[${}^]|\\times", "", text)


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
    """Adds the title and one legend for all panels, with the series in the order of `styles`.

    A legend of many lines makes the figure higher, and not its panels lower.
    """
    drawn = {
        label: handle
        for panel in figure.axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in (*styles, "predicted") if name in drawn]
    texts = [textwrap.fill(name, _LEGEND_LETTERS - _HANDLE_LETTERS) for name in names]
    columns = _legend_columns(names)
    lines = math.ceil(sum(text.count("\n") + 1 for text in texts) / columns)
    figure.set_figheight(figure.get_figheight() + _LINE_INCHES * max(0, lines - _LEGEND_LINES))
    legend = figure.legend(
        [drawn[name] for name in names],
        texts,
        loc="outside upper left",
        ncols=columns,
        title=title,
        alignment="left",
        borderaxespad=0.2,
        columnspacing=1.6,
    )
    legend.get_title().set(fontweight="bold", fontsize=11, color=INK)
