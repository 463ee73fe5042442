"""Commands with deadlines, and helpers that answer line by line: nothing that the suite starts outlives it."""

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


class Failed(Exception):
    """A part that cannot give its figure; the words are the reason in the table."""


@dataclass
class Done:
    """How a command ended. `code` is None where its time was up."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float

    def why(self) -> str:
        """The reason of a failure in one line."""
        if self.code is None:
            return f"not finished after {self.seconds:.0f} s"
        said = [
            line
            for line in (*self.stdout.splitlines(), *self.stderr.splitlines())
            if line.strip() and line[0] != "{"
        ]
        errors = [line for line in said if "error" in line.lower()][:1]
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{how}: {one_line((errors or said[-1:] or ['it said nothing'])[0])}"


def one_line(text: object, most: int = 300) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= most else words[: most - 1] + "…"


class Shell:
    """Starts commands, each the head of a group of its own, and writes down what they were and said."""

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
        words = [str(word) for word in command]
        if self._closed:
            raise Failed("the suite was ended")
        try:
            process = subprocess.Popen(
                words,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                **streams,
            )
        except OSError as error:
            raise Failed(f"{words[0]}: {error.strerror}") from error
        with self._lock:
            self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """Ends a command and all that it started."""
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        with self._lock:
            if process in self._running:
                self._running.remove(process)

    def end_all(self) -> None:
        for process in list(self._running):
            self.end(process)

    def close(self) -> None:
        """Ends all, and starts no more; takes no lock and waits for nothing, so a signal handler may call it."""
        self._closed = True
        for process in list(self._running):
            if process.returncode is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def call(self, command: Sequence[object], seconds: float) -> Done:
        """Runs a command to its end, or ends it after `seconds`."""
        begin = time.monotonic()
        process = self.start(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        code: int | None = None
        try:
            stdout, stderr = process.communicate(timeout=max(0.1, seconds))
            code = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process)
            stdout, stderr = process.communicate()
        finally:
            self.end(process)
        done = Done(code, stdout, stderr, time.monotonic() - begin)
        self.note(
            f"$ {' '.join(str(word) for word in command)}\n{stdout}{stderr}[{code}, {done.seconds:.1f} s]\n"
        )
        return done


class Server:
    """A program that answers each line with one line of JSON."""

    def __init__(self, shell: Shell, command: Sequence[object], seconds: float) -> None:
        """Waits for its record `device`."""
        self._shell, self._name = shell, Path(str(command[0])).name
        self._errors: list[str] = []
        self._process = shell.start(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert self._process.stdout is not None and self._process.stderr is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        self._listener = threading.Thread(
            target=self._errors.extend, args=(self._process.stderr,), daemon=True
        )
        self._listener.start()
        self.device = self._next(seconds)
        while self.device["record"] not in ("device", "failed"):
            self.device = self._next(seconds)
        if self.device["record"] == "failed":
            self.close()
            raise Failed(self.device["reason"])

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self, seconds: float) -> Record:
        try:
            line = self._lines.get(timeout=max(0.1, seconds))
        except queue.Empty:
            self.close()
            raise Failed(f"{self._name}: no answer in {seconds:.0f} s") from None
        if line is None:
            self._process.wait()
            self._listener.join(1)
            code, said = (
                self._process.returncode,
                one_line(self._errors[-1]) if self._errors else "it said nothing",
            )
            self.close()
            raise Failed(f"{self._name}: exit code {code}: {said}")
        try:
            return dict(json.loads(line))
        except ValueError:
            return {"record": "text", "text": line}

    def ask(self, question: str, seconds: float) -> float:
        """The rate that it answers; its reason as Failed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended, and why is read below
        answer = self._next(seconds)
        while answer["record"] == "text":
            answer = self._next(seconds)
        if answer["record"] != "rate":
            raise Failed(one_line(answer.get("reason", answer)))
        self.last = answer
        return float(answer["rate"])

    def close(self) -> None:
        self._shell.end(self._process)
        if self._errors:
            self._shell.note(f"{self._name} said:\n{''.join(self._errors)}")
            self._errors = []


def records_of(text: str) -> list[Record]:
    """The JSON objects among the lines of an output, as far as it came."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "record" in record:
            records.append(record)
    return records
