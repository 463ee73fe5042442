"""The rename table: how the old build's names map to the new build's.

The corpus uses the names of the new build. The command lines of the old build are translated back,
and its output is translated forward before the comparison. Each entry is `new = "old"`:

    [command_line]      # subcommands and flags
    [config]            # "section.key"
    [config_values]     # "section.key.value", the key in its new form
    [log]               # a field, at any depth of a record, or "record kind.field"
    [log_values]        # "field.value" or "record kind.field.value", the field in its new form
    [ignore]            # config = ["section.key"], log = ["field"]: left out on both sides

A key that the old build does not have is `new = ""` in [config]: the old build does not get it, and
the comparison leaves it out. The summary, the prediction, the gap and the topology are records of
the kinds `summary`, `prediction`, `gap` and `topology`. The kind of a log's record is the value of
its field `record`.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLES = ("command_line", "config", "config_values", "log", "log_values")
KIND = "record"  # the field that names a record's kind, in the new form

Record = dict[str, Any]


class UsageError(Exception):
    """The comparison cannot be made; the text says why."""


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`a.b = "c"` and `"a.b" = "c"` are the same entry."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@dataclass(frozen=True)
class Renames:
    """The table of one build; the empty one changes nothing."""

    words: dict[str, dict[str, str]] = field(default_factory=dict)  # table, new name, old name
    ignored_config: frozenset[str] = frozenset()
    ignored_log: frozenset[str] = frozenset()

    def _old(self, table: str, new: str) -> str:
        return self.words.get(table, {}).get(new, new)

    def _backward(self, table: str) -> dict[str, str]:
        return {old: new for new, old in self.words.get(table, {}).items() if old}

    def argument(self, word: str) -> str:
        """A subcommand or flag in the old build's form."""
        return self._old("command_line", word)

    def setting(self, key: str, value: str) -> tuple[str, str] | None:
        """A key and its value in the old build's form; None where the old build has no such key."""
        old_key = self._old("config", key)
        old_value = self.words.get("config_values", {}).get(f"{key}.{value}", value)
        return (old_key, old_value) if old_key else None

    def config(self, config: dict[str, Record]) -> dict[str, Record]:
        """A resolved configuration of the old build in the new build's form."""
        keys = self._backward("config")
        values = {
            (new.rpartition(".")[0], old): new.rpartition(".")[2]
            for new, old in self.words.get("config_values", {}).items()
        }
        result: dict[str, Record] = {section: {} for section in config}
        for section, entries in config.items():
            for key, value in entries.items():
                name = keys.get(f"{section}.{key}", f"{section}.{key}")
                new_section, _, new_key = name.partition(".")
                renamed = values.get((name, value), value) if isinstance(value, str) else value
                result.setdefault(new_section, {})[new_key] = renamed
        return {section: entries for section, entries in result.items() if entries}

    def record(self, record: Record, kind: str) -> Record:
        """A record of the old build in the new build's form."""
        kind_field = self._old("log", KIND)
        if isinstance(record.get(kind_field), str):
            kind = self._value(record[kind_field], KIND, "")
        return self._object(record, kind)

    def _object(self, record: Record, kind: str) -> Record:
        fields = self._backward("log")
        qualified = {
            old: new.partition(".")[2]
            for new, old in self.words.get("log", {}).items()
            if new.startswith(f"{kind}.")
        }
        result: Record = {}
        for name, value in record.items():
            new = qualified.get(name, fields.get(name, name))
            new = name if "." in new else new  # qualified with another kind of record
            if new in result:
                raise UsageError(f"the rename table makes two fields of a {kind} record '{new}'")
            result[new] = self._content(value, new, kind)
        return result

    def _content(self, value: Any, name: str, kind: str) -> Any:
        if name == "config" and isinstance(value, dict):
            return self.config(value)
        if isinstance(value, dict):
            return self._object(value, kind)
        if isinstance(value, list):
            return [self._content(each, name, kind) for each in value]
        return self._value(value, name, kind) if isinstance(value, str) else value

    def _value(self, value: str, name: str, kind: str) -> str:
        for new, old in self.words.get("log_values", {}).items():
            target, _, new_value = new.rpartition(".")
            if old == value and target in (name, f"{kind}.{name}"):
                return new_value
        return value


def read_renames(path: Path) -> Renames:
    """Reads and checks the table; raises UsageError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    if unknown := [name for name in content if name not in (*TABLES, "ignore")]:
        raise UsageError(
            f"{path}: there is no table [{unknown[0]}]; the tables are "
            f"{', '.join(TABLES)} and ignore"
        )
    if loose := [name for name, value in content.items() if not isinstance(value, dict)]:
        raise UsageError(f"{path}: '{loose[0]}' is a table, and here it is a value")
    words = {table: dict(_flat(content.get(table, {}))) for table in TABLES}
    for table, entries in words.items():
        _check(path, table, entries)
    config, log = (_ignored(path, content.get("ignore", {}), name) for name in ("config", "log"))
    added = {new for new, old in words["config"].items() if not old}
    return Renames(words, config | added, log)


def _check(path: Path, table: str, entries: dict[str, Any]) -> None:
    least_dots = {"config": 1, "config_values": 2, "log_values": 1}.get(table, 0)
    seen: dict[tuple[str, str], str] = {}
    for new, old in entries.items():
        if not isinstance(old, str) or (not old and table != "config"):
            raise UsageError(f"{path}: [{table}] {new}: the old name is a text, not {old!r}")
        if new.count(".") < least_dots:
            form = {"config": "section.key", "config_values": "section.key.value"}
            raise UsageError(
                f"{path}: [{table}] {new}: write it as {form.get(table, 'field.value')}"
            )
        scope = new.rpartition(".")[0] if table in ("config_values", "log_values", "log") else ""
        if old and (twin := seen.get((scope, old))):
            raise UsageError(f"{path}: [{table}] {new} and {twin} have one old name, '{old}'")
        seen[scope, old] = new


def _ignored(path: Path, table: Record, name: str) -> frozenset[str]:
    names = table.get(name, [])
    if set(table) - {"config", "log"}:
        raise UsageError(f"{path}: [ignore] has the lists config and log, and no other")
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise UsageError(f"{path}: [ignore] {name} is a list of texts")
    return frozenset(names)
