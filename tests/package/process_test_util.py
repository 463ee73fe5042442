"""Processes of programs/, with their output."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from network_test_util import ReservedPort as ReservedPort
from network_test_util import wait_until

PROGRAMS = Path(__file__).parent / "programs"
DEADLINE = 120.0  # seconds for steps that take seconds on an idle machine


class Program:
    def __init__(self, folder: Path, script: str, arguments: tuple[object, ...]) -> None:
        self._output = folder / f"{Path(script).stem}-{time.monotonic_ns()}.txt"
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(PROGRAMS / script), *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                # Whoever runs the tests in the background has made them ignore interrupts.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def wait_for(self, text: str) -> None:
        """Until the program has printed this text."""
        wait_until(
            f"'{text}' is printed",
            lambda: text in self.output or (self.process.poll() is not None and self._ended(text)),
            DEADLINE,
        )

    def _ended(self, text: str) -> bool:
        assert text in self.output, f"ended without '{text}': {self.output}"
        return True

    def result(self) -> dict[str, Any]:
        """The last line of a program that succeeds, which is JSON."""
        assert self.wait() == 0, self.output
        return json.loads(self.output.splitlines()[-1])

    def wait(self) -> int:
        return self.process.wait(DEADLINE)

    def tell(self, line: str = "") -> None:
        """Sends a line to the program's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()


class Processes:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Program] = []

    def start(self, script: str, *arguments: object) -> Program:
        self._all.append(Program(self._folder, script, arguments))
        return self._all[-1]

    def kill(self) -> None:
        for program in self._all:
            program.process.kill()
            program.process.wait()
            assert program.process.stdin is not None
            program.process.stdin.close()
