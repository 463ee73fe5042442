#!/usr/bin/env python3
"""Trains in network namespaces and drops the packets between some of them, without a reset.

    sudo tests/chaos/partitions.py --program build/release/bin/gossamer --partitions 20

Each process has its own namespace and address on one bridge. A partition isolates one process or
half of the processes by blackhole routes on one side or on both sides. It lasts longer than the
failure timeout or shorter. Afterwards all processes must form one network again.

Prints one line of JSON: the partitions by kind; how often a peer left rounds out to catch up; the
longest pause between two records of a peer in the larger part, and of a peer in the smaller part or
in one of two halves; the distances of rows between partitions and at the end (chaos_test_util.py).
Exit code 1: a process ended, the network did not recover within minutes, a pause is longer than
10 s, or a row or a loss deviates by more than 1 %. Needs root, iproute2 and nsenter; without them
it prints the reason, and the exit code is 77.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator

from chaos_test_util import (
    MAX_PAUSE_SECONDS,
    PeerProcess,
    Trial,
    argument_parser,
    run,
    wait_until,
)


def inside(name: str) -> list[str]:
    """The prefix that runs a command in a namespace.

    `ip -n` would mount /sys for each command, which a busy kernel may take minutes to unmount.
    """
    return ["nsenter", f"--net=/run/netns/{name}"]


def ip(*arguments: object, prefix: Iterable[str] = ()) -> None:
    subprocess.run(
        [*prefix, "ip", *map(str, arguments)], check=True, capture_output=True, text=True
    )


def address(peer: int) -> str:
    return f"10.213.7.{peer + 1}"


@contextlib.contextmanager
def namespaces(names: list[str], bridge: str) -> Iterator[None]:
    """A namespace for each name, connected by a bridge in another one. Deletes them at the end."""
    try:
        ip("netns", "add", bridge)
        ip("link", "add", "middle", "type", "bridge", prefix=inside(bridge))
        ip("link", "set", "middle", "up", prefix=inside(bridge))
        for k, name in enumerate(names):
            ip("netns", "add", name)
            ip(
                "link",
                "add",
                "outside",
                "type",
                "veth",
                "peer",
                "name",
                f"to{k}",
                "netns",
                bridge,
                prefix=inside(name),
            )
            ip("link", "set", f"to{k}", "master", "middle", "up", prefix=inside(bridge))
            ip("address", "add", f"{address(k)}/24", "dev", "outside", prefix=inside(name))
            ip("link", "set", "outside", "up", prefix=inside(name))
            ip("link", "set", "lo", "up", prefix=inside(name))
        yield
    finally:
        for name in (*names, bridge):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


class NamespacedTrial(Trial):
    names: list[str]

    def launch(self, peer: int) -> PeerProcess:
        return self.net.start(
            str(peer),
            f"net.listen={address(peer)}:0",
            "net.insecure=true",
            prefix=inside(self.names[peer]),
        )


def has_all_links(messages: str) -> bool:
    """Whether a peer has lost no link for good and reaches all others, by its messages.

    Where packets pass one way, an end may notice a loss later than the other end, or after the
    partition: then it never takes a peer for unreachable.
    """
    unreachable, reachable = messages.rfind(" unreachable; "), messages.rfind(" are reachable\n")
    losses, restorations = messages.count(" continues without it\n"), messages.count(" is back: ")
    return losses == restorations and unreachable <= reachable


def partition(trial: NamespacedTrial, failure_timeout: float) -> str:
    """Makes one partition, ends it, and waits until the network has recovered. Returns its kind."""
    rng = trial.rng
    count = rng.choice([1, len(trial.all_peers) // 2])
    minority = sorted(rng.sample(trial.all_peers, count))
    majority = [k for k in trial.all_peers if k not in minority]
    both_ways = rng.random() < 0.5
    long = rng.random() < 0.7
    routes = [(a, b) for a in minority for b in majority]
    routes += [(b, a) for a, b in routes] if both_ways else []
    trial.isolated = set(minority if len(minority) < len(majority) else trial.all_peers)
    for a, b in routes:
        ip("route", "add", "blackhole", f"{address(b)}/32", prefix=inside(trial.names[a]))
    trial.wait(failure_timeout * (rng.uniform(1.5, 3) if long else rng.uniform(0.1, 0.4)))
    for a, b in routes:
        ip("route", "delete", "blackhole", f"{address(b)}/32", prefix=inside(trial.names[a]))
    if long:

        def reunited() -> bool:
            trial.wait(0.05)
            return all(has_all_links(peer.stderr) for peer in trial.peers)

        wait_until("all peers are connected again", reunited)
    begin = {k: trial.round_records(k) for k in minority}

    def minority_trains() -> bool:
        trial.wait(0.05)
        return all(trial.round_records(k) > begin[k] for k in minority)

    wait_until("the isolated peers train again", minority_trains, 300)
    trial.all_reconnected()
    trial.wait(rng.uniform(0.5, 2))
    trial.sample(trial.all_peers)
    return f"{'long' if long else 'short'}, {'both ways' if both_ways else 'one way'}"


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument(
        "--failure-timeout", type=float, default=2, help="net.failure_timeout, in seconds"
    )
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
        print("needs root, iproute2 and nsenter", file=sys.stderr)
        return 77
    options.sets.append(f"net.failure_timeout={options.failure_timeout}")
    with NamespacedTrial(options) as trial:
        trial.names = [f"gossamer-{os.getpid()}-{k}" for k in trial.all_peers]
        with namespaces(trial.names, f"gossamer-{os.getpid()}-bridge"):
            trial.start()
            partitions: dict[str, int] = {}
            for index in range(options.partitions):
                kind = partition(trial, options.failure_timeout)
                partitions[kind] = partitions.get(kind, 0) + 1
                trial.show_progress(f"{index + 1} of {options.partitions}")
            catch_ups = sum(peer.stderr.count("leaves out rounds") for peer in trial.peers)
            status = trial.finish(
                {
                    "partitions": dict(sorted(partitions.items())),
                    "catch_ups": catch_ups,
                    "longest_pause_isolated_seconds": round(trial.longest_isolated_pause, 3),
                }
            )
            return 1 if trial.longest_isolated_pause > MAX_PAUSE_SECONDS else status


if __name__ == "__main__":
    sys.exit(run(main))
