"""Processes of programs/, with their output."""

import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from fork_server import ForkServer
from network_test_util import DEADLINE, wait_until
from network_test_util import ReservedPort as ReservedPort

PROGRAMS = Path(__file__).parent / "programs"


@functools.cache
def server() -> ForkServer:
    return ForkServer()


class Program:
    def __init__(self, folder: Path, script: str | Path, arguments: tuple[object, ...]) -> None:
        self._output = folder / f"{Path(script).stem}-{time.monotonic_ns()}.txt"
        with self._output.open("w") as output:
            self.process = server().start(
                PROGRAMS / script, [str(each) for each in arguments], folder, output
            )

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def wait_for(self, text: str) -> None:
        """Until the program has printed this text."""
        wait_until(
            f"'{text}' is printed",
            lambda: text in self.output or (self.process.poll() is not None and self._ended(text)),
        )

    def _ended(self, text: str) -> bool:
        assert text in self.output, f"ended without '{text}': {self.output}"
        return True

    def result(self) -> dict[str, Any]:
        """The last line of a program that succeeds, which is JSON."""
        assert self.wait() == 0, self.output
        return json.loads(self.output.splitlines()[-1])

    def wait(self, timeout: float = DEADLINE) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout} s: {self.output}") from None

    def tell(self, line: str = "") -> None:
        """Sends a line to the program's standard input."""
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()


class Processes:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Program] = []

    def start(self, script: str | Path, *arguments: object) -> Program:
        """`script`: one of programs/, or the path of another one."""
        self._all.append(Program(self._folder, script, arguments))
        return self._all[-1]

    def kill(self) -> None:
        for program in self._all:
            program.process.kill()
            program.process.wait()
            program.process.stdin.close()
