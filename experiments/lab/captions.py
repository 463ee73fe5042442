"""The texts of a report: captions, warnings and the description of the method."""

import textwrap
from typing import Any

import numpy as np

from lab.cells import rate_key
from lab.conditions import Condition, by_facet, evaluation_split, selection_split
from lab.grid_check import MOST_REASONS, other_reasons
from lab.figures import cost_axes, drawn_facets, negligible
from lab.measure import parse_measure
from lab.metric import CONSENSUS, Metric, Target
from lab.participants import peers_drawn
from lab.predictions import Predictions
from lab.results import Sweep

_METRICS = {
    "test_accuracy": "Test accuracy of the peers' own models, averaged over the peers",
    "test_loss": "Test loss of the peers' own models, averaged over the peers",
    "distance_to_optimum": (
        "Distance of the peers' models to the known optimum, relative to the norm of the optimum"
    ),
    "consensus_distance": "Distance of the peers' models to their mean",
}
_COSTS = {
    "round": "rounds",
    "bytes_sent": "the bytes that a peer has sent by then (mean over the peers)",
    "seconds": "virtual time on the simulated network",
}
_MAX_NAMES = 8  # names of runs in a warning
_MAX_LETTERS = 240  # of a message of the program in a warning


def seeds_caption(conditions: list[Condition]) -> str:
    counts = sorted({len(condition.runs) for condition in conditions})
    if counts == [1]:
        return "One seed only: the figure has no band, and differences between lines may be random."
    return (
        f"Line: the mean over {_range(counts)} seeds. "
        "Band: from the lowest to the highest seed at each round."
    )


def join_list(parts: list[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), parts[-1]])


def metric_caption(metric: Metric, conditions: list[Condition]) -> str:
    costs = join_list([_COSTS[cost] for cost in cost_axes(conditions)])
    what = _METRICS[metric.name].replace("Test ", f"{evaluation_split(conditions).capitalize()} ")
    return f"{what}, from left to right against {costs}. {seeds_caption(conditions)}"


def consensus_caption(conditions: list[Condition]) -> str:
    text = (
        "Consensus distance: the root mean square distance of a peer's parameters to their mean "
        "over the peers. The axis is logarithmic and omits exact zeros"
    )
    rounding: dict[str, float] = {}
    drawn = drawn_facets(conditions, CONSENSUS)
    for members in drawn.values():
        for condition in negligible(members, CONSENSUS):
            largest = float(condition.band(CONSENSUS.name).high.max())
            rounding[condition.series] = max(rounding.get(condition.series, 0.0), largest)
    if rounding:
        text += ". Below the axis, because the peers agree up to rounding in float32: "
        text += "; ".join(f"{name} (at most {largest:.1g})" for name, largest in rounding.items())
    if agreeing := [facet for facet in by_facet(conditions) if facet not in drawn]:
        text += (
            f". Without panels, because all their peers agree up to rounding: {'; '.join(agreeing)}"
        )
    if any(run.curves.sketched for condition in conditions for run in condition.runs):
        text += (
            ". Estimated from sketches that the peers log, because no process has all parameters"
        )
    return f"{text}. {seeds_caption(conditions)}"


def predicted_caption(metric: Metric, predictions: Predictions, conditions: list[Condition]) -> str:
    """Describes the dashed lines; empty if there are none."""
    if not predictions.has_any(conditions, metric.name):
        return ""
    return (
        " Thin dashed lines, predicted: the mean over the seeds of the output of `gossamer predict`"
        " for these runs, without fitted values. A predicted curve ends where it becomes exactly 0;"
        " the measured one continues with the rounding errors of float32."
    )


def gap_caption(metric: Metric, targets: dict[str, Target], conditions: list[Condition]) -> str:
    step = max(int(np.diff(run.curves.rounds).max(initial=1)) for c in conditions for run in c.runs)
    goal = "; ".join(
        f"{facet}: {target.description}" if facet else target.description
        for facet, target in targets.items()
    )
    return (
        "First logged round at which the mean of the peers reaches the target, and the bytes that "
        "a peer has sent by then, against the spectral gap of the mixing matrix. A gap of 1 means "
        "that each round averages exactly; near 0, information spreads slowly. "
        f"Target: {goal}. Small dots: one seed. Large dots: mean. Open dots at the upper edge: "
        f"some seeds do not reach the target. Rounds are logged every {step} rounds, which is the "
        "resolution of this figure."
    ) + (
        " Where the participants change, the gap is that of the last graph."
        if any(condition.changes_participants for condition in conditions)
        else ""
    )


def graphs_caption(conditions: list[Condition]) -> str:
    drawn = [condition for condition in conditions if condition.uses_graph]
    count = _range(sorted({peers_drawn(condition.topology) for condition in drawn}))
    text = (
        f"Each dot is one of {count} peers. Each line is an exchange of parameters in both "
        "directions, each arrow an exchange in one direction. Degree: the number of in-neighbours "
        "in a round. Diameter: the longest shortest path in hops. A graph that changes from round "
        "to round is drawn as the union over its period."
    )
    edges = [[topology["edge_list"] for topology in condition.topologies] for condition in drawn]
    if any(each != seeds[0] for seeds in edges for each in seeds):
        text += " A graph that differs from seed to seed is drawn for the first seed."
    return text


