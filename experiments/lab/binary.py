"""Finds the `gossamer` program, and the Python package for tasks."""

import hashlib
import os
from pathlib import Path
from typing import Any

from lab.cells import trains_task
from lab.errors import LabError

ROOT = Path(__file__).resolve().parents[2]


def find_binary() -> Path:
    """$GOSSAMER_BIN, else the release build of this repository.

    Throws LabError if there is no executable file.
    """
    named = os.environ.get("GOSSAMER_BIN")
    path = Path(named) if named else ROOT / "build" / "release" / "bin" / "gossamer"
    if not path.is_file() or not os.access(path, os.X_OK):
        source = "GOSSAMER_BIN" if named else "the release build"
        raise LabError(
            f"no gossamer program at {path} (the path is that of {source}); "
            "build it with: cmake --preset release && cmake --build --preset release"
        )
    return path.resolve()


def program_command(config: dict[str, Any]) -> tuple[str, ...]:
    """The command that runs a configuration.

    That is the program. If the configuration names the file of a task, it is the Python package:
    that of $GOSSAMER_PYTHON, else of the release build. Throws LabError if there is none.
    """
    if not trains_task(config):
        return (str(find_binary()),)
    if python := os.environ.get("GOSSAMER_PYTHON"):
        return (python, "-m", "gossamer")
    package = ROOT / "build" / "release" / "python"
    if not list(package.glob("gossamer/_core.*")):
        raise LabError(
            f"no Python package in {package}, which tasks in Python need: build it with "
            "scripts/install.sh && cmake --preset release && cmake --build --preset release; or "
            "name a Python that has it in GOSSAMER_PYTHON"
        )
    python = str(ROOT / ".venv-torch" / "bin" / "python")
    return ("env", f"PYTHONPATH={package}", python, "-m", "gossamer")


def build_hash() -> str:
    """A hash of the program, so that a sweep can detect results of another build."""
    binary = find_binary()
    try:
        return hashlib.sha256(binary.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise LabError(f"{binary}: {error.strerror}") from error
