"""Digests of the files that a run reads, so that a sweep runs a cell again if one has changed."""

import glob
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from lab.axes import PATH_KEYS
from lab.errors import LabError

# `[net]` says how processes reach each other, and does not change what a run computes.
_KEYS = sorted(key for key in PATH_KEYS if not key.startswith("net."))
_PEER = "{peer}"  # in the name of a file: the number of a peer
_MOST_FILES = 10_000  # of a folder
_MOST_BYTES = 2**30  # of files that are read: about a second


@dataclass
class InputFiles:
    """The digests for the cells of one sweep. Each file is read once."""

    config: Path
    constants: Collection[str]  # the settings of --set
    _known: dict[Path, str] = field(default_factory=dict)

    def digests(self, merged: dict[str, Any], overrides: Collection[str]) -> dict[str, str]:
        """Setting → digest of the files that it names in a merged configuration; only files that
        exist.

        A setting of the configuration is relative to its folder. One of the command line is
        relative to the working folder.
        """
        found = {}
        for key in _KEYS:
            section, _, name = key.partition(".")
            value = merged.get(section, {}).get(name)
            if not isinstance(value, str) or not value:
                continue
            given = key in overrides or key in self.constants
            path = Path(value) if given else self.config.parent / value
            if key == "data.path" and merged[section].get("kind") == "idx" and path.is_file():
                path = path.parent  # the labels lie beside the images
            if path not in self._known:
                try:
                    self._known[path] = digest(path)
                except OSError as error:
                    raise LabError(f"{key}: {error.filename}: {error.strerror}") from error
            if self._known[path]:
                found[key] = self._known[path]
        return found


def digest(path: Path) -> str:
    """A digest of a file, or of the files of a folder and their names. Empty if there is none.

    Files of more than 1 GiB in total are not read: their names, sizes and times of change count.
    """
    if _PEER in str(path):
        pattern = "*".join(map(glob.escape, str(path).split(_PEER)))
        files = {file: Path(file) for file in sorted(glob.glob(pattern)) if Path(file).is_file()}
    elif path.is_dir():
        some = islice((file for file in path.rglob("*") if file.is_file()), _MOST_FILES)
        files = {str(file.relative_to(path)): file for file in sorted(some)}
    else:
        files = {"": path} if path.is_file() else {}
    if not files:
        return ""
    stats = {name: file.stat() for name, file in files.items()}
    reads = sum(stat.st_size for stat in stats.values()) <= _MOST_BYTES
    total = hashlib.sha256()
    for name, file in files.items():
        content = f"{stats[name].st_size} {stats[name].st_mtime_ns}"
        if reads:
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
        total.update(f"{name}\n{content}\n".encode(errors="surrogateescape"))
    return total.hexdigest()[:32]
