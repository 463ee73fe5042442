"""Time to a target for the same number of workers as replicas × parts of a cut model.

Measured in virtual time, and predicted: the rounds that a run took, each with the duration that
`gossamer predict` gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from lab.conditions import Condition
from lab.figures import ReportFigure, Styles, add_legend, number_text
from lab.metric import Metric, Target, rounds_and_bytes_to, seconds_to
from lab.predictions import Predictions
from lab.style import INK, WIDTH_INCHES, series_style


@dataclass(frozen=True, order=True)
class Shape:
    """How a number of workers is divided: into replicas of stages, each of as many slices."""

    slices: int
    stages: int
    replicas: int

    @property
    def label(self) -> str:
        numbers = [self.replicas, self.stages]
        return " × ".join(map(str, numbers + [self.slices] * (self.slices > 1)))

    @property
    def workers(self) -> int:
        return self.replicas * self.stages * self.slices


@dataclass(frozen=True)
class Point:
    shape: Shape
    measured: float  # seconds, the mean over the seeds
    predicted: float | None


def split_points(
    conditions: list[Condition],
    metric: Metric,
    targets: Mapping[str, Target],
    predictions: Predictions,
) -> dict[str, list[Point]]:
    """The points of each facet, by shape.

    Empty unless the conditions cut models differently over the same number of workers, in virtual
    time. A condition that does not reach the target in every seed has no point.
    """
    if not all(condition.has_virtual_time for condition in conditions):
        return {}
    shapes = {_shape(condition) for condition in conditions}
    if len(shapes) < 2 or len({shape.workers for shape in shapes}) > 1:
        return {}
    facets: dict[str, list[Point]] = {}
    for condition in conditions:
        target = targets[condition.facet]
        seconds = seconds_to(condition, metric, target)
        if not np.isfinite(seconds).all():
            continue
        rounds = [each for each, _ in rounds_and_bytes_to(condition, metric, target)]
        durations = [predictions.round_seconds(run) for run in condition.runs]
        predicted = [
            each * duration["total"]
            for each, duration in zip(rounds, durations, strict=True)
            if duration
        ]
        facets.setdefault(condition.facet, []).append(
            Point(
                _shape(condition),
                float(np.mean(seconds)),
                float(np.mean(predicted)) if len(predicted) == len(seconds) else None,
            )
        )
    for points in facets.values():
        points.sort(key=lambda point: point.shape)
        if len({point.shape for point in points}) < len(points):
            return {}  # the conditions differ in more than the shape
    return facets


def split_figure(facets: dict[str, list[Point]]) -> ReportFigure:
    names = [name or "all runs" for name in facets]
    styles: Styles = {name: series_style(i) for i, name in enumerate(names)}
    figure = Figure(figsize=(WIDTH_INCHES, 3.6), layout="constrained")
    axes = figure.subplots()
    shapes = sorted({point.shape for points in facets.values() for point in points})
    for name, points in zip(names, facets.values(), strict=True):
        style = styles[name]
        for slices in sorted({point.shape.slices for point in points}):
            family = [point for point in points if point.shape.slices == slices]
            axes.plot(
                [shapes.index(point.shape) for point in family],
                [point.measured for point in family],
                label=name,
                color=style["color"],
                marker=style["marker"],
                linewidth=1.2,
                markersize=6.5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=4,
            )
        for point in points:
            place = shapes.index(point.shape)
            if point.predicted is not None:
                axes.plot(
                    [place - 0.14, place + 0.14],
                    [point.predicted] * 2,
                    color="#111111",
                    linewidth=1.1,
                    label="predicted",
                    zorder=5,
                )
            axes.annotate(
                number_text(float(f"{point.measured:.3g}")),
                (place, point.measured),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=INK,
            )
    axes.set_xticks(range(len(shapes)), [shape.label for shape in shapes])
    axes.set_xlim(-0.4, len(shapes) - 0.4)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    axes.margins(y=0.15)
    axes.set(
        xlabel="replicas × stages" + " × slices" * any(shape.slices > 1 for shape in shapes),
        ylabel="virtual seconds to the target",
    )
    title = f"{shapes[0].workers} workers, as replicas and as parts of the model"
    add_legend(figure, title, styles)
    caption = (
        f"Time until the target, for {shapes[0].workers} workers that hold whole models (left), or "
        "each a part of one. Dots: measured, the mean over the seeds. Short lines: predicted, the "
        "rounds that were needed times the duration of a round by `gossamer predict`."
    )
    return ReportFigure("split", title, caption, figure)


def _shape(condition: Condition) -> Shape:
    config = condition.runs[0].summary.get("config", {})
    split = config.get("split", {})
    slices = int(split.get("parameters", 1))
    replicas = int(config.get("run", {}).get("peers", condition.topology["peers"]))
    return Shape(slices, int(split.get("layers", 1)), replicas)
