"""The cells of a grid. A cell is one run in its own folder."""

import hashlib
import itertools
import json
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.axes import VARIANT, Axis, Variants
from lab.errors import LabError

RATE = "optimizer.rate"
TASK_RATE = "model.rate"  # the step size of a task in Python
SEED = "run.seed"
# Keys that do not change what a run computes.
_IRRELEVANT_TO_RESULT = {("local", "out"), ("local", "threads")}


@dataclass(frozen=True)
class Cell:
    name: str
    folder: Path
    overrides: dict[str, str]  # key → text for `--set`
    labels: dict[str, str]  # axis → value; a variant's value is its name; no selected step size
    selects: bool = False  # a run that serves to select a step size only and is not reported

    def condition(self) -> tuple[tuple[str, str], ...]:
        """The grid point without its seed: runs of one condition differ in the seed only."""
        return tuple((key, value) for key, value in self.labels.items() if key != SEED)

    @property
    def rate(self) -> str:
        """The step size, of a sweep that selects one."""
        return self.overrides[TASK_RATE if TASK_RATE in self.overrides else RATE]


def read_config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid TOML: {error}") from error


def trains_task(config: dict[str, Any]) -> bool:
    """If the model is that of a task in Python, and the configuration names its file.

    With other kinds than `external`, model.file is that of a model which the program trains.
    """
    model = config.get("model", {})
    return model.get("kind") == "external" and bool(model.get("file"))


def rate_key(config: dict[str, Any]) -> str:
    return TASK_RATE if trains_task(config) else RATE


def check_constants(constants: dict[str, str], cells: list[Cell]) -> None:
    """Throws LabError if a cell of the grid has a value of its own for a constant."""
    for key in constants:
        if any(key in cell.overrides for cell in cells):
            raise LabError(
                f"--set {key}: the grid has values for this key: set it for all runs or vary it"
            )


def make_cells(
    axes: list[Axis],
    rates: tuple[str, ...],
    out: Path,
    variants: Variants | None = None,
    rate: str = RATE,
    selects: bool = False,
) -> list[Cell]:
    """A cell for every combination of the axes.

    `rate` is the key of the rates, which vary fastest, and then seeds, so that the first condition
    is complete early. Throws LabError if two cells would share a folder.
    """
    if rates and any(axis.key == rate for axis in axes):
        raise LabError(
            f"{rate} is an axis and --rates is given: "
            "the step size is either compared or selected, not both"
        )
    ordered = sorted(axes, key=lambda axis: axis.key == SEED)
    ordered += [Axis(rate, rates)] if rates else []
    cells = []
    for values in itertools.product(*(axis.values for axis in ordered)):
        point = dict(zip((axis.key for axis in ordered), values, strict=True))
        name = cell_name(point)
        labels = {key: value for key, value in point.items() if not (rates and key == rate)}
        cells.append(Cell(name, out / name, settings_of(point, variants or {}), labels, selects))
    if len({cell.name for cell in cells}) != len(cells):
        raise LabError(
            "two cells of the grid would share a folder: their values differ only in characters "
            "that a folder name cannot contain"
        )
    return cells


def settings_of(point: dict[str, str], variants: Variants) -> dict[str, str]:
    """The overrides at a grid point, with a variant replaced by its settings."""
    settings: dict[str, str] = {}
    for key, value in point.items():
        for name, text in (variants[value] if key == VARIANT else {key: value}).items():
            if name in settings:
                raise LabError(
                    f"{name} is set by the variant {point[VARIANT]} and by the grid: "
                    "set it in one of them only"
                )
            settings[name] = text
    return settings


def cell_name(point: dict[str, str]) -> str:
    """A folder name such as `ring-seed0-rate0.1`.

    A kind or variant contributes its value, any other key its last part and its value.
    """
    parts = []
    for key, value in point.items():
        short = key.rpartition(".")[2]
        safe = re.sub(r"[^A-Za-z0-9.+]+", "_", value.strip('"')).strip("_")
        parts.append(safe if short in ("kind", VARIANT) else f"{short}{safe}")
    return "-".join(parts) or "run"


def merge(config: dict[str, Any], overrides: dict[str, str]) -> dict[str, Any]:
    """The configuration with the overrides applied. A value that is not TOML is taken as text."""
    merged = {
        section: dict(keys) if isinstance(keys, dict) else keys for section, keys in config.items()
    }
    for name, text in overrides.items():
        section, _, key = name.partition(".")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        merged.setdefault(section, {})[key] = value
    return merged


def configuration_hash(
    config: dict[str, Any],
    overrides: dict[str, str],
    processes: bool,
    inputs: dict[str, str] | None = None,
) -> str:
    """A hash that is equal for cells with equal results.

    `inputs`: the digests of the files that the run reads (lab/inputs.py). Comments, `[net]`,
    threads and folders do not enter the hash.
    """
    merged = merge(config, overrides)
    content = {
        section: {k: v for k, v in keys.items() if (section, k) not in _IRRELEVANT_TO_RESULT}
        for section, keys in merged.items()
        if section != "net" and isinstance(keys, dict)
    }
    hashed = {"config": content, "processes": processes}
    if inputs:
        hashed["inputs"] = inputs
    text = json.dumps(hashed, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if the file is missing or incomplete."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def completed_status(cell: Cell, config_hash: str) -> str | None:
    """'finished' or 'diverged' if the folder holds a complete result of this configuration.

    None otherwise: the cell must be run.
    """
    mark = read_json(cell.folder / "cell.json")
    summary = read_json(cell.folder / "summary.json")
    if mark is None or summary is None or mark.get("config_hash") != config_hash:
        return None
    return summary["reason"] if summary.get("reason") in ("finished", "diverged") else None


def prepare_folder(cell: Cell, config_hash: str, build: str) -> None:
    """Empties the cell's folder and writes cell.json into it.

    Throws LabError if the folder has files but no cell.json, so that no other data are deleted.
    """
    folder = cell.folder
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "cell.json").exists():
            raise LabError(
                f"{folder} exists and is not a cell of a sweep: choose another --out, or move it"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    mark = {
        "name": cell.name,
        "overrides": cell.overrides,
        "config_hash": config_hash,
        "build": build,
    }
    (folder / "cell.json").write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
