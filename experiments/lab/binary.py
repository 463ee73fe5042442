"""Where the `gossamer` program is."""

import hashlib
import os
from pathlib import Path

from lab.errors import LabError

ROOT = Path(__file__).resolve().parents[2]


def find_binary() -> Path:
    """$GOSSAMER_BIN, else the release build of this repository."""
    named = os.environ.get("GOSSAMER_BIN")
    path = Path(named) if named else ROOT / "build" / "release" / "bin" / "gossamer"
    if not path.is_file() or not os.access(path, os.X_OK):
        source = "GOSSAMER_BIN names" if named else "the release build should leave"
        raise LabError(
            f"no gossamer program at {path} ({source} it); "
            "build it with: cmake --preset release && cmake --build --preset release"
        )
    return path.resolve()


def build_hash(binary: Path) -> str:
    """Tells one build of the program from another, so that results of two builds are not taken for one experiment."""
    return hashlib.sha256(binary.read_bytes()).hexdigest()[:16]
