"""Node steps per second on one core against PyTorch: the median ratio of interleaved pairs.

    .venv/bin/python experiments/benchmarks/training.py [--pairs 9] [--seconds 2] [--json FILE]

A pair is a run of `gossamer bench train` and a run of torch_baseline.py, in alternating order, each
in its own process. Both count CPU time, so that other work on the machine has an effect through the
caches only. Prints a Markdown table with intervals; --json also writes all values.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pairs import BINARY, MIN_PAIRS, Pairs, measure

PEERS = 16


@dataclass(frozen=True)
class Comparison:
    """A workload, the mode of its baseline, and the least ratio."""

    workload: str
    baseline: str
    target: float


COMPARISONS = (
    Comparison("softmax", "loop", 10.0),
    Comparison("softmax", "bmm", 1.3),
    Comparison("mlp", "loop", 2.5),
    Comparison("mlp", "bmm", 1.3),
    Comparison("cnn", "loop", 1.5),
)
NAMES = {
    "softmax": "softmax regression 64-10, batch 16",
    "mlp": "MLP 784-128-10, batch 32",
    "cnn": "CNN 28×28, batch 32",
    "loop": "loop over 16 models",
    "bmm": "16 batched with bmm",
}


def steps_per_second(command: list[str]) -> float:
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **one_thread}, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}")
    return float(json.loads(done.stdout)["steps_per_second"])


def compare(comparison: Comparison, arguments: argparse.Namespace) -> Pairs:
    seconds = ["--seconds", str(arguments.seconds)]
    ours = [
        str(arguments.binary),
        "bench",
        "train",
        comparison.workload,
        "--peers",
        str(PEERS),
        "--json",
        *seconds,
    ]
    script = str(Path(__file__).with_name("torch_baseline.py"))
    theirs = [arguments.torch_python, script, comparison.workload, comparison.baseline, *seconds]
    name = f"{NAMES[comparison.workload]} | PyTorch, {NAMES[comparison.baseline]}"
    return measure(
        name,
        comparison.target,
        arguments.pairs,
        lambda: steps_per_second(ours),
        lambda: steps_per_second(theirs),
    )


def table(outcomes: list[Pairs]) -> str:
    lines = [
        "| workload | baseline | ours, steps/s | its steps/s | ratio (95 % interval) | target |",
        "|---|---|---|---|---|---|",
    ]
    for pairs in outcomes:
        ours, theirs = statistics.median(pairs.ours), statistics.median(pairs.theirs)
        lines.append(f"| {pairs.name} | {ours:,.0f} | {theirs:,.0f} | {pairs.cells()} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--torch-python", default="/usr/bin/python3", help="a Python with torch")
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {MIN_PAIRS}")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each run")
    parser.add_argument(
        "--only", choices=sorted({r.workload for r in COMPARISONS}), help="one workload"
    )
    parser.add_argument("--json", type=Path, help="a file for all values")
    arguments = parser.parse_args()
    if arguments.pairs < MIN_PAIRS:
        parser.error(f"--pairs: at least {MIN_PAIRS}")
    if not arguments.binary.exists():
        parser.error(f"{arguments.binary} does not exist: build it, or give --binary")
    outcomes = [
        compare(comparison, arguments)
        for comparison in COMPARISONS
        if arguments.only in (None, comparison.workload)
    ]
    print(table(outcomes))
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps([pairs.record() for pairs in outcomes], indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
