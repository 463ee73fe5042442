"""What gpu.sh runs: the parts in order, each with a share of the time, whatever became of those before it.

After every part the records so far are on disk (lines.jsonl, and table.md and table.json made of them), so a run that is cut
short leaves what it had. Exit code 0: all that was asked for ran and nothing failed; 1: something failed or did not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gpu_machine
import gpu_program
import gpu_report
from gpu_shell import Failed, Record, Shell, one_line
from pairs import ROOT

MINUTES = 7.8  # of the whole, for which the parts' shares are made; with more, each may take more
RESERVE = 4.0  # seconds kept for the end
NAMES = (
    "build",
    "parity",
    "rows",
    "training",
    "doctor",
    "agreement",
    "determinism",
    "overlap",
    "sanitizer",
    "sweep",
)


@dataclass(frozen=True)
class Part:
    """`ids`: the rows of the table that it fills. `most`: seconds it may take; `least`: with fewer it does not begin."""

    name: str
    ids: tuple[str, ...]
    most: float
    least: float
    run: Callable[[float], list[Record]]
    needs_gpu: bool = True


class Suite:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.end = time.monotonic() + 60 * given.minutes
        given.out.mkdir(parents=True, exist_ok=True)
        self.shell = Shell(given.out / "log.txt")
        self.scratch = Path(tempfile.mkdtemp(prefix="gossamer-gpu-"))
        self.records: list[Record] = []
        self.lines = given.out / "lines.jsonl"
        self.lines.write_text("", encoding="utf-8")
        self.machine = gpu_machine.GpuMachine(self.shell, given)
        self.program = (
            gpu_program.Program(self.shell, given.binary, self.scratch, given.device, given.quick)
            if given.binary
            else None
        )

    def parts(self) -> list[Part]:
        machine, whole = self.machine, self.whole
        return [
            Part("build", ("build",), 170, 10, machine.build, needs_gpu=False),
            Part("parity", ("parity",), 60, 5, machine.parity),
            Part("rows", gpu_machine.ROWS, 70, 5, machine.rows),
            Part("training", gpu_machine.TRAINING, 100, 20, machine.training),
            Part("doctor", ("doctor",), 20, 2, whole(gpu_program.doctor), needs_gpu=False),
            Part("agreement", ("agreement",), 40, 5, whole(gpu_program.agreement)),
            Part("determinism", ("determinism",), 30, 5, whole(gpu_program.determinism)),
            Part(
                "overlap",
                ("overlap",),
                60,
                15,
                whole(lambda program, seconds: gpu_program.Overlap(program).measure(seconds)),
            ),
            Part("sanitizer", ("memcheck", "racecheck"), 70, 15, machine.sanitizer),
            Part(
                "sweep",
                ("sweep",),
                320,
                30,
                whole(
                    lambda program, seconds: gpu_program.sweep(program, self.given.mnist, seconds)
                ),
            ),
        ]

    def whole(
        self, part: Callable[[gpu_program.Program, float], Record]
    ) -> Callable[[float], list[Record]]:
        """A part of the whole program, which is there only where it was brought along."""

        def run(seconds: float) -> list[Record]:
            if self.program is None:
                raise Failed("no whole program was brought along: GOSSAMER_BINARY is not set")
            if not os.access(self.program.binary, os.X_OK):
                raise Failed(f"GOSSAMER_BINARY: {self.program.binary} is no program")
            return [part(self.program, seconds)]

        return run

    def add(self, records: list[Record]) -> None:
        self.records += records
        with self.lines.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)
        gpu_report.write(self.records, self.given.out / "table.md", self.given.out / "table.json")

    def why_not(self, part: Part, seconds: float) -> str | None:
        if self.given.only and part.name not in self.given.only:
            return f"not asked for (--only {','.join(self.given.only)})"
        if seconds < part.least:
            return f"no time was left for it (--minutes {self.given.minutes:g})"
        if part.needs_gpu and (problem := self.machine.problem()):
            return problem
        return None

    def attempt(self, part: Part) -> None:
        seconds = min(
            part.most * max(1.0, self.given.minutes / MINUTES),
            self.end - RESERVE - time.monotonic(),
        )
        begin, reason = time.monotonic(), self.why_not(part, seconds)
        if reason is None:
            print(f"gpu.sh: {part.name}, at most {seconds:.0f} s", file=sys.stderr, flush=True)
            try:
                self.add(part.run(seconds))
                reason = "it gave no figure"
            except Failed as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001: a fault of one part must not cost the others
                reason = f"{type(error).__name__}: {one_line(error)}"
        have = {record.get("id") for record in self.records}
        unasked = bool(self.given.only) and part.name not in self.given.only
        self.add(
            [
                {"record": "failed", "id": name, "reason": reason, "unasked": unasked}
                for name in part.ids
                if name not in have
            ]
        )
        self.shell.note(f"== {part.name}: {time.monotonic() - begin:.1f} s\n")

    def run(self) -> int:
        commit = (
            self.shell.call(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], 5)
            if shutil.which("git")
            else None
        )
        self.add(
            [
                {
                    "record": "started",
                    "time": datetime.datetime.now(datetime.timezone.utc).strftime(
                        "%Y-%m-%d %H:%M UTC"
                    ),
                    "commit": f"commit {commit.stdout.strip()}"
                    if commit and commit.code == 0
                    else "commit unknown",
                    "quick": self.given.quick,
                }
            ]
        )
        try:
            for part in self.parts():
                self.attempt(part)
                if part.name == "build":
                    self.add(self.machine.discover())
        finally:
            self.shell.end_all()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.add([])
        print((self.given.out / "table.md").read_text(encoding="utf-8"), end="")
        bad = [
            record
            for record in self.records
            if (record["record"] == "failed" and not record.get("unasked"))
            or (record["record"] == "check" and not record["ok"])
        ]
        return 1 if bad else 0


def existing_path(text: str) -> Path:
    path = Path(text).resolve()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text}: not there")
    return path


def arguments() -> argparse.Namespace:
    here = os.environ.get
    parser = argparse.ArgumentParser(
        prog="gpu.sh",
        description="Everything about the CUDA device on one GPU, as one table.",
        epilog="Environment: GOSSAMER_HEADERS, GOSSAMER_BINARY, MNIST, TORCH_PYTHON.",
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build/gpu-results", help="folder of the table"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build/gpu", help="build folder")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all of it")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        help=f"parts, with commas: {', '.join(NAMES)}",
    )
    parser.add_argument("--bench", type=existing_path, help="a bench_gpu that is built already")
    parser.add_argument("--tests", type=existing_path, help="a test_cuda_gpu that is built already")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes: shows that everything runs, measures nothing",
    )
    parser.add_argument("--device", default="cuda", help="of the whole program's parts")
    parser.add_argument("--torch-device", default="cuda")
    parser.add_argument(
        "--torch-python",
        default=here("TORCH_PYTHON") or sys.executable,
        help="a Python that has torch",
    )
    given = parser.parse_args()
    given.headers = (
        Path(here("GOSSAMER_HEADERS", "")).resolve() if here("GOSSAMER_HEADERS") else None
    )
    given.binary = Path(here("GOSSAMER_BINARY", "")).resolve() if here("GOSSAMER_BINARY") else None
    given.mnist = Path(here("MNIST", "")).resolve() if here("MNIST") else None
    if unknown := [name for name in given.only if name not in NAMES]:
        parser.error(f"--only: no part '{unknown[0]}'; there are: {', '.join(NAMES)}")
    given.out = given.out.resolve()
    return given


def main() -> int:
    def ended(number: int, _frame: object) -> None:
        suite.shell.close()
        raise SystemExit(128 + number)

    suite = Suite(arguments())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ended)
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
