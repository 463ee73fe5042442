"""The step size of each condition, chosen from a grid by a metric averaged over the seeds.

A step size counts only where every seed finished: one that diverged for some seed is ruled out, and one with a failed or
missing run is not judged.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import isfinite
from typing import Any

from lab.cells import RATE, Cell

# Metrics that a summary's `final` holds, and whether more is better.
METRICS = {"test_loss": False, "test_accuracy": True, "averaged_loss": False, "averaged_accuracy": True,
           "train_loss": False, "distance_to_optimum": False, "consensus_distance": False}


@dataclass(frozen=True)
class Choice:
    condition: dict[str, str]
    rate: str | None          # None: no step size can be judged
    at_edge: bool             # the best is the smallest or the largest that was tried
    scores: dict[str, float]  # step size → mean over the seeds
    ruled_out: list[str]      # step sizes that diverged, or lack runs


def final_value(summary: dict[str, Any], metric: str) -> float | None:
    """The metric of a summary, the mean over peers where it is one per peer; None where the run has none."""
    value = (summary.get("final") or {}).get(metric)
    if isinstance(value, dict):
        value = value.get("mean")
    return float(value) if isinstance(value, (int, float)) and isfinite(value) else None


def choose(cells: list[Cell], summaries: dict[str, dict[str, Any]], rates: tuple[str, ...], metric: str) -> list[Choice]:
    """One choice per condition. `summaries`: of the finished cells, by name."""
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.condition()].append(cell)
    return [_choose_one(dict(condition), members, summaries, rates, metric) for condition, members in groups.items()]


def _choose_one(condition: dict[str, str], members: list[Cell], summaries: dict[str, dict[str, Any]],
                rates: tuple[str, ...], metric: str) -> Choice:
    scores: dict[str, float] = {}
    ruled_out = []
    for rate in rates:
        found = [final_value(summaries.get(cell.name, {}), metric) for cell in members if cell.overrides[RATE] == rate]
        values = [value for value in found if value is not None]
        if found and len(values) == len(found):
            scores[rate] = sum(values) / len(values)
        else:
            ruled_out.append(rate)
    if not scores:
        return Choice(condition, None, False, scores, ruled_out)
    sign = -1 if METRICS[metric] else 1
    best = min(scores, key=lambda rate: (sign * scores[rate], float(rate)))
    return Choice(condition, best, best in (rates[0], rates[-1]), scores, ruled_out)
