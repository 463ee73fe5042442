"""The table of a report: one row per condition, for the terminal and for the page."""

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from lab.conditions import Condition
from lab.figures import bytes_text, known_number, spent_in
from lab.measure import METRICS, final_value
from lab.metric import Metric, Target, reached, seconds_to

_NAMES = {
    "test_accuracy": "test accuracy",
    "averaged_accuracy": "averaged model",
    "test_loss": "test loss",
    "consensus_distance": "consensus distance",
    "distance_to_optimum": "distance to optimum",
}


@dataclass(frozen=True)
class Grid:
    """Text, ready to be set: the header, the rows, and what must be said below."""

    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def make_grid(conditions: list[Condition], metric: Metric, targets: dict[str, Target]) -> Grid:
    metrics = [name for name in _NAMES if any(_finals(c, name).size for c in conditions)]
    if "test_accuracy" in metrics:
        metrics.remove("test_loss")  # in results.csv
    rated = any(condition.choice for condition in conditions)
    faceted = any(condition.facet for condition in conditions)
    served = any(condition.server_bytes.size for condition in conditions)
    timed = "seconds" in spent_in(conditions)
    header = [
        "condition",
        "gap",
        "degree",
        *(["step size"] if rated else []),
        "seeds",
        *(_NAMES[name] for name in metrics),
        *(["worst peer"] if "test_accuracy" in metrics else []),
        "sent per peer",
        *(["sent per server"] if served else []),
        "rounds to target",
        *(["seconds to target"] if timed else []),
    ]
    rows = []
    for condition in conditions:
        name = f"{condition.series} ({condition.facet})" if faceted else condition.series
        topology = condition.topology
        low, high = topology["degree_min"], topology["degree_max"]
        row = [
            name,
            known_number(topology["spectral_gap"]),
            str(low) if low == high else f"{low}–{high}",
        ]
        if rated:
            row.append(_rate(condition))
        row.append(
            f"{len(condition.runs)}"
            if len(condition.runs) == condition.expected
            else f"{len(condition.runs)} of {condition.expected}"
        )
        row.extend(
            _spread(_finals(condition, name), METRICS[name] or "accuracy" in name)
            for name in metrics
        )
        if "test_accuracy" in metrics:
            worst = [run.summary["final"]["test_accuracy"]["min"] for run in condition.runs]
            row.append(f"{min(worst):.3f}")
        row.append(bytes_text(float(condition.finals("bytes_sent").mean())))
        if served:
            row.append(
                bytes_text(float(condition.server_bytes.mean()))
                if condition.server_bytes.size
                else "–"
            )
        target = targets[condition.facet]
        row.append(
            _to_target([rounds for rounds, _ in reached(condition, metric, target)], "{:.0f}")
        )
        if timed:
            row.append(_to_target(seconds_to(condition, metric, target), "{:.3g}"))
        rows.append(row)
    return Grid(header, rows, _notes(rated, conditions, metrics))


def print_grid(grid: Grid, title: str) -> None:
    """To stdout; wide enough for every column when it is not a terminal."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    table = Table(title=title, title_justify="left", header_style="bold")
    for index, name in enumerate(grid.header):
        table.add_column(name, justify="left" if index == 0 else "right")
    for row in grid.rows:
        table.add_row(*row)
    console.print(table)
    for note in grid.notes:
        console.print(note, markup=False, highlight=False)


def _finals(condition: Condition, metric: str) -> np.ndarray:
    values = [final_value(run.summary, metric) for run in condition.runs]
    return np.array([value for value in values if value is not None])


def _spread(values: np.ndarray, fraction: bool) -> str:
    """Mean over the seeds, and half the distance from the lowest to the highest."""
    if not values.size:
        return "–"
    if values.size == 1:  # no spread can be known
        return f"{values[0]:.3f}" if fraction else f"{values[0]:.3g}"
    half = (values.max() - values.min()) / 2
    return f"{values.mean():.3f} ± {half:.3f}" if fraction else f"{values.mean():.3g} ± {half:.1g}"


def _rate(condition: Condition) -> str:
    choice = condition.choice
    return (
        "–"
        if choice is None or choice.rate is None
        else f"{choice.rate}{' (edge!)' if choice.at_edge else ''}"
    )


def _to_target(spent: list[float], form: str) -> str:
    there = [value for value in spent if np.isfinite(value)]
    if not there:
        return "never"
    text = form.format(np.mean(there))
    if min(there) != max(there):
        text += f" ({form.format(min(there))}–{form.format(max(there))})"
    return (
        text
        if len(there) == len(spent)
        else f"{text}; {len(spent) - len(there)} of {len(spent)} never"
    )


def _notes(rated: bool, conditions: list[Condition], metrics: list[str]) -> list[str]:
    notes = [
        "Mean over the seeds ± half the distance from the lowest to the highest seed; no ± where there is one seed. "
        "Test figures: the mean over the peers' own models."
    ]
    if "averaged_accuracy" in metrics:
        notes[0] += (
            " Averaged model: the model whose parameters are the mean of the peers'. "
            "Worst peer: the lowest of all peers and seeds."
        )
    if rated and any(c.choice and c.choice.at_edge for c in conditions):
        notes.append(
            "edge!: the best step size is the smallest or largest that was tried; a better one may lie beyond."
        )
    return notes
