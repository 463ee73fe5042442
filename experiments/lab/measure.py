"""What a run is worth in one number, as a short text names it:

test_accuracy                        the last logged value of a curve
consensus_distance at 10             its value in a round (the first logged from there on)
rounds until test_accuracy 0.9       what had been spent when the curve was first logged at a target: rounds, or
bytes_sent until test_loss 0.5       bytes per peer, or
seconds until test_accuracy 0.9      seconds (virtual ones where the run was simulated)
bytes_sent                           what was spent in all
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.curves import Curves
from lab.errors import LabError

# Curves that measure a run, and whether more is better. A summary's `final` holds the last value of each.
METRICS = {
    "test_loss": False,
    "test_accuracy": True,
    "averaged_loss": False,
    "averaged_accuracy": True,
    "train_loss": False,
    "distance_to_optimum": False,
    "consensus_distance": False,
}
COSTS = ("rounds", "bytes_sent", "seconds")
NEVER = float("inf")  # spent until a target that was not reached

_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?\d+)?"
_FORM = re.compile(
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
    def words(self) -> str:
        """What is best about the best: `best final test loss`, `fewest rounds until test accuracy 0.9`."""
        text = self.text.replace("_", " ")
        return (
            f"best final {text}"
            if self.is_final
            else f"fewest {text}"
            if self.cost
            else f"best {text}"
        )

    def of(self, curves: Curves) -> float:
        """NEVER where a target is not reached. Throws LabError where the run has no such curve."""
        values = curves.rounds if self.curve == "rounds" else curves.values[self.curve]
        if not np.isfinite(values).any():
            raise LabError(f"these runs have no {self.curve}")
        if self.target is not None:
            return spent_until(curves, self.cost or "", self.curve, self.target)
        if self.round is None:
            return float(values[-1])
        if self.round > curves.rounds[-1]:
            raise LabError(f"'{self.text}': the runs have {curves.rounds[-1]} rounds")
        return float(values[np.searchsorted(curves.rounds, self.round)])


def parse_measure(text: str) -> Measure:
    match = _FORM.fullmatch(text.strip())
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
            f"'{text}' is no measure: a target is written '{' | '.join(COSTS)} until {match['curve']} TARGET'"
        )
    return Measure(
        text,
        match["curve"],
        cost,
        None if target is None else float(target),
        None if at is None else int(at),
    )


def first_at(values: np.ndarray, target: float, rising: bool) -> int | None:
    """The first place where a curve is at its target."""
    there = np.flatnonzero(values >= target if rising else values <= target)
    return int(there[0]) if there.size else None


def final_value(summary: dict[str, Any], metric: str) -> float | None:
    """The metric of a summary, the mean over peers where it is one per peer; None where the run has none."""
    value = (summary.get("final") or {}).get(metric)
    if isinstance(value, dict):
        value = value.get("mean")
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None


def spent_until(curves: Curves, cost: str, curve: str, target: float) -> float:
    """Rounds, bytes_sent or seconds until a curve is at its target; NEVER if it does not come there."""
    if cost == "seconds":
        spent, values = curves.by_time(curve)
    else:
        spent, values = (
            curves.rounds if cost == "rounds" else curves.values[cost],
            curves.values[curve],
        )
    place = first_at(values, target, METRICS[curve])
    return NEVER if place is None else float(spent[place])
