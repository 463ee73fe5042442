"""Runs one cell: `gossamer run`, or one `gossamer peer` process per peer (and per server of the algorithm, if it has any) over
TCP on this machine and then `collect`.

Children have their own session, so that Ctrl-C reaches the sweep alone, which then ends them in order. Their messages
go to files in the cell's folder; nothing is piped, so nothing can block.
"""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab.cells import Cell, read_json

DIVERGED = 8
_OTHERS_GRACE_SECONDS = 15.0  # peers end by themselves within 10 s when one is lost
_TAIL_BYTES = 65536


@dataclass(frozen=True)
class Recipe:
    """What every cell of a sweep shares."""

    binary: Path
    config: Path
    common: dict[str, str] = field(
        default_factory=dict
    )  # overrides that change no result (threads)


@dataclass(frozen=True)
class Outcome:
    status: str  # finished | diverged | failed
    error: str = ""
    seconds: float = 0.0


def settings(recipe: Recipe, cell: Cell, extra: dict[str, str] | None = None) -> list[str]:
    merged = {**recipe.common, **cell.overrides, **(extra or {})}
    return [word for key, value in merged.items() for word in ("--set", f"{key}={value}")]


def check(recipe: Recipe, cell: Cell) -> str:
    """What is wrong with the cell's configuration; empty when it can run."""
    command = [str(recipe.binary), "run", str(recipe.config), "--check", *settings(recipe, cell)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def node_count(recipe: Recipe, cell: Cell) -> int:
    """Peers and servers of a cell that can run: as many processes."""
    command = [
        str(recipe.binary),
        "run",
        str(recipe.config),
        "--check",
        "--json",
        *settings(recipe, cell),
    ]
    found = json.loads(
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    )
    return int(found["peers"]) + int(found["servers"])


class Job:
    """A cell being run. `poll` until it gives an outcome; `interrupt`, then `kill`, to end it early."""

    def __init__(self, recipe: Recipe, cell: Cell, processes: int | None, rounds: int) -> None:
        self.cell = cell
        self._recipe = recipe
        self._rounds = max(rounds, 1)
        self._started = time.monotonic()
        self._first_failure: float | None = None
        self._collecting = processes is None  # one process writes its summary itself
        self._stages: list[tuple[str, subprocess.Popen[bytes]]] = []
        if processes is None:
            self._start(
                "run",
                [
                    "run",
                    str(recipe.config),
                    *settings(recipe, cell),
                    "--out",
                    str(cell.folder),
                    "--quiet",
                ],
            )
        else:
            rendezvous = cell.folder / "rendezvous"
            rendezvous.mkdir()
            extra = {"net.listen": "127.0.0.1:0", "net.rendezvous": str(rendezvous.resolve())}
            for node in range(processes):
                self._start(
                    f"peer-{node}",
                    [
                        "peer",
                        str(recipe.config),
                        "--id",
                        str(node),
                        *settings(recipe, cell, extra),
                        "--out",
                        str(cell.folder),
                        "--quiet",
                    ],
                )

    def poll(self) -> Outcome | None:
        codes = [process.poll() for _, process in self._stages]
        if any(code is None for code in codes):
            self._end_stragglers(codes)
            return None
        if any(codes):
            return self._failure()
        if not self._collecting:
            self._collecting = True
            self._start("collect", ["collect", str(self.cell.folder)])
            return None
        return self._result()

    def fraction(self) -> float:
        """How much of the cell is done, by the last round in its log."""
        logs = sorted(self.cell.folder.glob("log-*.jsonl"))
        return min(_last_round(logs[0]) / self._rounds, 1.0) if logs else 0.0

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        for _, process in self._stages:
            process.wait()

    def ended(self) -> bool:
        return all(process.poll() is not None for _, process in self._stages)

    def _start(self, stage: str, arguments: list[str]) -> None:
        with (self.cell.folder / f"stderr-{stage}.txt").open("wb") as messages:
            process = subprocess.Popen(
                [str(self._recipe.binary), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
            )
        self._stages.append((stage, process))

    def _signal(self, number: signal.Signals) -> None:
        for _, process in self._stages:
            if process.poll() is None:
                os.kill(process.pid, number)

    def _end_stragglers(self, codes: list[int | None]) -> None:
        """One process failed: the others get their time to end by themselves, and no more."""
        if not any(codes):
            return
        now = time.monotonic()
        self._first_failure = self._first_failure or now
        if now - self._first_failure > _OTHERS_GRACE_SECONDS:
            self._signal(signal.SIGKILL)

    def _failure(self) -> Outcome:
        failed = [
            (stage, process.returncode)
            for stage, process in self._stages
            if process.returncode != 0
        ]
        reports = []
        for stage, code in failed[:3]:
            words = _tail(self.cell.folder / f"stderr-{stage}.txt") or "no message"
            how = f"exit status {code}" if code > 0 else f"killed by signal {-code}"
            reports.append(f"{stage} ({how}): {words}")
        if len(failed) > 3:
            reports.append(f"… and {len(failed) - 3} more processes")
        # Of a network, the peer that diverged ends the others as well: theirs are consequences.
        status = "diverged" if any(code == DIVERGED for _, code in failed) else "failed"
        return Outcome(status, "\n".join(reports), self._seconds())

    def _result(self) -> Outcome:
        summary = read_json(self.cell.folder / "summary.json")
        if summary is None:
            return Outcome("failed", "exit status 0, but no whole summary.json", self._seconds())
        if summary.get("reason") != "finished":
            return Outcome(
                "failed", f"the run ended early: {summary.get('reason')}", self._seconds()
            )
        return Outcome("finished", "", self._seconds())

    def _seconds(self) -> float:
        return time.monotonic() - self._started


def _tail(path: Path, lines: int = 12) -> str:
    try:
        return "\n".join(
            path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-lines:]
        )
    except OSError:
        return ""


def _last_round(log: Path) -> int:
    """The round of the last whole round record near the end of a log."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("record") == "round":
            return int(record["round"])
    return 0
