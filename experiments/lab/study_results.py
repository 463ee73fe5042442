"""The results of a study, and their file results.json.

There is a row for each series and facet at its selected step size, with one value per seed and
column. The cost of a target that is not reached is null in the file and NEVER here.
"""

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from math import nan
from statistics import mean
from typing import Any

from lab.axes import VARIANT
from lab.cells import SEED, read_json
from lab.conditions import Condition, read_conditions, selection_split
from lab.curves import read_curves
from lab.errors import LabError
from lab.measure import METRICS, NEVER, Measure, parse_measure
from lab.results import CellResult, Key, Sweep
from lab.study import Column, Part, Study, facet_at
from lab.topology import topology_metric

SCHEMA = 2
TOPOLOGY = "topology "  # the prefix of a measure of the mixing matrix


@dataclass(frozen=True)
class ResultRow:
    """A series in a facet of a part: one line of a table."""

    part: str
    series: str
    facet: str  # values of the other varied axes; empty if there are none
    rate: str | None  # selected step size
    at_edge: bool
    expected: int  # number of seeds in the grid
    values: dict[str, list[float]]  # column → one value per seed
    # Of columns with a measure of their own that selects the step size: column → text of it.
    own_rates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyResults:
    rows: tuple[ResultRow, ...]
    rates: dict[str, str]  # part → step sizes tried
    # Part → seeds of the runs that selected step sizes; a part that is missing here used the seeds
    # of its rows.
    selection_seeds: dict[str, str] = field(default_factory=dict)
    # Part → selection_split(); a part that is missing here used the test set.
    selection_split: dict[str, str] = field(default_factory=dict)
    # Part → status → how many of its runs have no result; without the parts that are complete.
    unfinished: dict[str, dict[str, int]] = field(default_factory=dict)

    def rows_of(self, part: str) -> list[ResultRow]:
        return [row for row in self.rows if row.part == part]


def average(values: list[float]) -> float:
    """NaN if there is no value."""
    return NEVER if NEVER in values else mean(values) if values else nan


def more_is_better(column: Column) -> bool:
    return not column.measure.startswith(TOPOLOGY) and parse_measure(column.measure).more_is_better


def collect(
    study: Study, sweeps: dict[str, Sweep], binary: Path
) -> tuple[StudyResults, dict[str, list[Condition]]]:
    """The results of all sweeps of a study, and the conditions of each part."""
    rows: list[ResultRow] = []
    conditions: dict[str, list[Condition]] = {}
    for part in study.parts:
        found = {
            select: read_conditions(sweeps[part.name], select) for select in study.selects_of(part)
        }
        conditions[part.name] = found[part.select]
        if part.diverged is None:
            rows += [
                _row(study, part, condition, found, binary) for condition in found[part.select]
            ]
        else:
            rows += _rows_with_diverged(study, part, sweeps[part.name], binary)
    results = StudyResults(
        tuple(rows),
        {part.name: part.rates for part in study.parts},
        {part.name: part.selection_seeds for part in study.parts if part.rates},
        {part.name: selection_split(conditions[part.name]) for part in study.parts if part.rates},
        {
            part.name: counts
            for part in study.parts
            if (counts := _unfinished(part, sweeps[part.name]))
        },
    )
    return results, conditions


def _unfinished(part: Part, sweep: Sweep) -> dict[str, int]:
    """By status: how many runs of a part have no result.

    The runs of a condition without a selected step size have not been made.
    """
    counts = Counter(result.status for result in sweep.reported_results())
    seeds = len(sweep.metadata["axes"].get(SEED, [0]))
    unselected = [c for c in sweep.choices_for(part.select).values() if c.rate is None]
    counts["without a selected step size"] = seeds * len(unselected)
    del counts["finished"]
    if part.diverged is not None:  # such a run has a value
        del counts["diverged"]
    return {status: number for status, number in counts.items() if number}


