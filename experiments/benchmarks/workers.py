"""A model cut over two workers, each in a process with one thread, against one such process.

The model is an MLP of digits with five hidden layers of 1024 units: four matrices of 1024 × 1024.
It is cut by layers, so that each worker holds two of them, or inside layers (--cut parameters), so
that each holds half of each. The pair and the one process take turns. The ratio is the whole
model's seconds of training over those of the workers. Its bound by layers is 2 m / (m + 1) for m
microbatches, because each worker waits while the first microbatch comes and while the last one
goes; as the second worker sends gradients before it makes those of one of its matrices
(split.overlap), it is about 0.03 higher. Inside layers it is 2. Peak memory is that of the largest
process.

What two processes can gain on this machine is measured in the same way: two that train a whole
model each, at once, against one (--control). Cores that share caches, memory and other jobs do less
than twice the work of one.

    .venv/bin/python experiments/benchmarks/workers.py [--cut parameters] [--batch 1024] [--control]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pairs import BINARY, measure

HIDDEN = (1024,) * 5
MIB = 1 << 20


def start(binary: Path, verb: str, out: Path, settings: dict[str, Any], *options: str) -> Any:
    command = [str(binary), verb, "--quiet", "--out", str(out), *options]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def wait(processes: list[Any]) -> list[float]:
    """Waits for all. Returns the peak memory of each, in MiB."""
    peaks = []
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        peaks.append(usage.ru_maxrss * 1024 / MIB)
    if any(process.returncode != 0 for process in processes):
        sys.exit("workers.py: a process failed; its message is above")
    return peaks


def seconds(log: Path) -> float:
    """From the end of round 0 to the last round: training without the start and the first
    evaluation."""
    rounds = [
        record["seconds"]
        for line in log.read_text(encoding="utf-8").splitlines()
        if (record := json.loads(line))["record"] == "round"
    ]
    return float(rounds[-1] - rounds[0])


def train(
    binary: Path, folder: Path, settings: dict[str, Any], cut: str, workers: int
) -> tuple[float, float]:
    """Seconds of training, and the peak memory of the largest process."""
    settings = settings | {f"split.{cut}": workers, "net.rendezvous": folder / "meet"}
    processes = [
        start(binary, "peer", folder, settings, "--id", f"0.{worker}" if workers > 1 else "0")
        for worker in range(workers)
    ]
    peak = max(wait(processes))
    logs = folder.glob("**/log-0.jsonl")
    return max(seconds(log) for log in logs), peak


def train_twice(binary: Path, folder: Path, settings: dict[str, Any]) -> list[float]:
    """Seconds of training of two processes at once, of which each has a whole model."""
    folders = [folder / "a", folder / "b"]
    wait(
        [
            start(binary, "peer", each, settings | {"net.rendezvous": each / "meet"}, "--id", "0")
            for each in folders
        ]
    )
    return [seconds(each / "log-0.jsonl") for each in folders]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--cut", choices=("layers", "parameters"), default="layers")
    parser.add_argument("--schedule", default="1f1b", help="split.schedule")
    parser.add_argument("--microbatches", type=int, help="default: 8 by layers, 4 inside layers")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    by_layers = arguments.cut == "layers"
    microbatches = arguments.microbatches or (8 if by_layers else 4)

    settings = {
        "run.peers": 1,
        "run.rounds": arguments.rounds,
        "topology.kind": "complete",
        "model.kind": "mlp",
        "model.hidden": list(HIDDEN),
        "data.batch": arguments.batch,
        "split.microbatches": microbatches,
        "split.schedule": arguments.schedule,
        "local.threads": 1,
        "log.every": 0,
        "net.listen": "127.0.0.1:0",
        "net.failure_timeout": 60,
    }
    peaks = {1: 0.0, 2: 0.0}

    def rate(workers: int) -> float:
        with tempfile.TemporaryDirectory(prefix="gossamer-workers-") as name:
            taken, peak = train(arguments.binary, Path(name), settings, arguments.cut, workers)
        peaks[workers] = max(peaks[workers], peak)
        return arguments.rounds / taken

    def rate_of_two() -> float:
        with tempfile.TemporaryDirectory(prefix="gossamer-workers-") as name:
            taken = train_twice(arguments.binary, Path(name), settings)
        return sum(arguments.rounds / each for each in taken)

    if arguments.control:
        pairs = measure("two processes over one", 2, arguments.pairs, rate_of_two, lambda: rate(1))
        low, high = pairs.interval()
        print(
            f"two processes with a whole model each do {pairs.ratio:.3f} times the work of one "
            f"(95 %: {low:.3f} to {high:.3f})"
        )
        return 0
    pairs = measure(
        "two workers over one process", 1.6, arguments.pairs, lambda: rate(2), lambda: rate(1)
    )
    low, high = pairs.interval()
    result = {
        "batch": arguments.batch,
        "cut": arguments.cut,
        "microbatches": microbatches,
        "ratio": round(pairs.ratio, 3),
        "interval": [round(low, 3), round(high, 3)],
        "bound": round(2 * microbatches / (microbatches + 1), 3) if by_layers else 2,
        "whole_mib": round(peaks[1], 1),
        "worker_mib": round(peaks[2], 1),
    }
    if arguments.json:
        print(json.dumps(result))
        return 0
    print(
        f"two workers by {arguments.cut}, batches of {result['batch']} in {microbatches}: "
        f"{result['ratio']} times as fast as one process (95 %: {low:.3f} to {high:.3f}; bound "
        f"{result['bound']})\n"
        f"peak memory: {result['worker_mib']} MiB of the larger worker, {result['whole_mib']} MiB "
        "of one process"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
