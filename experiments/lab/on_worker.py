"""Runs one cell on a worker of Dask.

Workers need neither these sources nor their packages: the functions travel to them with the cells.
"""

import asyncio
import fcntl
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from lab.cells import Cell
from lab.errors import LabError
from lab.runner import POLL_SECONDS, STOP_SECONDS, RunnerOptions, start, stop

REFUSED = "refused"  # no status of a cell: the sweep cannot go on
_LOCK_SECONDS = 60.0  # for how long a lost worker's run may keep its cell


def lock_of(cell: Cell) -> Path:
    """The file that a run of the cell locks; not in its folder, which each run empties.

    It has a line for each attempt to run the cell, with the name of the machine.
    """
    return cell.folder.parent / ".locks" / cell.name


def run_cell(
    options: RunnerOptions, topic: str, fields: dict[str, Any], config_hash: str
) -> tuple[str, str, float]:
    """Runs the cell with these fields. Returns the fields of its JobResult.

    The run inherits the lock. A lost worker's run may go on writing, on a machine that the network
    has cut off, while the cell is started again: the second run waits until the first has ended.
    """
    from distributed import get_worker
    from distributed.core import Status

    cell = Cell(**fields)
    options = replace(options, hashes={cell.name: config_hash})
    worker = get_worker()
    key = worker.get_current_task()

    def cancelled() -> bool:
        """If the sweep has ended, even without a farewell, or the worker is about to."""
        task = worker.state.tasks.get(key)
        running = worker.status in (Status.running, Status.paused)
        return task is None or task.state != "executing" or not running

    try:
        with lock_of(cell).open("r+", encoding="utf-8") as held:
            if not _locked(held, cancelled):
                return "failed", "the run of a lost worker still writes to the cell's folder", 0.0
            attempt = len(held.readlines()) + 1
            held.write(platform.node() + "\n")
            held.flush()
            event = {"cell": cell.name, "host": platform.node(), "attempt": attempt}
            worker.log_event(topic, event)
            return _run(options, cell, held, cancelled)
    except FileNotFoundError as error:
        if error.filename != str(lock_of(cell)):
            raise
        return (
            REFUSED,
            f"the worker {worker.address} on {platform.node()} does not see the folder "
            f"{cell.folder.parent}: choose an --out in a file system that all workers share",
            0.0,
        )


def _run(
    options: RunnerOptions, cell: Cell, lock: TextIO, cancelled: Callable[[], bool]
) -> tuple[str, str, float]:
    missing = [
        path
        for path in (options.launch_config.command[0], options.launch_config.working_folder)
        if os.path.isabs(path) and not os.path.exists(path)
    ]
    if missing:
        return REFUSED, f"the worker on {platform.node()} has no {missing[0]}", 0.0
    try:
        job = start(options, cell, (lock.fileno(),))
    except LabError as error:
        return REFUSED, str(error), 0.0
    while not (result := job.poll()):
        if cancelled():
            stop([job])
            return "failed", "stopped", 0.0
        time.sleep(POLL_SECONDS)
    return result.status, result.error, result.seconds


def _locked(file: TextIO, cancelled: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < deadline and not cancelled():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
    return False


async def ended(keys: set[str], dask_worker: Any) -> None:
    """Waits until no cancelled task is left on a worker, which is when its run has ended."""
    deadline = time.monotonic() + STOP_SECONDS + 5
    while time.monotonic() < deadline and not keys.isdisjoint(dask_worker.state.tasks):
        await asyncio.sleep(POLL_SECONDS)
