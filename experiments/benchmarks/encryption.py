"""The price of encrypted links: a ring of processes with keys against the same ring without.

    .venv/bin/python experiments/benchmarks/encryption.py [--pairs 9] [--peers 4] [--json FILE]

Both sides are those of ring.py's `gossamer`: consensus, 10 rounds of warm-up, 20 timed rounds. The
result is the median ratio of interleaved pairs in rounds per second. If the program bench_tls was
built, the speed of one stream follows, by CPU time, so that other jobs on the machine count less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from pairs import BINARY, MIN_PAIRS, measure
from ring import TARGET_PEERS, gossamer

# bytes of a row → least ratio with 4 processes
ROWS = {4_000_000: 0.8, 64_000_000: 0.8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {MIN_PAIRS}")
    parser.add_argument("--peers", type=int, default=TARGET_PEERS)
    parser.add_argument("--json", type=Path, help="a file for all values")
    options = parser.parse_args()
    if options.pairs < MIN_PAIRS:
        parser.error(f"--pairs: at least {MIN_PAIRS}")
    if not options.binary.exists():
        parser.error(f"{options.binary} does not exist: build it, or give --binary")

    records = []
    rows = [
        "| row | processes | encrypted, ms/round | plain, ms/round | ratio (95 % interval) "
        "| target |",
        "|---|---|---|---|---|---|",
    ]
    for row_bytes, target in ROWS.items():
        pairs = measure(
            f"encrypted ring of {options.peers}, {row_bytes / 1e6:g} MB",
            target if options.peers == TARGET_PEERS else None,
            options.pairs,
            lambda row_bytes=row_bytes: gossamer(options.binary, options.peers, row_bytes, True),
            lambda row_bytes=row_bytes: gossamer(options.binary, options.peers, row_bytes),
        )
        ours, theirs = (
            sorted(pairs.ours)[options.pairs // 2],
            sorted(pairs.theirs)[options.pairs // 2],
        )
        rows.append(
            f"| {row_bytes / 1e6:g} MB | {options.peers} | {1e3 / ours:.2f} | {1e3 / theirs:.2f} "
            f"| {pairs.cells()} |"
        )
        records.append(pairs.record())
    print("\n".join(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n")
    stream = options.binary.with_name("bench_tls")
    if stream.exists():
        print()
        subprocess.run([str(stream)], check=True)


if __name__ == "__main__":
    main()
