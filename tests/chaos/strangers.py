#!/usr/bin/env python3
"""Measures the rounds of a ring while strangers attack the ports of its processes.

    tests/chaos/strangers.py --program build/release/bin/gossamer --peers 4 --times 5 [--keys]

A stranger can connect, and knows nothing of the run. The processes run on all cores but the last,
and the strangers on the last core: the rounds lose what the processes themselves do. Each attack is
measured in pairs: the rate of rounds before it (quiet) and during it. In each attack, one peer is
killed and restarted, and must rejoin the network. With --keys the processes have keys and encrypt,
and strangers also try handshakes of TLS.

Prints one line of JSON: for each attack the median ratio of the rates, attacked over quiet, by time
and (least, median, largest) by time of a processor, which other programs of the machine disturb
less; the growth of the largest process in MiB; of the timers that fired, how many were more than
50 ms late; and the longest time until a restarted process trains again. Exit code 1: a process
ended, the median ratio by time of a processor or memory is beyond the attack's bound, or a process
had more late timers in an attack than before it, and more than one in 1,000.
"""

import contextlib
import json
import multiprocessing
import os
import random
import re
import resource
import selectors
import socket
import ssl
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos_test_util import Trial, argument_parser, run, wait_until
from network_test_util import Keys, PeerProcess

MOST_LATE = 0.001  # of all timers
Addresses = list[tuple[str, int]]


@dataclass
class Target:
    addresses: Addresses
    key: Path  # of the stranger, which is no member


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


def wrong_version(target: Target) -> None:
    zeros = bytes(1 << 16)
    flood(target.addresses, 3, b"GOSh" + (999).to_bytes(2, "little") + bytes(2), lambda: zeros)


def random_bytes(target: Target) -> None:
    noise = random.Random(0).randbytes(1 << 20)
    flood(target.addresses, 8, b"", lambda: noise[random.randrange(1 << 19) :][: 1 << 16])


def probes(target: Target) -> None:
    """Eight bytes of a hello, and the answer is read."""
    while True:
        for address in target.addresses:
            if (each := connection(address)) is not None:
                with contextlib.suppress(OSError), each:
                    each.sendall(b"GOSh" + bytes(4))
                    each.shutdown(socket.SHUT_WR)
                    each.settimeout(1)
                    each.recv(4096)


def half_open(target: Target, total: int = 10_000) -> None:
    """Connections that send nothing. What a process closes is opened anew."""
    selector = selectors.DefaultSelector()
    while True:
        for _ in range(100):
            if len(selector.get_map()) < total:
                address = random.choice(target.addresses)
                each = socket.socket()
                each.setblocking(False)
                if each.connect_ex(address) in (0, 115):  # EINPROGRESS
                    selector.register(each, selectors.EVENT_READ)
        for key, _ in selector.select(0):
            selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]


def one_byte_a_second(target: Target) -> None:
    held: list[socket.socket] = []
    while True:
        held += [c for c in map(connection, target.addresses * 16) if c is not None]
        kept = []
        for each in held:
            try:
                each.send(b"G")
                kept.append(each)
            except OSError:
                each.close()
        held = kept
        time.sleep(1)


def make_key(file: Path) -> None:
    """Makes a key and its self-signed certificate, of the kind that peers have."""
    command = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=stranger"]
    subprocess.run([*command, "-keyout", file, "-out", file], check=True, capture_output=True)


def tls_context(key: Path) -> ssl.SSLContext:
    """Of a stranger, which has a key of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(key)
    return context


def tls_handshakes(target: Target) -> None:
    """Whole handshakes, with a key that is no member's."""
    context = tls_context(target.key)
    while True:
        for address in target.addresses:
            if (each := connection(address)) is not None:
                with contextlib.suppress(OSError), context.wrap_socket(each) as secured:
                    secured.recv(1)  # the alert


