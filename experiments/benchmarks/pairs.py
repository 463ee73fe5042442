"""Interleaved pairs of measurements and the interval of their median ratio."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build/release/bin/gossamer"
MIN_PAIRS = 6  # with fewer pairs there is no 95 % interval


@dataclass
class Pairs:
    """The measurements of both sides, pair by pair. A larger value is better."""

    name: str
    target: float | None
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def interval(self) -> tuple[float, float]:
        """Order statistics that contain the median ratio with a probability of at least 95 %.

        For 9 pairs they are the 2nd and the 8th.
        """
        ratios, n = sorted(self.ratios), len(self.ours)
        rank = max(
            r
            for r in range(n)
            if r == 0 or sum(math.comb(n, i) for i in range(r + 1)) <= 0.025 * 2**n
        )
        return ratios[rank], ratios[n - 1 - rank]

    def milliseconds(self) -> tuple[float, float]:
        """The median time of ours and of theirs, where the values are rates per second."""
        ours, theirs = ([1e3 / rate for rate in rates] for rates in (self.ours, self.theirs))
        return statistics.median(ours), statistics.median(theirs)

    def cells(self) -> str:
        """The last cells of a Markdown row: ratio with interval, and target."""
        low, high = self.interval()
        target = "–" if self.target is None else f"{self.target:g}"
        return f"{self.ratio:.2f} ({low:.2f}–{high:.2f}) | {target}"

    def record(self) -> dict[str, object]:
        low, high = self.interval()
        return {
            "name": self.name,
            "target": self.target,
            "ours": self.ours,
            "theirs": self.theirs,
            "ratio": {"median": self.ratio, "low": low, "high": high},
        }


def measure(
    name: str,
    target: float | None,
    count: int,
    ours: Callable[[], float],
    theirs: Callable[[], float],
) -> Pairs:
    """Measures `count` pairs in alternating order."""
    pairs = Pairs(name, target)
    for index in range(count):
        sides = [(ours, pairs.ours), (theirs, pairs.theirs)]
        for run, values in sides if index % 2 == 0 else reversed(sides):
            values.append(run())
        print(f"{name}: pair {index + 1} of {count}, ratio {pairs.ratios[-1]:.2f}", file=sys.stderr)
    return pairs


def report_times(measured: list[Pairs], what: str, unit: str, path: Path | None) -> None:
    """Prints a Markdown table of median times, and writes all values to `path`.

    `what` is the heading of the names, and times are milliseconds of a `unit`.
    """
    print(f"| {what} | ours, ms/{unit} | theirs, ms/{unit} | ratio (95 % interval) | target |")
    print("|---|---|---|---|---|")
    for pairs in measured:
        times = " | ".join(f"{time:.1f}" for time in pairs.milliseconds())
        print(f"| {pairs.name} | {times} | {pairs.cells()} |")
    if path is not None:
        path.write_text(json.dumps([pairs.record() for pairs in measured], indent=2) + "\n")
