"""What the chaos scripts share: eight processes that train while something is done to them, their pauses, and where they stand.

    with Trial(options) as trial:
        trial.start()
        trial.wait(2.0)          # nobody may end by itself meanwhile
        trial.stand([0, 1, 3])   # who have been among themselves since trial.change([0, 1, 3]): if long enough, at their optimum
        …
        return trial.settle({"cuts": 20})

All peers minimise quadratics that differ between them, by gradient tracking with full gradients over a graph that stays connected
whoever is lost, and symmetric, so those who are there have one point to come to whatever happened on the way: the mean of their own
optima, as all quadratics have one Hessian. What is done follows from --seed; how the processes interleave does not.
"""

import argparse
import itertools
import json
import math
import random
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from network_test_util import Network, Peer, eventually
from standing import NEAR, QUADRATICS, Record, Standing, Undisturbed, mean, standing

LONGEST_PAUSE = 10.0  # seconds between two records
STILL = 1000  # rounds after which an undisturbed run stands still
PROBLEM = (
    "topology.kind=hypercube",
    "algorithm.kind=gradient_tracking",
    *QUADRATICS,
    "net.failure_timeout=2",
)


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--program", type=Path, required=True)
    made.add_argument("--peers", type=int, default=8)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--every", type=int, default=100, help="rounds between records")
    made.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
    return made


@dataclass
class Seen:
    """How much of a peer's log has been looked at, and when its last record came."""

    size: int
    when: float  # by this process's clock
    seconds: float | None = None  # by the peer's own; None before the first one

    def read(self, log: Path, now: float) -> float:
        """The whole lines since; the longest pause that they tell of, or that goes on."""
        with log.open("rb") as file:
            file.seek(self.size)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        self.size += len(lines)
        # Not by standing(), which reads every line: peers on their own write megabytes a second, and this is called all the time.
        times = [
            float(each) for each in re.findall(rb'"record":"round".*?"seconds":([^,]+)', lines)
        ]
        if not times:
            return now - self.when
        pauses = [
            b - a
            for a, b in itertools.pairwise(
                times if self.seconds is None else [self.seconds, *times]
            )
        ]
        self.when, self.seconds = now, times[-1]
        return max(pauses, default=0)


