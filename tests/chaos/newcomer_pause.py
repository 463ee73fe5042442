#!/usr/bin/env python3
"""Measures how long the peers of an open run wait for a newcomer with a large row.

    tests/chaos/newcomer_pause.py --program build/release/bin/gossamer --values 16000000

Three peers on a ring average rows of --values float32 values, without training; a fourth one joins,
which has to receive such a row first. Prints one line of JSON for all --times networks: the median
round before the newcomer, the longest round of the three from the one in which it joins to the
third after that, and their difference, the pause. Exit code 1: a pause is longer than a round and
the transfer of a row, for which half a round is taken: a peer receives two rows in a round.
"""

import argparse
import json
import signal
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from chaos_test_util import Network, network_parser, wait_until

BEFORE = 12  # rounds of each peer before the newcomer is started, and after it has joined


def durations(records: list[dict[str, Any]]) -> dict[int, float]:
    """Of each round, by its index."""
    rounds = [record for record in records if record["record"] == "round"]
    return {
        after["round"] - 1: after["seconds"] - before["seconds"]
        for before, after in zip(rounds, rounds[1:], strict=False)
    }


def measure(options: argparse.Namespace, folder: Path) -> tuple[float, float]:
    """The median round before, and the longest of those with the newcomer's first rounds."""
    net = Network(
        options.program,
        folder,
        4,
        "run.open=true",
        'run.participants=["0-2"]',
        "run.rounds=1000000000",
        "log.every=1",
        "log.sketch=off",
        "topology.kind=ring",
        "algorithm.kind=consensus",
        f"algorithm.length={options.values}",
    )

    def rounds(peer: int) -> int:
        log = net.out / f"log-{peer}.jsonl"
        return log.read_bytes().count(b'"record":"round"') if log.is_file() else 0

    try:
        for peer in range(3):
            net.start(str(peer))
        wait_until("the three average", lambda: all(rounds(k) > BEFORE for k in range(3)))
        net.start("3")
        wait_until("the newcomer averages", lambda: rounds(3) > BEFORE)
        for process in net.processes:
            process.process.send_signal(signal.SIGINT)
        for process in net.processes:
            process.wait()
        before, joining = [], []
        for peer in range(3):
            records = net.records(peer)
            first = next(r["round"] for r in records if r.get("event") == "participants")
            by_round = durations(records)
            before += [seconds for t, seconds in by_round.items() if 1 < t < first - 1]
            joining += [by_round[t] for t in range(first, first + 3)]
        return statistics.median(before), max(joining)
    finally:
        net.kill()


def main() -> int:
    parser = network_parser(__doc__)
    parser.add_argument("--values", type=int, default=16_000_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    results = []
    for _ in range(options.times):
        with tempfile.TemporaryDirectory() as folder:
            results.append(measure(options, Path(folder)))
    report = {
        "values": options.values,
        "median_round_seconds": [round(before, 3) for before, _ in results],
        "longest_joining_seconds": [round(joining, 3) for _, joining in results],
        "pause_seconds": [round(joining - before, 3) for before, joining in results],
    }
    print(json.dumps(report))
    return int(any(joining - before > 1.5 * before for before, joining in results))


if __name__ == "__main__":
    sys.exit(main())
