"""Reads the curves of one run from the logs of its processes."""

import base64
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import LabError
from lab.participants import Change, counted_after, last_graph, peer_rounds, recorded_changes
from lab.topology import uses_graph

Record = dict[str, Any]

# Fields of the round records. A curve is their mean over the honest peers; of epsilon the largest.
PER_PEER = ("train_loss", "test_loss", "test_accuracy", "bytes_sent", "seconds", "epsilon")
NETWORK = (
    "consensus_distance",
    "averaged_loss",
    "averaged_accuracy",
    "distance_to_optimum",
    "averaged_distance_to_optimum",
    "backdoor_success",
)


@dataclass(frozen=True)
class Curves:
    """Arrays over the logged rounds. A missing value is NaN."""

    rounds: np.ndarray
    values: dict[str, np.ndarray]
    topology: dict[str, Any]
    sketched: bool  # the consensus distance is estimated from sketches
    peers: dict[str, np.ndarray]  # curves of the honest peers: [peers, rounds]
    # Bytes that each server has sent in the whole run: [servers].
    server_bytes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    last: int = 1  # how many rounds at the end were all logged (log.last)
    uses_graph: bool = True  # if the algorithm exchanges over the graph

    def has(self, name: str) -> bool:
        return bool(np.isfinite(self.values[name]).any())

    @property
    def period(self) -> int:
        """Rounds after which the graph repeats, at the end of the run where participants change;
        1 if it is static or random, or if the algorithm does not use it.
        """
        if not self.uses_graph:
            return 1
        return max(1, int(last_graph(self.topology).get("period") or 1))

    @property
    def _begin(self) -> int:
        """The round from which on the graph is the last one."""
        return int(last_graph(self.topology).get("round", 0))

    def _phase(self, t: int) -> int:
        """Of the graph after t rounds."""
        return int((t - self._begin) % self.period)

    def period_mean(self, name: str) -> np.ndarray:
        """A curve, averaged at each logged round over the phases of a period of the graph.

        Each phase has its latest value. NaN until every phase has been logged. Of rounds before the
        last change of participants, the value itself.
        """
        latest = np.full(self.period, np.nan)
        means = []
        for t, value in zip(self.rounds, self.values[name], strict=True):
            if self.period == 1 or 0 < t <= self._begin:
                means.append(value)
                continue
            if t > 0:  # round 0 is the state before training
                latest[self._phase(t)] = value
            means.append(latest.mean())
        return np.array(means)

    def lowest_of_period(self, name: str) -> float:
        """The lowest value of a peer in the last logged round of each phase of the graph."""
        last: dict[int, int] = {}
        for index, t in enumerate(self.rounds):
            if t > self._begin or self.period == 1:
                last[self._phase(t)] = index
        return float(np.nanmin(self.peers[name][:, sorted(last.values())], initial=np.inf))

    @property
    def dates_targets(self) -> bool:
        """If every phase of the graph was logged throughout, and not at the end alone (log.last).

        Else a target may have been reached before the log shows it in every phase.
        """
        end = self.rounds[-1]
        if self.period == 1 or self.last == 1 or self.last >= end - self._begin:
            return True
        before = self.rounds[(self.rounds > self._begin) & (self.rounds <= end - self.last)]
        return len({self._phase(t) for t in before}) == self.period

    def first_reaching(self, name: str, target: float, rising: bool) -> int | None:
        """The first index from which on every phase of a period is at its target; None if none."""
        values = self.values[name]
        reached = values >= target if rising else values <= target
        following = np.zeros(self.period, dtype=bool)
        first = None
        for index in range(len(values) - 1, -1, -1):
            following[self._phase(self.rounds[index])] = reached[index]
            if following.all():
                first = index
        return first

    def by_time(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A curve against seconds: the times, and the value at each time.

        At every time at which a peer logs, the value is the mean over the peers of their last
        logged values, because asynchronous peers reach a round at different times. A curve that
        is not per peer, or that some peers lack, has the mean time of the peers in each round.
        """
        if name not in self.peers or np.isnan(self.peers[name]).any():
            return self.values["seconds"], self.values[name]
        changes = np.diff(self.peers[name], axis=1, prepend=0)
        order = np.argsort(self.peers["seconds"], axis=None, kind="stable")
        times = self.peers["seconds"].ravel()[order]
        mean = np.cumsum(changes.ravel()[order]) / len(changes)
        last = np.append(np.diff(times) > 0, True)  # the last of several entries at one time
        return times[last], mean[last]


def read_curves(folder: Path) -> Curves:
    """Reads log-*.jsonl of a finished run. Omits rounds that not every peer has logged which took
    part in them.

    Throws LabError if a log is missing or damaged, or if there is no such round.
    """
    logs = sorted(folder.glob("log-*.jsonl"))
    if not logs:
        raise LabError(f"{folder}: no log-*.jsonl")
    header, per_round, network, server_bytes = _read_logs(logs)
    rounds = _whole_rounds(logs, header, per_round)
    hostile = header.get("config", {}).get("attack", {}).get("peers", [])
    honest = [
        {record["peer"]: record for record in per_round[t] if record["peer"] not in hostile}
        for t in rounds
    ]
    ids = sorted({peer for of_round in honest for peer in of_round})
    present = np.array([[peer in of_round for of_round in honest] for peer in ids])
    peers = {
        name: np.array(
            [[_number(of_round.get(peer, {}).get(name)) for of_round in honest] for peer in ids]
        )
        for name in PER_PEER
    }
    current = np.array(
        [[_is_current(of_round.get(peer, {})) for of_round in honest] for peer in ids]
    )
    values = {name: _mean(name, rows, current, present) for name, rows in peers.items()}
    values["epsilon"] = np.fmax.reduce(peers["epsilon"])  # the guarantee for all
    if changes := recorded_changes(header["topology"]):
        values["bytes_sent"] = _bytes_a_peer(changes, rounds, hostile, peers["bytes_sent"])
    values["steps"] = np.array(rounds) * _steps_per_round(header)
    for name in NETWORK:
        values[name] = np.array([_number(network.get(t, {}).get(name)) for t in rounds])
    models = [list(filter(_is_current, per_round[t])) for t in rounds]
    sketched = not network and all("sketch" in record for each in models for record in each)
    if sketched:
        values["consensus_distance"] = np.array([consensus_from_sketches(each) for each in models])
    sent = np.array([server_bytes[server] for server in sorted(server_bytes)])
    config = header.get("config", {})
    last = config.get("log", {}).get("last", 1)
    return Curves(
        np.array(rounds),
        values,
        header["topology"],
        sketched,
        peers,
        sent,
        last,
        uses_graph(config),
    )


def _read_logs(
    logs: list[Path],
) -> tuple[Record, dict[int, list[Record]], dict[int, Record], dict[int, float]]:
    """The first header; the peers' records of each round; the network's; the bytes of servers."""
    header: Record = {}
    per_round: dict[int, list[Record]] = defaultdict(list)
    network: dict[int, Record] = {}
    server_bytes: dict[int, float] = {}
    for log in logs:
        for record in _records(log):
            kind = record.get("record")
            if kind == "header":
                header = header or record
            elif kind == "round":
                per_round[record["round"]].append(record)
            elif kind == "server":
                server_bytes[record["server"]] = float(record["bytes_sent"])
            elif kind == "network":
                network[record["round"]] = record
    if not header:
        raise LabError(f"{logs[0]}: no header record")
    return header, per_round, network, server_bytes


def _whole_rounds(
    logs: list[Path], header: Record, per_round: dict[int, list[Record]]
) -> list[int]:
    """The rounds of which each peer that took part in the last of them has a record."""
    changes = recorded_changes(header["topology"])
    peers = int(header["peers"])
    if len(logs) == 1:  # `centralized` logs its only model as that of peer 0
        peers = min(peers, len(header["hosted"]))

    def due(t: int) -> int:
        return len(counted_after(changes, t)) if changes else peers

    rounds = sorted(t for t, records in per_round.items() if len(records) == due(t))
    if not rounds:
        raise LabError(
            f"{logs[0].parent}: there is no round of which the logs have a record of each peer"
        )
    return rounds


def _is_current(record: Record) -> bool:
    """Whether the peer had a model of the record's round."""
    return bool(record.get("current", True))


def _mean(name: str, rows: np.ndarray, current: np.ndarray, present: np.ndarray) -> np.ndarray:
    """The mean over the peers that have a record (`present`); of a test metric and the time, over
    those with a current model.

    Where some have none, a peer without a train loss has taken no steps since its last record.
    """
    mask = ~present
    if name in ("test_loss", "test_accuracy", "seconds"):
        mask = mask | ~current
    elif name == "train_loss" and not current.all():
        mask = mask | np.isnan(rows)
    return np.ma.array(rows, mask=mask).mean(axis=0).filled(np.nan)


def _bytes_a_peer(
    changes: list[Change], rounds: list[int], hostile: list[int], sent: np.ndarray
) -> np.ndarray:
    """What all peers have sent, over the mean number of peers of a round: as of a peer that takes
    part in all of them, where the mean over those that are there would fall when others join.
    """
    total = np.fmax.accumulate(np.nan_to_num(sent), axis=1).sum(axis=0)
    shares = [t / max(1, peer_rounds(changes, t, hostile)) for t in rounds]
    return np.array(total * np.array(shares))


def _steps_per_round(header: Record) -> float:
    """Local steps of a peer in a round; NaN where a round has passes over its shard."""
    algorithm = header.get("config", {}).get("algorithm", {})
    steps = algorithm.get("local_steps", 1)  # 1: of algorithms that do not have the key
    return float(steps) if steps > 0 else float("nan")


def consensus_from_sketches(records: list[Record]) -> float:
    """sqrt((1/n) Σ ‖s_i − s̄‖²) over the sketches s_i of the peers' rows.

    A count-sketch is linear and preserves squared norms in expectation (Charikar et al. 2002).
    """
    try:
        sketches = [base64.b64decode(record["sketch"], validate=True) for record in records]
        matrix = np.array([np.frombuffer(sketch, "<f4") for sketch in sketches], dtype=float)
    except (TypeError, ValueError) as error:  # no text, no base64, or of unequal lengths
        first = records[0]
        raise LabError(
            f"the sketches of the peers in round {first.get('round')} cannot be read: {error}"
        ) from error
    centred = matrix - matrix.mean(axis=0)
    return float(np.sqrt((centred**2).sum(axis=1).mean()))


def _records(log: Path) -> list[Record]:
    records = []
    with log.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise LabError(f"{log}, line {number}: not a complete record: {error}") from error
    return records


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")
