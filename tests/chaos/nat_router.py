"""Network namespaces behind emulated firewalls and translators of addresses (NAT).

    with walled_namespaces([Wall.PUBLIC, Wall.SYMMETRIC, …]) as names: …

Machine k has the public address public_address(k), by itself or by its translator. Behind every
translator the machine has the same private address, as in the homes of many people. The router
carries the packets of TCP between the TUN devices of the namespaces. Needs root, iproute2, nsenter
and /dev/net/tun.
"""

import contextlib
import enum
import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from packet_router import Carrier, device_of, tunnelled_namespaces
from partitions import inside, ip

PRIVATE = "192.168.1.2"
PORT = 7000  # forwarded by a FULL_CONE translator
TCP, SYN, RST, ACK = 6, 0x02, 0x04, 0x10


class Wall(enum.Enum):
    PUBLIC = "public"  # every machine can call
    FIREWALL = "firewall"  # a public address; calls from outside are dropped
    REJECTING = "rejecting firewall"  # the same; calls are refused
    FULL_CONE = "full cone"  # NAT that forwards the port PORT: every machine can call it
    RESTRICTED = "restricted cone"  # NAT; a port is open to the addresses that it has called
    SYMMETRIC = "symmetric"  # NAT; each connection has a port of its own, open to its other end

    @property
    def translates(self) -> bool:
        return self in (Wall.FULL_CONE, Wall.RESTRICTED, Wall.SYMMETRIC)


def public_address(machine: int) -> str:
    return f"198.18.0.{machine + 1}"


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


@dataclass
class Segment:
    """A segment of TCP in a packet of IPv4."""

    source: bytes
    source_port: int
    target: bytes
    target_port: int
    packet: bytearray

    @staticmethod
    def parse(packet: bytes) -> "Segment | None":
        if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != TCP:
            return None
        begin = (packet[0] & 15) * 4
        ports = struct.unpack_from("!HH", packet, begin)
        return Segment(packet[12:16], ports[0], packet[16:20], ports[1], bytearray(packet))

    @property
    def flags(self) -> int:
        return self.packet[(self.packet[0] & 15) * 4 + 13]

    def encode(self) -> bytes:
        packet = self.packet
        begin = (packet[0] & 15) * 4
        packet[12:16], packet[16:20] = self.source, self.target
        struct.pack_into("!HH", packet, begin, self.source_port, self.target_port)
        struct.pack_into("!H", packet, 10, 0)
        struct.pack_into("!H", packet, 10, checksum(bytes(packet[:begin])))
        struct.pack_into("!H", packet, begin + 16, 0)
        head = struct.pack("!4s4sHH", self.source, self.target, TCP, len(packet) - begin)
        struct.pack_into("!H", packet, begin + 16, checksum(head + bytes(packet[begin:])))
        return bytes(packet)

    def refusal(self) -> bytes:
        """The reset that answers a first segment."""
        (number,) = struct.unpack_from("!I", self.packet, (self.packet[0] & 15) * 4 + 4)
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, TCP, 0, bytes(4), bytes(4))
        body = struct.pack("!HHIIBBHHH", 0, 0, 0, number + 1, 0x50, RST | ACK, 0, 0, 0)
        answer = bytearray(head + body)
        return Segment(
            self.target, self.target_port, self.source, self.source_port, answer
        ).encode()


@dataclass
class Gate:
    """What stands between a machine and the others."""

    wall: Wall
    public: bytes
    ports: dict[tuple[object, ...], int] = field(default_factory=dict)  # inside → outside
    inner: dict[int, int] = field(default_factory=dict)  # outside → inside
    open_to: set[tuple[object, ...]] = field(default_factory=set)
    next_port: int = 40000

    def outbound(self, segment: Segment) -> None:
        """Translates what the machine sends, and notes what may come in for it."""
        there = (segment.target, segment.target_port)
        if self.wall.translates:
            own: tuple[object, ...] = (segment.source_port,)
            key = (*own, *there) if self.wall is Wall.SYMMETRIC else own
            if key not in self.ports:
                forwarded = self.wall is Wall.FULL_CONE and segment.source_port == PORT
                self.ports[key] = PORT if forwarded else self.next_port
                self.next_port += 0 if forwarded else 1
                self.inner[self.ports[key]] = segment.source_port
            segment.source, segment.source_port = self.public, self.ports[key]
        seen = (segment.target,) if self.wall is Wall.RESTRICTED else there
        self.open_to.add((segment.source_port, *seen))

    def inbound(self, segment: Segment) -> bool:
        """Whether the machine receives the segment, which is translated."""
        port = segment.target_port
        seen = (segment.source, segment.source_port)
        if self.wall is Wall.FULL_CONE and port == PORT:
            self.inner[PORT] = PORT
        elif self.wall is Wall.RESTRICTED and (port, segment.source) not in self.open_to:
            return False
        elif self.wall in (Wall.FIREWALL, Wall.REJECTING, Wall.SYMMETRIC):
            if (port, *seen) not in self.open_to:
                return False
        if self.wall.translates:
            if port not in self.inner:
                return False
            segment.target_port = self.inner[port]
            segment.target = ipaddress.ip_address(PRIVATE).packed
        return True


class NatRouter(Carrier):
    """Carries segments between the machines, each through its gate."""

    def __init__(self, walls: list[Wall], tunnels: list[int]) -> None:
        self.gates = [
            Gate(wall, ipaddress.ip_address(public_address(k)).packed)
            for k, wall in enumerate(walls)
        ]
        self.dropped = 0
        super().__init__(tunnels)

    def accept(self, sender: int, packet: bytes) -> None:
        segment = Segment.parse(packet)
        if segment is None:
            return
        self.gates[sender].outbound(segment)
        receiver = next((k for k, g in enumerate(self.gates) if g.public == segment.target), None)
        if receiver is None or receiver == sender:
            self.dropped += 1
            return
        answer = segment.refusal() if self.gates[receiver].wall is Wall.REJECTING else None
        if self.gates[receiver].inbound(segment):
            self.send(receiver, segment.encode())
            return
        self.dropped += 1
        if answer and segment.flags & (SYN | ACK) == SYN:
            back = Segment.parse(answer)
            if back is not None and self.gates[sender].inbound(back):
                self.send(sender, back.encode())


@contextlib.contextmanager
def walled_namespaces(walls: list[Wall]) -> Iterator[list[str]]:
    """The names of namespaces, one for each machine."""
    addresses = [
        f"{PRIVATE if wall.translates else public_address(k)}/32" for k, wall in enumerate(walls)
    ]
    with tunnelled_namespaces(addresses) as (names, tunnels):
        for k, name in enumerate(names):
            ip("route", "add", "default", "dev", device_of(k), prefix=inside(name))
        router = NatRouter(walls, tunnels)
        try:
            yield names
        finally:
            router.stop()