def _row(
    study: Study,
    part: Part,
    condition: Condition,
    found: dict[str, list[Condition]],
    binary: Path,
) -> ResultRow:
    """`found`: the conditions at the step sizes that each measure selects."""
    values, own_rates = {}, {}
    for column in study.columns_of(part):
        of_column = found[column.select or part.select]
        same = [other for other in of_column if other.labels == condition.labels]
        runs = same[0].runs if same else []
        values[column.name] = [_value(column, run.curves, run.summary, binary) for run in runs]
        if column.select:
            own_rates[column.name] = "–"
            if same and (choice := same[0].choice):
                own_rates[column.name] = rate_text(choice.rate, choice.at_edge)
    return ResultRow(
        part.name,
        condition.labels[VARIANT],
        facet_at(part, condition.labels),
        condition.choice.rate if condition.choice else None,
        bool(condition.choice and condition.choice.at_edge),
        condition.expected,
        values,
        own_rates,
    )


def _rows_with_diverged(study: Study, part: Part, sweep: Sweep, binary: Path) -> list[ResultRow]:
    """The rows of a part that states the value of a diverged run. It selects no step size."""
    conditions: dict[Key, list[CellResult]] = {}
    for result in sweep.reported_results():
        conditions.setdefault(result.cell.condition(), []).append(result)
    rows = []
    for key, results in conditions.items():
        labels, values = dict(key), defaultdict[str, list[float]](list)
        for result in results:
            curves = read_curves(result.cell.folder) if result.status == "finished" else None
            for column in study.columns_of(part):
                if curves is not None:
                    value = _value(column, curves, result.summary or {}, binary)
                    values[column.name].append(value)
                elif result.status == "diverged":
                    values[column.name].append(float(part.diverged or 0))
        if not values:
            continue
        rows.append(
            ResultRow(
                part.name,
                labels[VARIANT],
                facet_at(part, labels),
                None,
                False,
                len(results),
                dict(values),
            )
        )
    return rows


def rate_text(rate: str | None, at_edge: bool) -> str:
    return f"{rate}{' (edge)' if at_edge else ''}" if rate else "–"


def write_results(path: Path, results: StudyResults) -> None:
    rows = [
        {
            **{key: value for key, value in asdict(row).items() if key != "own_rates" or value},
            "values": {
                name: [None if value == NEVER else value for value in values]
                for name, values in row.values.items()
            },
        }
        for row in results.rows
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    header = ",\n ".join(
        f'"{key}": {json.dumps(value)}'
        for key, value in (
            ("schema", SCHEMA),
            ("rates", results.rates),
            ("selection_seeds", results.selection_seeds),
            ("selection_split", results.selection_split),
            *([("unfinished", results.unfinished)] if results.unfinished else []),
        )
    )
    path.write_text(f'{{{header},\n "rows": [\n  {lines}]}}\n', encoding="utf-8")


def read_results(path: Path) -> StudyResults:
    content = read_json(path)
    if content is None or content.get("schema") != SCHEMA:
        raise LabError(f"{path}: no complete results of schema {SCHEMA}: run the study")
    rows = [
        ResultRow(
            **{
                **row,
                "values": {
                    name: [NEVER if value is None else value for value in values]
                    for name, values in row["values"].items()
                },
            }
        )
        for row in content["rows"]
    ]
    return StudyResults(
        tuple(rows),
        content["rates"],
        content["selection_seeds"],
        content.get("selection_split", {}),
        content.get("unfinished", {}),
    )


def _value(column: Column, curves: Any, summary: dict[str, Any], binary: Path) -> float:
    if column.measure.startswith(TOPOLOGY):
        return topology_metric(column.measure.removeprefix(TOPOLOGY), summary["config"], binary)
    return parse_measure(column.measure).value(curves)


def check_columns(study: Study) -> None:
    """Throws LabError if a measure or the curve of a panel is not valid."""
    for column in study.columns:
        if not column.measure.startswith(TOPOLOGY):
            _check_selection(study, column)
    for panel in study.panels:
        if panel.kind == "curve" and panel.y not in METRICS:
            raise LabError(
                f"{study.name}: panel '{panel.title}': {panel.y} is no curve ({', '.join(METRICS)})"
            )


def _check_selection(study: Study, column: Column) -> None:
    """A value of the averaged model has a step size that is selected for the averaged model."""
    part = study.part(column.part)
    measure, select = parse_measure(column.measure), parse_measure(column.select or part.select)
    if part.rates and _is_averaged(measure) and not _is_averaged(select):
        raise LabError(
            f"{study.name}: column '{column.name}' shows the averaged model at a step size for "
            f'the peers\' own models: give the column select = "{column.measure}"'
        )


def _is_averaged(measure: Measure) -> bool:
    return measure.curve.startswith("averaged_")
