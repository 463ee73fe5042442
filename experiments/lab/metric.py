"""What "learned" means for a sweep: accuracy where there are classes, else the distance to the optimum, else the loss."""

from dataclasses import dataclass

from lab.conditions import Condition
from lab.measure import first_at, spent_until

NEARNESS = 0.9


@dataclass(frozen=True)
class Metric:
    name: str  # of the curve
    label: str  # on the axis
    more_is_better: bool
    logarithmic: bool


CONSENSUS = Metric("consensus_distance", "consensus distance", False, True)
_CHOICES = (
    Metric("test_accuracy", "test accuracy", True, False),
    Metric("distance_to_optimum", "relative distance to the optimum", False, True),
    Metric("test_loss", "test loss", False, True),
    CONSENSUS,
)


@dataclass(frozen=True)
class Target:
    value: float
    words: str


def choose_metric(conditions: list[Condition]) -> Metric:
    """The first that every run has."""
    for metric in _CHOICES:
        if all(run.curves.has(metric.name) for condition in conditions for run in condition.runs):
            return metric
    return _CHOICES[-1]


def make_target(metric: Metric, conditions: list[Condition], asked: float | None) -> Target:
    """The value asked for; by default 90 % of the best final accuracy (of the way to the best, where less is better)."""
    if asked is not None:
        return Target(asked, f"{metric.label} {asked:g}, as asked for")
    finals = [float(condition.finals(metric.name).mean()) for condition in conditions]
    if metric.more_is_better:
        value = NEARNESS * max(finals)
        return Target(
            value,
            f"{metric.label} {value:.3f}, {NEARNESS:.0%} of the best final mean ({max(finals):.3f})",
        )
    start = max(float(condition.band(metric.name).mean[0]) for condition in conditions)
    value = min(finals) + (1 - NEARNESS) * (start - min(finals))
    return Target(
        value,
        f"{metric.label} {value:.3g}, {NEARNESS:.0%} of the way from the start ({start:.3g}) "
        f"to the best final mean ({min(finals):.3g})",
    )


def seconds_to(condition: Condition, metric: Metric, target: Target) -> list[float]:
    """Per seed: the first moment at which the peers' mean was at the target; not finite if never."""
    return [spent_until(run.curves, "seconds", metric.name, target.value) for run in condition.runs]


def reached(condition: Condition, metric: Metric, target: Target) -> list[tuple[float, float]]:
    """Per seed: the first logged round at the target, and the bytes that a peer had sent by then; NaN if never."""
    points = []
    for run in condition.runs:
        first = first_at(run.curves.values[metric.name], target.value, metric.more_is_better)
        points.append(
            (float("nan"), float("nan"))
            if first is None
            else (float(run.curves.rounds[first]), float(run.curves.values["bytes_sent"][first]))
        )
    return points
