"""Sharded models: each shard is a network of its own, of the processes that hold this shard."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gossamer._core import Error

# What the networks of two shards must not share: the name of the run, and folders.
FOLDERS = ("net.rendezvous", "local.out", "checkpoint.folder")


@dataclass(frozen=True)
class Shard:
    """Shard `index` of `count`, the one that this process holds."""

    index: int
    count: int

    @property
    def name(self) -> str:
        return f"shard{self.index}of{self.count}"

    def overrides(self, config: str | os.PathLike[str], given: list[str]) -> list[str]:
        """`given`, and the settings that make a network of this shard alone.

        Its run id is that of the configuration with the name of the shard, and its folders are
        folders of that name in those of the configuration.
        """
        settings = Settings(config, given)
        if not settings.readable:
            return given  # the run reports what is wrong with the file
        run = settings.text("run.id")
        if not run:
            raise Error(
                "shard: each shard is a network of its own, whose name begins with run.id, which "
                "is missing: set run.id"
            )
        own = [f"run.id={run}-{self.name}"]
        for key in FOLDERS:
            if folder := settings.folder(key):
                own.append(f"{key}={folder / self.name}")
        return given + own


def shard_of(given: Sequence[int] | None) -> Shard | None:
    """The argument `shard` of an optimizer: (index, count)."""
    if given is None:
        return None
    numbers = list(given) if isinstance(given, Sequence) else []
    if len(numbers) != 2 or not all(isinstance(each, int) for each in numbers):
        raise Error(f"shard: give (index, count), such as (rank, ranks), and not {given!r}")
    index, count = numbers
    if not 0 <= index < count:
        raise Error(f"shard: there is no shard {index} of {count}; they are numbered from 0")
    return Shard(index, count)


def check_peer(shard: Shard | None, peer: int | None) -> None:
    """A launcher's rank numbers the shards of a peer, and not the peers."""
    if shard is not None and peer is None and "GOSSAMER_ID" not in os.environ:
        raise Error(
            "peer: with shard, the rank that a launcher sets is no id of a peer; give peer, or set "
            "GOSSAMER_ID"
        )


class Settings:
    """Settings of a configuration file and of overrides, as far as a shard changes them."""

    def __init__(self, config: str | os.PathLike[str], overrides: list[str]) -> None:
        self._folder = Path(config).parent
        self._overrides = dict(each.split("=", 1) for each in overrides if "=" in each)
        self.readable = True
        try:
            self._file = tomllib.loads(Path(config).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            self.readable = False

    def text(self, key: str) -> str:
        """A text; empty if there is none."""
        return self._overrides.get(key, self._of_file(key))

    def folder(self, key: str) -> Path | None:
        """A folder: those of the file are relative to the folder of the file."""
        if key in self._overrides:
            given = self._overrides[key]
            return Path(given).absolute() if given else None
        given = self._of_file(key)
        return (self._folder / given).absolute() if given else None

    def _of_file(self, key: str) -> str:
        section, name = key.split(".")
        values = self._file.get(section)
        value = values.get(name) if isinstance(values, dict) else None
        return value if isinstance(value, str) else ""
