#!/usr/bin/env python3
"""Trains over links through a proxy that delays, stalls, cuts and corrupts them in turn.

    tests/chaos/bad_links.py --program build/release/bin/gossamer --faults 200

Each process has its own rendezvous folder, in which the proxy replaces the addresses of the other
processes by addresses of its own. Prints one line of JSON: the faults by kind, the longest pause
between two records of a peer, and the distances of rows after each fault and at the end
(chaos_test_util.py). Exit code 1: a process ended, a pause is longer than 10 s, or a row or a loss
deviates by more than 1 %.
"""

import asyncio
import collections
import contextlib
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from chaos_test_util import Trial, argument_parser, run

CHUNK_BYTES = 65536  # the most bytes that the proxy forwards at once


class Link:
    """All connections between two processes, with faults for each direction.

    Direction 0 is from the lower to the higher id. Only the proxy's thread uses a link.
    """

    def __init__(self) -> None:
        self.delay = [0.0, 0.0]  # seconds
        self.open = [asyncio.Event(), asyncio.Event()]
        for event in self.open:
            event.set()
        self.corrupt_next = [False, False]
        self.refuses = False
        self.writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Resets every connection."""
        for writer in self.writers:
            writer.transport.abort()

    async def forward(
        self, direction: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forwards one direction in order, each chunk after its delay, until either end closes."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def read() -> None:
            while chunk := await reader.read(CHUNK_BYTES):
                await chunks.put((loop.time() + self.delay[direction], chunk))
            await chunks.put((loop.time(), b""))

        reading = asyncio.create_task(read())
        try:
            while True:
                when, chunk = await chunks.get()
                await asyncio.sleep(max(0.0, when - loop.time()))
                await self.open[direction].wait()
                if not chunk:
                    break
                if self.corrupt_next[direction]:
                    self.corrupt_next[direction] = False
                    middle = len(chunk) // 2
                    chunk = chunk[:middle] + bytes([chunk[middle] ^ 0x10]) + chunk[middle + 1 :]
                writer.write(chunk)
                await writer.drain()
        finally:
            reading.cancel()
            writer.transport.abort()


class Proxy:
    """A listener for each ordered pair of processes, and their rendezvous folders.

    The proxy has its own thread.
    """

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.loop = asyncio.new_event_loop()
        self.links: dict[frozenset[int], Link] = {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def post(self, action: Callable[[], None]) -> None:
        """Runs the action on the proxy's thread, asynchronously."""
        self.loop.call_soon_threadsafe(action)

    def stop(self) -> None:
        self.post(self.loop.stop)
        self.thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        peers = range(len(self.folders))
        self.links = {frozenset((a, b)): Link() for a in peers for b in peers if a < b}
        for client in peers:
            for server_peer in peers:
                if client != server_peer:
                    self.loop.create_task(self._listen(client, server_peer))
        self.loop.run_forever()

    def _address(self, peer: int) -> tuple[str, str] | None:
        """The address at which the process listens, and its run id; None if it does not yet."""
        try:
            address, run_id = (
                (self.folders[peer] / f"peer-{peer}.addr")
                .read_text(encoding="utf-8")
                .splitlines()[:2]
            )
        except (OSError, ValueError):
            return None
        return address, run_id

    async def _listen(self, client: int, server_peer: int) -> None:
        server = await asyncio.start_server(
            lambda r, w: self._serve(client, server_peer, r, w), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        while (target := self._address(server_peer)) is None:
            await asyncio.sleep(0.01)
        folder = self.folders[client]
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"proxy-{server_peer}.part"
        part.write_text(f"127.0.0.1:{port}\n{target[1]}\n", encoding="utf-8")
        part.rename(folder / f"peer-{server_peer}.addr")

    async def _serve(
        self,
        client: int,
        server_peer: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        link = self.links[frozenset((client, server_peer))]
        target = self._address(server_peer)
        if link.refuses or target is None:
            writer.transport.abort()
            return
        host, _, port = target[0].rpartition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        link.writers |= {writer, back}
        direction = 0 if client < server_peer else 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(
                link.forward(direction, reader, back),
                link.forward(1 - direction, there, writer),
                return_exceptions=True,
            )
        link.writers -= {writer, back}


def inject_fault(trial: Trial, proxy: Proxy, failure_timeout: float) -> str:
    """Injects a random fault into a random link for a while. Returns its kind."""
    rng: random.Random = trial.rng
    link = proxy.links[frozenset(rng.sample(trial.all_peers, 2))]
    direction = rng.randrange(2)
    kind = rng.choice(["delay", "stall", "long stall", "reset", "cut", "corrupt"])

    def setting(name: str, value: object) -> Callable[[], None]:
        return lambda: setattr(link, name, value)

    if kind == "delay":
        proxy.post(setting("delay", [rng.uniform(0, 0.5), rng.uniform(0, 0.5)]))
        trial.wait(rng.uniform(0.5, 2))
        proxy.post(setting("delay", [0.0, 0.0]))
    elif kind in ("stall", "long stall"):
        proxy.post(link.open[direction].clear)
        trial.wait(
            rng.uniform(0.1, 0.5) if kind == "stall" else rng.uniform(1.2, 2) * failure_timeout
        )
        proxy.post(link.open[direction].set)
    elif kind == "reset":
        proxy.post(link.cut)
    elif kind == "cut":
        proxy.post(setting("refuses", True))
        proxy.post(link.cut)
        trial.wait(rng.uniform(0.5, 4))
        proxy.post(setting("refuses", False))
    else:
        link.corrupt_next[direction] = True
    trial.wait(rng.uniform(0, 1))
    return kind


class ProxiedTrial(Trial):
    def launch(self, peer: int):  # type: ignore[no-untyped-def]
        return self.net.start(str(peer), f"net.rendezvous={self.folder / f'meet-{peer}'}")


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument(
        "--failure-timeout", type=float, default=2, help="net.failure_timeout, in seconds"
    )
    options = parser.parse_args()
    options.sets.append(f"net.failure_timeout={options.failure_timeout}")
    with ProxiedTrial(options) as trial:
        proxy = Proxy([trial.folder / f"meet-{k}" for k in trial.all_peers])
        try:
            trial.start()
            faults: collections.Counter[str] = collections.Counter()
            for index in range(options.faults):
                faults[inject_fault(trial, proxy, options.failure_timeout)] += 1
                trial.sample(trial.all_peers)
                trial.membership_changed(trial.all_peers)
                trial.show_progress(f"{index + 1} of {options.faults}")
            return trial.finish({"faults": dict(sorted(faults.items()))})
        finally:
            proxy.stop()


if __name__ == "__main__":
    sys.exit(run(main))
