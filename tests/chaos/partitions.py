#!/usr/bin/env python3
"""Trains in network namespaces, and lets routes between them vanish and return: no reset is seen, packets just do not arrive.

    sudo tests/chaos/partitions.py --program build/release/bin/gossamer --partitions 20

Each process has a namespace and an address of its own on one bridge. A partition is blackhole routes on one side, or on both: half
of the processes are out of the others' reach, or one is, for longer than the silence, or for less. Afterwards all must be one
network again. Prints one line of JSON: partitions, longest pause between two records of a peer that was in the larger part, and of
one in the smaller part or in one of two halves (who runs ahead, having more of the machine to itself, then waits until the others are
where it is, as docs/RELIABILITY.md says), and how far off peers were between partitions and in the end (chaos_test_util.py). Exit code 1:
a process ended by itself, they did not find together within minutes, a pause in the larger part is longer than 10 s, or a row or a
loss is off by more than one percent. Needs root, iproute2 and nsenter; without them exit code 77, and the reason.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator

from chaos_test_util import Peer, Trial, eventually, parser, run


def inside(name: str) -> list[str]:
    """What a command in this namespace begins with. `ip -n` would mount /sys anew for each, and a kernel whose processors are all
    busy may take minutes to unmount it."""
    return ["nsenter", f"--net=/run/netns/{name}"]


def ip(*words: object, prefix: Iterable[str] = ()) -> None:
    subprocess.run([*prefix, "ip", *map(str, words)], check=True, capture_output=True, text=True)


def address(peer: int) -> str:
    return f"10.213.7.{peer + 1}"


@contextlib.contextmanager
def namespaces(names: list[str], bridge: str) -> Iterator[None]:
    """One for each name, joined by a bridge in one more; gone afterwards, with all that is in them."""
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

    def launch(self, peer: int) -> Peer:
        return self.net.start(
            str(peer),
            f"net.listen={address(peer)}:0",
            "net.insecure=true",
            prefix=inside(self.names[peer]),
        )


def part(trial: NamespacedTrial, silence: float) -> str:
    """One partition, and its end."""
    chance = trial.chance
    all_within = f"all {len(trial.everybody)} peers are within reach"
    count = chance.choice([1, len(trial.everybody) // 2])
    here = sorted(chance.sample(trial.everybody, count))
    there = [k for k in trial.everybody if k not in here]
    both = chance.random() < 0.5
    long = chance.random() < 0.7
    holes = [(a, b) for a in here for b in there] + (
        [(b, a) for a in here for b in there] if both else []
    )
    said = [trial.peers[k].said.count(all_within) for k in trial.everybody]
    trial.apart = set(here if len(here) < len(there) else trial.everybody)
    for a, b in holes:
        ip("route", "add", "blackhole", f"{address(b)}/32", prefix=inside(trial.names[a]))
    trial.wait(silence * (chance.uniform(1.5, 3) if long else chance.uniform(0.1, 0.4)))
    for a, b in holes:
        ip("route", "delete", "blackhole", f"{address(b)}/32", prefix=inside(trial.names[a]))
    if long:

        def together() -> bool:
            trial.wait(0.05)
            return all(trial.peers[k].said.count(all_within) > said[k] for k in trial.everybody)

        eventually("all find together", together)
    begin = {k: trial.records(k) for k in here}

    def all_go_on() -> bool:
        trial.wait(0.05)
        return all(trial.records(k) > begin[k] for k in here)

    eventually("who was cut off goes on", all_go_on, 300)
    trial.reunite()
    trial.wait(chance.uniform(0.5, 2))
    trial.stand(trial.everybody)
    return f"{'long' if long else 'short'}, {'both ways' if both else 'one way'}"


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--partitions", type=int, default=10)
    words.add_argument("--silence", type=float, default=2, help="net.failure_timeout, in seconds")
    options = words.parse_args()
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
        print("needs root, iproute2 and nsenter", file=sys.stderr)
        return 77
    options.sets.append(f"net.failure_timeout={options.silence}")
    with NamespacedTrial(options) as trial:
        trial.names = [f"gossamer-{os.getpid()}-{k}" for k in trial.everybody]
        with namespaces(trial.names, f"gossamer-{os.getpid()}-bridge"):
            trial.start()
            done: dict[str, int] = {}
            for index in range(options.partitions):
                kind = part(trial, options.silence)
                done[kind] = done.get(kind, 0) + 1
                trial.tell(f"{index + 1} of {options.partitions}")
            return trial.settle(
                {
                    "partitions": dict(sorted(done.items())),
                    "longest_pause_apart_seconds": round(trial.longest_apart, 3),
                }
            )


if __name__ == "__main__":
    sys.exit(run(main))
