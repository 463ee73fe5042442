#!/usr/bin/env python3
"""Starts networks again and again, and tests that each becomes one network and trains.

    tests/chaos/random_starts.py --program build/release/bin/gossamer --starts 1000
    tests/chaos/random_starts.py --program build/release/bin/gossamer --starts 100 --kills 2

The processes know the addresses of one or two of them, have no ids, and are started in a random
order of seeds with random pauses. --kills processes of each network are killed while others are not
started yet, and as many when the network trains; each is started again at once, before the others
have noticed. A network has started when each of its peers trains, as one process of its own.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from chaos_test_util import Network, PeerProcess, network_parser, wait_until
from network_test_util import ReservedPort

ROUNDS = 3  # that each peer trains before a network counts as started


class Start:
    """A network that is being started."""

    def __init__(self, options: argparse.Namespace, folder: Path, seeds: list[str]) -> None:
        self.network = Network(
            options.program,
            folder,
            options.peers,
            "run.rounds=1000000000",
            "log.every=1",
            "topology.kind=complete",
            "net.failure_timeout=2",
            "net.rendezvous=",
            "net.listen=",
            f"net.seeds={json.dumps(seeds)}",
        )
        self.processes: list[PeerProcess] = []

    def start_process(self) -> None:
        network = self.network
        command = network.command("peer", "--out", str(network.out), "--resume", "auto")
        self.processes.append(PeerProcess("?", command, network.folder))

    def replace_process(self, number: int) -> None:
        self.processes.pop(number).kill()
        self.start_process()

    def has_trained(self) -> bool:
        for process in self.processes:
            assert process.process.poll() is None, process.stderr
        if self.claimed() != list(range(self.network.peers)):
            return False
        logs = [self.network.out / f"log-{peer}.jsonl" for peer in range(self.network.peers)]
        return all(log.is_file() and log.read_bytes().count(b'"round":') > ROUNDS for log in logs)

    def wait_until_it_trains(self) -> None:
        wait_until(lambda: "\n".join(each.stderr for each in self.processes), self.has_trained, 90)

    def claimed(self) -> list[int]:
        """The ids that the living processes have claimed."""
        lines = [line for each in self.processes for line in each.stderr.splitlines()]
        words = "gossamer: this process is peer "
        return sorted(int(line.split()[5]) for line in lines if line.startswith(words))

    def kill(self) -> None:
        for process in self.processes:
            process.kill()


def start_once(options: argparse.Namespace, draw: random.Random, folder: Path) -> float:
    """Returns the seconds from the first process until all peers train."""
    with ReservedPort() as one, ReservedPort() as two:
        start = Start(options, folder, [one] if draw.random() < 0.5 else [one, two])
        moments = sorted(draw.uniform(0, options.spread) for _ in range(options.peers))
        events: list[tuple[float, Callable[[], None]]] = [
            (moment, start.start_process) for moment in moments
        ]
        for _ in range(options.kills):
            moment = draw.uniform(moments[0], moments[-1])
            events.append(
                (moment, lambda: start.replace_process(draw.randrange(len(start.processes))))
            )
        begin = time.monotonic()
        try:
            for when, event in sorted(events, key=lambda each: each[0]):
                time.sleep(max(0.0, begin + when - time.monotonic()))
                event()
            start.wait_until_it_trains()
            seconds = time.monotonic() - begin
            for _ in range(options.kills):
                start.replace_process(draw.randrange(options.peers))
            if options.kills:
                start.wait_until_it_trains()
        finally:
            start.kill()
        return seconds


def main() -> int:
    parser = network_parser(__doc__)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=0, help="processes of each network")
    parser.add_argument("--spread", type=float, default=1.0, help="seconds of the starts")
    options = parser.parse_args()
    failed: list[int] = []
    seconds: list[float] = []
    for number in range(options.starts):
        draw = random.Random(f"{options.seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            try:
                seconds.append(start_once(options, draw, Path(folder)))
            except AssertionError as error:
                failed.append(number)
                print(f"start {number}: {error}", file=sys.stderr)
    report = {
        "starts": options.starts,
        "failed": failed,
        "mean_seconds": sum(seconds) / max(1, len(seconds)),
        "longest_seconds": max(seconds, default=0.0),
    }
    print(json.dumps(report))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
