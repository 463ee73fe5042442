#!/usr/bin/env python3
"""Measures the rounds of a ring while strangers attack the ports of its processes.

    tests/chaos/strangers.py --program build/release/bin/gossamer --peers 4 --times 5

A stranger can connect, and knows nothing of the run. The processes run on all cores but the last,
and the strangers on the last core: the rounds lose what the processes themselves do. Each attack is
measured in pairs: the rate of rounds before it (quiet) and during it. In each attack, one peer is
killed and restarted, and must rejoin the network.

Prints one line of JSON: for each attack the median ratio of the rates, attacked over quiet; the
growth of the largest process in MiB; and the longest time until a restarted process trains again.
Exit code 1: a process ended, a ratio is below 0.8, or memory grew by more than the attack's bound.
"""

import contextlib
import json
import multiprocessing
import os
import random
import resource
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chaos_test_util import Trial, argument_parser, run, wait_until

LEAST_RATIO = 0.8
Addresses = list[tuple[str, int]]


def connection(address: tuple[str, int]) -> socket.socket | None:
    """A connection; None if the process refuses it."""
    try:
        return socket.create_connection(address, timeout=1)
    except OSError:
        return None


def flood(addresses: Addresses, connections: int, first: bytes, data: Callable[[], bytes]) -> None:
    """Keeps `connections` open to each address, sends `first` and then `data()` without a pause."""
    selector = selectors.DefaultSelector()
    while True:
        wanted = {address: connections for address in addresses}
        for key in selector.get_map().values():
            wanted[key.data] -= 1
        for address, missing in wanted.items():
            for _ in range(missing):
                if (each := connection(address)) is not None:
                    with contextlib.suppress(OSError):
                        each.sendall(first)
                        each.setblocking(False)
                        selector.register(each, selectors.EVENT_WRITE, address)
        for key, _ in selector.select(0.01):
            try:
                key.fileobj.send(data())  # type: ignore[union-attr]
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]


def wrong_version(addresses: Addresses) -> None:
    zeros = bytes(1 << 16)
    flood(addresses, 3, b"GOSh" + (999).to_bytes(2, "little") + bytes(2), lambda: zeros)


def random_bytes(addresses: Addresses) -> None:
    noise = random.Random(0).randbytes(1 << 20)
    flood(addresses, 8, b"", lambda: noise[random.randrange(1 << 19) :][: 1 << 16])


def probes(addresses: Addresses) -> None:
    """Eight bytes of a hello, and the answer is read."""
    while True:
        for address in addresses:
            if (each := connection(address)) is not None:
                with contextlib.suppress(OSError), each:
                    each.sendall(b"GOSh" + bytes(4))
                    each.shutdown(socket.SHUT_WR)
                    each.settimeout(1)
                    each.recv(4096)


def half_open(addresses: Addresses, total: int = 10_000) -> None:
    """Connections that send nothing. What a process closes is opened anew."""
    selector = selectors.DefaultSelector()
    while True:
        for _ in range(100):
            if len(selector.get_map()) < total:
                address = random.choice(addresses)
                each = socket.socket()
                each.setblocking(False)
                if each.connect_ex(address) in (0, 115):  # EINPROGRESS
                    selector.register(each, selectors.EVENT_READ)
        for key, _ in selector.select(0):
            selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]


def one_byte_a_second(addresses: Addresses) -> None:
    held: list[socket.socket] = []
    while True:
        held += [c for c in map(connection, addresses * 16) if c is not None]
        kept = []
        for each in held:
            try:
                each.send(b"G")
                kept.append(each)
            except OSError:
                each.close()
        held = kept
        time.sleep(1)


# The attack, and the MiB by which a process may grow.
ATTACKS: dict[str, tuple[Callable[[Addresses], None], float]] = {
    "wrong_version": (wrong_version, 16),
    "random_bytes": (random_bytes, 64),
    "probes": (probes, 16),
    "half_open": (half_open, 64),
    "one_byte_a_second": (one_byte_a_second, 64),
}


def attacker(attack: Callable[[Addresses], None], addresses: Addresses, core: int) -> None:
    os.sched_setaffinity(0, {core})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    attack(addresses)


def resident_mib(trial: Trial) -> float:
    """The resident memory of the largest process."""
    page = os.sysconf("SC_PAGE_SIZE")
    return max(
        int(Path(f"/proc/{peer.process.pid}/statm").read_text(encoding="ascii").split()[1])
        * page
        / 2**20
        for peer in trial.peers
    )


def seconds_to_rejoin(trial: Trial, victim: int) -> float:
    """Kills a peer and restarts it. Returns the time until it trains again."""
    trial.peers[victim].kill()
    began = time.monotonic()
    records = trial.round_records(victim)
    trial.peers[victim] = trial.net.start(str(victim), resume="auto")
    wait_until(
        f"peer {victim} trains again: {trial.peers[victim].stderr}",
        lambda: trial.round_records(victim) > records + 1,
    )
    return time.monotonic() - began


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="the time of each measurement")
    parser.add_argument("--attack", choices=ATTACKS, action="append", dest="attacks")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    report: dict[str, dict[str, float]] = {}
    passed = True
    with Trial(options) as trial:
        os.sched_setaffinity(0, set(cores[:-1] or cores))  # the processes inherit it
        trial.start()
        for name in options.attacks or ATTACKS:
            attack, bound = ATTACKS[name]
            ratios, growth, rejoin = [], 0.0, 0.0
            for index in range(options.times):
                addresses = [trial.net.address(peer) for peer in trial.all_peers]
                quiet = trial.rounds_per_second(trial.all_peers, options.seconds)
                memory = resident_mib(trial)
                process = multiprocessing.get_context("fork").Process(
                    target=attacker, args=(attack, addresses, cores[-1]), daemon=True
                )
                process.start()
                try:
                    attacked = trial.rounds_per_second(trial.all_peers, options.seconds)
                    growth = max(growth, resident_mib(trial) - memory)
                    victim = trial.rng.randrange(options.peers)
                    rejoin = max(rejoin, seconds_to_rejoin(trial, victim))
                finally:
                    process.kill()
                    process.join()
                ratios.append(attacked / quiet)
                trial.show_progress(f"{name}: {index + 1} of {options.times}")
            report[name] = {
                "rate": round(statistics.median(ratios), 3),
                "least": round(min(ratios), 3),
                "memory_mib": round(growth, 1),
                "seconds_to_rejoin": round(rejoin, 2),
            }
            passed &= report[name]["rate"] >= LEAST_RATIO and growth <= bound
        trial.wait(0.1)
    print(json.dumps(report))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(run(main))
