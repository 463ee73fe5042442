"""Speed-up against the number of peers in virtual time, measured and predicted.

The speed-up of n peers is their node steps per second times the seconds of one step. It equals n
if no peer ever waits.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from lab.conditions import Condition, Run
from lab.figures import ReportFigure, Styles, add_legend, number_text
from lab.predictions import Predictions
from lab.style import PREDICTED, WIDTH_INCHES, series_style

PEERS = "run.peers"
_MIN_POINTS = 3  # of a curve


@dataclass(frozen=True)
class Point:
    peers: int
    measured: float
    predicted: float | None
    communication_bound: bool  # predicted: communication takes more time than training


def speedup_points(conditions: list[Condition], predictions: Predictions) -> dict[str, list[Point]]:
    """The points of each series by number of peers.

    Empty if run.peers is not an axis of the grid or the runs have no virtual time.
    """
    series: dict[str, list[Point]] = {}
    for condition in conditions:
        if PEERS not in condition.labels:
            continue
        point = _point(condition, predictions)
        if point is not None:
            series.setdefault(_name(condition), []).append(point)
    return {
        name: sorted(points, key=lambda point: point.peers)
        for name, points in series.items()
        if len(points) >= _MIN_POINTS
    }


def speedup_figure(series: dict[str, list[Point]]) -> ReportFigure:
    styles: Styles = {name: series_style(i) for i, name in enumerate(series)}
    figure = Figure(figsize=(WIDTH_INCHES, 4.2), layout="constrained")
    axes = figure.subplots()
    all_peers = sorted({point.peers for points in series.values() for point in points})
    axes.plot(all_peers, all_peers, color="#AAAAAA", linewidth=1.0, linestyle=":", zorder=1)
    axes.annotate(
        "n times",
        (all_peers[-1], all_peers[-1]),
        xytext=(-34, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
        color="#777777",
    )
    for name, points in series.items():
        peers = [point.peers for point in points]
        style = styles[name] | {"linestyle": ""}
        axes.plot(
            peers,
            [point.measured for point in points],
            label=name,
            markersize=6.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=4,
            **{k: v for k, v in style.items() if k != "markersize"},
        )
        with_prediction = [point for point in points if point.predicted is not None]
        axes.plot(
            [point.peers for point in with_prediction],
            [point.predicted for point in with_prediction],
            label="predicted",
            zorder=3,
            **PREDICTED,
        )
        _mark_crossover(axes, with_prediction, str(styles[name]["color"]))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(all_peers, [str(n) for n in all_peers])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    powers = range(int(np.floor(np.log2(low))), int(np.ceil(np.log2(high))) + 1)
    ticks = [2.0**power for power in powers if low <= 2.0**power <= high]
    axes.set_yticks(ticks, [number_text(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="peers", ylabel="speed-up over one peer")
    title = "Speed-up against the number of peers"
    add_legend(figure, title, styles)
    caption = (
        "The work of n peers per second of virtual time, relative to one peer. Dots: measured, the "
        "mean over the seeds. Thin dashed lines: predicted by `gossamer predict` from a latency "
        "and the bytes of the busiest link for each exchange, which runs in parallel with training "
        "or after it. Ring around a point: the first number of peers at which communication takes "
        "more time than training."
    )
    return ReportFigure("speedup", title, caption, figure)


def _mark_crossover(axes, points: list[Point], colour: str) -> None:
    first = next((point for point in points if point.communication_bound), None)
    if first is not None:
        axes.plot(
            [first.peers],
            [first.predicted],
            marker="o",
            markersize=14,
            fillstyle="none",
            color=colour,
            markeredgewidth=1.1,
            linestyle="",
            zorder=5,
        )


def _point(condition: Condition, predictions: Predictions) -> Point | None:
    measured, predicted, bound = [], [], []
    peers = int(condition.labels[PEERS])
    for run in condition.runs:
        step = _step_seconds(run)
        seconds = run.summary.get("virtual_seconds")
        if not step or not seconds or not run.summary["rounds"]:
            return None
        steps = run.summary["node_steps"]
        measured.append(steps * step / seconds)
        round_seconds = predictions.round_seconds(run)
        if round_seconds:
            predicted.append(steps / run.summary["rounds"] * step / round_seconds["total"])
            waits = round_seconds["total"] - round_seconds["training"]
            bound.append(waits > round_seconds["training"])
    complete = len(predicted) == len(measured)
    return Point(
        peers,
        float(np.mean(measured)),
        float(np.mean(predicted)) if complete else None,
        complete and all(bound),
    )


def _step_seconds(run: Run) -> float | None:
    """The virtual seconds of a local step; None if a batch is the whole shard."""
    config = run.summary["config"]
    batch = config.get("data", {}).get("batch", 0)
    sim = config.get("sim", {})
    if batch == 0 and sim.get("sample_ms", 0) > 0:
        return None
    return (sim.get("compute_ms", 0) + batch * sim.get("sample_ms", 0)) / 1e3


def _name(condition: Condition) -> str:
    rest = [value for axis, value in condition.labels.items() if axis != PEERS]
    return (
        ", ".join(value.strip('"').replace("_", " ") for value in rest)
        or condition.topology["topology"]
    )
