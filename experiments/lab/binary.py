"""Finds the `gossamer` program."""

import hashlib
import os
from pathlib import Path

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


def build_hash(binary: Path) -> str:
    """A hash of the program file, so that a sweep can detect results of another build."""
    return hashlib.sha256(binary.read_bytes()).hexdigest()[:16]
