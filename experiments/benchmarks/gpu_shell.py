"""Runs commands with deadlines and servers that answer line by line, and kills all of them."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

Record = dict[str, Any]


class StageError(Exception):
    """A stage cannot give a value. The message is the reason in the table."""


@dataclass
class CommandResult:
    """The result of a command. `code` is None if the command exceeded its time."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float

    def failure_reason(self) -> str:
        """The reason of a failure as one line."""
        if self.code is None:
            return f"not finished after {self.seconds:.0f} s"
        lines = [
            line
            for line in (*self.stdout.splitlines(), *self.stderr.splitlines())
            if line.strip() and line[0] != "{"
        ]
        errors = [line for line in lines if "error" in line.lower()][:1]
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{how}: {one_line((errors or lines[-1:] or ['no output'])[0])}"


def one_line(text: object, max_length: int = 300) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


class Shell:
    """Starts commands in their own process groups, and logs the commands and their output."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._closed = False
        log.write_text("", encoding="utf-8")

    def note(self, text: str) -> None:
        with self._lock, self._log.open("a", encoding="utf-8") as log:
            log.write(text.rstrip("\n") + "\n")

    def start(self, command: Sequence[object], **streams: Any) -> subprocess.Popen[str]:
        arguments = [str(argument) for argument in command]
        if self._closed:
            raise StageError("the suite was stopped")
        try:
            process = subprocess.Popen(
                arguments,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                **streams,
            )
        except OSError as error:
            raise StageError(f"{arguments[0]}: {error.strerror}") from error
        with self._lock:
            self._running.append(process)
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kills a command and its child processes."""
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        with self._lock:
            if process in self._running:
                self._running.remove(process)

    def kill_all(self) -> None:
        for process in list(self._running):
            self.kill(process)

    def close(self) -> None:
        """Kills all commands and prevents new ones.

        A signal handler may call it: it takes no lock and does not wait.
        """
        self._closed = True
        for process in list(self._running):
            if process.returncode is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def call(self, command: Sequence[object], seconds: float) -> CommandResult:
        """Runs a command. Kills it after `seconds`."""
        begin = time.monotonic()
        process = self.start(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        code: int | None = None
        try:
            stdout, stderr = process.communicate(timeout=max(0.1, seconds))
            code = process.returncode
        except subprocess.TimeoutExpired:
            self.kill(process)
            stdout, stderr = process.communicate()
        finally:
            self.kill(process)
        result = CommandResult(code, stdout, stderr, time.monotonic() - begin)
        self.note(
            f"$ {' '.join(str(argument) for argument in command)}\n"
            f"{stdout}{stderr}[{code}, {result.seconds:.1f} s]\n"
        )
        return result


class LineServer:
    """A program that answers each line with one line of JSON."""

    def __init__(self, shell: Shell, command: Sequence[object], seconds: float) -> None:
        """Waits for the program's record `device`."""
        self._shell, self._name = shell, Path(str(command[0])).name
        self._errors: list[str] = []
        self._process = shell.start(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert self._process.stdout is not None and self._process.stderr is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        self._stderr_reader = threading.Thread(
            target=self._errors.extend, args=(self._process.stderr,), daemon=True
        )
        self._stderr_reader.start()
        self.device = self._next(seconds)
        while self.device["record"] not in ("device", "failed"):
            self.device = self._next(seconds)
        if self.device["record"] == "failed":
            self.close()
            raise StageError(self.device["reason"])

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self, seconds: float) -> Record:
        try:
            line = self._lines.get(timeout=max(0.1, seconds))
        except queue.Empty:
            self.close()
            raise StageError(f"{self._name}: no answer in {seconds:.0f} s") from None
        if line is None:
            self._process.wait()
            self._stderr_reader.join(1)
            code = self._process.returncode
            message = one_line(self._errors[-1]) if self._errors else "no output"
            self.close()
            raise StageError(f"{self._name}: exit code {code}: {message}")
        try:
            return dict(json.loads(line))
        except ValueError:
            return {"record": "text", "text": line}

    def request(self, question: str, seconds: float) -> float:
        """Returns the rate of the answer. Throws StageError with the reason of a failure."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the program has ended; _next() finds the reason
        answer = self._next(seconds)
        while answer["record"] == "text":
            answer = self._next(seconds)
        if answer["record"] != "rate":
            raise StageError(one_line(answer.get("reason", answer)))
        self.last = answer
        return float(answer["rate"])

    def close(self) -> None:
        self._shell.kill(self._process)
        if self._errors:
            self._shell.note(f"stderr of {self._name}:\n{''.join(self._errors)}")
            self._errors = []


def records_of(text: str) -> list[Record]:
    """The records in an output. It may have other lines, and its last line may be incomplete."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "record" in record:
            records.append(record)
    return records
