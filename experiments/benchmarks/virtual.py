"""Networks in virtual time: the wall time of thousands of peers in one process.

    .venv/bin/python experiments/benchmarks/virtual.py [--repeats 3] [--only 10,240] [--json]

Also measures how much faster than the simulated network a run is. Times include set-up, log and
final parameters. A run uses as many threads as the machine has cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pairs import BINARY

WIDE_AREA = {
    "sim.latency_ms": 50,
    "sim.latency_spread": 0.3,
    "sim.uplink_mbit_s": 100,
    "sim.compute_ms": 20,
    "sim.compute_spread": 0.3,
}
LINEAR = {
    "topology.kind": "random_matching",
    "model.kind": "linear",
    "data.kind": "linear",
    "optimizer.rate": 0.05,
    "log.every": 0,
    **WIDE_AREA,
}
CASES = {
    "1,024 peers × 200 rounds, linear, random matchings": (
        {**LINEAR, "run.peers": 1024, "run.rounds": 200},
        "wall",
        4,
    ),
    "10,240 peers × 100 rounds, linear, random matchings": (
        {**LINEAR, "run.peers": 10240, "run.rounds": 100},
        "wall",
        25,
    ),
    "averaging among 16 peers on a ring, 50 ms links": (
        {
            "topology.kind": "ring",
            "algorithm.kind": "consensus",
            "run.peers": 16,
            "run.rounds": 2000,
            "sim.latency_ms": 50,
        },
        "speed",
        300,
    ),
}


@dataclass
class Measured:
    wall: float  # seconds of the whole process
    cpu: float  # seconds of all threads
    speed: float  # virtual over wall seconds
    peak_mib: float
    load: float  # load average of the machine at the end


def run(binary: Path, settings: dict[str, object]) -> Measured:
    with tempfile.TemporaryDirectory(prefix="gossamer-virtual-") as folder:
        command = [str(binary), "run", "--quiet", "--out", folder]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit("virtual.py: a run failed; its message is above")
        virtual = json.loads((Path(folder) / "summary.json").read_text())["virtual_seconds"]
    return Measured(
        wall,
        usage.ru_utime + usage.ru_stime,
        virtual / wall,
        usage.ru_maxrss / 1024,
        os.getloadavg()[0],
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    if not arguments.json:
        print("| | wall, s | CPU, s | virtual over wall | peak, MiB | load | target |")
        print("|---|---|---|---|---|---|---|")
    results = []
    for name, (settings, what, target) in CASES.items():
        if arguments.only not in name:
            continue
        runs = [run(arguments.binary, settings) for _ in range(arguments.repeats)]
        wall, cpu, speed, peak, load = (
            statistics.median(getattr(one, key) for one in runs) for key in Measured.__annotations__
        )
        results.append(
            {
                "name": name,
                "measured": what,
                "target": target,
                "runs": [asdict(one) for one in runs],
            }
        )
        goal = f"wall under {target} s" if what == "wall" else f"virtual over wall {target}"
        if not arguments.json:
            print(
                f"| {name} | {wall:.2f} | {cpu:.2f} | {speed:,.0f} | {peak:.0f} | {load:.1f} "
                f"| {goal} |",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
