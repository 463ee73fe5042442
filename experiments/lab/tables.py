"""The table of a report, for the terminal and for the page. It has one row per condition."""

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from lab.conditions import Condition, evaluation_split, selection_split
from lab.figures import bytes_text, number_or_dash, cost_axes
from lab.inference import half_width
from lab.measure import METRICS, parse_measure
from lab.metric import Metric, Target, rounds_and_bytes_to, seconds_to

_AVERAGED = "averaged_accuracy"
_NAMES = {
    "test_accuracy": "test accuracy",
    "averaged_accuracy": "averaged model",
    "test_loss": "test loss",
    "consensus_distance": "consensus distance",
    "distance_to_optimum": "distance to optimum",
    "averaged_distance_to_optimum": "averaged model to optimum",
    "backdoor_success": "backdoor success",
}


@dataclass(frozen=True)
class TextTable:
    """Header, rows and notes, as text."""

    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def make_table(
    conditions: list[Condition],
    metric: Metric,
    targets: dict[str, Target],
    averaged: list[Condition],
) -> TextTable:
    """`averaged`: the conditions at the step sizes selected for the averaged model, if any."""
    own = {tuple(condition.labels.items()): condition for condition in averaged}
    metrics = [name for name in _NAMES if any(_finals(c, name).size for c in conditions)]
    if "test_accuracy" in metrics:
        metrics.remove("test_loss")  # in results.csv
    split = evaluation_split(conditions)
    selected = any(condition.choice for condition in conditions)
    faceted = any(condition.facet for condition in conditions)
    has_servers = any(condition.server_bytes.size for condition in conditions)
    private = any("epsilon" in run.summary["final"] for c in conditions for run in c.runs)
    timed = "seconds" in cost_axes(conditions)
    header = [
        "condition",
        "gap",
        "degree",
        *(["step size"] if selected else []),
        "seeds",
        *(_NAMES[name].replace("test ", f"{split} ") for name in metrics),
        *(["worst peer"] if "test_accuracy" in metrics else []),
        "sent per peer",
        *(["sent per server"] if has_servers else []),
        *(["epsilon"] if private else []),
        "rounds to target",
        *(["seconds to target"] if timed else []),
    ]
    rows = []
    for condition in conditions:
        name = f"{condition.series} ({condition.facet})" if faceted else condition.series
        row = [name, _gap(condition), _degree(condition)]
        if selected:
            row.append(_step_size(condition))
        row.append(_seeds(condition))
        for name in metrics:
            if own and name == _AVERAGED:
                row.append(_own_step(own.get(tuple(condition.labels.items())), name))
            else:
                row.append(_spread(_finals(condition, name), METRICS[name]))
        if "test_accuracy" in metrics:
            row.append(_worst_peer(condition))
        row.append(bytes_text(float(condition.finals("bytes_sent").mean())))
        if has_servers:
            row.append(
                bytes_text(float(condition.server_bytes.mean()))
                if condition.server_bytes.size
                else "–"
            )
        if private:
            row.append(_largest_epsilon(condition))
        row += _costs(condition, metric, targets[condition.facet], timed)
        rows.append(row)
    return TextTable(header, rows, _notes(conditions, metrics, averaged))


