"""What a sweep leaves behind: sweep.json (what was asked, what became of each cell) and results.csv (one row a run)."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars

from lab.cells import RATE, Cell, read_json
from lab.errors import LabError
from lab.selection import Choice

SCHEMA = 2


@dataclass(frozen=True)
class Result:
    """A cell as it stands: finished | diverged | failed | missing."""

    cell: Cell
    status: str
    error: str = ""
    summary: dict[str, Any] | None = None


@dataclass(frozen=True)
class Sweep:
    """sweep.json, read back."""

    folder: Path
    about: dict[str, Any]
    results: list[Result]
    choices: list[Choice]

    def compared(self) -> list[Result]:
        """The finished runs at the selected step sizes (all finished ones where none was selected)."""
        finished = [result for result in self.results if result.status == "finished"]
        if not self.about["rates"]:
            return finished
        chosen = {tuple(choice.condition.items()): choice.rate for choice in self.choices}
        return [r for r in finished if chosen.get(r.cell.condition()) == r.cell.overrides[RATE]]


def write_sweep(
    folder: Path, about: dict[str, Any], results: list[Result], choices: list[Choice]
) -> None:
    content = {
        "schema": SCHEMA,
        **about,
        "cells": [
            {
                "name": r.cell.name,
                "overrides": r.cell.overrides,
                "labels": r.cell.labels,
                "status": r.status,
                "error": r.error,
            }
            for r in results
        ],
        "choices": [asdict(choice) for choice in choices],
    }
    _replace(folder / "sweep.json", json.dumps(content, indent=1) + "\n")
    _replace(folder / "results.csv", _table(results, choices).write_csv())


def read_sweep(folder: Path) -> Sweep:
    content = read_json(folder / "sweep.json")
    if content is None:
        raise LabError(
            f"{folder} holds no whole sweep.json: give the folder that sweep.py wrote (its --out)"
        )
    if content.get("schema") != SCHEMA:
        raise LabError(
            f"{folder / 'sweep.json'}: schema {content.get('schema')}, this report reads {SCHEMA}"
        )
    results = []
    for entry in content.pop("cells"):
        cell = Cell(entry["name"], folder / entry["name"], entry["overrides"], entry["labels"])
        summary = read_json(cell.folder / "summary.json") if entry["status"] == "finished" else None
        gone = entry["status"] == "finished" and summary is None
        results.append(
            Result(
                cell,
                "missing" if gone else entry["status"],
                "its folder is gone" if gone else entry["error"],
                summary,
            )
        )
    choices = [Choice(**choice) for choice in content.pop("choices")]
    return Sweep(folder, content, results, choices)


def _table(results: list[Result], choices: list[Choice]) -> polars.DataFrame:
    chosen = {tuple(choice.condition.items()): choice.rate for choice in choices}
    rows = []
    for result in results:
        row: dict[str, Any] = {
            "run": result.cell.name,
            **result.cell.labels,
            **result.cell.overrides,
            "status": result.status,
        }
        if chosen:
            row["selected"] = chosen.get(result.cell.condition()) == result.cell.overrides[RATE]
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
        row["spectral_gap"] = (summary.get("topology") or {}).get("spectral_gap")
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


def _replace(path: Path, text: str) -> None:
    """Writes whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
