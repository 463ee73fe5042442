"""Interleaved pairs and the interval of their median ratio: how every benchmark here compares with its rival."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build/release/bin/gossamer"
FEWEST_PAIRS = 6  # fewer have no 95 % interval


@dataclass
class Pairs:
    """What both sides measured, pair by pair; a larger figure is better, and `ratio` is ours over theirs."""

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
        """Order statistics that hold the median ratio with at least 95 % (of 9 pairs the 2nd and the 8th)."""
        ratios, n = sorted(self.ratios), len(self.ours)
        rank = max(
            r
            for r in range(n)
            if r == 0 or sum(math.comb(n, i) for i in range(r + 1)) <= 0.025 * 2**n
        )
        return ratios[rank], ratios[n - 1 - rank]

    def cells(self) -> str:
        """The end of a Markdown row: ratio with interval, and what it must reach."""
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
    """`count` pairs, each side first in every other one."""
    pairs = Pairs(name, target)
    for index in range(count):
        sides = [(ours, pairs.ours), (theirs, pairs.theirs)]
        for run, figures in sides if index % 2 == 0 else reversed(sides):
            figures.append(run())
        print(f"{name}: pair {index + 1} of {count}, ratio {pairs.ratios[-1]:.2f}", file=sys.stderr)
    return pairs
