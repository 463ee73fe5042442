"""Draws the figure of a study: panels with curves, dots, lines, a scatter plot or a grid."""

import math
import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lab.axes import VARIANT
from lab.conditions import Condition, short_key
from lab.figures import Styles, bytes_text, add_legend, number_text, set_ticks
from lab.inference import half_width
from lab.measure import NEVER
from lab.study_results import StudyResults, ResultRow, average
from lab.style import INK, WIDTH_INCHES, series_style
from lab.study import Panel, Study, axis_of, facet_at, facet_names, panel_part, value_label

_AXIS_LABELS = {
    "round": "round",
    "steps": "local steps of a peer",
    "bytes_sent": "bytes sent per peer",
    "seconds": "virtual time in seconds",
}
_MAX_COLUMNS = 3
_MAX_POINTS = 90


def draw(study: Study, results: StudyResults, conditions: dict[str, list[Condition]]) -> Figure:
    wide = any(panel.kind == "grid" for panel in study.panels)
    columns = min(len(study.panels), 2 if wide else _MAX_COLUMNS)
    lines = math.ceil(len(study.panels) / columns)
    figure = Figure(figsize=(WIDTH_INCHES, 0.9 + 2.7 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    styles = {name: series_style(i) for i, name in enumerate(study.variants)}
    for axes in panels[len(study.panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(panels, study.panels, strict=False):
        if panel.kind == "curve":
            _curves(axes, panel, study, conditions, styles)
        else:
            {"dots": _dots, "lines": _lines, "scatter": _scatter, "grid": _grid}[panel.kind](
                axes, panel, study, results, styles
            )
        axes.set_title(panel.title)
        _format_axes(axes, panel)
    add_legend(figure, study.title, styles)
    return figure


def _curves(
    axes: Axes, panel: Panel, study: Study, conditions: dict[str, list[Condition]], styles: Styles
) -> None:
    """The mean over the seeds, and the band from the lowest to the highest seed."""
    part = panel_part(study, panel)
    facet = panel.facet or facet_names(part)[0]
    for condition in conditions[part.name]:
        series = condition.labels[VARIANT]
        if facet_at(part, condition.labels) != facet or (
            panel.variants and series not in panel.variants
        ):
            continue
        x, band = condition.curve_against(panel.x, panel.y, *panel.xlim[-1:])
        y, low, high = (
            np.where(v > 0, v, np.nan) if "y" in panel.log else v
            for v in (band.mean, band.low, band.high)
        )
        shown = _downsample(
            np.isfinite(y)
            & ((x > 0) | ("x" not in panel.log))
            & (x <= (panel.xlim or [np.inf])[-1]),
            condition.runs[0].curves.period,
        )
        if len(shown) == 0:  # as the distance from consensus of a series that is always there
            continue
        style = {**styles[series], "markersize": 3.6}
        axes.fill_between(
            x[shown], low[shown], high[shown], color=style["color"], alpha=0.15, linewidth=0
        )
        axes.plot(
            x[shown],
            y[shown],
            label=series,
            markevery=_marker_positions(x[shown], "x" in panel.log),
            markeredgecolor="white",
            markeredgewidth=0.5,
            **style,
        )
    if panel.target is not None:
        axes.axhline(panel.target, color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
    axes.set(
        xlabel=panel.xlabel or _AXIS_LABELS[panel.x],
        ylabel=panel.ylabel or panel.y.replace("_", " "),
    )


def _downsample(shown: np.ndarray, period: int) -> np.ndarray:
    """At most _MAX_POINTS of the indices to show, including the last; limits the file size.

    The points fall on every round of the graph's period.
    """
    indices = np.flatnonzero(shown)
    step = max(1, math.ceil(len(indices) / _MAX_POINTS))
    while math.gcd(step, period) > 1:
        step += 1
    return indices[::-step][::-1]


def _marker_positions(x: np.ndarray, logarithmic: bool) -> list[int]:
    """About six markers, evenly spaced on the axis as drawn."""
    position = np.log(x) if logarithmic else x
    return sorted(
        {
            int(np.abs(position - value).argmin())
            for value in np.linspace(position[0], position[-1], 6)
        }
    )


def _rows(panel: Panel, study: Study, results: StudyResults) -> list[ResultRow]:
    part = panel_part(study, panel)
    rows = [
        row
        for row in results.rows_of(part.name)
        if not panel.variants or row.series in panel.variants
    ]
    facet = panel.facet or facet_names(part)[0]
    return rows if panel.kind in ("lines", "grid") else [row for row in rows if row.facet == facet]


def _dots(axes: Axes, panel: Panel, study: Study, results: StudyResults, styles: Styles) -> None:
    """A row per series, from top to bottom: a large marker for the mean, small ones for seeds."""
    rows = _rows(panel, study, results)
    for height, row in enumerate(reversed(rows)):
        style = {key: value for key, value in styles[row.series].items() if key != "linestyle"}
        values = row.values[panel.y]
        if NEVER in values:
            axes.text(
                0.97,
                height,
                "never",
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=8,
            )
            continue
        axes.plot(
            values,
            [height] * len(values),
            linestyle="",
            alpha=0.5,
            markeredgewidth=0,
            **{**style, "markersize": 3.5},
        )
        axes.plot(
            [average(values)],
            [height],
            linestyle="",
            markersize=8,
            markeredgecolor="white",
            **style,
        )
    has_legend = any(other.kind == "curve" for other in study.panels)
    axes.set_yticks(
        range(len(rows)),
        [""] * len(rows) if has_legend else [row.series for row in reversed(rows)],
        fontsize=8,
    )
    axes.grid(axis="y", visible=False)
    axes.set(ylim=(-0.6, len(rows) - 0.4), xlabel=panel.xlabel or panel.y)


def _lines(axes: Axes, panel: Panel, study: Study, results: StudyResults, styles: Styles) -> None:
    """A column against an axis of the grid: a line per series, with its 95 % interval as a bar."""
    axis_values = axis_of(panel_part(study, panel), panel.x).values
    per_series = _along_axis(panel, study, results)
    for number, (name, values) in enumerate(per_series.items()):
        shown = [i for i, per_seed in enumerate(values) if average(per_seed) != NEVER]
        shift = 0.06 * (number - (len(per_series) - 1) / 2)  # so that the bars do not overlap
        axes.errorbar(
            [i + shift for i in shown],
            [average(values[i]) for i in shown],
            yerr=[half_width(values[i]) or 0 for i in shown],
            label=name,
            capsize=1.5,
            elinewidth=0.9,
            markeredgecolor="white",
            markeredgewidth=0.5,
            **styles[name],
        )
    axes.set_xticks(range(len(axis_values)), axis_values)
    axes.set(xlabel=panel.xlabel or short_key(panel.x), ylabel=panel.ylabel or panel.y)


def _along_axis(panel: Panel, study: Study, results: StudyResults) -> dict[str, list[list[float]]]:
    """By series: the column's values per seed at each value of the axis; NEVER without a run."""
    axis = axis_of(panel_part(study, panel), panel.x)
    rows = _rows(panel, study, results)
    points = {(row.series, row.facet): row.values[panel.y] for row in rows}
    return {
        name: [points.get((name, f"{short_key(axis.key)} = {x}"), [NEVER]) for x in axis.values]
        for name in dict.fromkeys(row.series for row in rows)
    }


def _grid(axes: Axes, panel: Panel, study: Study, results: StudyResults, styles: Styles) -> None:
    """A cell for each series, from top to bottom, and value of an axis: a shade and the mean."""
    column = study.column(panel.y)
    per_series = _along_axis(panel, study, results)
    means = np.array([[average(values) for values in row] for row in per_series.values()])
    low, high = (0, 1) if column.percent else (np.nanmin(means), np.nanmax(means))
    shades = np.where(means == NEVER, np.nan, means)
    # An image, because a path for each cell would make the file large.
    axes.imshow(shades, cmap="cividis", vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    for (line, place), mean in np.ndenumerate(means):
        axes.text(
            place,
            line,
            "–" if mean == NEVER else f"{mean * (100 if column.percent else 1):.0f}",
            ha="center",
            va="center",
            fontsize=7.5,
            color="white" if mean < (low + high) / 2 else INK,
        )
    values = axis_of(panel_part(study, panel), panel.x).values
    names = [value_label(value).replace("_", " ") for value in values]
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=90 if len(names[0]) > 2 else 0)
    axes.set_yticks(range(len(per_series)), list(per_series), fontsize=8)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    axes.tick_params(length=0)
    axes.grid(visible=False)


def _scatter(axes: Axes, panel: Panel, study: Study, results: StudyResults, styles: Styles) -> None:
    """A point for each series. Series that differ in their last number have one colour and a line.

    Examples are `ring 8` and `ring 16`, or `local SGD, H = 8` and `local SGD, H = 16`.
    """
    rows = _rows(panel, study, results)
    families = list(dict.fromkeys(_family(row.series) for row in rows))
    for name in families:
        members = [row for row in rows if _family(row.series) == name]
        number = families.index(name)
        beside = {
            (row.series, row.facet): row
            for row in results.rows_of(study.part(study.column(panel.x).part).name)
        }
        x = [average(beside[row.series, row.facet].values[panel.x]) for row in members]
        y = [average(row.values[panel.y]) for row in members]
        axes.plot(
            x,
            y,
            linewidth=0.6,
            alpha=0.9,
            markersize=5,
            markeredgecolor="white",
            markeredgewidth=0.4,
            label=name,
            **(series_style(number) | {"linestyle": "-"}),
        )
    for name in families:  # the legend has them in place of the series
        styles.setdefault(name, {})
    axes.set(xlabel=panel.xlabel or panel.x, ylabel=panel.ylabel or panel.y)


def _family(series: str) -> str:
    return re.sub(r"(, \w+ =)? \d+$", "", series)


def _format_axes(axes: Axes, panel: Panel) -> None:
    if panel.xlim:
        axes.set_xlim(panel.xlim)
    if panel.ylim:
        axes.set_ylim(panel.ylim)
    in_bytes = panel.x == "bytes_sent" or "byte" in axes.get_xlabel()
    wide = len(axes.figure.axes) < _MAX_COLUMNS
    for which in panel.log:
        axes.set(**{f"{which}scale": "log"})
        set_ticks(
            axes,
            which,
            bytes_text if which == "x" and in_bytes else number_text,
            most=5 if wide or which == "y" else 3,
        )
    if "x" not in panel.log and panel.kind in ("curve", "dots", "scatter"):
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if in_bytes:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    for which, axis, label in (
        ("x", axes.xaxis, axes.get_xlabel()),
        ("y", axes.yaxis, axes.get_ylabel()),
    ):
        if "accuracy" in label and which not in panel.log:
            low, high = axis.get_view_interval()
            digits = 0 if high - low > 0.04 else 1
            axis.set_major_formatter(
                FuncFormatter(lambda value, _, digits=digits: f"{100 * value:.{digits}f} %")
            )
