"""Lets the program check every cell of a grid before the first run."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lab.binary import find_binary
from lab.cells import Cell, merge
from lab.errors import LabError
from lab.launch import INVALID, LaunchConfig, check
from lab.topology import unseen_phases

Faults = dict[str, list[str]]  # message → names of the cells
MOST_REASONS = 4  # that a text names


def check_cells(
    launch_config: LaunchConfig,
    config: dict[str, Any],
    cells: list[Cell],
    jobs: int,
    skip_impossible: bool,
) -> Faults:
    """The impossible cells by the program's reason; none unless `skip_impossible`.

    A cell is impossible if the program refuses its configuration. A setting that the program
    refuses in every cell, such as a misspelt kind, is a fault. Throws LabError with all faults.
    """

    def fault(cell: Cell) -> tuple[int, str]:
        code, message = check(launch_config, cell)
        return code, message or unseen_phases(merge(config, cell.overrides), find_binary())

    with ThreadPoolExecutor(jobs) as pool:
        checked = list(zip(cells, pool.map(fault, cells), strict=True))
    possible = {
        setting for cell, (_, message) in checked if not message for setting in _settings(cell)
    }
    impossible: Faults = {}
    faults: Faults = {}
    for cell, (code, message) in checked:
        mistaken = any(
            message.startswith(f"gossamer: --set {setting}:") and setting not in possible
            for setting in _settings(cell)
        )
        if message:
            skipped = skip_impossible and possible and code == INVALID and not mistaken
            (impossible if skipped else faults).setdefault(message, []).append(cell.name)
    if faults:
        raise LabError("\n".join(["the grid has invalid cells:", *fault_lines(faults)]))
    return impossible


def fault_lines(faults: Faults) -> list[str]:
    """The first reasons, each with a cell, and how many there are besides."""
    lines = [
        f"{fault}\n  (cell {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
        for fault, names in list(faults.items())[:MOST_REASONS]
    ]
    return lines + ([f"… and {others}"] if (others := other_reasons(faults)) else [])


def other_reasons(faults: Faults) -> str:
    """How many reasons there are besides the first MOST_REASONS, and of how many cells."""
    others = list(faults.values())[MOST_REASONS:]
    if not others:
        return ""
    cells = sum(map(len, others))
    return (
        f"{len(others)} other reason{'s' * (len(others) > 1)} for {cells} cell{'s' * (cells > 1)}"
    )


def _settings(cell: Cell) -> Iterable[str]:
    return (f"{key}={value}" for key, value in cell.overrides.items())
