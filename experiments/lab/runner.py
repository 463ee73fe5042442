"""Runs cells, a few at a time, and ends all of them when it is itself ended."""

import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from lab.cells import Cell, merge, prepare_folder
from lab.launch import Job, Outcome, Recipe, node_count
from lab.progress import watcher

_POLL_SECONDS = 0.02
_END_SECONDS = 15.0  # from Ctrl-C to the killing of a run that does not end


@dataclass(frozen=True)
class Plan:
    recipe: Recipe
    config: dict[str, Any]
    hashes: dict[str, str]  # of the cells' configurations, by name
    build: str  # which build of the program
    processes: bool  # one process per peer
    jobs: int  # runs at a time


def run_all(plan: Plan, todo: list[Cell], outcomes: dict[str, Outcome]) -> None:
    """Fills `outcomes` by the cells' names, as far as it comes."""
    waiting, running = deque(todo), list[Job]()
    watch = watcher(len(todo))
    try:
        while waiting or running:
            while waiting and len(running) < plan.jobs:
                cell = waiting.popleft()
                prepare_folder(cell, plan.hashes[cell.name], plan.build)
                running.append(start(plan, cell))
            for job in list(running):
                if outcome := job.poll():
                    running.remove(job)
                    outcomes[job.cell.name] = outcome
                    watch.tick(len(outcomes), {})
                    watch.say(sentence(job.cell, outcome), routine=outcome.status == "finished")
            watch.tick(len(outcomes), {job.cell.name: job.fraction() for job in running})
            time.sleep(_POLL_SECONDS)
    finally:
        watch.close()
        end(running)


def start(plan: Plan, cell: Cell) -> Job:
    rounds = merge(plan.config, cell.overrides).get("run", {}).get("rounds")
    processes = node_count(plan.recipe, cell) if plan.processes else None
    return Job(plan.recipe, cell, processes, rounds if isinstance(rounds, int) else 1)


def end(running: list[Job]) -> None:
    """Asks every run to end, as Ctrl-C would, waits, and kills what did not."""
    if not running:
        return
    print(f"sweep: ending {len(running)} run(s)", file=sys.stderr)
    try:
        for job in running:
            job.interrupt()
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline and not all(job.ended() for job in running):
            time.sleep(_POLL_SECONDS)
    finally:
        for job in running:
            job.kill()


def sentence(cell: Cell, outcome: Outcome) -> str:
    if outcome.status == "finished":
        return f"{cell.name} finished in {outcome.seconds:.1f} s"
    return f"{cell.name} {outcome.status.upper()}: {outcome.error}"
