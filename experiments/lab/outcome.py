"""What a study's runs gave: for each series and facet, at its step size, one value per seed and column; as results.json has it.

A target that was not reached is null in the file and NEVER here.
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
_TOPOLOGY = "topology "  # how a measure of the mixing matrix begins


@dataclass(frozen=True)
class Row:
    """A series in a facet of a part: what a table has a line for."""

    part: str
    series: str
    facet: str  # the other axes that vary; empty where none does
    rate: str | None  # selected step size
    at_edge: bool
    expected: int  # seeds asked for
    values: dict[str, list[float]]  # column → one value per seed


@dataclass(frozen=True)
class Outcome:
    rows: tuple[Row, ...]
    rates: dict[str, str]  # part → step sizes tried

    def of(self, part: str) -> list[Row]:
        return [row for row in self.rows if row.part == part]


def average(values: list[float]) -> float:
    return NEVER if NEVER in values else mean(values)


def deviation(values: list[float]) -> float | None:
    """Standard deviation over the seeds (n − 1); None where it cannot be known."""
    return None if len(values) < 2 or NEVER in values else stdev(values)


def more_is_better(column: Column) -> bool:
    return not column.measure.startswith(_TOPOLOGY) and parse_measure(column.measure).more_is_better


def collect(
    study: Study, sweeps: dict[str, Sweep], binary: Path
) -> tuple[Outcome, dict[str, list[Condition]]]:
    """The values, and the conditions that they were read from, by part."""
    rows: list[Row] = []
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
                Row(
                    part.name,
                    condition.labels[VARIANT],
                    facet_at(part, condition.labels),
                    choice.rate if choice else None,
                    bool(choice and choice.at_edge),
                    condition.expected,
                    values,
                )
            )
    return Outcome(tuple(rows), {part.name: part.rates for part in study.parts}), conditions


def write_outcome(path: Path, outcome: Outcome) -> None:
    rows = [
        {
            **asdict(row),
            "values": {
                name: [None if value == NEVER else value for value in values]
                for name, values in row.values.items()
            },
        }
        for row in outcome.rows
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(
        f'{{"schema": {SCHEMA},\n "rates": {json.dumps(outcome.rates)},\n "rows": [\n  {lines}]}}\n',
        encoding="utf-8",
    )


def read_outcome(path: Path) -> Outcome:
    content = read_json(path)
    if content is None or content.get("schema") != SCHEMA:
        raise LabError(f"{path}: no whole results of schema {SCHEMA}: run the study")
    rows = [
        Row(
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
    return Outcome(tuple(rows), content["rates"])


def _value(column: Column, curves: Any, summary: dict[str, Any], binary: Path) -> float:
    if column.measure.startswith(_TOPOLOGY):
        return topology_figure(column.measure.removeprefix(_TOPOLOGY), summary["config"], binary)
    return parse_measure(column.measure).of(curves)


def topology_figure(words: str, config: dict[str, Any], binary: Path) -> float:
    """A figure of the run's mixing matrix, as `gossamer topology --json` gives it; `effective_neighbours 0.95` for a γ."""
    key, _, decay = words.partition(" ")
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
    if not isinstance(value, (int, float)):
        raise LabError(f"{' '.join(command)} says nothing of {key}")
    return float(value)


def check_columns(study: Study) -> None:
    """Throws LabError where a measure cannot be read."""
    for column in study.columns:
        if not column.measure.startswith(_TOPOLOGY):
            parse_measure(column.measure)
    for panel in study.panels:
        if panel.kind == "curve" and panel.y not in METRICS:
            raise LabError(
                f"{study.name}: panel '{panel.title}': {panel.y} is no curve ({', '.join(METRICS)})"
            )
