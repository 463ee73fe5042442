"""The files of a sweep: sweep.json (the request and the status of each cell) and
results.csv (one row per run).
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars

from lab.axes import setting_text
from lab.cells import Cell, read_json
from lab.errors import LabError
from lab.participants import last_graph
from lab.selection import Choice

SCHEMA = 4


@dataclass(frozen=True)
class CellResult:
    """The status of a cell: finished | diverged | failed | missing."""

    cell: Cell
    status: str
    error: str = ""
    summary: dict[str, Any] | None = None


Key = tuple[tuple[str, str], ...]  # a condition: Cell.condition()


@dataclass(frozen=True)
class Sweep:
    """The content of sweep.json."""

    folder: Path
    metadata: dict[str, Any]  # command, config, set, axes, rates, select, impossible, machine, …
    results: list[CellResult]
    choices: list[Choice]

    def reported_results(self) -> list[CellResult]:
        """The runs of all statuses that do not merely select a step size."""
        return [result for result in self.results if not result.cell.selects]

    def choices_for(self, select: str) -> dict[Key, Choice]:
        return {
            tuple(choice.condition.items()): choice
            for choice in self.choices
            if choice.measure == select
        }

    def comparable_results(self, select: str) -> list[CellResult]:
        """The finished runs at the step sizes that are selected for a measure.

        All finished runs if the sweep selects no step size.
        """
        finished = [r for r in self.reported_results() if r.status == "finished"]
        if not self.metadata["rates"]:
            return finished
        rates = {key: choice.rate for key, choice in self.choices_for(select).items()}
        return [r for r in finished if rates.get(r.cell.condition()) == r.cell.rate]


def write_sweep(
    folder: Path, metadata: dict[str, Any], results: list[CellResult], choices: list[Choice]
) -> None:
    content = {
        "schema": SCHEMA,
        **metadata,
        "cells": [
            {
                "name": r.cell.name,
                "overrides": r.cell.overrides,
                "labels": r.cell.labels,
                "selects": r.cell.selects,
                "status": r.status,
                "error": r.error,
            }
            for r in results
        ],
        "choices": [asdict(choice) for choice in choices],
    }
    replace_file(folder / "sweep.json", json.dumps(content, indent=1) + "\n")
    replace_file(folder / "results.csv", _table(results, choices).write_csv())


def read_sweep(folder: Path) -> Sweep:
    content = read_json(folder / "sweep.json")
    if content is None:
        raise LabError(
            f"{folder} has no complete sweep.json: give the --out folder of a sweep.py command"
        )
    if content.get("schema") != SCHEMA:
        raise LabError(
            f"{folder / 'sweep.json'} has schema {content.get('schema')}; "
            f"this program reads schema {SCHEMA}"
        )
    results = []
    for entry in content.pop("cells"):
        cell = Cell(
            entry["name"],
            folder / entry["name"],
            entry["overrides"],
            entry["labels"],
            entry["selects"],
        )
        summary = read_json(cell.folder / "summary.json") if entry["status"] == "finished" else None
        deleted = entry["status"] == "finished" and summary is None
        results.append(
            CellResult(
                cell,
                "missing" if deleted else entry["status"],
                "its summary.json is missing" if deleted else entry["error"],
                summary,
            )
        )
    choices = [Choice(**choice) for choice in content.pop("choices")]
    return Sweep(folder, content, results, choices)


def setting_keys(results: list[CellResult]) -> list[str]:
    """Every key that a cell sets."""
    return list(dict.fromkeys(key for result in results for key in result.cell.overrides))


def run_columns(result: CellResult, choices: list[Choice], keys: list[str]) -> dict[str, Any]:
    """The columns that name a run: its name, its values on the axes, and its settings.

    `keys`: the settings of any run. The value of one that the cell does not set is that of the
    run's complete configuration; None if it has no such key.

    If step sizes are selected, also: if the run only selects one, and for which measures its step
    size is selected.
    """
    row = {"run": result.cell.name, **result.cell.labels, **result.cell.overrides}
    summary = result.summary or read_json(result.cell.folder / "summary.json") or {}
    for key in keys:
        section, _, name = key.partition(".")
        value = summary.get("config", {}).get(section, {}).get(name)
        row.setdefault(key, None if value is None else setting_text(value))
    if choices:
        row["selects"] = result.cell.selects
        row["selected_for"] = "; ".join(
            choice.measure
            for choice in choices
            if tuple(choice.condition.items()) == result.cell.condition()
            and choice.rate == result.cell.rate
        )
    return row


def _table(results: list[CellResult], choices: list[Choice]) -> polars.DataFrame:
    rows = []
    keys = setting_keys(results)
    for result in results:
        row = {**run_columns(result, choices, keys), "status": result.status}
        summary = result.summary or {}
        for key in (
            "final_hash",
            "parameters",
            "rounds",
            "bytes_sent",
            "wall_seconds",
            "virtual_seconds",
            "node_steps_per_second",
        ):
            row[key] = summary.get(key)
        row["spectral_gap"] = last_graph(summary.get("topology") or {}).get("spectral_gap")
        for metric, value in (summary.get("final") or {}).items():
            if isinstance(value, dict):
                row.update({f"{metric}_{part}": value.get(part) for part in ("mean", "min", "max")})
            else:
                row[metric] = value
        rows.append(row)
    columns = dict.fromkeys(key for row in rows for key in row)
    return polars.DataFrame(
        [{key: row.get(key) for key in columns} for row in rows], infer_schema_length=None
    )


def replace_file(path: Path, content: str | bytes) -> None:
    """Writes a file atomically."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(part, path)
