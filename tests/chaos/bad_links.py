#!/usr/bin/env python3
"""Trains over links that go through a proxy, which delays, stalls, cuts and corrupts what passes, one fault after the other.

    tests/chaos/bad_links.py --program build/release/bin/gossamer --faults 200

Each process meets the others in a folder of its own, where the proxy writes addresses of its own in place of theirs. Prints one
line of JSON: faults by kind, longest pause between two records of a peer, and how far off peers were on the way and in the end
(chaos_test_util.py). Exit code 1: a process ended by itself, a pause is longer than 10 s, or a row or a loss is off by more than one
percent.
"""

import asyncio
import collections
import contextlib
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from chaos_test_util import Trial, parser, run

PIECE = 65536  # bytes that are carried at once


class Link:
    """What passes between two processes, whoever called whom; each way has faults of its own. On the proxy's thread."""

    def __init__(self) -> None:
        self.delay = [0.0, 0.0]  # seconds
        self.open = [asyncio.Event(), asyncio.Event()]
        for way in self.open:
            way.set()
        self.corrupt_next = [False, False]
        self.refuses = False
        self.writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Resets every connection."""
        for writer in self.writers:
            writer.transport.abort()

    async def carry(
        self, way: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """All that comes, in order, each piece by its own delay later, until either end is closed."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def read() -> None:
            while piece := await reader.read(PIECE):
                await pieces.put((loop.time() + self.delay[way], piece))
            await pieces.put((loop.time(), b""))

        reading = asyncio.create_task(read())
        try:
            while True:
                when, piece = await pieces.get()
                await asyncio.sleep(max(0.0, when - loop.time()))
                await self.open[way].wait()
                if not piece:
                    break
                if self.corrupt_next[way]:
                    self.corrupt_next[way] = False
                    middle = len(piece) // 2
                    piece = piece[:middle] + bytes([piece[middle] ^ 0x10]) + piece[middle + 1 :]
                writer.write(piece)
                await writer.drain()
        finally:
            reading.cancel()
            writer.transport.abort()


class Proxy:
    """A listener for each ordered pair of processes, and the folders where they meet. Its own thread runs it."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.loop = asyncio.new_event_loop()
        self.links: dict[frozenset[int], Link] = {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def do(self, what: Callable[[], None]) -> None:
        """On the proxy's thread, soon."""
        self.loop.call_soon_threadsafe(what)

    def end(self) -> None:
        self.do(self.loop.stop)
        self.thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        peers = range(len(self.folders))
        self.links = {frozenset((a, b)): Link() for a in peers for b in peers if a < b}
        for caller in peers:
            for called in peers:
                if caller != called:
                    self.loop.create_task(self._listen(caller, called))
        self.loop.run_forever()

    def _address(self, peer: int) -> tuple[str, str] | None:
        """Where the process really listens, and the run that it is of."""
        try:
            address, run_id = (
                (self.folders[peer] / f"peer-{peer}.addr")
                .read_text(encoding="utf-8")
                .splitlines()[:2]
            )
        except (OSError, ValueError):
            return None
        return address, run_id

    async def _listen(self, caller: int, called: int) -> None:
        server = await asyncio.start_server(
            lambda r, w: self._serve(caller, called, r, w), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        while (found := self._address(called)) is None:
            await asyncio.sleep(0.01)
        folder = self.folders[caller]
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"proxy-{called}.part"
        part.write_text(f"127.0.0.1:{port}\n{found[1]}\n", encoding="utf-8")
        part.rename(folder / f"peer-{called}.addr")

    async def _serve(
        self, caller: int, called: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        link = self.links[frozenset((caller, called))]
        found = self._address(called)
        if link.refuses or found is None:
            writer.transport.abort()
            return
        host, _, port = found[0].rpartition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        link.writers |= {writer, back}
        way = 0 if caller < called else 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(
                link.carry(way, reader, back),
                link.carry(1 - way, there, writer),
                return_exceptions=True,
            )
        link.writers -= {writer, back}


def disturb(trial: Trial, proxy: Proxy, silence: float) -> str:
    """One fault on one link, for a while; what it was."""
    chance: random.Random = trial.chance
    link = proxy.links[frozenset(chance.sample(trial.everybody, 2))]
    way = chance.randrange(2)
    kind = chance.choice(["delay", "stall", "long stall", "reset", "cut", "corrupt"])

    def setting(name: str, value: object) -> Callable[[], None]:
        return lambda: setattr(link, name, value)

    if kind == "delay":
        proxy.do(setting("delay", [chance.uniform(0, 0.5), chance.uniform(0, 0.5)]))
        trial.wait(chance.uniform(0.5, 2))
        proxy.do(setting("delay", [0.0, 0.0]))
    elif kind in ("stall", "long stall"):
        proxy.do(link.open[way].clear)
        trial.wait(
            chance.uniform(0.1, 0.5) if kind == "stall" else chance.uniform(1.2, 2) * silence
        )
        proxy.do(link.open[way].set)
    elif kind == "reset":
        proxy.do(link.cut)
    elif kind == "cut":
        proxy.do(setting("refuses", True))
        proxy.do(link.cut)
        trial.wait(chance.uniform(0.5, 4))
        proxy.do(setting("refuses", False))
    else:
        link.corrupt_next[way] = True
    trial.wait(chance.uniform(0, 1))
    return kind


class ProxiedTrial(Trial):
    def launch(self, peer: int):  # type: ignore[no-untyped-def]
        return self.net.start(str(peer), f"net.rendezvous={self.folder / f'meet-{peer}'}")


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--faults", type=int, default=20)
    words.add_argument("--silence", type=float, default=2, help="net.failure_timeout, in seconds")
    options = words.parse_args()
    options.sets.append(f"net.failure_timeout={options.silence}")
    with ProxiedTrial(options) as trial:
        proxy = Proxy([trial.folder / f"meet-{k}" for k in trial.everybody])
        try:
            trial.start()
            done: collections.Counter[str] = collections.Counter()
            for fault in range(options.faults):
                done[disturb(trial, proxy, options.silence)] += 1
                trial.stand(trial.everybody)
                trial.change(trial.everybody)
                trial.tell(f"{fault + 1} of {options.faults}")
            return trial.settle({"faults": dict(sorted(done.items()))})
        finally:
            proxy.end()


if __name__ == "__main__":
    sys.exit(run(main))
