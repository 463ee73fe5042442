"""What a report says in words: the captions, the warnings, the method. Nothing is claimed that the runs do not show."""

from typing import Any

import numpy as np

from lab.cells import RATE
from lab.conditions import Condition, facets
from lab.figures import negligible, spent_in
from lab.measure import parse_measure
from lab.metric import CONSENSUS, Metric, Target
from lab.predictions import Predictions
from lab.results import Sweep


def seeds_words(conditions: list[Condition]) -> str:
    counts = sorted({len(condition.runs) for condition in conditions})
    if counts == [1]:
        return "One seed only: there is no band, and differences between lines may be chance."
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Line: the mean over {number} seeds. Band: from the lowest to the highest seed, at each round."


def listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]])


def metric_caption(metric: Metric, conditions: list[Condition]) -> str:
    what = {
        "test_accuracy": "Share of the test set that the peers' own models get right, averaged over the peers",
        "test_loss": "Loss on the test set of the peers' own models, averaged over the peers",
        "distance_to_optimum": "Distance of the peers' models to the known optimum, relative to the optimum's norm",
        "consensus_distance": "How far the peers' models are from their mean",
    }[metric.name]
    panels = {
        "round": "rounds",
        "bytes_sent": "the bytes that a peer has sent by then (mean over peers)",
        "seconds": "virtual time on the simulated network",
    }
    asked = {
        "round": "what a round teaches",
        "bytes_sent": "what a byte does",
        "seconds": "what a second does",
    }
    spent = spent_in(conditions)
    return (
        f"{what}; from the left, against {listed([panels[by] for by in spent])}: "
        f"{listed([asked[by] for by in spent])}. {seeds_words(conditions)}"
    )


def consensus_caption(conditions: list[Condition]) -> str:
    text = (
        "How far the peers' models are apart: the root mean square distance of a peer's parameters to their mean over "
        "the peers. Smaller is closer agreement; the axis is logarithmic and leaves out exact zeros"
    )
    agreed: dict[str, float] = {}
    for members in facets(conditions).values():
        for condition in negligible(members, CONSENSUS):
            largest = float(condition.band(CONSENSUS.name).high.max())
            agreed[condition.series] = max(agreed.get(condition.series, 0.0), largest)
    if agreed:
        text += ". Below the axis, equal but for rounding in float32: "
        text += ", ".join(f"{name} (at most {largest:.1g})" for name, largest in agreed.items())
    if any(run.curves.sketched for condition in conditions for run in condition.runs):
        text += (
            ". Estimated from sketches that the peers log, since no process holds all parameters"
        )
    return f"{text}. {seeds_words(conditions)}"


def predicted_caption(metric: Metric, predictions: Predictions, conditions: list[Condition]) -> str:
    """What the dashed lines are; empty where there are none."""
    if not predictions.any(conditions, metric.name):
        return ""
    return (
        " Thin dashed lines, predicted: the mean over the seeds of what `gossamer predict` says of these runs before they "
        "start, with nothing fitted; one that ends is exactly 0 from there on, where float32 leaves its rounding."
    )


def gap_caption(metric: Metric, targets: dict[str, Target], conditions: list[Condition]) -> str:
    every = max(
        int(np.diff(run.curves.rounds).max(initial=1)) for c in conditions for run in c.runs
    )
    goal = "; ".join(
        f"{facet}: {target.words}" if facet else target.words for facet, target in targets.items()
    )
    return (
        f"First logged round in which the peers' mean reaches the target, and the bytes a peer had sent by then, "
        f"against the spectral gap of the mixing matrix (1: everybody hears everybody equally; near 0: news travels "
        f"slowly). Target: {goal}. Small dots: one seed; large: their mean; open, under the upper rim: some seeds never "
        f"got there. Rounds are logged every {every}, and the reading is no finer than that."
    )


def graphs_caption(conditions: list[Condition]) -> str:
    peers = sorted({condition.topology["peers"] for condition in conditions})
    count = str(peers[0]) if len(peers) == 1 else f"{peers[0]} to {peers[-1]}"
    return (
        f"Each dot is one of {count} peers and each line an exchange of parameters in both directions (arrows: one "
        "direction). Degree: whom a peer hears in a round. Diameter: hops between the farthest peers. Where a graph "
        "changes from round to round, the union over its period is drawn."
    )


def warnings(sweep: Sweep, conditions: list[Condition]) -> list[str]:
    found = []
    for status, meaning in (
        ("failed", "failed and are not part of any figure"),
        ("missing", "have not been run to the end"),
        ("diverged", "diverged (parameters no longer finite) and are not part of any figure"),
    ):
        names = [result.cell.name for result in sweep.results if result.status == status]
        if names:
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            found.append(f"{len(names)} of {len(sweep.results)} runs {meaning}: {shown}.")
    for condition in conditions:
        if len(condition.runs) < condition.expected:
            found.append(
                f"{_name(condition)}: {len(condition.runs)} of {condition.expected} seeds."
            )
        if condition.choice and condition.choice.at_edge:
            found.append(
                f"{_name(condition)}: the best step size, {condition.choice.rate}, is at the edge of the grid "
                f"({', '.join(sweep.about['rates'])}): a better one may lie beyond it."
            )
    for choice in sweep.choices:
        if choice.rate is None:
            name = (
                ", ".join(f"{key} = {value}" for key, value in choice.condition.items())
                or "the run"
            )
            found.append(f"{name}: at no step size did every seed finish; it is not compared.")
    return found


def method(sweep: Sweep, conditions: list[Condition]) -> list[str]:
    about = sweep.about
    config: dict[str, Any] = conditions[0].runs[0].summary.get("config", {})
    lines = [
        f"{len(sweep.compared())} runs are compared, of {len(sweep.results)} in the grid.",
        "How one run is made up stands in its folder: resolved-*.toml runs it again, log-*.jsonl holds every figure "
        "used here.",
    ]
    if about["rates"]:
        lines.append(
            f"Step sizes {', '.join(about['rates'])} were tried in every condition, and the one with the "
            f"{parse_measure(about['select']).words} (mean over the peers and seeds) is shown. "
            "The choice and the figures use the same test set."
        )
    else:
        rate = config.get("optimizer", {}).get("rate")
        size = f" ({rate:g})" if isinstance(rate, (int, float)) else ""
        lines.append(
            "The step size is an axis of the grid."
            if RATE in about["axes"]
            else f"One step size{size} in every condition: not tuned for each, and tuning may change the order."
        )
    servers = any(condition.server_bytes.size for condition in conditions)
    lines.append(
        "Test figures are those of each peer's own model on the whole test set, evaluated outside the timed steps. "
        "Bytes are counted where they are sent, with headers."
        + (
            " What a server sends is in no peer's bytes, nor on the axes: it stands in the table."
            if servers
            else ""
        )
    )
    where = (
        "one process per peer over TCP on one machine"
        if about["processes"]
        else "all peers in one process, virtual time"
    )
    lines.append(f"Run as {where}; {about['machine']}.")
    return lines


def _name(condition: Condition) -> str:
    return f"{condition.series} ({condition.facet})" if condition.facet else condition.series
