"""Which peers take part in which rounds of a run (run.participants)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """From round `first` on, until the next change, the peers take part."""

    first: int
    peers: frozenset[int]


def parse_ids(text: str) -> frozenset[int]:
    """The ids that a list such as "0-3,7" has. Throws ValueError if it is none."""
    ids: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        ids.update(range(int(first), int(last or first) + 1))
    return frozenset(ids)


def planned_changes(texts: Sequence[str]) -> list[Change]:
    """Those of run.participants: "0-3", then "300: 0-15". Throws ValueError if it is malformed."""
    changes = []
    for text in texts:
        first, _, ids = text.rpartition(":")
        changes.append(Change(int(first or 0), parse_ids(ids)))
    return changes


def recorded_changes(topology: dict[str, Any]) -> list[Change]:
    """Those in the header of a log; none: all peers take part in all rounds."""
    return [
        Change(int(each["round"]), parse_ids(each["participants"]))
        for each in topology.get("changes") or []
    ]


def last_graph(topology: dict[str, Any]) -> dict[str, Any]:
    """The properties of the graph at the end of a run: where participants change, the last one."""
    changes = topology.get("changes")
    return dict(changes[-1]) if changes else topology


def counted_after(changes: Sequence[Change], rounds: int) -> frozenset[int]:
    """Those that took part in the last of these rounds; for 0, in the first."""
    last = max(rounds - 1, 0)
    return next(each.peers for each in reversed(changes) if each.first <= last)


def peer_rounds(changes: Sequence[Change], rounds: int, hostile: Collection[int]) -> int:
    """The sum over all but the hostile peers: how many of the first `rounds` rounds each was in."""
    ends = [each.first for each in changes[1:]] + [rounds]
    return sum(
        len(each.peers.difference(hostile)) * max(0, min(end, rounds) - each.first)
        for each, end in zip(changes, ends, strict=True)
    )


def peers_drawn(topology: dict[str, Any]) -> int:
    """How many ids the graph in the header of a log has: where participants change, those up to the
    highest one that ever takes part.
    """
    peers = (peer for change in recorded_changes(topology) for peer in change.peers)
    return max(peers, default=int(topology["peers"]) - 1) + 1
