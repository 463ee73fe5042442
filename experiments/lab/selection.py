"""Selects a step size for each condition by a measure that is averaged over the selection seeds.

No other number of a report uses these seeds. If a run holds out validation samples
(data.validation), the selecting runs evaluate their models on these, so that they never read the
test samples. Otherwise they read the test samples.

A step size is ruled out if a run of any seed diverged, failed or is missing. If the measure is the
cost of a target, a step size at which a seed does not reach the target ranks after the step sizes
at which every seed does. Ties are broken by the better final value, then by the smaller step size.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from lab.axes import Axis, canonical
from lab.cells import SEED, Cell, merge
from lab.curves import read_curves
from lab.errors import LabError
from lab.measure import METRICS, Measure, final_value, parse_measure
from lab.participants import last_graph
from lab.topology import uses_graph

EVALUATE = "data.evaluate"
TEST, VALIDATION = "test", "validation"
SELECTION_SEEDS = "1000..1002"  # unless a sweep or study names others


@dataclass(frozen=True)
class Choice:
    condition: dict[str, str]
    measure: str  # the text of the measure for which the step size is best
    rate: str | None  # None: every step size is ruled out
    at_edge: bool  # the selected step size is the smallest or largest of the grid
    scores: dict[str, float | None]  # step size → mean over the seeds; None: target not reached
    ruled_out: list[str]
    split: str = TEST  # TEST | VALIDATION: the samples that the measure is of

    @property
    def reaches_no_target(self) -> bool:
        """With no step size every seed reaches the target: the best final value has decided."""
        return self.rate is not None and self.scores[self.rate] is None


def evaluating_cell(cell: Cell, config: dict[str, Any]) -> Cell:
    """A selecting cell that evaluates on the validation samples, if it holds out any."""
    if not merge(config, cell.overrides).get("data", {}).get("validation"):
        return cell
    return replace(cell, overrides={**cell.overrides, EVALUATE: VALIDATION})


def selecting_axes(axes: list[Axis], seeds: tuple[str, ...], config: dict[str, Any]) -> list[Axis]:
    """The axes with the selection seeds instead of those that are reported.

    Throws LabError if a seed would be both.
    """
    reported = [str(config.get("run", {}).get("seed", 0))]
    reported = next((list(axis.values) for axis in axes if axis.key == SEED), reported)
    values = {canonical(seed) for seed in reported}
    if both := [seed for seed in seeds if canonical(seed) in values]:
        raise LabError(
            f"the seed {both[0]} selects step sizes and is reported: "
            "choose other seeds with --selection-seeds"
        )
    return [axis for axis in axes if axis.key != SEED] + [Axis(SEED, seeds)]


def choose(
    cells: list[Cell],
    summaries: dict[str, dict[str, Any]],
    rates: tuple[str, ...],
    select: str,
) -> list[Choice]:
    """One choice per condition, for the measure `select`.

    `summaries`: name of a finished cell → its summary.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.condition()].append(cell)
    return [
        _choose_one(dict(condition), members, summaries, rates, select)
        for condition, members in groups.items()
    ]


def _choose_one(
    condition: dict[str, str],
    members: list[Cell],
    summaries: dict[str, dict[str, Any]],
    rates: tuple[str, ...],
    select: str,
) -> Choice:
    measure = parse_measure(select)
    split = members[0].overrides.get(EVALUATE, TEST)
    scores: dict[str, float | None] = {}
    keys: dict[str, tuple[float, float, float]] = {}
    ruled_out = []
    periodic = any(_is_periodic(summaries.get(cell.name, {})) for cell in members)
    for rate in rates:
        runs = [cell for cell in members if cell.rate == rate]
        finals = [
            value
            for cell in runs
            if (value := final_value(summaries.get(cell.name, {}), measure.curve)) is not None
        ]
        if not runs or len(finals) < len(runs):
            ruled_out.append(rate)
            continue
        final = sum(finals) / len(finals)
        score = final if measure.is_final and not periodic else _mean(measure, runs)
        scores[rate] = score if isfinite(score) else None
        keys[rate] = (
            -score if measure.more_is_better else score,
            -final if METRICS[measure.curve] else final,
            float(rate),
        )
    if not keys:
        return Choice(condition, select, None, False, scores, ruled_out, split)
    best = min(keys, key=lambda rate: keys[rate])
    at_edge = best in (rates[0], rates[-1])
    return Choice(condition, select, best, at_edge, scores, ruled_out, split)


def _is_periodic(summary: dict[str, Any]) -> bool:
    """If a value of the run is a mean over the rounds of its graph's period."""
    period = last_graph(summary.get("topology", {})).get("period", 1)
    return period > 1 and uses_graph(summary.get("config", {}))


def _mean(measure: Measure, runs: list[Cell]) -> float:
    values = [measure.value(read_curves(cell.folder)) for cell in runs]
    return sum(values) / len(values)
