"""Starts Python programs as forks of a process that has imported PyTorch, which takes two seconds.

The tests start more than a hundred such programs. They are processes like any other, but for
PyTorch, which all of them have; what they do and leave behind, and how they end, is their own.

Run as a program, with the number of a socket, it is the server.
"""

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

READ, WRITE = 0, 1  # the ends of a pipe


class ForkedProcess:
    """What subprocess.Popen has, as far as the tests use it."""

    def __init__(self, status: int, stdin: int) -> None:
        self._status = status  # the end to read of a pipe: the number of the process, its exit code
        self._text = b""
        self.returncode: int | None = None
        self.stdin = os.fdopen(stdin, "wb")
        self.pid = int(self._line(60))

    def _line(self, timeout: float) -> str:
        end = time.monotonic() + timeout
        while b"\n" not in self._text:
            if not select.select([self._status], [], [], max(0, end - time.monotonic()))[READ]:
                raise subprocess.TimeoutExpired("a forked program", timeout)
            more = os.read(self._status, 100)
            assert more, "the fork server has ended"
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def wait(self, timeout: float = 60) -> int:
        if self.returncode is None:
            self.returncode = int(self._line(timeout))
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Ends with the process that has made it. The server's environment is that of this process."""

    def __init__(self) -> None:
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._server = subprocess.Popen(
                [sys.executable, "-u", __file__, str(other.fileno())], pass_fds=[other.fileno()]
            )

    def start(self, script: Path, arguments: list[str], folder: Path, output: Any) -> ForkedProcess:
        """Runs `script` in `folder`, with the environment that this process has now."""
        request = {
            "argv": [str(script), *arguments],
            "folder": str(folder),
            "environment": dict(os.environ),
        }
        stdin, status = os.pipe(), os.pipe()
        theirs = [stdin[READ], output.fileno(), status[WRITE]]
        socket.send_fds(self._requests, [json.dumps(request).encode()], theirs)
        os.close(stdin[READ])
        os.close(status[WRITE])
        return ForkedProcess(status[READ], stdin[WRITE])


def next_program(requests: socket.socket) -> list[str]:
    """Returns in each program, with its arguments."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait for programs leave nothing
    while True:
        text, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not text:
            sys.exit()
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    requests.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stdin, output, status = files
    program = os.fork()
    if program != 0:
        os.close(stdin)
        os.write(status, f"{program}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        os.write(status, f"{code}\n".encode())
        os._exit(0)
    request = json.loads(text)
    for file, number in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    # A shell that runs the tests in the background makes them ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    return list(request["argv"])


if __name__ == "__main__":
    import torch  # noqa: F401

    sys.argv = next_program(socket.socket(fileno=int(sys.argv[1])))
    sys.path[0] = str(Path(sys.argv[0]).parent)
    kept = runpy.run_path(sys.argv[0], run_name="__main__")  # until the interpreter ends
