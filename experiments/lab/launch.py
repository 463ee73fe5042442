"""Runs one cell with the `gossamer` program.

A cell is either one `gossamer run` process, or one `gossamer peer` process per peer and per server
of the algorithm, connected by TCP on this machine, followed by `gossamer collect`.

Child processes have their own session, so that Ctrl-C reaches the sweep alone, which then stops
them in order. They end with the process that started them, even if that is killed. Their messages
go to files in the cell's folder: a process never blocks on a pipe.
"""

import ctypes
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab.cells import Cell, read_json

INVALID, DIVERGED = 2, 8  # exit statuses: invalid configuration, run that diverged
_GRACE_SECONDS = 15.0  # peers end within 10 s after one of them has failed
_TAIL_BYTES = 65536
_PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when its parent ends


@dataclass(frozen=True)
class LaunchConfig:
    """The parts of the command line that all cells of a sweep share."""

    command: tuple[str, ...]  # the program: lab.binary.program_command
    config: Path
    # Overrides of all cells: the constants of a sweep, and the number of threads.
    common: dict[str, str] = field(default_factory=dict)
    keep_parameters: bool = False  # whether cells that have finished keep final-*.safetensors
    # Where the program starts, if not in the folder of this process.
    working_folder: Path | None = None


@dataclass(frozen=True)
class JobResult:
    status: str  # finished | diverged | failed
    error: str = ""
    seconds: float = 0.0


def settings(
    launch_config: LaunchConfig, cell: Cell, extra: dict[str, str] | None = None
) -> list[str]:
    merged = {**launch_config.common, **cell.overrides, **(extra or {})}
    return [part for key, value in merged.items() for part in ("--set", f"{key}={value}")]


def check_command(launch_config: LaunchConfig, cell: Cell, *options: str) -> list[str]:
    """The command that checks the cell's configuration without running it."""
    start = [*launch_config.command, "run", str(launch_config.config), "--check"]
    return [*start, *options, *settings(launch_config, cell)]


def check(launch_config: LaunchConfig, cell: Cell) -> tuple[int, str]:
    """The exit status and the message of the program; (0, "") if the cell can run."""
    done = subprocess.run(
        check_command(launch_config, cell),
        cwd=launch_config.working_folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return 0, ""
    return done.returncode, done.stderr.strip() or f"exit status {done.returncode}"


def node_count(launch_config: LaunchConfig, cell: Cell) -> int:
    """The number of peers and servers of a valid cell, which is its number of processes."""
    command = check_command(launch_config, cell, "--json")
    done = subprocess.run(
        command,
        cwd=launch_config.working_folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return int(found["peers"]) + int(found["servers"])


def logged_fraction(folder: Path, rounds: int) -> float:
    """The fraction of the rounds that the run in a folder has logged, 0 to 1."""
    logs = sorted(folder.glob("log-*.jsonl"))
    return min(_last_round(logs[0]) / max(rounds, 1), 1.0) if logs else 0.0


class Job:
    """A running cell. Call `poll` until it returns a result; `interrupt`, then `kill`, stop it.

    Its processes inherit the open files `inherited`. The thread that creates the job must outlive
    it: the system kills the processes when this thread ends.
    """

    def __init__(
        self,
        launch_config: LaunchConfig,
        cell: Cell,
        processes: int | None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        self.cell = cell
        self._launch_config = launch_config
        self._inherited = inherited
        self._started = time.monotonic()
        self._first_failure: float | None = None
        self._collecting = processes is None  # `gossamer run` writes the summary itself
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        if processes is None:
            self._start(
                "run",
                [
                    "run",
                    str(launch_config.config),
                    *settings(launch_config, cell),
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
                        str(launch_config.config),
                        "--id",
                        str(node),
                        *settings(launch_config, cell, extra),
                        "--out",
                        str(cell.folder),
                        "--quiet",
                    ],
                )

    def poll(self) -> JobResult | None:
        codes = [process.poll() for _, process in self._processes]
        if any(code is None for code in codes):
            self._kill_after_grace_period(codes)
            return None
        if any(codes):
            return self._failure()
        if not self._collecting:
            self._collecting = True
            self._start("collect", ["collect", str(self.cell.folder)])
            return None
        return self._result()

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        for _, process in self._processes:
            process.wait()

    def ended(self) -> bool:
        return all(process.poll() is not None for _, process in self._processes)

    def _start(self, stage: str, arguments: list[str]) -> None:
        prctl = ctypes.CDLL(None).prctl
        with (self.cell.folder / f"stderr-{stage}.txt").open("wb") as messages:
            process = subprocess.Popen(
                [*self._launch_config.command, *arguments],
                cwd=self._launch_config.working_folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
                pass_fds=self._inherited,
                preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        self._processes.append((stage, process))

    def _signal(self, number: signal.Signals) -> None:
        for _, process in self._processes:
            if process.poll() is None:
                os.kill(process.pid, number)

    def _kill_after_grace_period(self, codes: list[int | None]) -> None:
        """After a failure, kills the other processes if they have not ended in time."""
        if not any(codes):
            return
        now = time.monotonic()
        self._first_failure = self._first_failure or now
        if now - self._first_failure > _GRACE_SECONDS:
            self._signal(signal.SIGKILL)

    def _failure(self) -> JobResult:
        failed = [
            (stage, process.returncode)
            for stage, process in self._processes
            if process.returncode != 0
        ]
        reports = []
        for stage, code in failed[:3]:
            message = _tail(self.cell.folder / f"stderr-{stage}.txt") or "no message"
            how = f"exit status {code}" if code > 0 else f"killed by signal {-code}"
            reports.append(f"{stage} ({how}): {message}")
        if len(failed) > 3:
            reports.append(f"… and {len(failed) - 3} more processes")
        # A peer that diverges makes the other peers of its network fail as a consequence.
        status = "diverged" if any(code == DIVERGED for _, code in failed) else "failed"
        return JobResult(status, "\n".join(reports), self._seconds())

    def _result(self) -> JobResult:
        summary = read_json(self.cell.folder / "summary.json")
        if summary is None:
            return JobResult(
                "failed", "exit status 0, but no complete summary.json", self._seconds()
            )
        if summary.get("reason") != "finished":
            return JobResult(
                "failed", f"the run ended early: {summary.get('reason')}", self._seconds()
            )
        if not self._launch_config.keep_parameters:  # nearly all of the cell; no table needs them
            for parameters in self.cell.folder.glob("final-*.safetensors"):
                parameters.unlink()
        return JobResult("finished", "", self._seconds())

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
    """The round of the last complete round record in the final _TAIL_BYTES of a log; 0 if none."""
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