def first_messages(target: Target) -> None:
    """The first message of a handshake, to which the process answers with a signature."""
    outgoing = ssl.MemoryBIO()
    handshake = tls_context(target.key).wrap_bio(ssl.MemoryBIO(), outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    message = outgoing.read()
    while True:
        for address in target.addresses:
            if (each := connection(address)) is not None:
                with contextlib.suppress(OSError), each:
                    each.sendall(message)
                    each.settimeout(1)
                    each.recv(4096)


@dataclass
class Attack:
    run: Callable[[Target], None]
    least_ratio: float  # of rounds by time of a processor, attacked over quiet
    most_mib: float  # by which a process may grow
    needs_keys: bool = False


ATTACKS = {
    "wrong_version": Attack(wrong_version, 0.8, 16),
    "random_bytes": Attack(random_bytes, 0.9, 64),
    "probes": Attack(probes, 0.8, 16),
    "half_open": Attack(half_open, 0.9, 64),
    "one_byte_a_second": Attack(one_byte_a_second, 0.9, 64),
    "tls_handshakes": Attack(tls_handshakes, 0.8, 16, needs_keys=True),
    "first_messages": Attack(first_messages, 0.8, 16, needs_keys=True),
}


def timers_of(peer: PeerProcess) -> tuple[int, int] | None:
    """The timers of a process that were late, and all of them; None before its first report."""
    url = re.search(r"http://\S+:\d+/", peer.stderr)
    if url is None:
        return None
    with urllib.request.urlopen(url[0] + "metrics", timeout=60) as answer:
        text = answer.read().decode()
    counts = dict(re.findall(r"^gossamer_timer_delay_seconds_(\S+) (\d+)$", text, re.MULTILINE))
    if "count" not in counts:
        return None
    count = int(counts["count"])
    return count - int(counts['bucket{le="0.05"}']), count


@dataclass
class Rates:
    """Rounds of all peers by time, and by time of a processor."""

    per_second: float
    per_processor_second: float

    def over(self, other: "Rates") -> "Rates":
        return Rates(
            self.per_second / other.per_second,
            self.per_processor_second / other.per_processor_second,
        )


class AttackedTrial(Trial):
    """Processes with pages, which count their timers, and keys if --keys says so."""

    def __enter__(self) -> "AttackedTrial":
        self.net.sets.append("net.http=127.0.0.1:0")
        self.keys = Keys(self.net) if self.options.keys else None
        return self

    def launch(self, peer: int, resume: str = "none") -> PeerProcess:
        keys = [self.keys.file(peer)] if self.keys else []
        return self.net.start(str(peer), *keys, resume=resume)

    def timers(self) -> list[tuple[int, int]]:
        """For each process, its timers since its start: those that were late, and all of them."""
        return [
            wait_until(f"peer {k} counts its timers", lambda peer=peer: timers_of(peer))
            for k, peer in enumerate(self.peers)
        ]

    def processor_seconds(self) -> float:
        """Of all processes since their starts, in user mode and in the kernel."""
        ticks = 0
        for peer in self.peers:
            text = Path(f"/proc/{peer.process.pid}/stat").read_text(encoding="ascii")
            ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def measure(self, seconds: float) -> tuple[Rates, tuple[int, int]]:
        """The rates of rounds, and the late timers and all timers of the process with the most."""
        before = self.timers()
        began, used = time.monotonic(), self.processor_seconds()
        rate = self.rounds_per_second(self.all_peers, seconds)
        cores = (self.processor_seconds() - used) / (time.monotonic() - began)
        # What the page serves is a second old at most.
        changes = [
            (late - b_late, count - b_count)
            for (late, count), (b_late, b_count) in zip(self.timers(), before, strict=True)
        ]
        return Rates(rate, rate / cores), max(changes)


def attacker(attack: Attack, target: Target, core: int) -> None:
    os.sched_setaffinity(0, {core})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    attack.run(target)


def resident_mib(trial: Trial) -> float:
    """The resident memory of the largest process."""
    page = os.sysconf("SC_PAGE_SIZE")
    return max(
        int(Path(f"/proc/{peer.process.pid}/statm").read_text(encoding="ascii").split()[1])
        * page
        / 2**20
        for peer in trial.peers
    )


def seconds_to_rejoin(trial: AttackedTrial, victim: int) -> float:
    """Kills a peer and restarts it. Returns the time until it trains again."""
    trial.peers[victim].kill()
    began = time.monotonic()
    records = trial.round_records(victim)
    trial.peers[victim] = trial.launch(victim, resume="auto")
    wait_until(
        f"peer {victim} trains again: {trial.peers[victim].stderr}",
        lambda: trial.round_records(victim) > records + 1,
    )
    return time.monotonic() - began


def sum_of(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] + b[1]


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="the time of each measurement")
    parser.add_argument("--attack", choices=ATTACKS, action="append", dest="attacks")
    parser.add_argument("--keys", action="store_true", help="the processes have keys")
    options = parser.parse_args()
    attacks = options.attacks or [
        name for name, attack in ATTACKS.items() if options.keys or not attack.needs_keys
    ]
    if not options.keys and any(ATTACKS[name].needs_keys for name in attacks):
        parser.error("handshakes of TLS need --keys")
    cores = sorted(os.sched_getaffinity(0))
    report: dict[str, dict[str, object]] = {}
    passed = True
    with AttackedTrial(options) as trial:
        key = trial.folder / "stranger.key"
        make_key(key)
        os.sched_setaffinity(0, set(cores[:-1] or cores))  # the processes inherit it
        trial.start()
        for name in attacks:
            attack = ATTACKS[name]
            ratios: list[Rates] = []
            growth, rejoin = 0.0, 0.0
            timers = {"quiet": (0, 0), "attacked": (0, 0)}  # late ones, and all
            for index in range(options.times):
                target = Target([trial.net.address(peer) for peer in trial.all_peers], key)
                quiet, count = trial.measure(options.seconds)
                timers["quiet"] = sum_of(timers["quiet"], count)
                memory = resident_mib(trial)
                process = multiprocessing.get_context("fork").Process(
                    target=attacker, args=(attack, target, cores[-1]), daemon=True
                )
                process.start()
                try:
                    attacked, count = trial.measure(options.seconds)
                    timers["attacked"] = sum_of(timers["attacked"], count)
                    growth = max(growth, resident_mib(trial) - memory)
                    victim = trial.rng.randrange(options.peers)
                    rejoin = max(rejoin, seconds_to_rejoin(trial, victim))
                finally:
                    process.kill()
                    process.join()
                ratios.append(attacked.over(quiet))
                trial.show_progress(f"{name}: {index + 1} of {options.times}")
            by_processor = sorted(each.per_processor_second for each in ratios)
            spread = by_processor[0], statistics.median(by_processor), by_processor[-1]
            report[name] = {
                "rate": round(statistics.median(each.per_second for each in ratios), 3),
                "by_processor": [round(each, 3) for each in spread],
                "memory_mib": round(growth, 1),
                "late_timers": timers,
                "seconds_to_rejoin": round(rejoin, 2),
            }
            share = {when: late / max(1, count) for when, (late, count) in timers.items()}
            passed &= (
                spread[1] >= attack.least_ratio
                and growth <= attack.most_mib
                and share["attacked"] <= max(share["quiet"], MOST_LATE)
            )
        trial.wait(0.1)
    print(json.dumps(report))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(run(main))
