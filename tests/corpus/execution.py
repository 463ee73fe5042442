"""Runs one case of the corpus with one build, and returns the output as streams of records."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.catalog import Case
from corpus.renames import Record, Renames

DEADLINE = 120.0  # seconds, for processes that take one or two on an idle machine
NO_GAP = 2  # the exit code of `gap` for an algorithm that does not mix
LAUNCHER_VARIABLES = ("GOSSAMER_ID", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES}
ENVIRONMENT |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# The system kills a process whose file grows beyond the limit. `ulimit -f` counts 512 bytes.
LIMITED = ["/bin/sh", "-c", 'ulimit -c 0; ulimit -f "$0"; exec "$@"']
KILLED = -signal.SIGXFSZ
OLDEST_GROUPS = ("topology", "algorithm", "section")  # of the list that every build prints
HASH = "final_hash"  # the summary's field, in the new form

Streams = dict[str, list[Record]]
Process = tuple[subprocess.Popen[bytes], Path]


class CaseFailed(Exception):
    """A build did not run the case; the text gives the reason."""


@dataclass(frozen=True)
class Build:
    name: str
    program: Path
    renames: Renames

    def command(self, *words: str, settings: dict[str, str]) -> list[str]:
        """A command line in this build's words."""
        translated = (self.renames.setting(key, value) for key, value in settings.items())
        sets = [
            word
            for pair in translated
            if pair
            for word in (self.renames.argument("--set"), "=".join(pair))
        ]
        return [str(self.program), *map(self.renames.argument, words), *sets]


def list_kinds(build: Build) -> dict[str, dict[str, Any]]:
    """The output of `gossamer list --json`: group, name, entry."""
    text = _output(build.command("list", "--json", settings={})).stdout
    try:
        listed: dict[str, dict[str, Any]] = json.loads(text)
        if all(group in listed for group in OLDEST_GROUPS):
            return listed
    except (ValueError, TypeError):
        pass
    raise CaseFailed(
        f"{build.program}: `list --json` prints no list of kinds and sections, so "
        "this is no build of the program"
    )


def _output(command: list[str], codes: Iterable[int] = (0,)) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise CaseFailed(f"`{_shown(command)}` did not end within {DEADLINE:g} s") from None
    except OSError as error:
        raise CaseFailed(f"{command[0]} cannot be started: {error}") from None
    if done.returncode not in codes:
        raise CaseFailed(
            f"`{_shown(command)}` ended with exit code {done.returncode}: {_last_line(done.stderr)}"
        )
    return done


def _shown(command: list[str]) -> str:
    """The program's name and subcommand."""
    return f"{Path(command[0]).name} {command[1]}" if command[0] != LIMITED[0] else "gossamer run"


def _last_line(text: str) -> str:
    """The last message of a build, without the advice to ask for help."""
    lines = [line for line in text.splitlines() if line.strip() and "--help" not in line]
    return lines[-1] if lines else "no message"


