"""Chooses the metric of a report: accuracy, else distance to the optimum, else test loss."""

from dataclasses import dataclass, replace

from lab.conditions import Condition, evaluation_split
from lab.measure import check_target, cost_until

TARGET_FRACTION = 0.9


@dataclass(frozen=True)
class Metric:
    name: str  # of the curve
    label: str  # of the axis
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
    description: str


def choose_metric(conditions: list[Condition]) -> Metric:
    """The first metric that every run has. Its label names the split on which the runs evaluate."""
    for metric in _CHOICES:
        if all(run.curves.has(metric.name) for condition in conditions for run in condition.runs):
            split = evaluation_split(conditions)
            return replace(metric, label=metric.label.replace("test ", f"{split} "))
    return _CHOICES[-1]


def make_target(metric: Metric, conditions: list[Condition], given: float | None) -> Target:
    """The given value; by default 90 % of the best final accuracy.

    If a smaller value is better, the default is 90 % of the way from the start to the best.
    Throws LabError if no run can reach the given value.
    """
    if given is not None:
        check_target(f"--target {given:g}", metric.name, given)
        return Target(given, f"{metric.label} {given:g}, as given by --target")
    finals = [float(condition.finals(metric.name).mean()) for condition in conditions]
    if metric.more_is_better:
        value = TARGET_FRACTION * max(finals)
        return Target(
            value,
            f"{metric.label} {value:.3f}, "
            f"{TARGET_FRACTION:.0%} of the best final mean ({max(finals):.3f})",
        )
    start = max(float(condition.band(metric.name).mean[0]) for condition in conditions)
    value = min(finals) + (1 - TARGET_FRACTION) * (start - min(finals))
    return Target(
        value,
        f"{metric.label} {value:.3g}, {TARGET_FRACTION:.0%} of the way from the start "
        f"({start:.3g}) to the best final mean ({min(finals):.3g})",
    )


def seconds_to(condition: Condition, metric: Metric, target: Target) -> list[float]:
    """Per seed: the first time at which the peers' mean has reached the target; NEVER if not; NaN
    if the logs do not show it.
    """
    return [cost_until(run.curves, "seconds", metric.name, target.value) for run in condition.runs]


def rounds_and_bytes_to(
    condition: Condition, metric: Metric, target: Target
) -> list[tuple[float, float]]:
    """Per seed: the first logged round at the target, and the bytes sent per peer until then.

    Both are NaN if the run does not reach the target.
    """
    points = []
    for run in condition.runs:
        first = run.curves.first_reaching(metric.name, target.value, metric.more_is_better)
        points.append(
            (float("nan"), float("nan"))
            if first is None
            else (float(run.curves.rounds[first]), float(run.curves.values["bytes_sent"][first]))
        )
    return points
