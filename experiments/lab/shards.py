"""Divides the cells of a sweep among machines."""

import hashlib
import re
from dataclasses import dataclass

from lab.cells import Cell
from lab.errors import LabError

_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Shard:
    index: int  # from 1
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def part(self, cells: list[Cell], selecting: list[Cell]) -> tuple[list[Cell], list[Cell]]:
        """The cells of this shard, and its cells that select step sizes.

        The shards are disjoint and differ in size by one unit at most. A unit is a cell, or a
        condition with all its cells if step sizes are selected. The order of the units is that of
        their hashes, so that no shard has all units of an expensive value.
        """

        def unit(cell: Cell) -> str:
            return repr(cell.condition()) if selecting else cell.name

        def digest(text: str) -> str:
            return hashlib.sha256(text.encode()).hexdigest()

        units = sorted({unit(cell) for cell in cells}, key=digest)
        if len(units) < self.count:
            kind = "conditions" if selecting else "cells"
            raise LabError(
                f"--shard {self}: the grid has {len(units)} {kind}: "
                f"divide it into at most {len(units)} shards"
            )
        own = set(units[self.index - 1 :: self.count])
        return (
            [cell for cell in cells if unit(cell) in own],
            [cell for cell in selecting if unit(cell) in own],
        )


def parse_shard(text: str) -> Shard:
    match = _SHARD.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise LabError(f"--shard {text}: write the second of eight shards as 2/8")
    return Shard(int(match[1]), int(match[2]))
