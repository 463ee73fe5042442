"""A TCP proxy for tests. It resets each connection after a number of bytes, drawn from its seed."""

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

from network_test_util import Network, wait_until

# (random generator, number of the connection from 0 on) → bytes until its reset
ByteLimit = Callable[[random.Random, int], int]


def reset(*sockets: socket.socket) -> None:
    """Closes the sockets with a reset, so that data in flight are lost."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class ResetProxy:
    """Forwards connections to `target`. `byte_limit` counts both directions of a connection."""

    def __init__(self, target: tuple[str, int], seed: int, byte_limit: ByteLimit) -> None:
        self.target, self.byte_limit, self.cuts, self._connections = target, byte_limit, 0, 0
        self._rng = random.Random(seed)
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
                client = self._listener.accept()[0]
                try:
                    server = socket.create_connection(self.target)
                except OSError:
                    reset(client)
                    continue
                with self._lock:
                    self._open += [client, server]
                    left = [self.byte_limit(self._rng, self._connections)]
                    self._connections += 1
                for each in (client, server):
                    with contextlib.suppress(OSError):
                        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(*pair, left), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, left: list[int]) -> None:
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


class ResetProxies:
    """A proxy before each process of a network. Start the process of peer k with `settings(k)`."""

    def __init__(self, net: Network, seed: int, byte_limit: ByteLimit) -> None:
        self.net, self.seed, self.byte_limit = net, seed, byte_limit
        self.proxies: list[ResetProxy] = []

    def settings(self, peer: int) -> str:
        return f"net.rendezvous={self.net.folder / f'meet-{peer}'}"

    def connect(self) -> None:
        """After all processes are started: gives each one the addresses of the others' proxies."""
        for peer in range(self.net.peers):
            own = self.net.folder / f"meet-{peer}" / f"peer-{peer}.addr"
            wait_until(f"peer {peer} listens", own.is_file)
            address, run = own.read_text(encoding="utf-8").splitlines()[:2]
            host, _, port = address.rpartition(":")
            proxy = ResetProxy((host, int(port)), self.seed + peer, self.byte_limit)
            self.proxies.append(proxy)
            for other in range(self.net.peers):
                if other != peer:
                    path = self.net.folder / f"meet-{other}" / f"peer-{peer}.addr"
                    part = path.with_suffix(".part")
                    path.parent.mkdir(exist_ok=True)
                    part.write_text(f"{proxy.address}\n{run}\n", encoding="utf-8")
                    part.rename(path)

    @property
    def cuts(self) -> int:
        return sum(proxy.cuts for proxy in self.proxies)

    def __enter__(self) -> "ResetProxies":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for proxy in self.proxies:
            proxy.close()
