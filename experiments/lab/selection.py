"""Selects a step size for each condition by a measure that is averaged over the seeds.

A step size is ruled out if a run of any seed diverged, failed or is missing. If the measure is the
cost of a target, a step size at which a seed does not reach the target ranks after the step sizes
at which every seed does. Ties are broken by the better final value, then by the smaller step size.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import isfinite
from typing import Any

from lab.cells import Cell
from lab.curves import read_curves
from lab.measure import METRICS, Measure, final_value


@dataclass(frozen=True)
class Choice:
    condition: dict[str, str]
    rate: str | None  # None: every step size is ruled out
    at_edge: bool  # the selected step size is the smallest or largest of the grid
    scores: dict[str, float | None]  # step size → mean over the seeds; None: target not reached
    ruled_out: list[str]


def choose(
    cells: list[Cell],
    summaries: dict[str, dict[str, Any]],
    rates: tuple[str, ...],
    measure: Measure,
) -> list[Choice]:
    """One choice per condition. `summaries`: name of a finished cell → its summary."""
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.condition()].append(cell)
    return [
        _choose_one(dict(condition), members, summaries, rates, measure)
        for condition, members in groups.items()
    ]


def _choose_one(
    condition: dict[str, str],
    members: list[Cell],
    summaries: dict[str, dict[str, Any]],
    rates: tuple[str, ...],
    measure: Measure,
) -> Choice:
    scores: dict[str, float | None] = {}
    keys: dict[str, tuple[float, float, float]] = {}
    ruled_out = []
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
        score = final if measure.is_final else _mean(measure, runs)
        scores[rate] = score if isfinite(score) else None
        keys[rate] = (
            -score if measure.more_is_better else score,
            -final if METRICS[measure.curve] else final,
            float(rate),
        )
    if not keys:
        return Choice(condition, None, False, scores, ruled_out)
    best = min(keys, key=lambda rate: keys[rate])
    return Choice(condition, best, best in (rates[0], rates[-1]), scores, ruled_out)


def _mean(measure: Measure, runs: list[Cell]) -> float:
    values = [measure.value(read_curves(cell.folder)) for cell in runs]
    return sum(values) / len(values)
