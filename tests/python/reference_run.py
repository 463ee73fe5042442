"""Compares the peers of a run with a run without faults, by the rows and losses in their logs.

A log has a sketch of each row, which is exact for rows of up to 1,024 values. The loss alone is not
enough: it is flat around the optimum, so that a row at a tenth of the optimum's norm from the
optimum has a loss that is only half a percent larger.
"""

import base64
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy

# A problem with one optimum: quadratics that differ between peers, with full gradients.
QUADRATICS = (
    "model.kind=linear",
    "data.kind=quadratic",
    "data.heterogeneity=1",
    "data.condition=3",
    "optimizer.rate=0.1",
    "data.batch=0",
)
TOLERANCE = 0.01  # of the norm of the optimum, and of a loss


@dataclass(frozen=True)
class PeerRecord:
    """A round record of a peer."""

    row: tuple[float, ...]  # the sketch: a rotation that all peers and runs of one seed share
    loss: float
    seconds: float  # since the start of the process
    missed: frozenset[int]  # peers whose rows were missing in a mix since the previous record


RecordsByPeer = dict[int, dict[int, PeerRecord]]  # peer → round → record


def mean_row(rows: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(math.fsum(values) / len(values) for values in zip(*rows, strict=True))


def read_records(texts: Iterable[str]) -> RecordsByPeer:
    """Reads the complete lines of logs. The log of a running process may end in a partial line."""
    records: RecordsByPeer = {}
    missed: dict[int, set[int]] = {}
    for line in (line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()):
        if '"record":"deviations"' in line:
            r = json.loads(line)
            missed.setdefault(r["peer"], set()).update(each["from"] for each in r["deviations"])
        elif '"record":"round"' in line:
            r = json.loads(line)
            records.setdefault(r["peer"], {})[r["round"]] = PeerRecord(
                tuple(numpy.frombuffer(base64.b64decode(r["sketch"]), "<f4").tolist()),
                r["test_loss"],
                r["seconds"],
                frozenset(missed.pop(r["peer"], ())),
            )
    return records


@dataclass(frozen=True)
class Deviation:
    """The largest deviations over the peers."""

    distance: float  # of rows, relative to the norm of the optimum
    loss: float  # of losses, relative to the reference loss


class ReferenceRun:
    """A run without faults that has converged."""

    def __init__(self, run: RecordsByPeer) -> None:
        self._run = run
        self._end = {peer: records[max(records)] for peer, records in run.items()}
        self.norm = math.hypot(*mean_row(record.row for record in self._end.values()))

    def distance(self, peer: int, record: PeerRecord) -> float:
        """The distance of a row to the peer's final row, relative to the norm of the optimum."""
        return math.dist(record.row, self._end[peer].row) / self.norm

    def deviation(self, records: dict[int, PeerRecord]) -> Deviation:
        return Deviation(
            max(self.distance(peer, records[peer]) for peer in self._end),
            max(abs(records[peer].loss / end.loss - 1) for peer, end in self._end.items()),
        )

    def rounds_to_converge(self) -> int:
        """The first round from which every peer stays within TOLERANCE of its final row."""
        return max(
            min(
                r
                for r in records
                if all(
                    self.distance(peer, records[later]) <= TOLERANCE
                    for later in records
                    if later >= r
                )
            )
            for peer, records in self._run.items()
        )
