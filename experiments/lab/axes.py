"""Axes of a grid as the command line gives them: `topology.kind=ring,torus`, `run.seed=0..2`."""

import re
from dataclasses import dataclass

from lab.errors import LabError

_KEY = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")


@dataclass(frozen=True)
class Axis:
    """One configuration key and the values that it takes, as text for `--set`."""

    key: str
    values: tuple[str, ...]


def parse_axis(text: str) -> Axis:
    key, equals, right = text.partition("=")
    if not equals or not _KEY.fullmatch(key):
        raise LabError(f"'{text}' is not an axis: write section.key=value,value or section.key=first..last")
    values: list[str] = []
    for part in split_values(right):
        values.extend(_expand(key, part))
    if len(set(values)) != len(values):
        raise LabError(f"axis {key}: a value is given twice in '{right}'")
    return Axis(key, tuple(values))


def parse_axes(texts: list[str]) -> list[Axis]:
    axes = [parse_axis(text) for text in texts]
    for i, axis in enumerate(axes):
        if any(axis.key == other.key for other in axes[:i]):
            raise LabError(f"axis {axis.key} is given twice: put all its values in one")
    return axes


def parse_rates(text: str) -> tuple[str, ...]:
    """The grid of step sizes, ascending, as text."""
    rates = [part.strip() for part in text.split(",")]
    for rate in rates:
        try:
            good = float(rate) > 0
        except ValueError:
            good = False
        if not good:
            raise LabError(f"--rates: '{rate}' is not a step size: write positive numbers, as 0.02,0.05,0.1")
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
    if ".." in part:
        raise LabError(f"axis {key}: '{part}' is not a range of whole numbers (first..last)")
    return [part]
