"""One mix on a ring of processes over TCP, against the same exchange with gloo: median ratio of interleaved pairs.

    .venv/bin/python experiments/benchmarks/ring.py [--pairs 9] [--peers 4] [--json FILE]

Ours is `gossamer peer` with the algorithm `consensus`, 10 rounds to warm up and 20 timed, first record to last of the slowest
peer; the rival is gloo_ring.py, 20 rounds timed in the same way. Loopback TCP, one thread of arithmetic a process. The
figure is rounds per second. Prints a Markdown table; `--json` also writes every figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from pairs import BINARY, FEWEST_PAIRS, measure

WARMUP, TIMED = 10, 20
ROWS = {
    400_000: 2.0,
    4_000_000: 0.95,
    64_000_000: 0.95,
}  # bytes of a row: the ratio it must reach with 4 processes
TARGET_PEERS = 4


def timed_seconds(log: Path) -> float:
    """From the record after the warm-up to the last one."""
    at = {}
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "round":
            at[record["round"]] = record["seconds"]
    return at[WARMUP + TIMED] - at[WARMUP]


def gossamer(binary: Path, peers: int, row_bytes: int) -> float:
    """Rounds per second of the slowest peer."""
    settings = {
        "run.peers": peers,
        "run.rounds": WARMUP + TIMED,
        "algorithm.kind": "consensus",
        "algorithm.length": row_bytes // 4,
        "log.every": WARMUP,
        "log.sketch": "off",
        "local.threads": 1,
        "net.listen": "127.0.0.1:0",
        "net.silence": 60,
    }
    with tempfile.TemporaryDirectory(prefix="gossamer-ring-") as name:
        folder = Path(name)
        command = [
            str(binary),
            "peer",
            "--quiet",
            "--out",
            str(folder),
            "--set",
            f"net.rendezvous={folder}/rendezvous",
        ]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        processes = [
            subprocess.Popen([*command, "--id", str(peer)], stdout=subprocess.DEVNULL)
            for peer in range(peers)
        ]
        if any([process.wait() != 0 for process in processes]):
            raise SystemExit("ring.py: a peer failed; its message is above")
        return TIMED / max(timed_seconds(folder / f"log-{peer}.jsonl") for peer in range(peers))


def gloo(python: str, peers: int, row_bytes: int) -> float:
    script = Path(__file__).with_name("gloo_ring.py")
    command = [
        python,
        str(script),
        "--peers",
        str(peers),
        "--bytes",
        str(row_bytes),
        "--rounds",
        str(TIMED),
        "--warmup",
        str(WARMUP),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}")
    return TIMED / float(json.loads(done.stdout)["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument(
        "--torch-python", default="/usr/bin/python3", help="a Python that has torch"
    )
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {FEWEST_PAIRS}")
    parser.add_argument("--peers", type=int, default=TARGET_PEERS)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    given = parser.parse_args()
    if given.pairs < FEWEST_PAIRS:
        parser.error(f"--pairs: at least {FEWEST_PAIRS}")
    if not given.binary.exists():
        parser.error(f"{given.binary}: not there; build it, or give --binary")

    records = []
    rows = [
        "| row | processes | ours, ms a round | gloo, ms a round | ratio (95 % interval) | at least |",
        "|---|---|---|---|---|---|",
    ]
    for row_bytes, target in ROWS.items():
        pairs = measure(
            f"ring of {given.peers}, {row_bytes / 1e6:g} MB",
            target if given.peers == TARGET_PEERS else None,
            given.pairs,
            lambda row_bytes=row_bytes: gossamer(given.binary, given.peers, row_bytes),
            lambda row_bytes=row_bytes: gloo(given.torch_python, given.peers, row_bytes),
        )
        ours, theirs = sorted(pairs.ours)[given.pairs // 2], sorted(pairs.theirs)[given.pairs // 2]
        rows.append(
            f"| {row_bytes / 1e6:g} MB | {given.peers} | {1e3 / ours:.2f} | {1e3 / theirs:.2f} | {pairs.cells()} |"
        )
        records.append(pairs.record())
    print("\n".join(rows))
    if given.json is not None:
        given.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