class Trial:
    """The network, and what is seen of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(options.seed)
        self._folder = tempfile.TemporaryDirectory(prefix="gossamer-chaos-")
        self.folder = Path(self._folder.name)
        self._sets = (*PROBLEM, f"log.every={options.every}", *options.sets)
        self.net = Network(
            options.program.resolve(),
            self.folder / "net",
            options.peers,
            *self._sets,
            "run.rounds=1000000000",
        )
        self.peers: list[Peer] = []
        self.everybody = list(range(options.peers))
        self.longest = (
            0.0  # seconds that a peer took from one record to the next, but for those who were
        )
        self.apart: set[int] = (
            set()
        )  # held up or cut off by what is done: they have a figure of their own
        self.longest_apart = 0.0
        self._seen: dict[int, Seen] = {}
        self._since = 0  # the first round that those have in common who are among themselves since the last change()
        self._stood: list[
            tuple[int, dict[int, Record]]
        ] = []  # where they stood, after how many rounds among themselves

    def __enter__(self) -> "Trial":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.net.end()
        self._folder.cleanup()

    def start(self) -> None:
        """A process for each peer, until all train."""
        self.peers = [self.launch(k) for k in self.everybody]
        self.net.running(*self.everybody)
        self.change(self.everybody)

    def launch(self, peer: int) -> Peer:
        """The process of a peer; other scripts start it elsewhere."""
        return self.net.start(str(peer))

    def look(self, alive: list[int]) -> None:
        """Takes the time from each one's last record to the next by what the records say, and to now where there is none yet: this
        process may itself be held up, which is nobody's pause."""
        now = time.monotonic()
        self._seen = {peer: self._seen[peer] for peer in alive if peer in self._seen}
        for peer in alive:
            log = self.net.out / f"log-{peer}.jsonl"
            size = log.stat().st_size if log.is_file() else 0
            seen = self._seen.setdefault(peer, Seen(size, now))
            pause = now - seen.when if size == seen.size else seen.read(log, now)
            if peer in self.apart:
                self.longest_apart = max(self.longest_apart, pause)
            else:
                self.longest = max(self.longest, pause)

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
        return (
            (self.net.out / f"log-{peer}.jsonl")
            .read_text(encoding="utf-8")
            .count('"record":"round"')
        )

    def tell(self, words: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{words}, longest pause {self.longest:.2f} s", end="", file=sys.stderr)

    def change(self, present: list[int]) -> None:
        """From now on these are among themselves: from the next record on, as the round that is under way is on none yet."""
        self._since = (
            max(max(records, default=0) for records in self._recent(present, sys.maxsize).values())
            + self.options.every
        )

    def reunite(self) -> None:
        """Nobody is apart any more; what those who were have written by now ends a pause of theirs."""
        self.look(self.everybody)
        self.apart = set()
        self.change(self.everybody)

    def stand(self, present: list[int]) -> None:
        """Where these stand now. They are held to it in the end."""
        self._stood.append(self._whole(present, 0) or (0, {}))

    def settle(self, done: dict[str, Any]) -> int:
        """Lets all find together and come to rest, and holds where they then stand to a run in which nothing happened, and where
        they stood on the way to the optimum of those who were there. Prints a line of JSON: `done`, the longest pause so far, at how
        many looks they had been among themselves for long enough, and how far off they then were, and in the end. Exit code: 0 if
        that is at most one percent, of the norm of the optimum and of the loss, and the pause at most LONGEST_PAUSE."""
        longest = self.longest
        undisturbed = Undisturbed(self._alone("still", f"run.rounds={STILL}", "log.every=10"))
        # Wherever those who are there begin when somebody leaves or comes, it is nearer than where all began: in as many rounds as
        # the undisturbed run needs from its beginning, and those until rows begin again, they must be where they belong. What is
        # still off then does not go away by itself, and longer quiet would only hide what does.
        quiet = undisturbed.rounds_needed() + 2 * self.net.peers
        self.change(self.everybody)

        def settled() -> dict[int, Record] | None:
            self.wait(0.2)
            found = self._whole(self.everybody, quiet)
            return found and found[1]

        end = undisturbed.difference(eventually("all mix with all again, and settle", settled, 600))
        for peer in self.peers:
            peer.process.terminate()
        for peer in self.peers:
            peer.wait()
        # One round in which everybody walks to its own optimum, and what it heard of others is where they all began.
        alone = self._alone(
            "alone",
            "run.rounds=1",
            "algorithm.kind=dpsgd",
            "algorithm.order=awc",
            f"algorithm.local_steps={STILL}",
        )
        held = [
            max(
                math.dist(record.row, mean(alone[k][1].row for k in found)) / undisturbed.norm
                for record in found.values()
            )
            for rounds, found in self._stood
            if rounds >= quiet
        ]
        print(
            json.dumps(
                {
                    **done,
                    "longest_pause_seconds": round(longest, 3),
                    "quiet_rounds": quiet,
                    "looks": len(self._stood),
                    "looks_after_quiet": len(held),
                    "largest_distance_meanwhile": max(held, default=None),
                    "largest_distance": end.distance,
                    "largest_loss_difference": end.loss,
                }
            )
        )
        near = max(end.distance, end.loss, *held) <= NEAR
        return 0 if near and longest <= LONGEST_PAUSE else 1

    def _alone(self, name: str, *sets: str) -> Standing:
        """The same problem in one process."""
        net = Network(
            self.net.program,
            self.folder / name,
            self.net.peers,
            *self._sets,
            "log.sketch=on",
            *sets,
        )
        net.run_here()
        return standing([(net.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])

    def rounds_per_second(self, peers: list[int], seconds: float) -> float:
        """Of the slowest of these, from now on for about so long, by the times of its records."""
        self.change(peers)
        self.wait(seconds, peers)
        within = {
            k: sorted((r, record.seconds) for r, record in records.items() if r >= self._since)
            for k, records in self._recent(peers, self._since).items()
        }
        return min(
            (last[0] - first[0]) / (last[1] - first[1]) for first, *_, last in within.values()
        )

    def _whole(self, present: list[int], quiet: int) -> tuple[int, dict[int, Record]] | None:
        """The newest round that all of these have on record, if it is `quiet` rounds after the change and after every
        record by which one of them was without another one (what was done to a link may show a while later), and how many it is."""
        recent = self._recent(present, self._since)
        common = set.intersection(*(set(records) for records in recent.values()))
        among = frozenset(present)
        missed = (
            r
            for records in recent.values()
            for r, record in records.items()
            if record.missed & among
        )
        newest = max(common, default=-1)
        rounds = newest - max(self._since, *missed, 0)
        return (
            (rounds, {k: records[newest] for k, records in recent.items()})
            if rounds >= quiet
            else None
        )

    def _recent(self, peers: list[int], since: int) -> Standing:
        """The last records of each, back to the one before round `since`; not the whole of logs that have grown long."""
        found: Standing = {}
        for k in peers:
            log = self.net.out / f"log-{k}.jsonl"
            size, length = log.stat().st_size, 1 << 16
            while True:
                with log.open("rb") as file:
                    file.seek(max(0, size - length))
                    text = file.read().decode(errors="replace")
                records = standing([text if length >= size else text[text.find("\n") + 1 :]]).get(
                    k, {}
                )
                if length >= size or (records and min(records) < since):
                    break
                length *= 2
            found[k] = records
        return found


def run(make: Any) -> int:
    """The trial that make() runs; a broken promise is a line on stderr and exit code 1. SIGTERM is taken as Ctrl-C is: the trial
    ends, and leaves no processes, folders or namespaces behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(make())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1
