"""Node steps per second on one core against PyTorch: median ratio of interleaved pairs, with its interval.

    .venv/bin/python experiments/benchmarks/training.py [--pairs 9] [--seconds 2] [--json FILE]

A pair is one run of `gossamer bench train` and one of torch_rivals.py, each a process of its own, in turn first. Both count
CPU time, so that other work on a shared machine enters through the caches only. Prints a Markdown table; `--json` also
writes every figure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = 16


@dataclass(frozen=True)
class Rivalry:
    """A workload, who it is compared with, and the ratio that it must reach."""

    workload: str
    rival: str
    target: float


RIVALRIES = (
    Rivalry("softmax", "loop", 10.0),
    Rivalry("softmax", "bmm", 1.3),
    Rivalry("mlp", "loop", 2.5),
    Rivalry("mlp", "bmm", 1.3),
    Rivalry("cnn", "loop", 1.5),
)
NAMES = {
    "softmax": "softmax regression 64-10, batch 16",
    "mlp": "MLP 784-128-10, batch 32",
    "cnn": "CNN 28×28, batch 32",
    "loop": "loop over 16 models",
    "bmm": "16 batched with bmm",
}


@dataclass
class Outcome:
    rivalry: Rivalry
    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    def interval(self) -> tuple[float, float]:
        """Order statistics that hold the median ratio with at least 95 % (of 9 pairs the 2nd and the 8th)."""
        ratios, n = sorted(self.ratios), len(self.ours)
        rank = max(r for r in range(n) if r == 0 or sum(math.comb(n, i) for i in range(r + 1)) <= 0.025 * 2**n)
        return ratios[rank], ratios[n - 1 - rank]


def steps_per_second(command: list[str]) -> float:
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **one_thread}, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}")
    return float(json.loads(done.stdout)["steps_per_second"])


def measure(rivalry: Rivalry, arguments: argparse.Namespace) -> Outcome:
    seconds = ["--seconds", str(arguments.seconds)]
    ours = [str(arguments.binary), "bench", "train", rivalry.workload, "--peers", str(PEERS), "--json", *seconds]
    script = str(Path(__file__).with_name("torch_rivals.py"))
    theirs = [arguments.torch_python, script, rivalry.workload, rivalry.rival, *seconds]
    outcome = Outcome(rivalry, [], [])
    for pair in range(arguments.pairs):
        sides = [(ours, outcome.ours), (theirs, outcome.theirs)]
        for command, figures in sides if pair % 2 == 0 else reversed(sides):
            figures.append(steps_per_second(command))
        print(f"{rivalry.workload} against {rivalry.rival}: pair {pair + 1} of {arguments.pairs}", file=sys.stderr)
    return outcome


def table(outcomes: list[Outcome]) -> str:
    lines = ["| workload | rival | ours, steps/s | rival, steps/s | ratio (95 % interval) | at least |", "|---|---|---|---|---|---|"]
    for outcome in outcomes:
        low, high = outcome.interval()
        lines.append(
            f"| {NAMES[outcome.rivalry.workload]} | PyTorch, {NAMES[outcome.rivalry.rival]} "
            f"| {statistics.median(outcome.ours):,.0f} | {statistics.median(outcome.theirs):,.0f} "
            f"| {statistics.median(outcome.ratios):.2f} ({low:.2f}–{high:.2f}) | {outcome.rivalry.target:g} |"
        )
    return "\n".join(lines)


def record(outcome: Outcome) -> dict[str, object]:
    low, high = outcome.interval()
    return {**asdict(outcome), "ratio": {"median": statistics.median(outcome.ratios), "low": low, "high": high}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/gossamer")
    parser.add_argument("--torch-python", default="/usr/bin/python3", help="a Python that has torch")
    parser.add_argument("--pairs", type=int, default=9, help="at least 6: fewer have no 95 %% interval")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each run")
    parser.add_argument("--only", choices=sorted({r.workload for r in RIVALRIES}), help="one workload")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    arguments = parser.parse_args()
    if arguments.pairs < 6:
        parser.error("--pairs: at least 6")
    if not arguments.binary.exists():
        parser.error(f"{arguments.binary}: not there; build it, or give --binary")
    outcomes = [measure(rivalry, arguments) for rivalry in RIVALRIES if arguments.only in (None, rivalry.workload)]
    print(table(outcomes))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([record(outcome) for outcome in outcomes], indent=2) + "\n")


if __name__ == "__main__":
    main()
