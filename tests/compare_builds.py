#!/usr/bin/env python3
"""Runs the corpus of configurations with two builds of the program, and compares their output.

    tests/compare_builds.py OLD_BINARY NEW_BINARY [--only PATTERN] [-j N] [--rename-file FILE]

The comparison covers the logs record by record, the summary with its final hash, the final
parameters, the predictions, the gaps and the topologies. It leaves out the fields that a real clock
fills. It shows that a change of names or of structure changes no bits.
tests/corpus/configurations.toml has the corpus in the names of the new build, and
tests/corpus/renames.toml says where the old build's names differ.

The script prints a line for each configuration that differs, and a summary at the end. Exit code
0: no difference; 1: a difference; 2: bad arguments, a kind of the new build that no configuration
has, or a configuration that neither build runs.
"""

import argparse
import fnmatch
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.catalog import KIND_KEYS, Case, Corpus, Kinds, read_corpus, uncovered
from corpus.data_files import make_data_files
from corpus.execution import HASH, Build, CaseFailed, Execution, Streams, list_kinds, remove
from corpus.renames import Record, Renames, UsageError, read_renames

HERE = Path(__file__).resolve().parent / "corpus"
SAME, DIFFERENT, NO_VERDICT = 0, 1, 2
ABSENT = object()
Difference = tuple[str, Any, Any]  # field, old value, new value


@dataclass(frozen=True)
class Verdict:
    case: Case
    code: int
    text: str = ""


@dataclass(frozen=True)
class Comparison:
    """The two builds, and which fields count."""

    old: Build
    new: Build
    corpus: Corpus
    work: Path

    def verdict(self, case: Case) -> Verdict:
        streams: dict[str, Streams] = {}
        failures: dict[str, str] = {}
        for build in (self.old, self.new):
            folder = self.work / case.title / build.name
            try:
                streams[build.name] = Execution(build, case, folder, self.work / "data").streams()
            except CaseFailed as failure:
                failures[build.name] = str(failure)
        remove(self.work / case.title)
        if len(failures) == 2:
            return Verdict(case, NO_VERDICT, f"neither build runs it: {failures['new']}")
        if failures:
            ((name, failure),) = failures.items()
            return Verdict(case, DIFFERENT, f"only the {name} build does not run it: {failure}")
        text = self._difference(case, streams["old"], streams["new"])
        return Verdict(case, DIFFERENT if text else SAME, text)

    def _difference(self, case: Case, old: Streams, new: Streams) -> str:
        """The first record and field that differ, in words; empty where none does."""
        if old.keys() != new.keys():
            return f"the old build writes {', '.join(old)}, the new one {', '.join(new)}"
        for name, records in new.items():
            if text := self._stream_difference(case, name, old[name], records):
                return text + _hashes(old, new)
        return ""

    def _stream_difference(
        self, case: Case, name: str, old: list[Record], new: list[Record]
    ) -> str:
        clean = self._cleaner(case)
        if case.sort.startswith("network") and name.endswith(".jsonl"):
            old, new = self._sorted(old), self._sorted(new)
        for number, (a, b) in enumerate(zip(old, new, strict=False), start=1):
            if found := first_difference(clean(a), clean(b)):
                return f"{name}, {self._title(number, b)}, {_difference_text(found)}"
        if len(old) != len(new):
            return f"{name}: {len(old)} records of the old build, {len(new)} of the new one"
        return ""

    def _sorted(self, log: list[Record]) -> list[Record]:
        """A network's processes write records as messages arrive; header and end stay in place."""

        def place(record: Record) -> list[tuple[str, Any]]:
            return [(name, record[name]) for name in self.corpus.place if name in record]

        return log[:1] + sorted(log[1:-1], key=place) + log[1:][-1:]

    def _title(self, number: int, record: Record) -> str:
        parts = [f"{name} {record[name]}" for name in self.corpus.place if name in record]
        return f"record {number}" + (f" ({', '.join(parts)})" if parts else "")

    def _cleaner(self, case: Case) -> Callable[[Any], Any]:
        dropped = self.corpus.wall_clock | self.new.renames.ignored_log
        if case.sort.startswith("network"):
            dropped |= self.corpus.real_time
        ignored_config = self.new.renames.ignored_config

        def clean(value: Any) -> Any:
            if isinstance(value, list):
                return [clean(each) for each in value]
            if not isinstance(value, dict):
                return value
            result = {}
            for key, content in value.items():
                if key == "config" and isinstance(content, dict):
                    result[key] = {
                        f"{section}.{name}": setting
                        for section, entries in content.items()
                        for name, setting in entries.items()
                        if f"{section}.{name}" not in ignored_config
                    }
                elif key in self.corpus.prose:
                    result[key] = len(content) if isinstance(content, list) else bool(content)
                elif key not in dropped:
                    result[key] = clean(content)
            return result

        return clean


