#!/usr/bin/env python3
"""Trains on machines behind firewalls and translators of addresses, where few can be called.

    sudo tests/chaos/nat.py --program build/release/bin/gossamer

Two machines of each kind (nat_router.py) form a complete graph: public, behind a firewall that
drops or refuses calls, and behind a full cone, a restricted cone and a symmetric NAT. The two
public ones are seeds. All links are encrypted. First a run of fixed length must end with the
parameters of the same run in one process. Then each public process in turn is killed with SIGKILL
while all train, and started again: no link between two other peers may be lost.

Prints one line of JSON: the seconds until all machines trained, and of the pairs of each two kinds
the ways on which they were connected. Exit code 1: the parameters differ, a pair did not connect,
or a link was lost. Needs root, iproute2, nsenter and /dev/net/tun; without them it prints the
reason, and the exit code is 77.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from chaos_test_util import Network, PeerProcess, network_parser, run, wait_until
from nat_router import PORT, Wall, public_address, walled_namespaces
from network_test_util import Keys
from packet_router import can_route
from partitions import inside

Links = dict[tuple[int, int], str]


class WalledNetwork:
    """A network of one process on each machine."""

    def __init__(self, options: argparse.Namespace, folder: Path, names: list[str]) -> None:
        self.walls, self.names, self.options = options.walls, names, options
        self.everyone = list(range(len(names)))
        self.relays = [k for k in self.everyone if self.walls[k] is Wall.PUBLIC]
        seeds = ", ".join(f'"{public_address(k)}:{PORT}"' for k in self.relays)
        self.net = Network(
            options.program.resolve(),
            folder,
            len(names),
            "topology.kind=complete",
            "log.every=10",
        )
        self.net.config.write_text(
            f"[net]\nseeds = [{seeds}]\njoin_timeout = 60\nfailure_timeout = 4\n",
            encoding="utf-8",
        )
        self.keys = Keys(self.net)
        self.peers: list[PeerProcess] = []

    def start(self, peer: int, *sets: str) -> PeerProcess:
        advertise = {
            Wall.FULL_CONE: f"{public_address(peer)}:{PORT}",
            Wall.RESTRICTED: "none",
            Wall.SYMMETRIC: "none",
        }.get(self.walls[peer])
        own = [self.keys.file(peer)]
        own += [f"net.listen=0.0.0.0:{PORT}", f"net.advertise={advertise}"] if advertise else []
        prefix = inside(self.names[peer])
        return self.net.start(str(peer), *own, *sets, prefix=prefix, resume="auto")

    def start_all(self, *sets: str) -> None:
        self.peers = [self.start(k, *sets) for k in self.everyone]

    def routes(self) -> Links:
        """The present way of each link (lower, higher), by the log of its lower end."""
        ways = dict.fromkeys(itertools.combinations(self.everyone, 2), "direct")
        for peer in self.everyone:
            for record in self.net.records(peer):
                if record.get("event") == "link_routed" and peer < record["neighbour"]:
                    ways[peer, record["neighbour"]] = record["route"]
        return ways

    def lost_links(self, killed: list[int]) -> list[str]:
        """The causes of losses between peers that were not killed."""
        return [
            record["cause"]
            for peer in self.everyone
            if peer not in killed
            for record in self.net.records(peer)
            if record.get("event") == "link_lost" and record["neighbour"] not in killed
        ]


def train_and_compare(network: WalledNetwork) -> tuple[float, Links]:
    begun = time.monotonic()
    network.start_all("run.rounds=60")
    network.net.wait_until_training(*network.everyone)
    seconds = time.monotonic() - begun
    codes = network.net.wait()
    assert set(codes) == {0}, [peer.stderr for peer in network.peers]
    alone = Network(
        network.net.program,
        network.net.folder / "alone",
        len(network.everyone),
        "topology.kind=complete",
        "log.every=10",
        "run.rounds=60",
    ).run_in_one_process()
    together = network.net.summary()
    assert together["final_hash"] == alone["final_hash"], "the parameters differ"
    return seconds, network.routes()


def kill_relays(network: WalledNetwork) -> int:
    """Kills each relay in turn. Returns the number of relayed links."""
    network.start_all("run.rounds=1000000000")
    net, everyone = network.net, network.everyone
    net.wait_until_training(*everyone)
    relayed = sum(way == "relayed" for way in network.routes().values())

    def records(peer: int) -> int:
        return (net.out / f"log-{peer}.jsonl").read_bytes().count(b'"record":"round"')

    for relay in network.relays:
        others = [k for k in everyone if k != relay]
        network.peers[relay].kill()
        before = {k: records(k) for k in others}
        wait_until(
            f"the others train without peer {relay}",
            lambda before=before, others=others: all(records(k) > before[k] + 2 for k in others),
        )
        lost = network.lost_links(network.relays[: network.relays.index(relay) + 1])
        assert not lost, lost
        network.peers[relay] = network.start(relay, "run.rounds=1000000000")
        wait_until(
            f"all mix with peer {relay} again",
            lambda relay=relay, others=others: all(
                f"peer {relay} is back" in network.peers[k].stderr
                or f"peer {relay} ({public_address(relay)}:{PORT}) is back"
                in network.peers[k].stderr
                for k in others
            ),
        )
    for peer in network.peers:
        peer.process.terminate()
    for peer in network.peers:
        peer.wait()
    return relayed


def trial(options: argparse.Namespace) -> int:
    kinds = [Wall(kind) for kind in options.kinds] if options.kinds else list(Wall)
    # The public machines have the lowest id and the highest, so either end of a pair is one.
    options.walls = [
        wall for k in range(options.machines) for wall in (kinds if k % 2 == 0 else kinds[::-1])
    ]
    with walled_namespaces(options.walls) as names, tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Counter[str]] = {}
        first = WalledNetwork(options, Path(folder) / "fixed", names)
        second = WalledNetwork(options, Path(folder) / "killed", names)
        try:
            seconds, routes = train_and_compare(first)
            relayed = kill_relays(second)
        finally:
            first.net.kill()
            second.net.kill()
        for (a, b), way in sorted(routes.items()):
            pair = sorted((options.walls[a], options.walls[b]), key=list(Wall).index)
            kinds_of_pair = " – ".join(wall.value for wall in pair)
            ways.setdefault(kinds_of_pair, Counter())[way] += 1
        report: dict[str, Any] = {
            "machines": len(names),
            "seconds_to_training": round(seconds, 1),
            "relays_killed": len(second.relays),
            "relayed_links": relayed,
            "ways": {pair: dict(counts) for pair, counts in ways.items()},
        }
        print(json.dumps(report, ensure_ascii=False))
    return 0


def main() -> int:
    parser = network_parser(__doc__)
    parser.add_argument("--machines", type=int, default=2, help="of each kind")
    parser.add_argument("--kinds", nargs="*", choices=[wall.value for wall in Wall], default=None)
    options = parser.parse_args()
    if not can_route():
        return 77
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return run(lambda: trial(options))


if __name__ == "__main__":
    sys.exit(main())
