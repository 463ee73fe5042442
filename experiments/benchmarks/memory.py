"""Memory of a peer with 15 neighbours: peak resident sets of 16 processes on the complete graph.

Rows have 16 million float32 values (an MLP 64-4000-3930-10 on digits). With momentum SGD and policy
sync, a peer has four rows: x, its second buffer, the gradient and the momentum. The target is the
size of these rows and 64 MiB.

    .venv/bin/python experiments/benchmarks/memory.py [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import BINARY

PEERS = 16
ROWS = 4
MIB = 1 << 20
HIDDEN = (4000, 3930)
PARAMETERS = 64 * HIDDEN[0] + HIDDEN[0] + HIDDEN[0] * HIDDEN[1] + HIDDEN[1] + HIDDEN[1] * 10 + 10


def start(binary: Path, folder: Path, peer: int) -> subprocess.Popen[bytes]:
    settings = {
        "run.peers": PEERS,
        "run.rounds": 2,
        "topology.kind": "complete",
        "model.kind": "mlp",
        "model.hidden": list(HIDDEN),
        "optimizer.momentum": 0.9,
        "data.partition": "iid",
        "local.threads": 1,
        "log.every": 0,
        "net.listen": "127.0.0.1:0",
        "net.rendezvous": folder / "rendezvous",
        "net.failure_timeout": 60,
        "net.shared_memory": "off",  # a process would count its neighbours' rows as its own
    }
    command = [str(binary), "peer", "--id", str(peer), "--quiet", "--out", str(folder)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="gossamer-memory-") as name:
        processes = [start(arguments.binary, Path(name), peer) for peer in range(PEERS)]
        peaks = []
        for process in processes:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            peaks.append(usage.ru_maxrss * 1024)
    if any(process.returncode != 0 for process in processes):
        print("memory.py: a peer failed; its message is above", file=sys.stderr)
        return 1

    rows = ROWS * PARAMETERS * 4
    worst = max(peaks)
    result = {
        "peers": PEERS,
        "parameters": PARAMETERS,
        "rows_mib": round(rows / MIB, 1),
        "peak_mib": round(worst / MIB, 1),
        "beyond_rows_mib": round((worst - rows) / MIB, 1),
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            "| parameters | four rows | peak of a process (largest of 16) | beyond rows | target |"
        )
        print("|---|---|---|---|---|")
        print(
            f"| {PARAMETERS:,} | {rows / MIB:.1f} MiB | {worst / MIB:.1f} MiB "
            f"| {(worst - rows) / MIB:.1f} MiB | 64 MiB |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
