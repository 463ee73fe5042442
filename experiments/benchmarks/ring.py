"""One mix on a ring of processes of one machine against the same exchange with gloo or MPI.

    .venv/bin/python experiments/benchmarks/ring.py [--pairs 9] [--peers 4] [--json FILE]
        [--link tcp | shared] [--baseline gloo | mpi]

Our side is `gossamer peer` with the algorithm `consensus`: 10 rounds of warm-up, 20 timed rounds,
from the first to the last record of the slowest peer. The baseline is gloo_ring.py or mpi_ring.c
with 20 timed rounds. With --link tcp both use loopback TCP; with shared, ours and MPI use shared
memory, and gloo, which has no other way on the CPU, TCP. One thread of arithmetic per process. The
result is the median ratio of interleaved pairs in rounds per second. Prints a Markdown table;
--json also writes all values.

The baseline mpi needs mpicc and mpirun (Debian: libopenmpi-dev, openmpi-bin).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from pairs import BINARY, MIN_PAIRS, measure

WARMUP, TIMED = 10, 20
# link and baseline → bytes of a row → least ratio with 4 processes
ROWS = {
    ("tcp", "gloo"): {400_000: 1.05, 4_000_000: 1.05, 16_000_000: 1.05, 64_000_000: 1.05},
    ("tcp", "mpi"): {400_000: 1.05, 4_000_000: 1.05, 16_000_000: 1.05, 64_000_000: 1.05},
    ("shared", "gloo"): {400_000: 3.0, 4_000_000: 3.0, 16_000_000: 3.0, 64_000_000: 3.0},
    ("shared", "mpi"): {400_000: 1.2, 4_000_000: 1.2, 16_000_000: 1.2, 64_000_000: 1.2},
}
MPI_TRANSPORTS = {"tcp": "tcp", "shared": "vader"}
TARGET_PEERS = 4


def timed_seconds(log: Path) -> float:
    """Seconds from the record after the warm-up to the last record."""
    at = {}
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "round":
            at[record["round"]] = record["seconds"]
    return at[WARMUP + TIMED] - at[WARMUP]


def make_keys(binary: Path, folder: Path, peers: int) -> None:
    """A key for each peer, <peer>.key, and the file of members, members.toml."""
    text = ""
    for peer in range(peers):
        command = [str(binary), "keygen", str(folder / f"{peer}.key")]
        made = subprocess.run(command, capture_output=True, text=True, check=True)
        text += f'[[member]]\nid = {peer}\nkey = "{made.stdout.splitlines()[0]}"\n'
    (folder / "members.toml").write_text(text)


def gossamer(
    binary: Path, peers: int, row_bytes: int, encrypted: bool = False, shared: bool = False
) -> float:
    """Rounds per second of the slowest peer; `shared`: in shared memory, in place of TCP."""
    settings = {
        "run.peers": peers,
        "run.rounds": WARMUP + TIMED,
        "algorithm.kind": "consensus",
        "algorithm.length": row_bytes // 4,
        "log.every": WARMUP,
        "log.sketch": "off",
        "local.threads": 1,
        "net.listen": "127.0.0.1:0",
        "net.failure_timeout": 60,
        "net.shared_memory": "auto" if shared else "off",
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
        keys: list[list[str]] = [[] for _ in range(peers)]
        if encrypted:
            make_keys(binary, folder, peers)
            command += ["--set", f"net.members={folder}/members.toml"]
            keys = [["--key", str(folder / f"{peer}.key")] for peer in range(peers)]
        processes = [
            subprocess.Popen([*command, *keys[peer], "--id", str(peer)], stdout=subprocess.DEVNULL)
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


def build_mpi(folder: Path) -> Path:
    program = folder / "mpi_ring"
    source = Path(__file__).with_name("mpi_ring.c")
    command = ["mpicc", "-O3", "-march=native", str(source), "-o", str(program)]
    if shutil.which("mpicc") is None or subprocess.run(command, check=False).returncode != 0:
        raise SystemExit("ring.py: mpicc is missing or failed: install libopenmpi-dev, openmpi-bin")
    return program


def mpi(program: Path, link: str, peers: int, row_bytes: int) -> float:
    transport = f"self,{MPI_TRANSPORTS[link]}"
    options = ["--oversubscribe", "--mca", "btl", transport, "-n", str(peers)]
    if os.geteuid() == 0:
        options.insert(0, "--allow-run-as-root")
    command = ["mpirun", *options, str(program), str(row_bytes), str(WARMUP), str(TIMED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}")
    return TIMED / float(json.loads(done.stdout)["seconds"])


def argument_parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {MIN_PAIRS}")
    parser.add_argument("--peers", type=int, default=TARGET_PEERS)
    parser.add_argument("--json", type=Path, help="a file for all values")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    if options.pairs < MIN_PAIRS:
        parser.error(f"--pairs: at least {MIN_PAIRS}")
    if not options.binary.exists():
        parser.error(f"{options.binary} does not exist: build it, or give --binary")
    return options


def compare(
    options: argparse.Namespace,
    label: str,
    sides: tuple[str, str],
    targets: dict[int, float],
    ours: Callable[[int], float],
    theirs: Callable[[int], float],
) -> None:
    """Measures rings with rows of each size in pairs, and prints a table.

    `ours` and `theirs` return rounds per second for the bytes of a row; `sides` names them.
    """
    records = []
    rows = [
        f"| row | processes | {sides[0]}, ms/round | {sides[1]}, ms/round "
        "| ratio (95 % interval) | target |",
        "|---|---|---|---|---|---|",
    ]
    for row_bytes, target in targets.items():
        pairs = measure(
            f"{label} of {options.peers}, {row_bytes / 1e6:g} MB",
            target if options.peers == TARGET_PEERS else None,
            options.pairs,
            lambda row_bytes=row_bytes: ours(row_bytes),
            lambda row_bytes=row_bytes: theirs(row_bytes),
        )
        cells = " | ".join(f"{time:.2f}" for time in pairs.milliseconds())
        rows.append(f"| {row_bytes / 1e6:g} MB | {options.peers} | {cells} | {pairs.cells()} |")
        records.append(pairs.record())
    print("\n".join(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


def main() -> None:
    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--torch-python", default="/usr/bin/python3", help="a Python with torch")
    parser.add_argument("--link", choices=sorted(MPI_TRANSPORTS), default="tcp")
    parser.add_argument("--baseline", choices=["gloo", "mpi"], default="gloo")
    options = parse(parser)
    shared = options.link == "shared"
    with tempfile.TemporaryDirectory(prefix="gossamer-mpi-") as name:
        program = build_mpi(Path(name)) if options.baseline == "mpi" else None

        def theirs(row_bytes: int) -> float:
            if program is not None:
                return mpi(program, options.link, options.peers, row_bytes)
            return gloo(options.torch_python, options.peers, row_bytes)

        compare(
            options,
            f"ring, {options.link}",
            ("ours", options.baseline),
            ROWS[options.link, options.baseline],
            lambda row_bytes: gossamer(options.binary, options.peers, row_bytes, shared=shared),
            theirs,
        )


if __name__ == "__main__":
    main()