def first_difference(old: Any, new: Any, path: str = "") -> Difference | None:
    """Where two JSON values differ first; fields in the new value's order."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            inner = f"{path}.{key}" if path else key
            if found := first_difference(old.get(key, ABSENT), new.get(key, ABSENT), inner):
                return found
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            if found := first_difference(a, b, f"{path}[{k}]"):
                return found
        return None
    same = old is new or (type(old) is type(new) and old == new)
    return None if same else (path, old, new)


def _difference_text(found: Difference) -> str:
    path, old, new = found
    return f"field {path}: {_shown(old)} in the old build, {_shown(new)} in the new one"


def _shown(value: Any) -> str:
    text = "absent" if value is ABSENT else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _hashes(old: Streams, new: Streams) -> str:
    """Whether the final hashes differ as well."""
    ends = [streams["summary"][0].get(HASH) for streams in (old, new) if streams.get("summary")]
    if len(ends) < 2:
        return ""
    return f"; {HASH} is the same" if ends[0] == ends[1] else f"; {HASH} differs"


def check_names(renames: Renames, old: Kinds, new: Kinds, path: Path) -> None:
    """The keys of the rename table are keys of the builds."""
    for new_key, old_key in renames.words.get("config", {}).items():
        for key, listed, name in ((new_key, new, "new"), (old_key, old, "old")):
            if key and not _has_key(listed, key):
                raise UsageError(f"{path}: [config] {new_key}: the {name} build has no key {key}")


def _has_key(listed: Kinds, key: str) -> bool:
    section, _, name = key.partition(".")
    entries = [listed.get("section", {}).get(section, {}), *listed.get(section, {}).values()]
    return name == KIND_KEYS.get(section, "kind") or any(
        name in entry.get("parameters", {}) for entry in entries
    )


def chosen(corpus: Corpus, pattern: str) -> list[Case]:
    """The cases whose title contains the pattern, or matches it if it has a wildcard."""
    glob = pattern if re.search(r"[*?\[]", pattern) else f"*{pattern}*"
    cases = [case for case in corpus.cases if fnmatch.fnmatchcase(case.title, glob)]
    if not cases:
        raise UsageError(
            f"--only {pattern}: no configuration has such a name; "
            f"{len(corpus.cases)} are in {HERE / 'configurations.toml'}"
        )
    return cases


def compare_all(comparison: Comparison, cases: list[Case], jobs: int) -> list[Verdict]:
    """Runs the cases side by side, and prints each verdict but `same` when it is known."""
    verdicts: list[Verdict] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(comparison.verdict, case) for case in cases]):
            verdict = future.result()
            verdicts.append(verdict)
            if verdict.code != SAME:
                print(f"{verdict.case.title}: {verdict.text}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return verdicts


def report(verdicts: list[Verdict], seconds: float) -> int:
    differ = sum(verdict.code == DIFFERENT for verdict in verdicts)
    failed = sum(verdict.code == NO_VERDICT for verdict in verdicts)
    parts = [f"{len(verdicts)} configurations", f"{differ} differ" if differ else "no difference"]
    parts += [f"{failed} that neither build runs"] if failed else []
    print(f"{', '.join(parts)}; {seconds:.0f} s")
    return DIFFERENT if differ else NO_VERDICT if failed else SAME


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, metavar="OLD_BINARY")
    parser.add_argument("new", type=Path, metavar="NEW_BINARY")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="configurations with this in their name, sort.name; * and ? match any",
    )
    parser.add_argument(
        "-j",
        dest="jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="configurations side by side; default: one per core",
    )
    parser.add_argument(
        "--rename-file",
        type=Path,
        default=HERE / "renames.toml",
        metavar="FILE",
        help="the rename table; default: %(default)s",
    )
    options = parser.parse_args(arguments)
    if not 1 <= options.jobs <= 1024:
        parser.error(f"-j {options.jobs}: a number from 1 to 1024")
    for path in (options.old, options.new):
        if not (path.is_file() and os.access(path, os.X_OK)):
            parser.error(f"{path} is no program that can be started")
    return options


def compare(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    corpus, renames = read_corpus(HERE / "configurations.toml"), read_renames(options.rename_file)
    cases = chosen(corpus, options.only)
    old = Build("old", options.old.resolve(), renames)
    new = Build(
        "new",
        options.new.resolve(),
        Renames(ignored_config=renames.ignored_config, ignored_log=renames.ignored_log),
    )
    listed = list_kinds(new)
    check_names(renames, list_kinds(old), listed, options.rename_file)
    if missing := list(uncovered(corpus, listed)):
        raise UsageError("the corpus does not cover the new build: " + "; ".join(missing))
    with tempfile.TemporaryDirectory(prefix="compare-builds-") as folder:
        work = Path(folder)
        (work / "data").mkdir()
        make_data_files(work / "data")
        verdicts = compare_all(Comparison(old, new, corpus, work), cases, options.jobs)
    return report(verdicts, time.monotonic() - begin)


def _interrupt(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    options = parse(arguments)
    try:
        return compare(options)
    except (UsageError, CaseFailed) as error:
        print(f"compare_builds.py: {error}", file=sys.stderr)
        return NO_VERDICT
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the lines has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_VERDICT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
