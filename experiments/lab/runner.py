"""Runs cells in parallel, and stops all of them if the sweep itself is stopped."""

import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from lab.cells import Cell, merge, prepare_folder
from lab.launch import Job, JobResult, LaunchConfig, logged_fraction, node_count
from lab.progress import progress_reporter

POLL_SECONDS = 0.02
STOP_SECONDS = 15.0  # from the interrupt of a run until it is killed


@dataclass(frozen=True)
class RunnerOptions:
    launch_config: LaunchConfig
    config: dict[str, Any]
    hashes: dict[str, str]  # cell name → hash of its configuration
    build: str  # hash of the program
    processes: bool  # one process per peer
    jobs: int  # cells that run at the same time


def run_all(options: RunnerOptions, pending: list[Cell], finished: dict[str, JobResult]) -> None:
    """Runs the pending cells. Adds each result to `finished` by the cell's name.

    `finished` holds the results so far if the function ends with an exception.
    """
    waiting, running = deque(pending), list[Job]()
    progress = progress_reporter(len(pending))
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                running.append(start(options, waiting.popleft()))
            for job in list(running):
                if result := job.poll():
                    running.remove(job)
                    finished[job.cell.name] = result
                    progress.update(len(finished), {})
                    progress.message(
                        result_line(job.cell, result), routine=result.status == "finished"
                    )
            progress.update(len(finished), fractions(options, [job.cell for job in running]))
            time.sleep(POLL_SECONDS)
    finally:
        progress.close()
        if running:
            print(f"sweep: stopping {len(running)} run(s)", file=sys.stderr)
            stop(running)


def start(options: RunnerOptions, cell: Cell, inherited: tuple[int, ...] = ()) -> Job:
    """Starts the cell in its emptied folder."""
    prepare_folder(cell, options.hashes[cell.name], options.build)
    processes = node_count(options.launch_config, cell) if options.processes else None
    return Job(options.launch_config, cell, processes, inherited)


def fractions(options: RunnerOptions, running: list[Cell]) -> dict[str, float]:
    """The names of the running cells, and which fraction of its rounds each has done."""
    found = {}
    for cell in running:
        rounds = merge(options.config, cell.overrides).get("run", {}).get("rounds")
        found[cell.name] = logged_fraction(cell.folder, rounds if isinstance(rounds, int) else 1)
    return found


def stop(running: list[Job]) -> None:
    """Interrupts every run, as Ctrl-C would, and kills those that have not ended in time."""
    try:
        for job in running:
            job.interrupt()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not all(job.ended() for job in running):
            time.sleep(POLL_SECONDS)
    finally:
        for job in running:
            job.kill()


def result_line(cell: Cell, result: JobResult) -> str:
    if result.status == "finished":
        return f"{cell.name} finished in {result.seconds:.1f} s"
    return f"{cell.name} {result.status.upper()}: {result.error}"
