"""Runs the stages of gpu.sh in order. A failed stage does not stop the others.

After every stage, the records are written to lines.jsonl, and the table to table.md and table.json,
so that an interrupted run keeps its results. Each stage has a share of the time. Exit code 0: all
requested stages ran without failure; 1: a stage failed or did not run.
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
from gpu_shell import StageError, Record, Shell, one_line
from pairs import ROOT

MINUTES = 7.8  # total time of the default shares; with more time, each stage may take more
RESERVE = 4.0  # seconds kept for writing the table
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
class Stage:
    """A stage measures the rows `ids` of the table.

    It does not start if fewer than `min_seconds` are left.
    """

    name: str
    ids: tuple[str, ...]
    max_seconds: float
    min_seconds: float
    run: Callable[[float], list[Record]]
    needs_gpu: bool = True


class Suite:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.end = time.monotonic() + 60 * options.minutes
        options.out.mkdir(parents=True, exist_ok=True)
        self.shell = Shell(options.out / "log.txt")
        self.scratch = Path(tempfile.mkdtemp(prefix="gossamer-gpu-"))
        self.records: list[Record] = []
        self.lines = options.out / "lines.jsonl"
        self.lines.write_text("", encoding="utf-8")
        self.machine = gpu_machine.GpuMachine(self.shell, options)
        self.program = (
            gpu_program.Program(
                self.shell, options.binary, self.scratch, options.device, options.quick
            )
            if options.binary
            else None
        )

    def stages(self) -> list[Stage]:
        machine, with_program = self.machine, self.with_program
        return [
            Stage("build", ("build",), 170, 10, machine.build, needs_gpu=False),
            Stage("parity", ("parity",), 60, 5, machine.parity),
            Stage("rows", gpu_machine.ROWS, 70, 5, machine.rows),
            Stage("training", gpu_machine.TRAINING, 100, 20, machine.training),
            Stage("doctor", ("doctor",), 20, 2, with_program(gpu_program.doctor), needs_gpu=False),
            Stage("agreement", ("agreement",), 40, 5, with_program(gpu_program.agreement)),
            Stage("determinism", ("determinism",), 30, 5, with_program(gpu_program.determinism)),
            Stage(
                "overlap",
                ("overlap",),
                60,
                15,
                with_program(
                    lambda program, seconds: gpu_program.Overlap(program).measure(seconds)
                ),
            ),
            Stage("sanitizer", tuple(gpu_machine.SANITIZERS), 120, 15, machine.sanitizer),
            Stage(
                "sweep",
                ("sweep",),
                320,
                30,
                with_program(
                    lambda program, seconds: gpu_program.sweep(program, self.options.mnist, seconds)
                ),
            ),
        ]

    def with_program(
        self, stage: Callable[[gpu_program.Program, float], Record]
    ) -> Callable[[float], list[Record]]:
        """A stage that needs the gossamer program, which GOSSAMER_BINARY names."""

        def run(seconds: float) -> list[Record]:
            if self.program is None:
                raise StageError("there is no gossamer program: GOSSAMER_BINARY is not set")
            if not os.access(self.program.binary, os.X_OK):
                raise StageError(f"GOSSAMER_BINARY: {self.program.binary} is not a program")
            return [stage(self.program, seconds)]

        return run

    def add(self, records: list[Record]) -> None:
        self.records += records
        with self.lines.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)
        gpu_report.write(
            self.records, self.options.out / "table.md", self.options.out / "table.json"
        )

    def obstacle(self, stage: Stage, seconds: float) -> str | None:
        """Why a stage cannot run; None if it can."""
        if self.options.only and stage.name not in self.options.only:
            return f"not requested (--only {','.join(self.options.only)})"
        if seconds < stage.min_seconds:
            return f"no time was left (--minutes {self.options.minutes:g})"
        if stage.needs_gpu and (problem := self.machine.problem()):
            return problem
        return None

    def run_stage(self, stage: Stage) -> None:
        seconds = min(
            stage.max_seconds * max(1.0, self.options.minutes / MINUTES),
            self.end - RESERVE - time.monotonic(),
        )
        begin, reason = time.monotonic(), self.obstacle(stage, seconds)
        if reason is None:
            print(f"gpu.sh: {stage.name}, at most {seconds:.0f} s", file=sys.stderr, flush=True)
            try:
                self.add(stage.run(seconds))
                reason = "the stage gave no value"
            except StageError as error:
                reason = str(error)
            except Exception as error:  # other stages must still run
                reason = f"{type(error).__name__}: {one_line(error)}"
        present = {record.get("id") for record in self.records}
        not_requested = bool(self.options.only) and stage.name not in self.options.only
        self.add(
            [
                {"record": "failed", "id": name, "reason": reason, "not_requested": not_requested}
                for name in stage.ids
                if name not in present
            ]
        )
        self.shell.note(f"== {stage.name}: {time.monotonic() - begin:.1f} s\n")

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
                    "quick": self.options.quick,
                }
            ]
        )
        try:
            for stage in self.stages():
                self.run_stage(stage)
                if stage.name == "build":
                    self.add(self.machine.discover())
        finally:
            self.shell.kill_all()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.add([])
        print((self.options.out / "table.md").read_text(encoding="utf-8"), end="")
        bad = [
            record
            for record in self.records
            if (record["record"] == "failed" and not record.get("not_requested"))
            or (record["record"] == "check" and not record["ok"])
        ]
        return 1 if bad else 0


def existing_path(text: str) -> Path:
    path = Path(text).resolve()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    return path


def arguments() -> argparse.Namespace:
    environment = os.environ.get
    parser = argparse.ArgumentParser(
        prog="gpu.sh",
        description="Tests and measures the CUDA device on one GPU. Writes one table.",
        epilog="Environment: GOSSAMER_HEADERS, GOSSAMER_BINARY, MNIST, TORCH_PYTHON.",
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build/gpu-results", help="folder of the table"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build/gpu", help="build folder")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time of all stages")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        help=f"stages, separated by commas: {', '.join(NAMES)}",
    )
    parser.add_argument("--bench", type=existing_path, help="an existing bench_gpu")
    parser.add_argument("--tests", type=existing_path, help="an existing test_cuda_gpu")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes: tests the suite, without measurements",
    )
    parser.add_argument(
        "--device", default="cuda", help="device of the stages that need the gossamer program"
    )
    parser.add_argument("--torch-device", default="cuda")
    parser.add_argument(
        "--torch-python",
        default=environment("TORCH_PYTHON") or sys.executable,
        help="a Python interpreter with torch",
    )
    options = parser.parse_args()
    options.headers = (
        Path(environment("GOSSAMER_HEADERS", "")).resolve()
        if environment("GOSSAMER_HEADERS")
        else None
    )
    options.binary = (
        Path(environment("GOSSAMER_BINARY", "")).resolve()
        if environment("GOSSAMER_BINARY")
        else None
    )
    options.mnist = Path(environment("MNIST", "")).resolve() if environment("MNIST") else None
    if unknown := [name for name in options.only if name not in NAMES]:
        parser.error(f"--only: unknown stage '{unknown[0]}'; the stages are {', '.join(NAMES)}")
    options.out = options.out.resolve()
    return options


def main() -> int:
    def stop(number: int, _frame: object) -> None:
        suite.shell.close()
        raise SystemExit(128 + number)

    suite = Suite(arguments())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
