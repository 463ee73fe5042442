"""The results of a study, and their file results.json.

There is a row for each series and facet at its selected step size, with one value per seed and
column. The cost of a target that is not reached is null in the file and NEVER here.
"""

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from lab.axes import VARIANT
from lab.cells import read_json
from lab.conditions import Condition, read_conditions
from lab.errors import LabError
from lab.measure import METRICS, NEVER, parse_measure
from lab.results import Sweep
from lab.study import Column, Study, facet_at

SCHEMA = 1
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


@dataclass(frozen=True)
class StudyResults:
    rows: tuple[ResultRow, ...]
    rates: dict[str, str]  # part → step sizes tried

    def rows_of(self, part: str) -> list[ResultRow]:
        return [row for row in self.rows if row.part == part]


def average(values: list[float]) -> float:
    return NEVER if NEVER in values else mean(values)


def deviation(values: list[float]) -> float | None:
    """Sample standard deviation over the seeds; None for one seed or if a value is NEVER."""
    return None if len(values) < 2 or NEVER in values else stdev(values)


def more_is_better(column: Column) -> bool:
    return not column.measure.startswith(TOPOLOGY) and parse_measure(column.measure).more_is_better


def collect(
    study: Study, sweeps: dict[str, Sweep], binary: Path
) -> tuple[StudyResults, dict[str, list[Condition]]]:
    """The results of all sweeps of a study, and the conditions of each part."""
    rows: list[ResultRow] = []
    conditions: dict[str, list[Condition]] = {}
    for part in study.parts:
        conditions[part.name] = read_conditions(sweeps[part.name])
        for condition in conditions[part.name]:
            choice = condition.choice
            values = {
                column.name: [
                    _value(column, run.curves, run.summary, binary) for run in condition.runs
                ]
                for column in study.columns_of(part)
            }
            rows.append(
                ResultRow(
                    part.name,
                    condition.labels[VARIANT],
                    facet_at(part, condition.labels),
                    choice.rate if choice else None,
                    bool(choice and choice.at_edge),
                    condition.expected,
                    values,
                )
            )
    return StudyResults(tuple(rows), {part.name: part.rates for part in study.parts}), conditions


def write_results(path: Path, results: StudyResults) -> None:
    rows = [
        {
            **asdict(row),
            "values": {
                name: [None if value == NEVER else value for value in values]
                for name, values in row.values.items()
            },
        }
        for row in results.rows
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    header = f'"schema": {SCHEMA},\n "rates": {json.dumps(results.rates)}'
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
    return StudyResults(tuple(rows), content["rates"])


def _value(column: Column, curves: Any, summary: dict[str, Any], binary: Path) -> float:
    if column.measure.startswith(TOPOLOGY):
        return topology_metric(column.measure.removeprefix(TOPOLOGY), summary["config"], binary)
    return parse_measure(column.measure).value(curves)


def topology_metric(text: str, config: dict[str, Any], binary: Path) -> float:
    """A field of `gossamer topology --json` for a run's mixing matrix.

    `text` is the field's name and, optionally, a decay: `effective_neighbours 0.95`. Of a field
    with a value for each mixing rule, that of the run's rule.
    """
    key, _, decay = text.partition(" ")
    topology = dict(config["topology"])
    command = [
        str(binary),
        "topology",
        topology.pop("kind"),
        "--json",
        "-n",
        str(config["run"]["peers"]),
        "--weights",
        topology.pop("weights"),
        "--seed",
        str(config["run"]["seed"]),
    ]
    command += ["--lazy"] if topology.pop("lazy") else []
    command += ["--decay", decay] if decay else []
    for name, value in topology.items():
        command += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
    value = json.loads(done.stdout).get(key)
    if isinstance(value, dict):
        value = value.get(config["mixing"]["rule"], 0)  # the mean has none
    if not isinstance(value, (int, float)):
        raise LabError(f"{' '.join(command)}: the output has no number '{key}'")
    return float(value)


def check_columns(study: Study) -> None:
    """Throws LabError if a measure or the curve of a panel is not valid."""
    for column in study.columns:
        if not column.measure.startswith(TOPOLOGY):
            parse_measure(column.measure)
    for panel in study.panels:
        if panel.kind == "curve" and panel.y not in METRICS:
            raise LabError(
                f"{study.name}: panel '{panel.title}': {panel.y} is no curve ({', '.join(METRICS)})"
            )
