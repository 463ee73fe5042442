"""What a sweep prints at its end."""

import sys
from pathlib import Path

from lab.measure import final_value, parse_measure
from lab.results import CellResult
from lab.selection import Choice


def problems(results: list[CellResult], choices: list[Choice]) -> dict[str, list[str]]:
    """What is wrong with the selected step sizes, and in which conditions."""
    found: dict[str, list[str]] = {}
    for choice in choices:
        name = ", ".join(f"{key}={value}" for key, value in choice.condition.items()) or "the run"
        if choice.rate is None:
            reason = why_unselected(choice, results)
            found.setdefault(f"no step size can be selected: {reason}", []).append(name)
        if choice.reaches_no_target:
            text = (
                f"no step size reaches the target of '{choice.measure}' with every selection seed; "
                f"the best final {parse_measure(choice.measure).curve} selects {choice.rate}"
            )
            found.setdefault(text, []).append(name)
        if choice.at_edge:
            text = f"the best step size {choice.rate} is at the edge of the grid; extend --rates"
            found.setdefault(text, []).append(name)
    return found


def why_unselected(choice: Choice, results: list[CellResult]) -> str:
    metric = parse_measure(choice.measure).curve
    finished = [
        r.summary
        for r in results
        if r.summary and dict(r.cell.condition()) == choice.condition and r.status == "finished"
    ]
    if finished and all(final_value(summary, metric) is None for summary in finished):
        return (
            f"runs on these data have no {metric}: choose another metric with --select "
            "(finished runs are not repeated)"
        )
    return "each one has a diverged, failed or missing run"


def print_summary(results: list[CellResult], choices: list[Choice], out: Path) -> int:
    """Prints problems and counts. Returns the exit status.

    A run that diverges is a failure, unless it serves to select a step size.
    """
    for problem, names in problems(results, choices).items():
        print(f"sweep: {problem}:", *(f"  {name}" for name in names), sep="\n", file=sys.stderr)
    bad = [
        r
        for r in results
        if r.status in ("failed", "missing") or (r.status == "diverged" and not r.cell.selects)
    ]
    unselected = [choice for choice in choices if choice.rate is None]
    counts = {
        s: sum(r.status == s for r in results)
        for s in ("finished", "diverged", "failed", "missing")
    }
    print(
        "sweep: "
        + ", ".join(f"{n} {status}" for status, n in counts.items() if n)
        + f"; results in {out}",
        file=sys.stderr,
    )
    return 1 if bad or unselected else 0
