"""A measure reduces a run to one number. A short text names it:

test_accuracy                        the last logged value of a curve
consensus_distance at 10             the value in a round (the first logged round from 10 on)
rounds until test_accuracy 0.9       the cost when the curve first reaches a target: rounds,
bytes_sent until test_loss 0.5       bytes per peer,
seconds until test_accuracy 0.9      or seconds (virtual seconds of a simulated run)
bytes_sent                           the cost of the whole run
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.curves import Curves
from lab.errors import LabError

# Curves that measure a run, and if a larger value is better. The last value of each is in the
# `final` table of a summary.
METRICS = {
    "test_loss": False,
    "test_accuracy": True,
    "averaged_loss": False,
    "averaged_accuracy": True,
    "train_loss": False,
    "distance_to_optimum": False,
    "consensus_distance": False,
    "backdoor_success": False,
}
COSTS = ("rounds", "bytes_sent", "seconds")
NEVER = float("inf")  # the cost of a target that a run does not reach

_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?\d+)?"
_PATTERN = re.compile(
    rf"(?:(?P<cost>\w+) until )?(?P<curve>\w+)(?: at (?P<round>\d+))?(?: (?P<target>{_NUMBER}))?"
)


@dataclass(frozen=True)
class Measure:
    text: str
    curve: str
    cost: str | None = None
    target: float | None = None
    round: int | None = None

    @property
    def more_is_better(self) -> bool:
        return self.cost is None and METRICS.get(self.curve, False)

    @property
    def is_final(self) -> bool:
        return self.cost is None and self.round is None

    @property
    def description(self) -> str:
        """`best final test loss`, or `fewest rounds until test accuracy 0.9`."""
        text = self.text.replace("_", " ")
        return (
            f"best final {text}"
            if self.is_final
            else f"fewest {text}"
            if self.cost
            else f"best {text}"
        )

    def value(self, curves: Curves) -> float:
        """The value for a run; NEVER if it does not reach the target.

        Throws LabError if the run has no such curve or too few rounds.
        """
        values = curves.rounds if self.curve == "rounds" else curves.values[self.curve]
        if not np.isfinite(values).any():
            raise LabError(f"these runs have no {self.curve}")
        if self.target is not None:
            return cost_until(curves, self.cost or "", self.curve, self.target)
        if self.round is None:
            return float(values[-1])
        if self.round > curves.rounds[-1]:
            raise LabError(f"'{self.text}': the runs have {curves.rounds[-1]} rounds")
        return float(values[np.searchsorted(curves.rounds, self.round)])


def parse_measure(text: str) -> Measure:
    match = _PATTERN.fullmatch(text.strip())
    if not match or match["curve"] not in (*METRICS, *COSTS):
        raise LabError(
            f"'{text}' is no measure: write one of {', '.join((*METRICS, *COSTS))}; "
            f"or '{' | '.join(COSTS)} until CURVE TARGET', or 'CURVE at ROUND'"
        )
    cost, target, at = match["cost"], match["target"], match["round"]
    if (cost is None) != (target is None) or (
        cost and (at or cost not in COSTS or match["curve"] in COSTS)
    ):
        raise LabError(
            f"'{text}' is no measure: write a target as "
            f"'{' | '.join(COSTS)} until {match['curve']} TARGET'"
        )
    return Measure(
        text,
        match["curve"],
        cost,
        None if target is None else float(target),
        None if at is None else int(at),
    )


def first_reaching(values: np.ndarray, target: float, rising: bool) -> int | None:
    """The first index at which a curve has reached its target; None if it never does."""
    indices = np.flatnonzero(values >= target if rising else values <= target)
    return int(indices[0]) if indices.size else None


def final_value(summary: dict[str, Any], metric: str) -> float | None:
    """A metric of a summary; the mean over the peers if it is per peer; None if it is missing."""
    value = (summary.get("final") or {}).get(metric)
    if isinstance(value, dict):
        value = value.get("mean")
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None


def cost_until(curves: Curves, cost: str, curve: str, target: float) -> float:
    """Rounds, bytes per peer or seconds until a curve reaches its target; NEVER if it does not."""
    if cost == "seconds":
        costs, values = curves.by_time(curve)
    else:
        costs, values = (
            curves.rounds if cost == "rounds" else curves.values[cost],
            curves.values[curve],
        )
    index = first_reaching(values, target, METRICS[curve])
    return NEVER if index is None else float(costs[index])
