"""Progress of a sweep: a bar with ETA on a terminal, plain lines off it."""

import sys
import time
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

_QUIET_SECONDS = 10.0  # off a terminal, say something at least this often …
_ROUTINE_SECONDS = 1.0  # … and not more often than this, failures excepted


class Watcher(Protocol):
    def tick(self, done: int, running: dict[str, float]) -> None: ...
    def say(self, line: str, routine: bool = False) -> None: ...
    def close(self) -> None: ...


def watcher(total: int) -> Watcher:
    return TerminalWatcher(total) if sys.stderr.isatty() else PlainWatcher(total)


class Estimate:
    """Seconds left, from the work done since the start. Work is counted in cells, running ones by their fraction."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._started = time.monotonic()

    def left(self, done: int, running: dict[str, float]) -> float | None:
        work = done + sum(running.values())
        if work < 0.02 * self._total or work <= 0:
            return None
        return (time.monotonic() - self._started) / work * (self._total - work)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "time left not yet known"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"about {whole} s left"
    return (
        f"about {whole // 60} min {whole % 60:02d} s left"
        if whole < 3600
        else f"about {whole / 3600:.1f} h left"
    )


class PlainWatcher:
    def __init__(self, total: int) -> None:
        self._total = total
        self._estimate = Estimate(total)
        self._last = time.monotonic()
        self._done = 0
        self._running: dict[str, float] = {}

    def tick(self, done: int, running: dict[str, float]) -> None:
        self._done, self._running = done, running
        if running and time.monotonic() - self._last > _QUIET_SECONDS:
            inside = ", ".join(f"{name} {fraction:.0%}" for name, fraction in running.items())
            self.say(f"running {inside}")

    def say(self, line: str, routine: bool = False) -> None:
        """Routine lines are left out where there is one every moment."""
        if (
            routine
            and self._done < self._total
            and time.monotonic() - self._last < _ROUTINE_SECONDS
        ):
            return
        self._last = time.monotonic()
        left = (
            f", {duration(self._estimate.left(self._done, self._running))}"
            if self._done < self._total
            else ""
        )
        print(f"[{self._done}/{self._total}{left}] {line}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class TerminalWatcher:
    def __init__(self, total: int) -> None:
        self._total = total
        self._estimate = Estimate(total)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: TaskID = self._progress.add_task("sweep", total=total, left="")
        self._progress.start()

    def tick(self, done: int, running: dict[str, float]) -> None:
        left = duration(self._estimate.left(done, running)) if done < self._total else ""
        inside = "  ".join(f"{name} {fraction:3.0%}" for name, fraction in running.items())
        self._progress.update(self._task, completed=done, left=left, description=inside or "sweep")

    def say(self, line: str, routine: bool = False) -> None:
        if routine:
            return  # the bar shows it
        self._progress.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        self._progress.stop()
