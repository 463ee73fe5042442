"""A relay between processes, for tests: connections go through it, and it resets each after some bytes, by its seed."""

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

from network_test_util import Network, eventually

Life = Callable[[random.Random, int], int]


def reset(*sockets: socket.socket) -> None:
    """Closes with a reset: what is under way is lost."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class Relay:
    """Listens in place of `target`. `life` draws how many bytes its n-th connection, from 0 on, passes on, both ways together."""

    def __init__(self, target: tuple[str, int], seed: int, life: Life) -> None:
        self.target, self.life, self.cuts, self._connections = target, life, 0, 0
        self._draw = random.Random(seed)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"{host}:{port}"

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            reset(*self._open)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller = self._listener.accept()[0]
                try:
                    called = socket.create_connection(self.target)
                except OSError:
                    reset(caller)
                    continue
                with self._lock:
                    self._open += [caller, called]
                    left = [self.life(self._draw, self._connections)]
                    self._connections += 1
                for each in (caller, called):
                    with contextlib.suppress(OSError):
                        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((caller, called), (called, caller)):
                    threading.Thread(target=self._pass_on, args=(*pair, left), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, left: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                with self._lock:
                    data = data[: left[0]]
                    left[0] -= len(data)
                    cut = left[0] == 0
                    self.cuts += cut and bool(data)
                sink.sendall(data)
                if cut:
                    break
        reset(source, sink)


class Relays:
    """All processes of a network, one peer each, call each other through relays: start peer k with `settings(k)`."""

    def __init__(self, net: Network, seed: int, life: Life) -> None:
        self.net, self.seed, self.life = net, seed, life
        self.relays: list[Relay] = []

    def settings(self, peer: int) -> str:
        return f"net.rendezvous={self.net.folder / f'meet-{peer}'}"

    def connect(self) -> None:
        """When all are started: tells each where the others' relays are."""
        for peer in range(self.net.peers):
            own = self.net.folder / f"meet-{peer}" / f"peer-{peer}.addr"
            eventually(f"peer {peer} listens", own.is_file)
            address, run = own.read_text(encoding="utf-8").splitlines()[:2]
            host, _, port = address.rpartition(":")
            relay = Relay((host, int(port)), self.seed + peer, self.life)
            self.relays.append(relay)
            for other in range(self.net.peers):
                if other != peer:
                    whole = self.net.folder / f"meet-{other}" / f"peer-{peer}.addr"
                    part = whole.with_suffix(".part")
                    whole.parent.mkdir(exist_ok=True)
                    part.write_text(f"{relay.address}\n{run}\n", encoding="utf-8")
                    part.rename(whole)

    @property
    def cuts(self) -> int:
        return sum(relay.cuts for relay in self.relays)

    def __enter__(self) -> "Relays":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for relay in self.relays:
            relay.close()