def print_table(content: TextTable, title: str) -> None:
    """Prints the table to stdout. On a terminal, a wide table continues in further tables.

    Every table has the first column. A table in a file has lines of any length.
    """
    lines = [content.header, *content.rows]
    widths = [max(len(line[i]) for line in lines) + 3 for i in range(len(content.header))]
    console = Console()
    if console.is_terminal:
        widths[0] = min(widths[0], console.width // 3)  # names are wrapped
    else:
        console = Console(width=max(160, sum(widths) + 1))
    console.print(title, markup=False, highlight=False)
    for columns in _parts(widths, console.width):
        table = Table(header_style="bold")
        for index in columns:
            table.add_column(
                content.header[index],
                justify="right" if index else "left",
                no_wrap=index > 0,
                max_width=widths[index] - 3,
            )
        for row in content.rows:
            table.add_row(*(row[index] for index in columns))
        console.print(table)
    for note in content.notes:
        console.print(note, markup=False, highlight=False)


def _parts(widths: list[int], most: int) -> list[list[int]]:
    """The columns of each table: the first, and as many others as fit, but at least one."""
    parts = [[0]]
    for index in range(1, len(widths)):
        used = 1 + sum(widths[i] for i in parts[-1])
        if used + widths[index] > most and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(index)
    return parts


def _gap(condition: Condition) -> str:
    """From the smallest to the largest of the seeds, whose graphs may differ."""
    gaps = [graph["spectral_gap"] for graph in condition.last_graphs]
    if not condition.uses_graph or None in gaps:
        return "–"
    return _span(number_or_dash(min(gaps)), number_or_dash(max(gaps)))


def _degree(condition: Condition) -> str:
    """From the smallest to the largest of the peers and seeds."""
    if not condition.uses_graph:
        return "–"
    lowest = min(graph["degree_min"] for graph in condition.last_graphs)
    return _span(str(lowest), str(max(graph["degree_max"] for graph in condition.last_graphs)))


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"


def _worst_peer(condition: Condition) -> str:
    """The lowest accuracy of the peers and seeds; a dash if these runs have no accuracy."""
    worst = [run.worst_accuracy for run in condition.runs]
    known = [accuracy for accuracy in worst if accuracy is not None]
    return f"{min(known):.3f}" if known else "–"


def _largest_epsilon(condition: Condition) -> str:
    """Over the peers and the seeds; a dash where gradients are not private."""
    spent = [run.summary["final"].get("epsilon", {}).get("max") for run in condition.runs]
    known = [epsilon for epsilon in spent if epsilon is not None]
    return f"{max(known):.3g}" if known else "–"


def _finals(condition: Condition, metric: str) -> np.ndarray:
    values = [run.final(metric) for run in condition.runs]
    return np.array([value for value in values if value is not None])


def _spread(values: np.ndarray, fraction: bool) -> str:
    """The mean over the seeds ± half the width of its 95 % interval."""
    if not values.size:
        return "–"
    half = half_width(values)
    if half is None:  # one seed
        return f"{values[0]:.3f}" if fraction else f"{values[0]:.3g}"
    return f"{values.mean():.3f} ± {half:.3f}" if fraction else f"{values.mean():.3g} ± {half:.1g}"


def _own_step(condition: Condition | None, name: str) -> str:
    """A metric at the step size that is selected for it: `0.946 ± 0.007 at 1`."""
    if condition is None:
        return "–"
    return f"{_spread(_finals(condition, name), METRICS[name])} at {_step_size(condition)}"


def _step_size(condition: Condition) -> str:
    choice = condition.choice
    return (
        "–"
        if choice is None or choice.rate is None
        else f"{choice.rate}{' (edge!)' if choice.at_edge else ''}"
    )


def _seeds(condition: Condition) -> str:
    there = len(condition.runs)
    return str(there) if there == condition.expected else f"{there} of {condition.expected}"


def _costs(condition: Condition, metric: Metric, target: Target, timed: bool) -> list[str]:
    """The rounds to the target, and if `timed` the seconds; dashes if the logs do not show them."""
    if not condition.dates_targets:
        return ["–"] * (1 + timed)
    rounds = [each for each, _ in rounds_and_bytes_to(condition, metric, target)]
    seconds = seconds_to(condition, metric, target) if timed else []
    return [_to_target(rounds, "{:.0f}"), *([_to_target(seconds, "{:.3g}")] if timed else [])]


def _to_target(costs: list[float], form: str) -> str:
    finite = [value for value in costs if np.isfinite(value)]
    if not finite:
        return "never"
    text = form.format(np.mean(finite))
    if min(finite) != max(finite):
        text += f" ({form.format(min(finite))}–{form.format(max(finite))})"
    return (
        text
        if len(finite) == len(costs)
        else f"{text}; {len(costs) - len(finite)} of {len(costs)} never"
    )


def _notes(conditions: list[Condition], metrics: list[str], averaged: list[Condition]) -> list[str]:
    notes = [
        "Mean over the seeds ± half the width of its 95 % interval (Student's t); "
        f"there is no ± for one seed. {evaluation_split(conditions).capitalize()} accuracy and "
        "loss are means over the peers' own models."
    ]
    if _AVERAGED in metrics:
        notes[0] += (
            " Averaged model: the model with the mean of the peers' parameters. "
            "Worst peer: the lowest value of all peers and seeds."
        )
    if any(run.curves.period > 1 for condition in conditions for run in condition.runs):
        notes[0] += (
            " If a graph repeats, a value is the mean over the rounds of its last period, and the "
            "worst peer is the lowest in these rounds."
        )
    if not all(condition.uses_graph for condition in conditions):
        notes.append("Gap and degree: a dash where the algorithm does not use the graph.")
    if any(condition.changes_participants for condition in conditions):
        notes.append("Gap and degree: of the last graph, where the participants change.")
    selected = next((c.choice.measure for c in conditions if c.choice), "")
    if _AVERAGED in metrics and selected and not averaged:
        split = selection_split(conditions)
        notes.append(
            "Averaged model: at the step size selected for the "
            f"{parse_measure(selected).description(split)}; --select averaged_loss selects its own."
        )
    if averaged:
        notes.append('Averaged model, "at": the step size that is selected for it.')
    if any(c.choice and c.choice.at_edge for c in [*conditions, *averaged]):
        notes.append(
            "edge!: the best step size is the smallest or largest of the grid; "
            "a better one may lie outside."
        )
    return notes
