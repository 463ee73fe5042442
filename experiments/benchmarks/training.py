"""Node steps per second on one core against PyTorch: median ratio of interleaved pairs, with its interval.

    .venv/bin/python experiments/benchmarks/training.py [--pairs 9] [--seconds 2] [--json FILE]

A pair is one run of `gossamer bench train` and one of torch_rivals.py, each a process of its own, in turn first. Both count
CPU time, so that other work on a shared machine enters through the caches only. Prints a Markdown table; `--json` also
writes every figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pairs import BINARY, FEWEST_PAIRS, Pairs, measure

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


def steps_per_second(command: list[str]) -> float:
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **one_thread}, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}")
    return float(json.loads(done.stdout)["steps_per_second"])


def compare(rivalry: Rivalry, arguments: argparse.Namespace) -> Pairs:
    seconds = ["--seconds", str(arguments.seconds)]
    ours = [
        str(arguments.binary),
        "bench",
        "train",
        rivalry.workload,
        "--peers",
        str(PEERS),
        "--json",
        *seconds,
    ]
    script = str(Path(__file__).with_name("torch_rivals.py"))
    theirs = [arguments.torch_python, script, rivalry.workload, rivalry.rival, *seconds]
    name = f"{NAMES[rivalry.workload]} | PyTorch, {NAMES[rivalry.rival]}"
    return measure(
        name,
        rivalry.target,
        arguments.pairs,
        lambda: steps_per_second(ours),
        lambda: steps_per_second(theirs),
    )


def table(outcomes: list[Pairs]) -> str:
    lines = [
        "| workload | rival | ours, steps/s | rival, steps/s | ratio (95 % interval) | at least |",
        "|---|---|---|---|---|---|",
    ]
    for pairs in outcomes:
        ours, theirs = statistics.median(pairs.ours), statistics.median(pairs.theirs)
        lines.append(f"| {pairs.name} | {ours:,.0f} | {theirs:,.0f} | {pairs.cells()} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument(
        "--torch-python", default="/usr/bin/python3", help="a Python that has torch"
    )
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {FEWEST_PAIRS}")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each run")
    parser.add_argument(
        "--only", choices=sorted({r.workload for r in RIVALRIES}), help="one workload"
    )
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    arguments = parser.parse_args()
    if arguments.pairs < FEWEST_PAIRS:
        parser.error(f"--pairs: at least {FEWEST_PAIRS}")
    if not arguments.binary.exists():
        parser.error(f"{arguments.binary}: not there; build it, or give --binary")
    outcomes = [
        compare(rivalry, arguments)
        for rivalry in RIVALRIES
        if arguments.only in (None, rivalry.workload)
    ]
    print(table(outcomes))
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps([pairs.record() for pairs in outcomes], indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
