"""One mix on a ring of processes over TCP against the same exchange with gloo.

    .venv/bin/python experiments/benchmarks/ring.py [--pairs 9] [--peers 4] [--json FILE]

Our side is `gossamer peer` with the algorithm `consensus`: 10 rounds of warm-up, 20 timed rounds,
from the first to the last record of the slowest peer. The baseline is gloo_ring.py with 20 timed
rounds. Both use loopback TCP and one thread of arithmetic per process. The result is the median
ratio of interleaved pairs in rounds per second. Prints a Markdown table; --json also writes all
values.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from pairs import BINARY, MIN_PAIRS, measure

WARMUP, TIMED = 10, 20
# bytes of a row → least ratio with 4 processes
ROWS = {400_000: 2.0, 4_000_000: 0.95, 64_000_000: 0.95}
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


def gossamer(binary: Path, peers: int, row_bytes: int, encrypted: bool = False) -> float:
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
        "net.failure_timeout": 60,
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
    options = parse(parser)
    compare(
        options,
        "ring",
        ("ours", "gloo"),
        ROWS,
        lambda row_bytes: gossamer(options.binary, options.peers, row_bytes),
        lambda row_bytes: gloo(options.torch_python, options.peers, row_bytes),
    )


if __name__ == "__main__":
    main()
