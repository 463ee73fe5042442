"""Shows the progress of a sweep: a bar with the remaining time, or lines without a terminal."""

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

_MAX_SILENT_SECONDS = 10.0  # without a terminal, the longest time between two lines
_MIN_ROUTINE_SECONDS = 1.0  # the shortest time between two routine lines


class ProgressReporter(Protocol):
    def update(self, done: int, running: dict[str, float]) -> None:
        """`done`: finished cells. `running`: name → fraction done, 0 to 1."""

    def message(self, line: str, routine: bool = False) -> None:
        """Shows a line. A routine line may be omitted."""

    def close(self) -> None: ...


def progress_reporter(total: int) -> ProgressReporter:
    return TerminalReporter(total) if sys.stderr.isatty() else PlainReporter(total)


class TimeEstimate:
    """Estimates the remaining time from the work done so far, in cells and fractions of cells."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._started = time.monotonic()

    def seconds_left(self, done: int, running: dict[str, float]) -> float | None:
        """None until 2 % of the work is done."""
        work = done + sum(running.values())
        if work < 0.02 * self._total or work <= 0:
            return None
        return (time.monotonic() - self._started) / work * (self._total - work)


def remaining_text(seconds: float | None) -> str:
    if seconds is None:
        return "remaining time unknown"
    rounded = int(seconds + 0.5)
    if rounded < 60:
        return f"about {rounded} s left"
    return (
        f"about {rounded // 60} min {rounded % 60:02d} s left"
        if rounded < 3600
        else f"about {rounded / 3600:.1f} h left"
    )


class PlainReporter:
    def __init__(self, total: int) -> None:
        self._total = total
        self._estimate = TimeEstimate(total)
        self._last = time.monotonic()
        self._done = 0
        self._running: dict[str, float] = {}

    def update(self, done: int, running: dict[str, float]) -> None:
        self._done, self._running = done, running
        if running and time.monotonic() - self._last > _MAX_SILENT_SECONDS:
            fractions = ", ".join(f"{name} {fraction:.0%}" for name, fraction in running.items())
            self.message(f"running {fractions}")

    def message(self, line: str, routine: bool = False) -> None:
        """Omits a routine line if another line was printed a moment ago."""
        if (
            routine
            and self._done < self._total
            and time.monotonic() - self._last < _MIN_ROUTINE_SECONDS
        ):
            return
        self._last = time.monotonic()
        left = (
            f", {remaining_text(self._estimate.seconds_left(self._done, self._running))}"
            if self._done < self._total
            else ""
        )
        print(f"[{self._done}/{self._total}{left}] {line}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class TerminalReporter:
    def __init__(self, total: int) -> None:
        self._total = total
        self._estimate = TimeEstimate(total)
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

    def update(self, done: int, running: dict[str, float]) -> None:
        left = (
            remaining_text(self._estimate.seconds_left(done, running)) if done < self._total else ""
        )
        fractions = "  ".join(f"{name} {fraction:3.0%}" for name, fraction in running.items())
        self._progress.update(
            self._task, completed=done, left=left, description=fractions or "sweep"
        )

    def message(self, line: str, routine: bool = False) -> None:
        if routine:
            return  # the bar shows it
        self._progress.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        self._progress.stop()
