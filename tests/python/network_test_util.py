"""Networks of real processes for tests. The processes find each other through a folder.

network = Network(program, folder, peers=4)
network.start("0"), network.start("1-3")
codes = network.wait()
"""

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEADLINE = 120.0  # seconds for steps that take up to twenty on an idle machine


def wait_until(
    what: str | Callable[[], str], condition: Callable[[], Any], seconds: float = DEADLINE
) -> Any:
    """Waits until the condition is true and returns its value.

    Throws AssertionError after `seconds`, with the text `what` (or what(), if it is a function).
    """
    end = time.monotonic() + seconds
    while True:
        expired = time.monotonic() >= end
        if value := condition():
            return value
        if expired:  # checked once more, because this process may have been delayed
            raise AssertionError(
                f"not within {seconds:g} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(0.01)


class ReservedPort:
    """A port of this machine that the system gives to no other program, and yet is free.

    with ReservedPort() as address: …   # "127.0.0.1:40123"

    `port`: this one; OSError if it is not free.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port

    def __enter__(self) -> str:
        # Two sockets that allow it can have one address, as long as one of them listens at most.
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self._port))
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class PeerProcess:
    """A process that hosts one or more peers."""

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
    def stdout(self) -> str:
        return self._streams[0].read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return self._streams[1].read_text(encoding="utf-8")

    @property
    def stderr_bytes(self) -> int:
        return self._streams[1].stat().st_size

    def stderr_after(self, begin: int) -> str:
        """The standard error from byte `begin` on, so that long output is not read repeatedly."""
        with self._streams[1].open("rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")

    @property
    def last_message(self) -> str:
        """The last line of standard error, without the program's name."""
        return self.stderr.strip().splitlines()[-1].removeprefix("gossamer: ")

    def wait_for_message(self, text: str) -> None:
        wait_until(
            lambda: f"peer {self.ids} prints '{text}'; it printed: {self.stderr}",
            lambda: text in self.stderr,
        )

    def wait(self, seconds: float = DEADLINE) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def records_of_rounds(log: Path) -> int:
    """How many rounds of its peers or servers a log has, as far as it is written."""
    text = log.read_bytes()
    return text.count(b'"record":"round"') + text.count(b'"record":"server"')


class Network:
    """A configuration, its processes, and their files in `folder / out`."""

    def __init__(self, program: Path, folder: Path, peers: int, *sets: str) -> None:
        self.program, self.folder, self.out, self.peers = program, folder, folder / "out", peers
        self.processes: list[PeerProcess] = []
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
        # The failure timeout is longer than any delay here, so that slow peers are never suspected.
        # A dead peer is detected by its closed connection.
        self.config.write_text(
            '[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\n'
            "join_timeout = 60\nfailure_timeout = 30\n",
            encoding="utf-8",
        )

    def command(self, verb: str, *options: str, sets: tuple[str, ...] = ()) -> list[str]:
        overrides = [argument for each in (*self.sets, *sets) for argument in ("--set", each)]
        return [str(self.program), verb, str(self.config), *options, *overrides]

    def start(
        self,
        ids: str,
        *sets: str,
        out: Path | None = None,
        resume: str = "none",
        prefix: list[str] | None = None,
        **options: Any,
    ) -> PeerProcess:
        """Starts the process that hosts the peers `ids`.

        `prefix` precedes the command, for example to run it in a network namespace.
        """
        command = self.command(
            "peer", "--id", ids, "--out", str(out or self.out), "--resume", resume, sets=sets
        )
        peer = PeerProcess(ids, [*(prefix or []), *command], self.folder, **options)
        self.processes.append(peer)
        return peer

    def start_by_rank(self, variable: str, rank: int, environment: dict[str, str]) -> PeerProcess:
        peer = PeerProcess(
            str(rank),
            self.command("peer", "--out", str(self.out)),
            self.folder,
            env={**environment, variable: str(rank)},
        )
        self.processes.append(peer)
        return peer

    def wait(self, seconds: float = DEADLINE) -> list[int]:
        """The exit codes in the order of the starts. All processes share one deadline."""
        end = time.monotonic() + seconds
        return [peer.wait(max(0.01, end - time.monotonic())) for peer in self.processes]

    def run_in_one_process(self) -> dict[str, Any]:
        """Runs the same configuration in one process. Returns the summary."""
        command = self.command("run", "--quiet", "--json", "--out", str(self.folder / "one"))
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    def collect(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), "collect", str(self.out), "--json", *options],
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

    def records(self, peer: int) -> list[dict[str, Any]]:
        """The records of a log. Every line must be complete."""
        text = (self.out / f"log-{peer}.jsonl").read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def address(self, peer: int) -> tuple[str, int]:
        """The address at which a peer listens. Waits until it does."""
        file = self.folder / "meet" / f"peer-{peer}.addr"
        wait_until(f"peer {peer} listens", file.is_file)
        host, _, port = file.read_text(encoding="utf-8").splitlines()[0].rpartition(":")
        return host, int(port)

    def wait_until_training(self, *peers: int) -> None:
        """Waits until these peers have trained a few rounds."""
        for peer in peers:
            log = self.out / f"log-{peer}.jsonl"
            wait_until(
                f"peer {peer} trains",
                lambda log=log: log.is_file() and records_of_rounds(log) > 2,
            )

    def kill(self) -> None:
        for peer in self.processes:
            peer.kill()

    def kept_rounds(self, process: int = 0, part: str = "") -> list[int]:
        """The rounds of the checkpoints of a process, by its lowest node, ascending.

        `part`: the folder of the part of the model that it holds, if that is cut.
        """
        kept = (self.out / part / "checkpoints").glob(f"round-*-{process}.json")
        return sorted(int(path.name.split("-")[1]) for path in kept)

    def kill_at_once(self) -> list[int]:
        """Kills all processes, and returns their exit codes.

        Stopped first, no process detects the end of another one and ends by itself.
        """
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for peer in self.processes:
                peer.process.send_signal(number)
        return self.wait()


def keygen(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), "keygen", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


class Keys:
    """The keys of the peers of a network, one file for each, and its file of members."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.members = net.folder / "members.toml"
        self.public = [self.make(f"{peer}.key") for peer in range(net.peers)]
        self.write(*self.public)
        net.sets.append(f"net.members={self.members}")

    def make(self, name: str) -> str:
        done = keygen(self.net.program, str(self.net.folder / name))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[0]

    def write(self, *keys: str) -> None:
        self.write_text(
            "".join(f'[[member]]\nid = {k}\nkey = "{key}"\n' for k, key in enumerate(keys))
        )

    def write_text(self, text: str) -> None:
        part = self.members.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self.members)

    def file(self, peer: int) -> str:
        return f"net.key={self.net.folder / f'{peer}.key'}"


NetworkFactory = Callable[..., Network]


@contextlib.contextmanager
def networks(program: Path, folder: Path, *first: str) -> Iterator[NetworkFactory]:
    """Yields make(4, "topology.kind=ring", …), which creates a network. `first`: more settings.

    All processes that still run at the end are killed.
    """
    made: list[Network] = []

    def make(peers: int, *sets: str) -> Network:
        made.append(Network(program, folder / f"network-{len(made)}", peers, *first, *sets))
        return made[-1]

    yield make
    for each in made:
        each.kill()
