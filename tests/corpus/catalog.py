"""Reads the corpus, and checks that it covers every kind, choice and key of the program."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.renames import UsageError

SORTS = ("run", "resume", "network", "network_resume", "topology", "command")
GROUPS = ("topology", "algorithm", "codec", "mixing", "attack", "model", "data", "optimizer")
KIND_KEYS = {"mixing": "rule"}  # of a group, the key that names the kind; else "kind"

Kinds = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One entry of the corpus."""

    sort: str
    name: str
    settings: dict[str, str] = field(default_factory=dict)  # "section.key" → value
    processes: tuple[str, ...] = ()  # of a network: the peers of each
    words: tuple[str, ...] = ()  # of a command
    exit: int = 0  # of a run

    @property
    def title(self) -> str:
        return f"{self.sort}.{self.name}"


@dataclass(frozen=True)
class Corpus:
    cases: tuple[Case, ...]
    wall_clock: frozenset[str]  # fields that a real clock fills in any run
    real_time: frozenset[str]  # and those that it fills in a network of processes
    prose: frozenset[str]  # fields in words, of which the number is compared
    place: tuple[str, ...]  # fields that say where a record of a log belongs
    not_covered: dict[str, str]  # "section.key": why no case sets it


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{path}: {error}") from None

    def corpus(self) -> Corpus:
        fields = self._content["fields"]
        cases = tuple(
            self._case(sort, name, entry)
            for sort in SORTS
            for name, entry in self._content.get(sort, {}).items()
        )
        return Corpus(
            cases,
            frozenset(fields["wall_clock"]),
            frozenset(fields["real_time"]),
            frozenset(fields["prose"]),
            tuple(fields["place"]),
            self._content["not_covered"],
        )

    def _case(self, sort: str, name: str, entry: Any) -> Case:
        if sort == "command":
            return Case(sort, name, words=tuple(entry))
        table = entry if isinstance(entry, dict) else {"set": entry}
        lines = [f"run.id={name}", "@base", f"@{sort}", *table.get("set", [])]
        return Case(
            sort,
            name,
            self._settings(lines),
            tuple(table.get("processes", ())),
            exit=table.get("exit", 0),
        )

    def _settings(self, lines: list[str]) -> dict[str, str]:
        """Later settings replace earlier ones; "@name" stands for the settings of a group."""
        result: dict[str, str] = {}
        for line in lines:
            if line.startswith("@"):
                result |= self._settings(self._group(line[1:]))
                continue
            key, equals, value = line.partition("=")
            if not equals or "." not in key:
                raise UsageError(f"{self._path}: '{line}' is not section.key=value")
            result[key] = value
        return result

    def _group(self, name: str) -> list[str]:
        groups: dict[str, list[str]] = self._content["groups"]
        if name not in groups and name not in SORTS:
            raise UsageError(f"{self._path}: there is no group @{name}")
        return groups.get(name, [])


def read_corpus(path: Path) -> Corpus:
    """Raises UsageError."""
    return _Reader(path).corpus()


def uncovered(corpus: Corpus, listed: Kinds) -> Iterator[str]:
    """One sentence for each kind, choice and key of the program that no run of the corpus has."""
    runs = [case.settings for case in corpus.cases if case.sort not in ("topology", "command")]
    for group in GROUPS:
        used = {settings.get(_kind_key(group)) for settings in runs}
        for kind in listed.get(group, {}):
            if kind not in used:
                yield f"no configuration has {_kind_key(group)}={kind}"
    for group, names in listed.items():
        for name, entry in names.items():
            of_kind = [s for s in runs if group == "section" or s.get(_kind_key(group)) == name]
            section, where = (group, f" with {_kind_key(group)}={name}")
            if group == "section":
                section, where = name, ""
            for key, parameter in entry["parameters"].items():
                yield from _uncovered_key(corpus, of_kind, f"{section}.{key}", parameter, where)


def _kind_key(group: str) -> str:
    return f"{group}.{KIND_KEYS.get(group, 'kind')}"


def _uncovered_key(
    corpus: Corpus, runs: list[dict[str, str]], key: str, parameter: dict[str, Any], where: str
) -> Iterator[str]:
    if key in corpus.not_covered or not runs:
        return
    if not any(key in settings for settings in runs):
        yield f"no configuration sets {key}{where}"
    values = {settings.get(key, str(parameter["default"])) for settings in runs}
    for choice in parameter["choices"]:
        if choice not in values:
            yield f"no configuration has {key}={choice}{where}"
