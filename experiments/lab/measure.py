"""A measure reduces a run to one number. A short text names it:

test_accuracy                        the last logged value of a curve
consensus_distance at 10             the value in a round (the first logged round from 10 on)
rounds until test_accuracy 0.9       the cost when the curve first reaches a target: rounds,
bytes_sent until test_loss 0.5       bytes per peer,
seconds until test_accuracy 0.9      seconds (virtual seconds of a simulated run),
epsilon until test_accuracy 0.9      or the privacy that peers with private gradients have spent,
                                     the largest of the peers
bytes_sent                           the cost of the whole run

If the graph changes with a period, a value is the mean over the rounds of the last period, and a
target is reached in the first logged round from which on every round of a period is at the target.
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
    "averaged_distance_to_optimum": False,
    "consensus_distance": False,
    "backdoor_success": False,
}
ON_SAMPLES = (
    "test_loss",
    "test_accuracy",
    "averaged_loss",
    "averaged_accuracy",
    "backdoor_success",
)
COSTS = ("rounds", "bytes_sent", "seconds", "epsilon")
SHARES = ("test_accuracy", "averaged_accuracy", "backdoor_success")  # of samples, from 0 to 1
NEVER = float("inf")  # the cost of a target that a run does not reach

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
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
    def reads_samples(self) -> bool:
        """If it is measured on test or validation samples."""
        return self.curve in ON_SAMPLES

    @property
    def is_final(self) -> bool:
        return self.cost is None and self.round is None

    def description(self, split: str = "test") -> str:
        """`best final test loss`, or `fewest rounds until test accuracy 0.9`.

        `split`: the samples on which the runs evaluate, in place of the test samples.
        """
        text = self.text.replace("_", " ").replace("test ", f"{split} ")
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
        if self.curve != "rounds" and not curves.has(self.curve):
            raise LabError(f"these runs have no {self.curve}")
        if self.cost not in (None, "rounds") and not curves.has(self.cost or ""):
            raise LabError(f"these runs have no {self.cost}")
        if not curves.dates_targets and not self.is_final:
            raise LabError(
                f"'{self.text}': the graph repeats after {curves.period} rounds, and log.last "
                "shows some of them at the end alone: choose another log.every"
            )
        if self.target is not None:
            return cost_until(curves, self.cost or "", self.curve, self.target)
        if self.curve in COSTS:
            values = curves.rounds if self.curve == "rounds" else curves.values[self.curve]
        else:
            values = curves.period_mean(self.curve)
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
    if target is not None:
        check_target(f"'{text}'", match["curve"], float(target))
    return Measure(
        text,
        match["curve"],
        cost,
        None if target is None else float(target),
        None if at is None else int(at),
    )


def check_target(where: str, curve: str, target: float) -> None:
    """Throws LabError if no value of the curve can be the target, as with 90 for 90 %."""
    if curve not in SHARES or 0 <= target <= 1:
        return
    values = "accuracies lie" if curve.endswith("accuracy") else f"{curve} lies"
    write = f": write {target / 100:g} for {target:g} %" if 1 < target <= 100 else ""
    raise LabError(f"{where}: {values} between 0 and 1{write}")


def final_value(summary: dict[str, Any], metric: str) -> float | None:
    """A metric of a summary; the mean over the peers if it is per peer; None if it is missing."""
    value = (summary.get("final") or {}).get(metric)
    if isinstance(value, dict):
        value = value.get("mean")
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None


def cost_until(curves: Curves, cost: str, curve: str, target: float) -> float:
    """Rounds, bytes per peer, seconds or epsilon until a curve reaches its target; NEVER if it does
    not. NaN: the logs do not show it (Curves.dates_targets).
    """
    if not curves.dates_targets:
        return float("nan")
    if cost == "seconds" and curves.period == 1:
        costs, values = curves.by_time(curve)
        reached = np.flatnonzero(values >= target if METRICS[curve] else values <= target)
        return float(costs[reached[0]]) if reached.size else NEVER
    index = curves.first_reaching(curve, target, METRICS[curve])
    if index is None:
        return NEVER
    return float(curves.rounds[index] if cost == "rounds" else curves.values[cost][index])
