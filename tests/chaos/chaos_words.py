"""What the chaos scripts share: eight processes that train while something is done to them, how long they pause, and where they end.

    with Trial(options) as trial:
        trial.start()
        trial.wait(2.0)          # nobody may end by itself meanwhile
        …
        return trial.settle({"cuts": 20})

All peers minimise quadratics that differ between them, by gradient tracking with full gradients, so each has one point to end at
whatever happened on the way. What is done follows from --seed; how the processes interleave does not.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from network_words import Network, Peer, eventually

LONGEST_PAUSE = 10.0  # seconds between two records
SETTLED = 4000  # rounds after which an undisturbed run stands still
PROBLEM = ("topology.kind=exponential", "algorithm.kind=gradient_tracking", "model.kind=linear", "data.kind=quadratic",
           "data.heterogeneity=1", "optimizer.rate=0.02", "data.batch=0", "net.silence=2")


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--program", type=Path, required=True)
    made.add_argument("--peers", type=int, default=8)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--every", type=int, default=200, help="rounds between records")
    made.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
    return made


class Trial:
    """The network, and what is seen of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(options.seed)
        self._folder = tempfile.TemporaryDirectory(prefix="gossamer-chaos-")
        self.folder = Path(self._folder.name)
        self._sets = (*PROBLEM, f"log.every={options.every}", *options.sets)
        self.net = Network(options.program.resolve(), self.folder / "net", options.peers, *self._sets, "run.rounds=1000000000")
        self.peers: list[Peer] = []
        self.everybody = list(range(options.peers))
        self.longest = 0.0  # seconds that a peer took from one record to the next, but for those who were
        self.apart: set[int] = set()  # held up or cut off by what is done: they have a figure of their own
        self.longest_apart = 0.0
        self._seen: dict[int, tuple[int, float]] = {}

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.net.end()
        self._folder.cleanup()

    def start(self) -> None:
        """A process for each peer, until all train."""
        self.peers = [self.launch(k) for k in self.everybody]
        self.net.running(*self.everybody)

    def launch(self, peer: int) -> Peer:
        """The process of a peer; other scripts start it elsewhere."""
        return self.net.start(str(peer))

    def look(self, alive: list[int]) -> None:
        """Takes the time since each one's last record."""
        now = time.monotonic()
        self._seen = {peer: self._seen[peer] for peer in alive if peer in self._seen}
        for peer in alive:
            log = self.net.out / f"log-{peer}.jsonl"
            size = log.stat().st_size if log.is_file() else 0
            before, since = self._seen.get(peer, (size, now))
            if peer in self.apart:
                self.longest_apart = max(self.longest_apart, now - since)
            else:
                self.longest = max(self.longest, now - since)
            self._seen[peer] = (size, now) if size != before else (before, since)

    def wait(self, seconds: float, alive: list[int] | None = None) -> None:
        """Looks on for so long; nobody may end by itself."""
        alive = self.everybody if alive is None else alive
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look(alive)
            for peer in alive:
                if self.peers[peer].process.poll() is not None:
                    raise AssertionError(f"peer {peer} ended by itself: {self.peers[peer].said}")
            time.sleep(0.01)

    def records(self, peer: int) -> int:
        return (self.net.out / f"log-{peer}.jsonl").read_text(encoding="utf-8").count('"record":"round"')

    def tell(self, words: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{words}, longest pause {self.longest:.2f} s", end="", file=sys.stderr)

    def settle(self, done: dict[str, Any]) -> int:
        """Lets all come to rest, stops them, and holds where they are to a run in which nothing happened: prints `done`, the longest
        pause so far and the largest relative difference of a loss as a line of JSON. Exit code: 0 if that is at most one percent, and
        the pause at most LONGEST_PAUSE."""
        longest = self.longest
        begin = {k: self.records(k) for k in self.everybody}
        wanted = SETTLED // self.options.every + 2

        def all_settled() -> bool:
            self.wait(0.2)
            return all(self.records(k) > begin[k] + wanted for k in self.everybody)

        eventually("all settle", all_settled, 600)
        # Whoever is stopped last does rounds without the others: where all stand is what they have said by now.
        standing = {k: self.records(k) - 1 for k in self.everybody}
        for peer in self.peers:
            peer.process.terminate()
        for peer in self.peers:
            peer.wait()
        found = _losses([line for k in self.everybody for line in (self.net.out / f"log-{k}.jsonl").read_text("utf-8").splitlines()])
        still = Network(self.net.program, self.folder / "still", self.net.peers, *self._sets, f"run.rounds={SETTLED}")
        still.run_here()
        undisturbed = _losses((still.folder / "one" / "log-0.jsonl").read_text("utf-8").splitlines())
        difference = max(abs(found[k][standing[k]] / undisturbed[k][-1] - 1) for k in self.everybody)
        print(json.dumps({**done, "longest_pause_seconds": round(longest, 3), "largest_difference": difference}))
        return 0 if difference <= 0.01 and longest <= LONGEST_PAUSE else 1


def _losses(lines: list[str]) -> dict[int, list[float]]:
    """Each peer's losses, by record."""
    found: dict[int, list[float]] = {}
    for record in map(json.loads, lines):
        if record["record"] == "round":
            found.setdefault(record["peer"], []).append(record["test_loss"])
    return found


def run(make: Any) -> int:
    """The trial that make() runs; a broken promise is a line on stderr and exit code 1."""
    try:
        return int(make())
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1
