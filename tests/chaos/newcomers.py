#!/usr/bin/env python3
"""Kills each process of an open run in turn (SIGKILL), while others join and leave.

    tests/chaos/newcomers.py --program build/release/bin/gossamer --peers 16

Half of the peers begin; all know one address, which the first one has. For each peer in turn,
another one joins for the first time, or leaves for good and comes back. Meanwhile, within --spread
seconds, the peer is killed and started again. All peers minimise different quadratics by gradient
tracking.

Prints one line of JSON: the kills, the arrivals and departures, the longest time from the start of
a process until it joins, and the distance to the optimum of all peers at the end. Exit code 1: a
process ended, did not join or did not leave, or at the end a peer takes no part, does not reach
another one, or is farther than 1 % from the optimum.
"""

import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chaos_test_util import Network, PeerProcess, network_parser, wait_until
from network_test_util import ReservedPort
from reference_run import QUADRATICS, TOLERANCE

SETTLED = 20  # records of each peer after the last change, before the end


class Trial:
    """A network and what was done to it."""

    def __init__(self, options: Any, folder: Path, seed: str) -> None:
        self.options = options
        self.draw = random.Random(options.seed)
        self.net = Network(
            options.program,
            folder,
            options.peers,
            "run.open=true",
            f'run.participants=["0-{options.peers // 2 - 1}"]',
            "run.rounds=1000000000",
            f"log.every={options.every}",
            "log.sketch=off",
            "topology.kind=base",
            "algorithm.kind=gradient_tracking",
            *QUADRATICS,
            "data.dimension=600",  # a peer that is alone for a while is not far ahead
            "net.failure_timeout=2",
            "net.rendezvous=",
            "net.listen=",
            f"net.seeds={json.dumps([seed])}",
        )
        self.running: dict[int, PeerProcess] = {}
        self.longest_join, self.departures, self.arrivals = 0.0, 0, 0

    def start(self, peer: int) -> None:
        self.running[peer] = self.net.start(str(peer), resume="auto")

    def wait_until_joined(self, peer: int, began: float) -> None:
        process = self.running[peer]

        def joined() -> bool:
            code = process.process.poll()
            assert code is None, f"peer {peer} ended with {code}: {process.stderr}"
            return "joins in round" in process.stderr

        wait_until(lambda: f"peer {peer} joins; it printed: {process.stderr}", joined)
        self.longest_join = max(self.longest_join, time.monotonic() - began)

    def join(self, peer: int) -> float:
        """Starts a peer that takes no part, after it has left if it takes part."""
        if peer in self.running:
            self.running[peer].process.send_signal(signal.SIGUSR1)
            code = self.running[peer].wait()
            assert code == 0, f"{code}: {self.running[peer].stderr}"
            self.departures += 1
        self.arrivals += 1
        self.start(peer)
        return time.monotonic()

    def kill(self, victim: int) -> None:
        """Kills a peer while another one joins, and starts it again."""
        half = self.options.peers // 2
        newcomer = (victim + half) % self.options.peers
        began = self.join(newcomer)
        time.sleep(self.draw.uniform(0, self.options.spread))
        self.running[victim].kill()
        again = time.monotonic()
        self.start(victim)
        self.wait_until_joined(newcomer, began)
        self.wait_until_joined(victim, again)

    def last(self, peer: int, field: str) -> Any:
        """The value of the last event of a log that has one."""
        log = self.net.out / f"log-{peer}.jsonl"
        lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.is_file() else []
        events = [json.loads(line) for line in lines if '"record":"membership"' in line]
        values = [event[field] for event in events if event.get(field) is not None]
        return values[-1] if values else None

    def known(self) -> list[tuple[Any, Any]]:
        """By peer: the participants, and how many peers it reaches, by its log."""
        return [
            (self.last(peer, "participants"), self.last(peer, "reachable_peers"))
            for peer in range(self.options.peers)
        ]

    def is_whole(self) -> bool:
        peers = self.options.peers
        return self.known() == [(f"0-{peers - 1}", peers)] * peers

    def records(self, peer: int) -> int:
        log = self.net.out / f"log-{peer}.jsonl"
        return log.read_bytes().count(b'"record":"round"')

    def settle(self) -> None:
        wait_until(lambda: f"all reach all: {self.known()}", self.is_whole)
        before = {peer: self.records(peer) for peer in self.running}
        wait_until(
            "all peers train",
            lambda: all(self.records(peer) >= before[peer] + SETTLED for peer in before),
        )

    def end(self) -> dict[str, Any]:
        for process in self.running.values():
            process.process.send_signal(signal.SIGINT)
        for peer, process in self.running.items():
            assert process.wait() == 130, f"peer {peer}: {process.stderr}"
        return self.net.summary()


def run(options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, ReservedPort() as seed:
        trial = Trial(options, Path(folder), seed)
        try:
            for peer in range(options.peers // 2):
                trial.start(peer)
            trial.net.wait_until_training(*range(options.peers // 2))
            for victim in range(options.peers):
                trial.kill(victim)
            trial.settle()
            summary = trial.end()
        except AssertionError:
            for process in trial.net.processes:
                print(f"peer {process.ids}:\n{process.stderr}", file=sys.stderr)
            raise
        finally:
            trial.net.kill()
        assert summary["lost_peers"] == [] and "absent_peers" not in summary, summary
        distance = summary["final"]["distance_to_optimum"]
        assert distance <= TOLERANCE, f"the distance to the optimum is {distance:.3g}"
        return {
            "peers": options.peers,
            "kills": options.peers,
            "arrivals": trial.arrivals,
            "departures": trial.departures,
            "longest_join_seconds": round(trial.longest_join, 2),
            "distance_to_optimum": distance,
        }


def main() -> int:
    parser = network_parser(__doc__)
    parser.set_defaults(peers=16)
    parser.add_argument("--every", type=int, default=50, help="rounds between records")
    parser.add_argument("--spread", type=float, default=0.5, help="seconds")
    options = parser.parse_args()
    try:
        print(json.dumps(run(options)))
    except AssertionError as error:
        print(json.dumps({"failed": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
