"""Peak memory of the workers of a cut model, each in a process, against one process with all of it.

The model is an MLP of digits with as many matrices, width × width, as there are workers, so that
their layers are equal. From each peak, what a process takes that trains a softmax regression is
subtracted: the program, its data and its buffers. What is left is rows (parameters, gradients,
momentum), activations, and what the exchange takes. A worker's is compared with its share of the
whole model's.

    .venv/bin/python experiments/benchmarks/worker_memory.py [--cut parameters] [--width 4096]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from pairs import BINARY
from workers import start, wait


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--cut", choices=("layers", "parameters"), default="layers")
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=0, help="default: split.microbatches")
    arguments = parser.parse_args()
    settings: dict[str, Any] = {
        "run.peers": 1,
        "run.rounds": 3,
        "topology.kind": "complete",
        "data.batch": arguments.batch,
        "optimizer.momentum": 0.9,
        "local.threads": 1,
        "log.every": 0,
        "net.listen": "127.0.0.1:0",
        "net.failure_timeout": 60,
    }
    mlp = {"model.kind": "mlp", "model.hidden": [arguments.width] * (arguments.workers + 1)}
    cut: dict[str, Any] = {f"split.{arguments.cut}": arguments.workers}
    if arguments.microbatches:
        cut["split.microbatches"] = arguments.microbatches

    def peaks(more: dict[str, Any], ids: list[str]) -> list[float]:
        with tempfile.TemporaryDirectory(prefix="gossamer-memory-") as name:
            folder = Path(name)
            meeting = {"net.rendezvous": folder / "meet"}
            everything = settings | more | meeting
            return wait(
                [start(arguments.binary, "peer", folder, everything, "--id", each) for each in ids]
            )

    (base,) = peaks({}, ["0"])
    (whole,) = peaks(mlp, ["0"])
    workers = peaks(mlp | cut, [f"0.{worker}" for worker in range(arguments.workers)])
    share = (whole - base) / arguments.workers
    print(f"whole model: {whole - base:.0f} MiB; a process without: {base:.0f} MiB more")
    for worker, peak in enumerate(workers):
        print(f"worker {worker}: {peak - base:.0f} MiB, {(peak - base) / share:.2f} of its share")
    return 0


if __name__ == "__main__":
    sys.exit(main())