def warnings(sweep: Sweep, conditions: list[Condition], averaged: list[Condition]) -> list[str]:
    """`averaged`: the conditions at the step sizes selected for the averaged model, if any."""
    lines = []
    if shard := sweep.metadata["shard"]:
        lines.append(
            f"This is part {shard} of a sweep; sweep.py --help says how to join all parts."
        )
    if impossible := sweep.metadata["impossible"]:
        count = sum(len(cells) for cells in impossible.values())
        reasons = " ".join(
            f"{textwrap.shorten(reason, _MAX_LETTERS, placeholder=' …')} ({_names(names, most=2)})."
            for reason, names in list(impossible.items())[:MOST_REASONS]
        )
        if others := other_reasons(impossible):
            reasons += f" There are {others}; sweep.json has all of them."
        lines.append(f"{count} impossible cells were left out. {reasons}")
    for status, meaning in (
        ("failed", "failed and are not in any figure"),
        ("missing", "have not been run to the end"),
        ("diverged", "diverged (parameters not finite) and are not in any figure"),
    ):
        names = [result.cell.name for result in sweep.results if result.status == status]
        if names:
            lines.append(f"{len(names)} of {len(sweep.results)} runs {meaning}: {_names(names)}.")
    shown = {run.name for condition in conditions for run in condition.runs}
    others = [c for c in averaged if c.runs[0].name not in shown]  # at another step size
    for members, of in ((conditions, ""), (others, " at the step size of the averaged model")):
        if few := [c for c in members if len(c.runs) < c.expected]:
            counts = _grouped({_name(c): f"{len(c.runs)} of {c.expected} seeds" for c in few})
            lines.append(f"Conditions without some seeds{of}: {counts}.")
    lines += _step_size_warnings(sweep, conditions, "")
    lines += _step_size_warnings(sweep, averaged, " for the averaged model")
    unselected = {
        ", ".join(f"{key} = {value}" for key, value in choice.condition.items()) or "the run": None
        for choice in sweep.choices
        if choice.rate is None
    }
    if unselected:
        lines.append(
            "Not compared, because every step size has a failed seed: "
            f"{_names(list(unselected), '; ')}."
        )
    return lines


def _step_size_warnings(sweep: Sweep, conditions: list[Condition], of: str) -> list[str]:
    lines = []
    edges = {_name(c): str(c.choice.rate) for c in conditions if c.choice and c.choice.at_edge}
    if edges:
        lines.append(
            f"The best step size{of} is at the edge of the grid "
            f"({', '.join(sweep.metadata['rates'])}), and a better one may lie outside: "
            f"{_grouped(edges)}."
        )
    unreached = [c for c in conditions if c.choice and c.choice.reaches_no_target]
    if unreached and (choice := unreached[0].choice):
        names = _names([_name(c) for c in unreached], "; ")
        lines.append(
            f"No step size reaches the target of the selection{of} ({choice.measure}) with every "
            f"selection seed, and the best final value has selected: {names}."
        )
    return lines


def method(sweep: Sweep, conditions: list[Condition]) -> list[str]:
    metadata = sweep.metadata
    compared = sum(len(condition.runs) for condition in conditions)
    others = len(sweep.results) - len(sweep.reported_results())
    selecting = f"; {others} other runs select step sizes" if others else ""
    split = evaluation_split(conditions)
    lines = [
        f"{compared} of {len(sweep.reported_results())} runs are compared{selecting}.",
        "The folder of each run has its configuration (resolved-*.toml, which repeats the run) and "
        "its log (log-*.jsonl, which has every number of this page).",
        _step_size(metadata, conditions),
        f"{split.capitalize()} accuracy and loss are those of each peer's own model on the whole "
        f"{split} set. Evaluation is not part of the timed steps. Bytes include headers and are "
        "counted by the sender.",
    ]
    if any(condition.server_bytes.size for condition in conditions):
        lines[-1] += (
            " The bytes that a server sends are in the table; they are not in any peer's bytes "
            "and not on the axes."
        )
    where = (
        "one process per peer, connected by TCP on one machine"
        if metadata["processes"]
        else "all peers in one process, in virtual time"
    )
    lines.append(f"Environment: {where}; {metadata['machine']}.")
    return lines


def _step_size(metadata: dict[str, Any], conditions: list[Condition]) -> str:
    if metadata["rates"]:
        split = selection_split(conditions)
        best = parse_measure(metadata["select"][0]).description(split)
        return (
            f"Step sizes {', '.join(metadata['rates'])} were tried in every condition with the "
            f"seeds {', '.join(metadata['selection_seeds'])}. The figures show the one with the "
            f"{best} (mean over the peers and these seeds), with other seeds. The selection reads "
            f"the {split} set; the figures show the {evaluation_split(conditions)} set."
        )
    configs = {_name(c): c.runs[0].summary.get("config", {}) for c in conditions}
    if any(rate_key(config) in metadata["axes"] for config in configs.values()):
        return "The step size is an axis of the grid."
    rates = {name: _rate_text(config) for name, config in configs.items()}
    if len(set(rates.values())) == 1:
        rate = next(iter(rates.values()))
        size = f" ({rate})" if rate else ""
        text = f"Every condition has the same step size{size}, which is not tuned."
    else:
        sizes = _grouped({name: rate or "none" for name, rate in rates.items()})
        text = f"The conditions have different step sizes, which are not tuned: {sizes}."
    return f"{text} Tuning may change the order of the conditions."


def _rate_text(config: dict[str, Any]) -> str:
    """The step size of a run; empty if its configuration names none."""
    section, _, key = rate_key(config).partition(".")
    rate = config.get(section, {}).get(key)
    return f"{rate:g}" if isinstance(rate, (int, float)) else ""


def _range(values: list[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _names(names: list[str], separator: str = ", ", most: int = _MAX_NAMES) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def _grouped(values: dict[str, str]) -> str:
    """Conditions by their value: `0.5 in ring; torus, and 1 in star`."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    return ", and ".join(f"{value} in {_names(names, '; ')}" for value, names in groups.items())


def _name(condition: Condition) -> str:
    return f"{condition.series} ({condition.facet})" if condition.facet else condition.series
