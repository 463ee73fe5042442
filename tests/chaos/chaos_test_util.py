"""Shared by the chaos scripts: a network under faults, its pauses and its distance to the optimum.

    with Trial(options) as trial:
        trial.start()
        trial.wait(2.0)                        # no process may end meanwhile
        trial.sample([0, 1, 3])                # the rows of these peers, checked at the end
        trial.membership_changed([0, 1, 3])    # from now on only these peers are connected
        …
        return trial.finish({"cuts": 20})

All peers minimise different quadratics by gradient tracking with full gradients. The graph is
symmetric and stays connected if any peer is lost. All quadratics have the same Hessian, so any set
of connected peers converges to the mean of their own optima, regardless of earlier faults. --seed
determines the faults; it does not determine how the processes interleave.
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
from network_test_util import Network, PeerProcess, wait_until
from reference_run import (
    QUADRATICS,
    TOLERANCE,
    PeerRecord,
    RecordsByPeer,
    ReferenceRun,
    mean_row,
    read_records,
)

MAX_PAUSE_SECONDS = 10.0  # between two records of a peer
REFERENCE_ROUNDS = 1000  # rounds after which a run without faults has converged
PROBLEM = (
    "topology.kind=hypercube",
    "algorithm.kind=gradient_tracking",
    *QUADRATICS,
    "net.failure_timeout=2",
)


def network_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every script: the program, the size of its networks, and the seed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    parser = network_parser(description)
    parser.add_argument("--every", type=int, default=100, help="rounds between records")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
    return parser


@dataclass
class LogPosition:
    """How far a peer's log has been read, and the time of its last record."""

    size: int  # bytes that have been read
    when: float  # time of the last record by this process's clock
    seconds: float | None = None  # by the peer's clock; None before the first record

    def read(self, log: Path, now: float) -> float:
        """Reads the complete new lines. Returns the longest pause in seconds.

        A pause ends with a record. The present pause counts if there is no new record.
        """
        with log.open("rb") as file:
            file.seek(self.size)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        self.size += len(lines)
        # read_records() would be too slow: an isolated peer writes megabytes per second.
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
    """A network of processes and the measurements on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rng = random.Random(options.seed)
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
        self.peers: list[PeerProcess] = []
        self.all_peers = list(range(options.peers))
        self.isolated: set[int] = set()  # peers that the present fault stops or disconnects
        self.longest_pause = 0.0  # seconds between two records of a peer that is not isolated
        self.longest_isolated_pause = 0.0
        self._positions: dict[int, LogPosition] = {}
        self._stable_since = 0  # the first round after the last membership_changed()
        # For each sample: the rounds since membership_changed(), and the records of the peers.
        self._samples: list[tuple[int, dict[int, PeerRecord]]] = []

    def __enter__(self) -> "Trial":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.net.kill()
        self._folder.cleanup()

    def start(self) -> None:
        """Starts a process for each peer and waits until all of them train."""
        self.peers = [self.launch(k) for k in self.all_peers]
        self.net.wait_until_training(*self.all_peers)
        self.membership_changed(self.all_peers)

    def launch(self, peer: int) -> PeerProcess:
        """Starts the process of a peer. Scripts override it to start the process elsewhere."""
        return self.net.start(str(peer))

    def measure_pauses(self, alive: list[int]) -> None:
        """Updates the longest pauses from the logs of these peers.

        A pause between two records is measured by the times in the records, because this process
        may itself be delayed. A pause that has not ended is measured by this process's clock.
        """
        now = time.monotonic()
        self._positions = {peer: self._positions[peer] for peer in alive if peer in self._positions}
        for peer in alive:
            log = self.net.out / f"log-{peer}.jsonl"
            size = log.stat().st_size if log.is_file() else 0
            position = self._positions.setdefault(peer, LogPosition(size, now))
            pause = now - position.when if size == position.size else position.read(log, now)
            if peer in self.isolated:
                self.longest_isolated_pause = max(self.longest_isolated_pause, pause)
            else:
                self.longest_pause = max(self.longest_pause, pause)

    def wait(self, seconds: float, alive: list[int] | None = None) -> None:
        """Measures pauses for `seconds`. Throws AssertionError if one of these peers has ended."""
        alive = self.all_peers if alive is None else alive
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.measure_pauses(alive)
            for peer in alive:
                if self.peers[peer].process.poll() is not None:
                    raise AssertionError(f"peer {peer} has ended: {self.peers[peer].stderr}")
            time.sleep(0.01)

    def round_records(self, peer: int) -> int:
        """The number of round records in a peer's log."""
        return (
            (self.net.out / f"log-{peer}.jsonl")
            .read_text(encoding="utf-8")
            .count('"record":"round"')
        )

    def show_progress(self, text: str) -> None:
        if sys.stderr.isatty():
            message = f"\r{text}, longest pause {self.longest_pause:.2f} s"
            print(message, end="", file=sys.stderr)

    def membership_changed(self, present: list[int]) -> None:
        """From now on only these peers are connected.

        The change takes effect at the next record, because the present round is not yet logged.
        """
        self._stable_since = (
            max(
                max(records, default=0)
                for records in self._recent_records(present, sys.maxsize).values()
            )
            + self.options.every
        )

    def all_reconnected(self) -> None:
        """No peer is isolated any more. Records that are already written end isolated pauses."""
        self.measure_pauses(self.all_peers)
        self.isolated = set()
        self.membership_changed(self.all_peers)

    def sample(self, present: list[int]) -> None:
        """Keeps the present rows of these peers. finish() checks them."""
        self._samples.append(self._common_records(present, 0) or (0, {}))

    def finish(self, report: dict[str, Any]) -> int:
        """Waits for convergence, checks all samples and the final state, and prints the report.

        The final rows and losses must equal those of a run without faults. A sample must be at the
        optimum of its peers if enough rounds have passed since the membership changed. The report
        is one line of JSON with `report`, the longest pause, the number of samples and of checked
        samples, and the largest distances. Returns the exit code: 0 if all distances are at most
        1 % (of the norm of the optimum, or of the loss) and no pause exceeds MAX_PAUSE_SECONDS.
        """
        longest_pause = self.longest_pause
        reference = ReferenceRun(
            self._run_in_one_process("reference", f"run.rounds={REFERENCE_ROUNDS}", "log.every=10")
        )
        # A change of the membership leaves the peers nearer to the optimum than the initial rows.
        # After the rounds that the reference run needs from its start, and the rounds until rows
        # are reinitialised, they must be at the optimum. Waiting longer would only hide errors.
        settling_rounds = reference.rounds_to_converge() + 2 * self.net.peers
        self.membership_changed(self.all_peers)

        def final_records() -> dict[int, PeerRecord] | None:
            self.wait(0.2)
            common = self._common_records(self.all_peers, settling_rounds)
            return common and common[1]

        end = reference.deviation(wait_until("all peers mix and settle", final_records, 600))
        for peer in self.peers:
            peer.process.terminate()
        for peer in self.peers:
            peer.wait()
        # After one round in "awc" order with many local steps, each peer is at its own optimum.
        own_optima = self._run_in_one_process(
            "own-optima",
            "run.rounds=1",
            "algorithm.kind=dpsgd",
            "algorithm.order=awc",
            f"algorithm.local_steps={REFERENCE_ROUNDS}",
        )
        distances = [
            max(
                math.dist(record.row, mean_row(own_optima[k][1].row for k in records))
                / reference.norm
                for record in records.values()
            )
            for rounds, records in self._samples
            if rounds >= settling_rounds
        ]
        print(
            json.dumps(
                {
                    **report,
                    "longest_pause_seconds": round(longest_pause, 3),
                    "settling_rounds": settling_rounds,
                    "samples": len(self._samples),
                    "samples_checked": len(distances),
                    "largest_distance_during_faults": max(distances, default=None),
                    "largest_distance": end.distance,
                    "largest_loss_difference": end.loss,
                }
            )
        )
        converged = max(end.distance, end.loss, *distances) <= TOLERANCE
        return 0 if converged and longest_pause <= MAX_PAUSE_SECONDS else 1

    def _run_in_one_process(self, name: str, *sets: str) -> RecordsByPeer:
        """Runs the same problem, without faults, in one process."""
        net = Network(
            self.net.program,
            self.folder / name,
            self.net.peers,
            *self._sets,
            "log.sketch=on",
            *sets,
        )
        net.run_in_one_process()
        return read_records([(net.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])

    def rounds_per_second(self, peers: list[int], seconds: float) -> float:
        """The rate of the slowest of these peers in the next `seconds`, by its records."""
        self.membership_changed(peers)
        self.wait(seconds, peers)
        within = {
            k: sorted(
                (r, record.seconds) for r, record in records.items() if r >= self._stable_since
            )
            for k, records in self._recent_records(peers, self._stable_since).items()
        }
        return min(
            (each[-1][0] - each[0][0]) / (each[-1][1] - each[0][1]) if len(each) > 1 else 0.0
            for each in within.values()
        )

    def _common_records(
        self, present: list[int], settling_rounds: int
    ) -> tuple[int, dict[int, PeerRecord]] | None:
        """The newest round that all these peers have logged.

        Returns the number of rounds since the last disturbance, and the records of that round; None
        if the number is below `settling_rounds`. A disturbance is a membership change, or a record
        by which a row of one of these peers was missing, which can happen a while after a fault.
        """
        recent = self._recent_records(present, self._stable_since)
        common = set.intersection(*(set(records) for records in recent.values()))
        among = frozenset(present)
        missed = (
            r
            for records in recent.values()
            for r, record in records.items()
            if record.missed & among
        )
        newest = max(common, default=-1)
        rounds = newest - max(self._stable_since, *missed, 0)
        return (
            (rounds, {k: records[newest] for k, records in recent.items()})
            if rounds >= settling_rounds
            else None
        )

    def _recent_records(self, peers: list[int], since: int) -> RecordsByPeer:
        """The last records of each peer, back to the one before round `since`.

        Reads logs backwards, because they become long.
        """
        recent: RecordsByPeer = {}
        for k in peers:
            log = self.net.out / f"log-{k}.jsonl"
            size, length = log.stat().st_size, 1 << 16
            while True:
                with log.open("rb") as file:
                    file.seek(max(0, size - length))
                    text = file.read().decode(errors="replace")
                records = read_records(
                    [text if length >= size else text[text.find("\n") + 1 :]]
                ).get(k, {})
                if length >= size or (records and min(records) < since):
                    break
                length *= 2
            recent[k] = records
        return recent


def run(make: Any) -> int:
    """Runs the trial make() and returns its exit code.

    A failed check is one line on stderr and exit code 1. After SIGINT or SIGTERM the trial ends and
    removes its processes, folders and namespaces. The handler of SIGINT is set explicitly, because
    a script in the background of a shell starts with SIGINT ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return int(make())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1


def run_to_end(commands: dict[str, list[str]], folder: Path, seconds: float) -> None:
    """Runs a process for each id, all at once, to their end. Raises if one fails."""
    processes = [PeerProcess(ids, command, folder) for ids, command in commands.items()]
    for process in processes:
        if process.wait(seconds) != 0:
            code = process.process.returncode
            raise AssertionError(f"{process.ids}: exit code {code}, {process.stderr}")
