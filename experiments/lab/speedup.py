"""Speed-up against the number of peers, in virtual time: measured, predicted, and where communication takes over.

The speed-up of n peers is what they compute in a second over what one peer alone would: node steps a second, times the
seconds that a step takes. It is the number of peers when nobody waits.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from lab.conditions import Condition, Run
from lab.figures import Picture, Styles, finish, number_text
from lab.predictions import Predictions
from lab.style import INK, PREDICTED, WIDTH_INCHES, series_style

PEERS = "run.peers"
_LEAST = 3  # numbers of peers that make a curve


@dataclass(frozen=True)
class Point:
    peers: int
    measured: float
    predicted: float | None
    talking: bool  # more time goes into communication than into training


def speedup_points(conditions: list[Condition], predictions: Predictions) -> dict[str, list[Point]]:
    """By series, ascending in peers. Empty where run.peers is no axis or no time passes."""
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
        if len(points) >= _LEAST
    }


def speedup_figure(series: dict[str, list[Point]]) -> Picture:
    styles: Styles = {name: series_style(i) for i, name in enumerate(series)}
    figure = Figure(figsize=(WIDTH_INCHES, 4.2), layout="constrained")
    axes = figure.subplots()
    every = sorted({point.peers for points in series.values() for point in points})
    axes.plot(every, every, color="#AAAAAA", linewidth=1.0, linestyle=":", zorder=1)
    axes.annotate(
        "n times",
        (every[-1], every[-1]),
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
        foreseen = [point for point in points if point.predicted is not None]
        axes.plot(
            [point.peers for point in foreseen],
            [point.predicted for point in foreseen],
            label="predicted",
            zorder=3,
            **PREDICTED,
        )
        _mark_takeover(axes, foreseen, str(styles[name]["color"]))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(every, [str(n) for n in every])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    powers = range(int(np.floor(np.log2(low))), int(np.ceil(np.log2(high))) + 1)
    ticks = [2.0**power for power in powers if low <= 2.0**power <= high]
    axes.set_yticks(ticks, [number_text(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="peers", ylabel="speed-up over one peer")
    title = "Speed-up against the number of peers"
    finish(figure, title, styles)
    caption = (
        "What n peers compute in a second of virtual time over what one alone would. Dots: measured, the mean over the "
        "seeds. Thin dashed lines, predicted by `gossamer predict`: a latency and the busiest link's bytes for each "
        "exchange, beside training where they overlap and after it where not. A ring around a point: from there on more "
        "time goes into communication than into training."
    )
    return Picture("speedup", title, caption, figure)


def _mark_takeover(axes, points: list[Point], colour: str) -> None:
    first = next((point for point in points if point.talking), None)
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
    measured, predicted, talking = [], [], []
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
            predicted.append(steps / run.summary["rounds"] * step / round_seconds["whole"])
            waits = round_seconds["whole"] - round_seconds["training"]
            talking.append(waits > round_seconds["training"])
    whole = len(predicted) == len(measured)
    return Point(
        peers,
        float(np.mean(measured)),
        float(np.mean(predicted)) if whole else None,
        whole and all(talking),
    )


def _step_seconds(run: Run) -> float | None:
    """Virtual time of a local step; None where the batch is the whole shard."""
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
