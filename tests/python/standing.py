"""Where the peers of a run stand: their rows, by the sketches in its logs, which are exact for rows of up to 1,024 values.

The loss alone does not tell: around the optimum it is flat, and who stands a tenth of the optimum's norm beside it has half a
percent more.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

# What has one optimum wherever peers begin: quadratics that differ between them, with full gradients.
QUADRATICS = (
    "model.kind=linear",
    "data.kind=quadratic",
    "data.heterogeneity=1",
    "data.condition=3",
    "optimizer.rate=0.1",
    "data.batch=0",
)
NEAR = 0.01  # of the norm of the optimum, and of a loss


@dataclass(frozen=True)
class Record:
    """What a log says of a peer in a round."""

    row: tuple[
        float, ...
    ]  # a rotation of it that is the same for all peers of all runs with one seed
    loss: float
    seconds: float  # since the process's start
    missed: frozenset[int]  # whose rows were missing in a mix since its last record


Standing = dict[int, dict[int, Record]]  # by peer and round


def mean(rows: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(math.fsum(values) / len(values) for values in zip(*rows, strict=True))


def standing(texts: Iterable[str]) -> Standing:
    """From the logs' whole lines: those of running processes may end in half a one."""
    found: Standing = {}
    missed: dict[int, set[int]] = {}
    for line in (line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()):
        if '"record":"deviations"' in line:
            r = json.loads(line)
            missed.setdefault(r["peer"], set()).update(each["from"] for each in r["deviations"])
        elif '"record":"round"' in line:
            r = json.loads(line)
            found.setdefault(r["peer"], {})[r["round"]] = Record(
                tuple(r["sketch"]),
                r["test_loss"],
                r["seconds"],
                frozenset(missed.pop(r["peer"], ())),
            )
    return found


@dataclass(frozen=True)
class Difference:
    """The largest over the peers: of rows, as part of the norm of the optimum, and of losses, as part of themselves."""

    distance: float
    loss: float


class Undisturbed:
    """A run in which nothing happened, until it stood still: where each peer is to be."""

    def __init__(self, run: Standing) -> None:
        self._run = run
        self._end = {peer: records[max(records)] for peer, records in run.items()}
        self.norm = math.hypot(*mean(record.row for record in self._end.values()))

    def distance(self, peer: int, record: Record) -> float:
        return math.dist(record.row, self._end[peer].row) / self.norm

    def difference(self, found: dict[int, Record]) -> Difference:
        return Difference(
            max(self.distance(peer, found[peer]) for peer in self._end),
            max(abs(found[peer].loss / end.loss - 1) for peer, end in self._end.items()),
        )

    def rounds_needed(self) -> int:
        """After which every peer was, and stayed, within NEAR of its place: from all that it did not know in the beginning."""
        return max(
            min(
                r
                for r in records
                if all(
                    self.distance(peer, records[later]) <= NEAR for later in records if later >= r
                )
            )
            for peer, records in self._run.items()
        )