class Execution:
    """One case with one build, in a folder of its own."""

    def __init__(self, build: Build, case: Case, folder: Path, data: Path) -> None:
        self._build, self._case, self._folder = build, case, folder
        self._settings = {
            key: value.replace("{data}", str(data)) for key, value in case.settings.items()
        }
        self._streams: Streams = {}

    def streams(self) -> Streams:
        """Runs the case; raises CaseFailed."""
        self._folder.mkdir(parents=True)
        sorts = {
            "run": self._run,
            "resume": self._resume,
            "network": self._network,
            "network_resume": self._network_resume,
            "topology": self._topology,
            "command": self._command,
        }
        try:
            sorts[self._case.sort]()
        except (ValueError, KeyError, OSError, struct.error) as error:
            raise CaseFailed(f"its output cannot be read: {error!r}") from None
        return self._streams

    def _run(self) -> None:
        out = self._folder / "out"
        self._run_all_peers(out, codes=(self._case.exit,))
        self._read_run(out)
        self._examine(out)
        self._topology()

    def _run_all_peers(
        self, out: Path, *words: str, limit: int = 0, codes: Iterable[int] = (0,)
    ) -> None:
        command = self._build.command(
            "run", "--quiet", "--out", str(out), *words, settings=self._settings
        )
        _output([*LIMITED, str(limit), *command] if limit else command, codes)

    def _examine(self, out: Path) -> None:
        """The gap of the run, and its prediction."""
        if self._settings.get("attack.kind", "none") != "none":
            return  # both refuse a run with an attack
        done = _output(self._build.command("gap", str(out), "--json", settings={}), (0, NO_GAP))
        found = self._records(done.stdout) if done.returncode == 0 else []
        self._add("gap", [{"exit_code": done.returncode}, *found])
        predict = self._build.command("predict", "--json", settings=self._settings)
        self._add("prediction", self._records(_output(predict).stdout))

    def _resume(self) -> None:
        """The system kills the run when half of a whole run's log is written; then it resumes."""
        whole, out = self._folder / "whole", self._folder / "out"
        self._run_all_peers(whole)
        size = max(path.stat().st_size for path in whole.glob("*.jsonl"))
        self._run_all_peers(out, limit=size // 2 // 512, codes=(KILLED,))
        if not any((out / "checkpoints").glob("*")):
            raise CaseFailed("the run was killed before its first checkpoint")
        self._run_all_peers(out, "--resume", "auto")
        self._same_hash(whole, out)
        self._read_run(out)

    def _same_hash(self, whole: Path, resumed: Path) -> None:
        if self._summary(whole)[HASH] != self._summary(resumed)[HASH]:
            raise CaseFailed("the resumed run ended with another final hash than the whole run")

    def _summary(self, out: Path) -> Record:
        content = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        return self._build.renames.record(content, "summary")

    def _network(self) -> None:
        out = self._folder / "out"
        self._run_network(out, self._folder / "meet", "none")
        self._collect(out)

    def _network_resume(self) -> None:
        """Resumes a whole run in new folders, from its checkpoints without the newest ones."""
        whole, out, store = (self._folder / name for name in ("whole", "out", "store"))
        self._settings["checkpoint.folder"] = str(store)
        self._run_network(whole, self._folder / "meet-first", "none")
        self._collect(whole)
        self._streams.clear()  # compared is what the resumed network leaves
        newest = max(path.name.split("-")[1] for path in store.glob("round-*"))
        for path in store.glob(f"round-{newest}-*"):
            path.unlink()
        if not any(store.iterdir()):
            raise CaseFailed("the network wrote no checkpoint before its last")
        self._run_network(out, self._folder / "meet-again", "auto")
        self._collect(out)
        self._same_hash(whole, out)

    def _run_network(self, out: Path, meet: Path, resume: str) -> None:
        settings = {**self._settings, "net.listen": "127.0.0.1:0", "net.rendezvous": str(meet)}
        words = ("--quiet", "--out", str(out), "--resume", resume)
        commands = [
            self._build.command("peer", "--id", ids, *words, settings=settings)
            for ids in self._case.processes
        ]
        with _started(commands, self._folder) as processes:
            end = time.monotonic() + DEADLINE
            for command, (process, errors) in zip(commands, processes, strict=True):
                try:
                    code = process.wait(max(0.01, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise CaseFailed(
                        f"the network did not end within {DEADLINE:g} s: "
                        f"{_last_line(errors.read_text())}"
                    ) from None
                if code != 0:
                    raise CaseFailed(
                        f"`{_shown(command)}` ended with exit code {code}: "
                        f"{_last_line(errors.read_text())}"
                    )

    def _collect(self, out: Path) -> None:
        _output(self._build.command("collect", str(out), "--json", settings={}))
        self._read_run(out)
        done = _output(self._build.command("gap", str(out), "--json", settings={}), (0, NO_GAP))
        self._add("gap", self._records(done.stdout) if done.returncode == 0 else [])

    def _topology(self) -> None:
        """`topology` has flags for weights, peers and seed, and its --set takes no section."""
        argument, settings = self._build.renames.argument, self._settings
        peers = settings["run.peers"]
        words = ["topology", "--json", "-n", peers, "--seed", settings["run.seed"]]
        words += ["--lazy"] if settings.get("topology.lazy") == "true" else []
        negative = settings.get("topology.allow_negative") == "true"
        words += ["--allow-negative"] if negative else []
        words += ["--matrix"] if int(peers) <= 16 else []
        command = self._build.command(*words, settings={})
        for key, value in settings.items():
            pair = self._build.renames.setting(key, value)
            if not pair or not key.startswith("topology."):
                continue
            if key in ("topology.lazy", "topology.allow_negative"):
                continue
            if key == "topology.kind":
                command.append(pair[1])
            elif key == "topology.weights":
                command += [argument("--weights"), pair[1]]
            else:
                command += [argument("--set"), f"{pair[0].partition('.')[2]}={pair[1]}"]
        self._add("topology", self._records(_output(command).stdout))

    def _command(self) -> None:
        words = self._case.words
        done = _output(self._build.command(*words, settings={}))
        self._add(words[0], self._records(done.stdout))

    def _read_run(self, out: Path) -> None:
        """Every log, the final parameters, and the summary that the run folder holds."""
        for path in sorted(out.glob("*.jsonl")):
            self._add(path.name, self._records(path.read_text(encoding="utf-8")))
        for path in sorted(out.glob("*.safetensors")):
            self._streams[path.name] = [_tensors(path)]
        summary = out / "summary.json"
        if summary.is_file():
            self._add("summary", self._records(summary.read_text(encoding="utf-8")))

    def _records(self, text: str) -> list[Record]:
        """JSON objects one after the other, this execution's own folder written as <folder>."""
        decoder, records = json.JSONDecoder(), []
        text = text.replace(str(self._folder), "<folder>").strip()
        while text:
            record, end = decoder.raw_decode(text)
            records.append(record)
            text = text[end:].lstrip()
        return records

    def _add(self, name: str, records: list[Record]) -> None:
        self._streams[name] = [self._build.renames.record(record, name) for record in records]


def _tensors(path: Path) -> Record:
    """Names and shapes of the tensors, and the hash of their values."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    return {**header, "values": hashlib.sha256(content[8 + length :]).hexdigest()}


@contextlib.contextmanager
def _started(commands: list[list[str]], folder: Path) -> Iterator[list[Process]]:
    """Starts processes, each with a file of messages; kills the ones that run at the end."""
    processes: list[Process] = []
    try:
        for number, command in enumerate(commands):
            errors = folder / f"process-{number}.err"
            with errors.open("wb") as stream:
                process = subprocess.Popen(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=stream,
                    stdin=subprocess.DEVNULL,
                    env=ENVIRONMENT,
                )
            processes.append((process, errors))
        yield processes
    finally:
        for process, _ in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
