"""Fixtures of the tests of the Python package, which run in .venv-torch (scripts/install.sh).

The package is that of the release build, or in $GOSSAMER_PACKAGE.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(os.environ.get("GOSSAMER_PACKAGE") or ROOT / "build" / "release" / "python")
sys.path[:0] = [str(PACKAGE), str(ROOT / "tests" / "package" / "programs")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2] + [str(ROOT / "tests" / "package")])
if not list(PACKAGE.glob("gossamer/_core.*")):
    pytest.exit(f"no package gossamer in {PACKAGE}: build gossamer_python first", 1)

import torch  # noqa: E402
from process_test_util import Processes  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def program() -> Path:
    """The program in the package."""
    return PACKAGE / "gossamer" / "bin" / "gossamer"


Configure = Callable[..., Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """configure(peers=4, rounds=10) writes run.toml of a task; further lines follow."""

    def write(peers: int = 4, rounds: int = 10, *lines: str) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(
            f"[run]\npeers = {peers}\nrounds = {rounds}\n"
            '[model]\nkind = "external"\n[local]\nthreads = 1\n'
            '[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\n'
            "join_timeout = 60\nfailure_timeout = 30\n" + "\n".join(lines),
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """processes.start("loop.py", …) starts a program of programs/; the end of the test kills it."""
    started = Processes(tmp_path)
    yield started
    started.kill()
