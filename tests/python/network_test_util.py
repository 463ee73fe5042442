"""The words of the tests of real networks: processes that find each other through a folder, waited for with deadlines.

network = Network(program, folder, peers=4)
network.start("0"), network.start("1-3")
codes = network.wait()
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEADLINE = 60.0  # for what takes a second or two on an idle machine


def eventually(
    what: str | Callable[[], str], condition: Callable[[], Any], seconds: float = DEADLINE
) -> Any:
    """The condition's value once it is true; `what` says what was waited for, and where it is to be called, in the end."""
    end = time.monotonic() + seconds
    while True:
        over = time.monotonic() >= end
        if value := condition():
            return value
        if over:  # looked at once more: this process may have been held up
            raise AssertionError(
                f"not within {seconds:g} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(0.01)


class Peer:
    """A process of the network."""

    def __init__(self, ids: str, command: list[str], folder: Path, **options: Any) -> None:
        self.ids = ids
        self._streams = [
            folder / f"process-{time.monotonic_ns()}.{name}" for name in ("out", "err")
        ]
        with self._streams[0].open("w") as out, self._streams[1].open("w") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, **options
            )

    @property
    def said(self) -> str:
        return self._streams[1].read_text(encoding="utf-8")

    @property
    def said_bytes(self) -> int:
        return self._streams[1].stat().st_size

    def said_after(self, begin: int) -> str:
        """What it has said beyond so many bytes: who has said a lot is not read as a whole again and again."""
        with self._streams[1].open("rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")

    @property
    def last_line(self) -> str:
        """Its last sentence, without the program's name."""
        return self.said.strip().splitlines()[-1].removeprefix("gossamer: ")

    def hears(self, words: str) -> None:
        eventually(
            lambda: f"peer {self.ids} says '{words}', but: {self.said}", lambda: words in self.said
        )

    def wait(self, seconds: float = DEADLINE) -> int:
        return self.process.wait(seconds)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Network:
    """One configuration, its processes, and what they leave in `folder / out`."""

    def __init__(self, program: Path, folder: Path, peers: int, *sets: str) -> None:
        self.program, self.folder, self.out, self.peers = program, folder, folder / "out", peers
        self.started: list[Peer] = []
        self.sets = [
            f"run.peers={peers}",
            "run.rounds=5",
            "data.batch=8",
            "log.every=2",
            "local.threads=1",
            *sets,
        ]
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "run.toml"
        # A silence that nothing here comes near: who dies is missed at once, and who is only slow never.
        self.config.write_text(
            '[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\njoin_timeout = 60\nsilence = 30\n',
            encoding="utf-8",
        )

    def command(self, verb: str, *words: str, sets: tuple[str, ...] = ()) -> list[str]:
        return [
            str(self.program),
            verb,
            str(self.config),
            *words,
            *(w for s in (*self.sets, *sets) for w in ("--set", s)),
        ]

    def start(
        self,
        ids: str,
        *sets: str,
        out: Path | None = None,
        resume: str = "none",
        prefix: list[str] | None = None,
        **options: Any,
    ) -> Peer:
        """The process that hosts the peers `ids`; `prefix` is what the command begins with, where it is to run elsewhere."""
        command = self.command(
            "peer", "--id", ids, "--out", str(out or self.out), "--resume", resume, sets=sets
        )
        peer = Peer(ids, [*(prefix or []), *command], self.folder, **options)
        self.started.append(peer)
        return peer

    def start_by_rank(self, variable: str, rank: int, environment: dict[str, str]) -> Peer:
        peer = Peer(
            str(rank),
            self.command("peer", "--out", str(self.out)),
            self.folder,
            env={**environment, variable: str(rank)},
        )
        self.started.append(peer)
        return peer

    def wait(self, seconds: float = DEADLINE) -> list[int]:
        """Exit codes, in the order of the starts; by one deadline for all."""
        end = time.monotonic() + seconds
        return [peer.wait(max(0.01, end - time.monotonic())) for peer in self.started]

    def run_here(self) -> dict[str, Any]:
        """The same configuration in one process: its summary."""
        command = self.command("run", "--quiet", "--json", "--out", str(self.folder / "one"))
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    def collect(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), "collect", str(self.out), "--json", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    def summary(self) -> dict[str, Any]:
        done = self.collect()
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        assert summary == json.loads((self.out / "summary.json").read_text(encoding="utf-8"))
        return summary

    def log(self, peer: int) -> list[dict[str, Any]]:
        """The records of a log whose every line must be whole."""
        text = (self.out / f"log-{peer}.jsonl").read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def address(self, peer: int) -> tuple[str, int]:
        """Where the peer listens, once it does."""
        file = self.folder / "meet" / f"peer-{peer}.addr"
        eventually(f"peer {peer} listens", file.is_file)
        host, _, port = file.read_text(encoding="utf-8").splitlines()[0].rpartition(":")
        return host, int(port)

    def running(self, *peers: int) -> None:
        """Waits until these have trained a few rounds."""
        for peer in peers:
            log = self.out / f"log-{peer}.jsonl"
            eventually(
                f"peer {peer} trains",
                lambda log=log: log.is_file() and log.read_bytes().count(b'"round":') > 3,
            )

    def end(self) -> None:
        for peer in self.started:
            peer.end()


Make = Callable[..., Network]


@contextlib.contextmanager
def networks(program: Path, folder: Path, *first: str) -> Iterator[Make]:
    """make(4, "topology.kind=ring", …), with the settings `first` before those; whatever still runs at the end is killed."""
    made: list[Network] = []

    def make(peers: int, *sets: str) -> Network:
        made.append(Network(program, folder / f"network-{len(made)}", peers, *first, *sets))
        return made[-1]

    yield make
    for each in made:
        each.end()
