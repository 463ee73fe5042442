"""The cells of a grid: one run each, in a folder of its own, and whether its result can be counted."""

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
SEED = "run.seed"
# Keys that say where and how a run is carried out, and not what it computes.
_NOT_RESULT = {("local", "out"), ("local", "threads")}


@dataclass(frozen=True)
class Cell:
    name: str
    folder: Path
    overrides: dict[str, str]  # key → text, as given to `--set`
    labels: dict[
        str, str
    ]  # axis → value, as given: a variant by its name; without a step size that is selected

    def condition(self) -> tuple[tuple[str, str], ...]:
        """What is compared: the place in the grid without the seed."""
        return tuple((key, value) for key, value in self.labels.items() if key != SEED)


def read_config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid TOML: {error}") from error


def make_cells(
    axes: list[Axis], rates: tuple[str, ...], out: Path, variants: Variants | None = None
) -> list[Cell]:
    """Every combination, seeds innermost but for the rates, so that a condition is complete early."""
    if rates and any(axis.key == RATE for axis in axes):
        raise LabError(
            f"{RATE} is an axis and --rates is given: the step size is either compared or selected, not both"
        )
    whole = sorted(axes, key=lambda axis: axis.key == SEED) + ([Axis(RATE, rates)] if rates else [])
    cells = []
    for values in itertools.product(*(axis.values for axis in whole)):
        place = dict(zip((axis.key for axis in whole), values, strict=True))
        name = cell_name(place)
        labels = {key: value for key, value in place.items() if not (rates and key == RATE)}
        cells.append(Cell(name, out / name, settings_of(place, variants or {}), labels))
    if len({cell.name for cell in cells}) != len(cells):
        raise LabError(
            "two cells of the grid would share a folder: their values differ only in characters "
            "that a folder's name cannot hold"
        )
    return cells


def settings_of(place: dict[str, str], variants: Variants) -> dict[str, str]:
    """What is set at a place in the grid: a variant stands for its settings."""
    settings: dict[str, str] = {}
    for key, value in place.items():
        for name, text in (variants[value] if key == VARIANT else {key: value}).items():
            if name in settings:
                raise LabError(
                    f"{name} is set by the variant {place[VARIANT]} and by the grid: leave it to one of them"
                )
            settings[name] = text
    return settings


def cell_name(place: dict[str, str]) -> str:
    """`ring-seed0-rate0.1`: kinds and variants by value, everything else by the key's last word and its value."""
    words = []
    for key, value in place.items():
        word = key.rpartition(".")[2]
        safe = re.sub(r"[^A-Za-z0-9.+]+", "_", value.strip('"')).strip("_")
        words.append(safe if word in ("kind", VARIANT) else f"{word}{safe}")
    return "-".join(words) or "run"


def merge(config: dict[str, Any], overrides: dict[str, str]) -> dict[str, Any]:
    """The configuration with the overrides in place, each read as TOML where it can be and as text otherwise."""
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


def configuration_hash(config: dict[str, Any], overrides: dict[str, str], processes: bool) -> str:
    """Equal for two cells that compute the same thing: comments, `[net]`, threads and folders do not count."""
    merged = merge(config, overrides)
    content = {
        section: {k: v for k, v in keys.items() if (section, k) not in _NOT_RESULT}
        for section, keys in merged.items()
        if section != "net" and isinstance(keys, dict)
    }
    text = json.dumps({"config": content, "processes": processes}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None where there is no whole one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def settled(cell: Cell, config_hash: str) -> str | None:
    """'finished' or 'diverged' when the cell's folder holds the whole result of this very configuration."""
    made = read_json(cell.folder / "cell.json")
    summary = read_json(cell.folder / "summary.json")
    if made is None or summary is None or made.get("config_hash") != config_hash:
        return None
    return summary["reason"] if summary.get("reason") in ("finished", "diverged") else None


def prepare_folder(cell: Cell, config_hash: str, build: str) -> None:
    """Empties the cell's folder and marks it. Refuses a folder that is not a cell's."""
    folder = cell.folder
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "cell.json").exists():
            raise LabError(
                f"{folder} exists and is not a cell of a sweep: choose another --out or move it away"
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
