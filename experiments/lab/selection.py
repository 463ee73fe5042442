"""The step size of each condition, chosen from a grid by a measure averaged over the seeds.

A step size counts only where every seed finished: one that diverged for some seed is ruled out, and one with a failed or
missing run is not judged. Where the measure asks what is spent until a target, a step size at which some seed never gets there
stands behind those at which all do; among equals the better final value decides, and then the smaller step size.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import isfinite
from typing import Any

from lab.cells import RATE, Cell
from lab.curves import read_curves
from lab.measure import METRICS, Measure, final_value


@dataclass(frozen=True)
class Choice:
    condition: dict[str, str]
    rate: str | None  # None: no step size can be judged
    at_edge: bool  # the best is the smallest or the largest that was tried
    scores: dict[
        str, float | None
    ]  # step size → mean over the seeds; None: some seed never got there
    ruled_out: list[str]  # step sizes that diverged, or lack runs


def choose(
    cells: list[Cell],
    summaries: dict[str, dict[str, Any]],
    rates: tuple[str, ...],
    measure: Measure,
) -> list[Choice]:
    """One choice per condition. `summaries`: of the finished cells, by name."""
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
        runs = [cell for cell in members if cell.overrides[RATE] == rate]
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
    values = [measure.of(read_curves(cell.folder)) for cell in runs]
    return sum(values) / len(values)
