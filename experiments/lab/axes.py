"""The axes of a grid.

The command line gives an axis as `topology.kind=ring,torus` or `run.seed=0..2`. One further axis
has named groups of settings as its values, the variants, from a TOML file:

    [variants."torus, lazy"]
    "topology.kind" = "torus"
    "topology.lazy" = true
"""

import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

_KEY = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
# Numbers around two dots, or on one side of them: a range is meant, and no path.
_NUMBERS = re.compile(r"(?=.*\d)[-+.eE\d]*\.\.[-+.eE\d]*")

VARIANT = "variant"
Variants = dict[str, dict[str, str]]  # name → key → value as text for `--set`


@dataclass(frozen=True)
class Axis:
    """A configuration key and its values, as text for `--set`."""

    key: str
    values: tuple[str, ...]


def parse_axis(text: str) -> Axis:
    key, equals, right = text.partition("=")
    if not equals or not _KEY.fullmatch(key):
        raise LabError(
            f"'{text}' is not an axis: write section.key=value,value or section.key=first..last"
        )
    values: list[str] = []
    for part in split_values(right):
        values.extend(_expand(key, part))
    first: dict[str, str] = {}
    for value in values:
        if (other := first.get(canonical(value))) is not None:
            also = "" if other == value else f", as {other} and as {value}"
            raise LabError(f"axis {key}: a value is given twice in '{right}'{also}")
        first[canonical(value)] = value
    return Axis(key, tuple(values))


def canonical(text: str) -> str:
    """The same text for values that a configuration cannot tell apart: 1, 01 and 1.0."""
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    return json.dumps(_canonical_value(value), sort_keys=True, default=str)


def _canonical_value(value: object) -> object:
    if isinstance(value, list):
        return [_canonical_value(each) for each in value]
    if isinstance(value, str):
        for kind in (int, float):  # 01, which is no number in TOML, and is one in the program
            with suppress(ValueError):
                return _canonical_value(kind(value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_axes(texts: list[str]) -> list[Axis]:
    axes = [parse_axis(text) for text in texts]
    for i, axis in enumerate(axes):
        if any(axis.key == other.key for other in axes[:i]):
            raise LabError(f"axis {axis.key} is given twice: put all its values in one")
    return axes


def parse_constants(texts: list[str]) -> dict[str, str]:
    """The settings of --set: key → value as text."""
    constants: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise LabError(f"--set {text}: write section.key=value")
        if key in constants:
            raise LabError(f"--set {key} is given twice")
        constants[key] = value
    return constants


# Settings that name a file or folder that runs read: where it lies beside the variants' file, that
# one is meant.
PATH_KEYS = {
    "topology.path",
    "data.path",
    "data.test_path",
    "model.file",
    "sim.probe",
    "sim.latency_file",
    "sim.bandwidth_file",
    "net.members",
    "net.key",
}


def read_variants(path: Path) -> Variants:
    """The groups of settings under [variants], in the file's order. Ignores other tables."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("variants")
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid TOML: {error}") from error
    if not isinstance(tables, dict) or not tables:
        raise LabError(
            f'{path} has no variants: write tables as [variants.NAME] with "section.key" = value'
        )
    variants: Variants = {}
    for name, settings in tables.items():
        if not isinstance(settings, dict) or not all(_KEY.fullmatch(key) for key in settings):
            raise LabError(
                f'{path}: variant {name}: its settings are written as "section.key" = value'
            )
        variants[name] = {key: setting_text(value) for key, value in settings.items()}
        for key in PATH_KEYS & variants[name].keys():
            beside = path.parent / variants[name][key]
            if variants[name][key] and beside.exists():
                variants[name][key] = str(beside)
    return variants


def setting_text(value: object) -> str:
    """A TOML value as `--set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def parse_rates(text: str) -> tuple[str, ...]:
    """The grid of step sizes, ascending, as text."""
    rates = [part.strip() for part in text.split(",")]
    for rate in rates:
        try:
            good = float(rate) > 0
        except ValueError:
            good = False
        if not good:
            raise LabError(
                f"--rates: '{rate}' is not a step size: write positive numbers, as 0.02,0.05,0.1"
            )
    if len({float(rate) for rate in rates}) != len(rates):
        raise LabError(f"--rates: a step size is given twice in '{text}'")
    return tuple(sorted(rates, key=float))


def split_values(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes: `[2,8],[4,4]` is two values."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        depth += 0 if quoted else (character == "[") - (character == "]")
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _expand(key: str, part: str) -> list[str]:
    if not part:
        raise LabError(f"axis {key}: a value is missing")
    if match := _RANGE.fullmatch(part):
        first, last = int(match[1]), int(match[2])
        if last < first:
            raise LabError(f"axis {key}: the range {part} is empty (first..last, both included)")
        return [str(value) for value in range(first, last + 1)]
    if _NUMBERS.fullmatch(part):
        raise LabError(f"axis {key}: '{part}' is not a range of whole numbers (first..last)")
    return [part]
