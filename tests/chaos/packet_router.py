"""Network namespaces that one router connects, with latency, jitter and bandwidth of its own.

    with routed_namespaces(Emulation(4, latencies, uplink=20)) as names: …

Each namespace has a TUN device, and this process carries the packets between them: up-link of the
sender, path, down-link of the receiver, each serving packets in the order of arrival, then the
latency and a uniform delay that keeps the order. A packet that would wait for longer than
LONGEST_QUEUE is dropped. Needs root, iproute2, nsenter and /dev/net/tun.
"""

import contextlib
import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from partitions import inside, ip

LONGEST_QUEUE = 0.5  # seconds
SMALL_PACKET = 100  # bytes
SET_INTERFACE, TUN_WITHOUT_HEADER = 0x400454CA, 0x0001 | 0x1000  # TUNSETIFF, IFF_TUN | IFF_NO_PI


@dataclass
class Emulation:
    """A network of `peers` machines. Bandwidths are in Mbit/s, 0: unlimited; times in ms."""

    peers: int
    latency: dict[tuple[int, int], float]  # of each pair (lower, higher), one way
    jitter: float = 0
    path: dict[tuple[int, int], float] = field(default_factory=dict)  # of each pair, each way
    uplink: float = 0
    downlink: float = 0
    # Acknowledgements do not wait behind data, as in the fair queues of Linux (fq_codel): two
    # streams against each other then fill a path.
    fair: bool = False


def address(peer: int) -> str:
    return f"10.213.8.{peer + 1}"


class Carrier:
    """Carries packets between TUN devices, in a thread of its own until stop()."""

    def __init__(self, tunnels: list[int]) -> None:
        self.tunnels = tunnels
        self._waiting: list[tuple[float, int, int, bytes]] = []  # (when, number, receiver, packet)
        self._numbers = itertools.count()
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def accept(self, sender: int, packet: bytes) -> None:
        """Sends the packet on, or does not."""
        raise NotImplementedError

    def send(self, receiver: int, packet: bytes, when: float = 0) -> None:
        heapq.heappush(self._waiting, (when, next(self._numbers), receiver, packet))

    def stop(self) -> None:
        os.close(self._wake[1])
        self._thread.join()
        os.close(self._wake[0])

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, _, receiver, packet = heapq.heappop(self._waiting)
                with contextlib.suppress(OSError):
                    os.write(self.tunnels[receiver], packet)
            timeout = max(0.0, self._waiting[0][0] - now) if self._waiting else None
            readable, _, _ = select.select([*self.tunnels, self._wake[0]], [], [], timeout)
            if self._wake[0] in readable:
                return
            for tunnel in readable:
                self.accept(self.tunnels.index(tunnel), os.read(tunnel, 65536))


class Router(Carrier):
    """Gives packets the properties of the emulated network."""

    def __init__(self, emulation: Emulation, tunnels: list[int]) -> None:
        self.emulation = emulation
        self.dropped = 0
        self._free: defaultdict[tuple[object, ...], float] = defaultdict(float)
        self._last: defaultdict[tuple[int, int], float] = defaultdict(float)
        self._rng = random.Random(1)
        super().__init__(tunnels)

    def accept(self, sender: int, packet: bytes) -> None:
        receiver = packet[19] - 1 if len(packet) >= 20 and packet[0] >> 4 == 4 else -1
        if not 0 <= receiver < len(self.tunnels):
            return  # IPv6's announcements
        pair = (min(sender, receiver), max(sender, receiver))
        overtakes = self.emulation.fair and len(packet) <= SMALL_PACKET
        now = when = time.monotonic()
        for capacity, mbit_s in (
            (("up", sender), self.emulation.uplink),
            ((sender, receiver), self.emulation.path.get(pair, 0)),
            (("down", receiver), self.emulation.downlink),
        ):
            if mbit_s == 0 or overtakes:
                continue
            begin = max(when, self._free[capacity])
            if begin - now > LONGEST_QUEUE:
                self.dropped += 1
                return
            when = self._free[capacity] = begin + len(packet) * 8 / (mbit_s * 1e6)
        jitter = self._rng.uniform(0, self.emulation.jitter)
        when += (self.emulation.latency[pair] + jitter) / 1e3
        if not overtakes:
            when = self._last[sender, receiver] = max(when, self._last[sender, receiver])
        self.send(receiver, packet, when)


def device_of(peer: int) -> str:
    return f"gt{os.getpid() % 100000}x{peer}"


def open_tunnel(device: str, namespace: str, address_and_prefix: str) -> int:
    """A TUN device in the namespace; its packets are read from the file descriptor."""
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(tunnel, SET_INTERFACE, struct.pack("16sH", device.encode(), TUN_WITHOUT_HEADER))
    ip("link", "set", device, "netns", namespace)
    ip("address", "add", address_and_prefix, "dev", device, prefix=inside(namespace))
    for name in (device, "lo"):
        ip("link", "set", name, "up", prefix=inside(namespace))
    return tunnel


def can_route() -> bool:
    """Prints what is missing, if it cannot."""
    tools = all(map(shutil.which, ("ip", "nsenter")))
    if os.geteuid() == 0 and Path("/dev/net/tun").exists() and tools:
        return True
    print("needs root, iproute2, nsenter and /dev/net/tun", file=sys.stderr)
    return False


@contextlib.contextmanager
def tunnelled_namespaces(addresses: list[str]) -> Iterator[tuple[list[str], list[int]]]:
    """A namespace with a TUN device for each address ("10.0.0.1/24"): its name, and the device."""
    names = [f"gossamer-{os.getpid()}-{k}" for k in range(len(addresses))]
    tunnels: list[int] = []
    try:
        for k, (name, own) in enumerate(zip(names, addresses, strict=True)):
            ip("netns", "add", name)
            tunnels.append(open_tunnel(device_of(k), name, own))
        yield names, tunnels
    finally:
        for tunnel in tunnels:
            os.close(tunnel)
        for name in names:
            ip("netns", "delete", name)


@contextlib.contextmanager
def routed_namespaces(emulation: Emulation) -> Iterator[list[str]]:
    """The names of namespaces, one for each peer, in the emulated network."""
    addresses = [f"{address(k)}/24" for k in range(emulation.peers)]
    with tunnelled_namespaces(addresses) as (names, tunnels):
        router = Router(emulation, tunnels)
        try:
            yield names
        finally:
            router.stop()
