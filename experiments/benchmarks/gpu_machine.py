"""The stages of gpu.sh that are built on the machine: parity, sanitizer, rows, training."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import time
from pathlib import Path

import gpu_report
from gpu_comparison import TrainingComparison
from gpu_shell import CommandResult, StageError, Record, LineServer, Shell, records_of
from pairs import ROOT

# tests/cuda/NAME_test.cpp; tests that need several GPUs run on the emulation only.
TEST_FILES = tuple(
    name
    for path in sorted((ROOT / "tests" / "cuda").glob("*_test.cpp"))
    if (name := path.stem.removesuffix("_test")) != "multi_gpu"
)
SANITIZER_FAILED = 86
LONG_TESTS = ("training", "sketch", "selection", "layers")  # under the sanitizers, seconds
SANITIZERS = {  # the tools of compute-sanitizer, with their own options
    # Tests ask for more memory than there is, and errors of the API are theirs to check.
    "memcheck": ("--leak-check", "no", "--report-api-errors", "no"),
    "racecheck": (),
    "initcheck": (),
    "synccheck": (),
}
TRAINING = tuple(
    row.id for row in gpu_report.MEASUREMENTS if row.id.startswith(("mlp", "cnn", "torch_"))
)
ROWS = tuple(
    row.id for row in gpu_report.MEASUREMENTS if row.id not in (*TRAINING, "overlap", "sweep")
)


class GpuMachine:
    """The programs that are built here, and their record about this machine."""

    def __init__(self, shell: Shell, options: argparse.Namespace) -> None:
        self.shell, self.options = shell, options
        self.bench: Path | None = options.bench
        self.tests: Path | None = options.tests
        self.discovered: Record | None = None

    # --- the machine

    def discover(self) -> list[Record]:
        """The record of bench_gpu about CUDA on this machine; empty if bench_gpu is not built."""
        if (
            self.bench is None
            and (built := self.options.build / "bin/bench_gpu").exists()
            and "build" not in self.requested()
        ):
            self.bench = built  # of an earlier run
            self.tests = self.tests or self.options.build / "bin/test_cuda_gpu"
        if self.bench is None:
            return []
        done = self.shell.call([self.bench, "--discover"], 30)
        found = [record for record in records_of(done.stdout) if record["record"] == "discovery"]
        if not found:
            return [{"record": "failed", "id": "discovery", "reason": done.failure_reason()}]
        self.discovered = found[-1]
        return found

    def requested(self) -> set[str]:
        return set(self.options.only) or {"build"}

    def problem(self) -> str | None:
        """Why nothing can run on a GPU; None if something can, or if it is not known."""
        if self.discovered is not None and self.discovered["problem"]:
            return f"no GPU: {self.discovered['problem']}"
        return None

    def program(self, path: Path | None, name: str) -> Path:
        if path is None or not path.exists():
            raise StageError(f"{name} was not built")
        return path

    # --- build

    def architectures(self) -> str:
        """The architecture of the GPU. Building for it alone takes half the time."""
        tool = shutil.which("nvidia-smi")
        if tool is None:
            return "80;90"
        done = self.shell.call([tool, "--query-gpu=compute_cap", "--format=csv,noheader"], 20)
        return "90" if done.code == 0 and done.stdout.split()[:1] == ["9.0"] else "80;90"

    def nvcc(self) -> Path:
        for folder in (
            os.environ.get("CUDA_HOME", ""),
            os.environ.get("CUDA_PATH", ""),
            "/usr/local/cuda",
        ):
            if folder and (Path(folder) / "bin/nvcc").exists():
                return Path(folder) / "bin/nvcc"
        if found := shutil.which("nvcc"):
            return Path(found)
        raise StageError("nvcc is missing: add the CUDA toolkit to the PATH")

    def build(self, seconds: float) -> list[Record]:
        if self.bench is not None and self.tests is not None:
            return [
                {"record": "check", "id": "build", "ok": True, "detail": "built by an earlier run"}
            ]
        end, folder = time.monotonic() + seconds, self.options.build
        nvcc, architectures = self.nvcc(), self.architectures()
        if not shutil.which("cmake"):
            raise StageError("cmake is missing")
        configure = [
            "cmake",
            "-S",
            ROOT,
            "-B",
            folder,
            "-DCMAKE_BUILD_TYPE=Release",
            "-DGOSSAMER_ONLY_ABOVE_NET=ON",
            "-DGOSSAMER_CUDA=ON",
            f"-DCMAKE_CUDA_ARCHITECTURES={architectures}",
            f"-DCMAKE_CUDA_COMPILER={nvcc}",
        ]
        if shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        if self.options.headers:
            configure += [f"-DGOSSAMER_HEADERS={self.options.headers}"]
        begin = time.monotonic()
        if (done := self.shell.call(configure, end - time.monotonic())).code != 0:
            raise StageError(f"cmake: {done.failure_reason()}")

        def make(*targets: str) -> CommandResult:
            return self.shell.call(
                ["cmake", "--build", folder, "-j", os.cpu_count() or 2, "--target", *targets],
                end - time.monotonic(),
            )

        targets, problems = ("bench_gpu", "test_cuda_gpu"), []
        built = list(targets) if make(*targets).code == 0 else []
        if not built:  # one of them may still build
            for target in targets:
                if (done := make(target)).code == 0:
                    built.append(target)
                else:
                    problems.append(f"{target}: {done.failure_reason()}")
        if "bench_gpu" in built:
            self.bench = folder / "bin/bench_gpu"
        if "test_cuda_gpu" in built:
            self.tests = folder / "bin/test_cuda_gpu"
        detail = f"for {architectures}, {time.monotonic() - begin:.0f} s" + "".join(
            f"; {problem}" for problem in problems
        )
        return [{"record": "check", "id": "build", "ok": not problems, "detail": detail}]

    # --- tests

    @staticmethod
    def test_totals(done: CommandResult) -> str:
        """doctest's totals as one line."""
        cases = re.findall(
            r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed", done.stdout
        )
        skipped = len(re.findall(r"^skipped: ", done.stdout, re.MULTILINE))
        if not cases:
            return done.failure_reason()
        return f"{cases[-1][1]} of {cases[-1][0]} test cases passed" + (
            f", {skipped} of them skipped" if skipped else ""
        )

    def parity(self, seconds: float) -> list[Record]:
        done = self.shell.call([self.program(self.tests, "test_cuda_gpu")], seconds)
        if done.code is None:
            raise StageError(done.failure_reason())
        # Tests of several GPUs are skipped on a machine with one.
        skipped = re.search(r"^skipped: (?!\d+ GPUs are needed)", done.stdout, re.MULTILINE)
        passed = (
            done.code == 0
            and skipped is None
            and re.search(r"[1-9]\d* passed", done.stdout) is not None
        )
        return [
            {
                "record": "check",
                "id": "parity",
                "ok": passed,
                "detail": f"{self.test_totals(done)}, {done.seconds:.0f} s",
            }
        ]

    def sanitizer(self, seconds: float) -> list[Record]:
        """Runs the test files under each tool of compute-sanitizer, several in parallel."""
        tests = self.program(self.tests, "test_cuda_gpu")
        adjacent = self.nvcc().parent / "compute-sanitizer"
        tool = str(adjacent) if adjacent.exists() else shutil.which("compute-sanitizer")
        if tool is None:
            raise StageError("compute-sanitizer is missing")
        end = time.monotonic() + seconds

        def run(job: tuple[str, str]) -> CommandResult:
            kind, file = job
            command = [
                tool,
                "--tool",
                kind,
                *SANITIZERS[kind],
                "--error-exitcode",
                SANITIZER_FAILED,
                tests,
                f"-sf=*cuda/{file}_test*",
            ]
            return self.shell.call(command, end - time.monotonic())

        # The longest first, so that none starts when the others have ended.
        files = sorted(TEST_FILES, key=lambda file: (file not in LONG_TESTS, file))
        jobs = [(kind, file) for file in files for kind in SANITIZERS]
        with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as pool:
            outcomes = dict(zip(jobs, pool.map(run, jobs)))
        return [
            self.sanitized(kind, {file: outcomes[kind, file] for file in TEST_FILES})
            for kind in SANITIZERS
        ]

    @staticmethod
    def sanitized(kind: str, outcomes: dict[str, CommandResult]) -> Record:
        clean = [file for file, done in outcomes.items() if done.code == 0]
        late = [file for file, done in outcomes.items() if done.code is None]
        found = {
            file: re.findall(r"[A-Z]+ SUMMARY: .*", done.stdout)
            for file, done in outcomes.items()
            if done.code not in (0, None)
        }
        details = [f"clean: {', '.join(clean) or 'none'}"]
        details += [
            f"{file}: {lines[-1] if lines else outcomes[file].failure_reason()}"
            for file, lines in found.items()
        ]
        details += [f"the time was over for: {', '.join(late)}"] if late else []
        return {
            "record": "check",
            "id": kind,
            "ok": False if found else None if late else True,
            "detail": "; ".join(details),
        }

    # --- measurements

    def rows(self, seconds: float) -> list[Record]:
        """The rows of bench_gpu. A CUDA error disables its process; the rows after it run again."""
        bench, end = self.program(self.bench, "bench_gpu"), time.monotonic() + seconds
        records, remaining = [], list(ROWS)
        for _ in range(2):
            left = end - time.monotonic()
            names = [name for name in remaining if name != "ring_issued"]
            command = [bench, "--only", ",".join(names), "--deadline", f"{max(1.0, left - 5):.0f}"]
            done = self.shell.call(command + (["--quick"] if self.options.quick else []), left)
            records += [
                record for record in records_of(done.stdout) if record["record"] != "discovery"
            ]
            broken = [record for record in records if record.get("id") == "device"]
            if broken and {record.get("id") for record in records} <= {"device", None}:
                raise StageError(broken[0]["reason"])
            have = {record.get("id") for record in records if record["record"] != "failed"}
            failed = [name for name in remaining if name not in have]
            if not failed or done.code is None or time.monotonic() > end - 10:
                break
            if failed[0] not in {record.get("id") for record in records}:
                records.append(
                    {
                        "record": "failed",
                        "id": failed[0],
                        "reason": f"bench_gpu: {done.failure_reason()}",
                    }
                )
            remaining = failed[1:]
            if not [name for name in remaining if name != "ring_issued"]:
                break
        known = {record.get("id") for record in records}
        reason = f"bench_gpu: {done.failure_reason()}"
        return records + [
            {"record": "failed", "id": name, "reason": reason} for name in ROWS if name not in known
        ]

    def training(self, seconds: float) -> list[Record]:
        """Pairs of our rates and those of each baseline. Both programs stay on the GPU."""
        bench, options, quick = (
            self.program(self.bench, "bench_gpu"),
            self.options,
            ["--quick"] if self.options.quick else [],
        )
        end = time.monotonic() + seconds
        ours = LineServer(self.shell, [bench, "--serve", *quick], 40)
        records: list[Record] = [{**ours.device, "record": "device"}]
        script = Path(__file__).with_name("gpu_torch_baseline.py")
        theirs: LineServer | str
        try:
            command = [
                options.torch_python,
                script,
                "--serve",
                "--device",
                options.torch_device,
                *quick,
            ]
            theirs = LineServer(self.shell, command, 60)
            records.append({**theirs.device, "record": "torch"})
        except StageError as error:
            theirs = f"no baseline: {error}"
        try:
            records += TrainingComparison(ours, theirs, end, options.quick).all()
        finally:
            ours.close()
            if isinstance(theirs, LineServer):
                theirs.close()
        return records
