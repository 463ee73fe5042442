"""The parts of gpu.sh that are built on the machine with the GPU: parity, sanitizer, rows, and training against PyTorch."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import time
from pathlib import Path

import gpu_report
from gpu_rivalry import Rivalry
from gpu_shell import Done, Failed, Record, Server, Shell, records_of
from pairs import ROOT

# tests/cuda/NAME_test.cpp; what needs several GPUs is left to the emulation.
TEST_FILES = tuple(
    name
    for path in sorted((ROOT / "tests/cuda").glob("*_test.cpp"))
    if (name := path.stem.removesuffix("_test")) != "multi_gpu"
)
SANITIZER_FAILED = 86
TRAINING = tuple(
    row.id for row in gpu_report.FIGURES if row.id.startswith(("mlp", "cnn", "torch_"))
)
ROWS = tuple(row.id for row in gpu_report.FIGURES if row.id not in (*TRAINING, "overlap", "sweep"))


class GpuMachine:
    """What is built here, and what it says of this machine."""

    def __init__(self, shell: Shell, given: argparse.Namespace) -> None:
        self.shell, self.given = shell, given
        self.bench: Path | None = given.bench
        self.tests: Path | None = given.tests
        self.discovered: Record | None = None

    # --- what there is

    def discover(self) -> list[Record]:
        """What the built program says of CUDA here; nothing where it was not built."""
        if (
            self.bench is None
            and (given := self.given.build / "bin/bench_gpu").exists()
            and "build" not in self.wanted()
        ):
            self.bench = given  # of an earlier run
            self.tests = self.tests or self.given.build / "bin/test_cuda_gpu"
        if self.bench is None:
            return []
        done = self.shell.call([self.bench, "--discover"], 30)
        found = [record for record in records_of(done.stdout) if record["record"] == "discovery"]
        if not found:
            return [{"record": "failed", "id": "discovery", "reason": done.why()}]
        self.discovered = found[-1]
        return found

    def wanted(self) -> set[str]:
        return set(self.given.only) or {"build"}

    def problem(self) -> str | None:
        """Why nothing can run on a GPU; None where it can, or where only the program brought along can tell."""
        if self.discovered is not None and self.discovered["problem"]:
            return f"no GPU: {self.discovered['problem']}"
        return None

    def program(self, path: Path | None, name: str) -> Path:
        if path is None or not path.exists():
            raise Failed(f"{name} was not built")
        return path

    # --- build

    def architectures(self) -> str:
        """Of the GPU found: building for it alone is half the work."""
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
        raise Failed("there is no nvcc: put the CUDA toolkit on the PATH")

    def build(self, seconds: float) -> list[Record]:
        if self.bench is not None and self.tests is not None:
            return [{"record": "check", "id": "build", "ok": True, "words": "built before"}]
        end, folder = time.monotonic() + seconds, self.given.build
        nvcc, architectures = self.nvcc(), self.architectures()
        if not shutil.which("cmake"):
            raise Failed("there is no cmake")
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
        if self.given.headers:
            configure += [f"-DGOSSAMER_HEADERS={self.given.headers}"]
        begin = time.monotonic()
        if (done := self.shell.call(configure, end - time.monotonic())).code != 0:
            raise Failed(f"cmake: {done.why()}")

        def make(*targets: str) -> Done:
            return self.shell.call(
                ["cmake", "--build", folder, "-j", os.cpu_count() or 2, "--target", *targets],
                end - time.monotonic(),
            )

        targets, problems = ("bench_gpu", "test_cuda_gpu"), []
        built = list(targets) if make(*targets).code == 0 else []
        if not built:  # one of them may be whole
            for target in targets:
                if (done := make(target)).code == 0:
                    built.append(target)
                else:
                    problems.append(f"{target}: {done.why()}")
        if "bench_gpu" in built:
            self.bench = folder / "bin/bench_gpu"
        if "test_cuda_gpu" in built:
            self.tests = folder / "bin/test_cuda_gpu"
        words = f"for {architectures}, {time.monotonic() - begin:.0f} s" + "".join(
            f"; {problem}" for problem in problems
        )
        return [{"record": "check", "id": "build", "ok": not problems, "words": words}]

    # --- tests

    @staticmethod
    def tests_said(done: Done) -> str:
        """doctest's totals in one line."""
        cases = re.findall(
            r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed", done.stdout
        )
        skipped = len(re.findall(r"^skipped: ", done.stdout, re.MULTILINE))
        if not cases:
            return done.why()
        return f"{cases[-1][1]} of {cases[-1][0]} test cases passed" + (
            f", {skipped} of them skipped" if skipped else ""
        )

    def parity(self, seconds: float) -> list[Record]:
        done = self.shell.call([self.program(self.tests, "test_cuda_gpu")], seconds)
        if done.code is None:
            raise Failed(done.why())
        # Tests of several GPUs may skip, as they do where there is one.
        skipped = re.search(r"^skipped: (?!\d+ GPUs are needed)", done.stdout, re.MULTILINE)
        whole = (
            done.code == 0
            and skipped is None
            and re.search(r"[1-9]\d* passed", done.stdout) is not None
        )
        return [
            {
                "record": "check",
                "id": "parity",
                "ok": whole,
                "words": f"{self.tests_said(done)}, {done.seconds:.0f} s",
            }
        ]

    def sanitizer(self, seconds: float) -> list[Record]:
        """The test program's files under both tools, several at a time; what was not finished is named."""
        tests = self.program(self.tests, "test_cuda_gpu")
        beside = self.nvcc().parent / "compute-sanitizer"
        tool = str(beside) if beside.exists() else shutil.which("compute-sanitizer")
        if tool is None:
            raise Failed("there is no compute-sanitizer")
        end = time.monotonic() + seconds

        def run(work: tuple[str, str]) -> Done:
            kind, file = work
            own = ["--leak-check", "no"] if kind == "memcheck" else []
            command = [
                tool,
                "--tool",
                kind,
                *own,
                "--error-exitcode",
                SANITIZER_FAILED,
                tests,
                f"-sf=*cuda_{file}_test*",
            ]
            return self.shell.call(command, end - time.monotonic())

        works = [(kind, file) for file in TEST_FILES for kind in ("memcheck", "racecheck")]
        with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 3)) as pool:
            outcomes = dict(zip(works, pool.map(run, works)))
        return [
            self.sanitized(kind, {file: outcomes[kind, file] for file in TEST_FILES})
            for kind in ("memcheck", "racecheck")
        ]

    @staticmethod
    def sanitized(kind: str, outcomes: dict[str, Done]) -> Record:
        clean = [file for file, done in outcomes.items() if done.code == 0]
        late = [file for file, done in outcomes.items() if done.code is None]
        found = {
            file: re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", done.stdout)
            for file, done in outcomes.items()
            if done.code not in (0, None)
        }
        words = [f"clean: {', '.join(clean) or 'nothing'}"]
        words += [
            f"{file}: {lines[-1] if lines else outcomes[file].why()}"
            for file, lines in found.items()
        ]
        words += [f"time was up for: {', '.join(late)}"] if late else []
        return {
            "record": "check",
            "id": kind,
            "ok": False if found else None if late else True,
            "words": "; ".join(words),
        }

    # --- figures

    def rows(self, seconds: float) -> list[Record]:
        """bench_gpu's rows. An error of CUDA spoils the rest of its process, so what came after it gets another chance."""
        bench, end = self.program(self.bench, "bench_gpu"), time.monotonic() + seconds
        records, wanted = [], list(ROWS)
        for _ in range(2):
            left = end - time.monotonic()
            asked = [name for name in wanted if name != "ring_issued"]
            command = [bench, "--only", ",".join(asked), "--deadline", f"{max(1.0, left - 5):.0f}"]
            done = self.shell.call(command + (["--quick"] if self.given.quick else []), left)
            records += [
                record for record in records_of(done.stdout) if record["record"] != "discovery"
            ]
            broken = [record for record in records if record.get("id") == "device"]
            if broken and {record.get("id") for record in records} <= {"device", None}:
                raise Failed(broken[0]["reason"])
            have = {record.get("id") for record in records if record["record"] != "failed"}
            failed = [name for name in wanted if name not in have]
            if not failed or done.code is None or time.monotonic() > end - 10:
                break
            if failed[0] not in {record.get("id") for record in records}:
                records.append(
                    {"record": "failed", "id": failed[0], "reason": f"bench_gpu: {done.why()}"}
                )
            wanted = failed[1:]
            if not [name for name in wanted if name != "ring_issued"]:
                break
        known = {record.get("id") for record in records}
        reason = f"bench_gpu: {done.why()}"
        return records + [
            {"record": "failed", "id": name, "reason": reason} for name in ROWS if name not in known
        ]

    def training(self, seconds: float) -> list[Record]:
        """Pairs of one measurement of ours and one of each rival, in turn; both programs stay on the GPU."""
        bench, given, quick = (
            self.program(self.bench, "bench_gpu"),
            self.given,
            ["--quick"] if self.given.quick else [],
        )
        end = time.monotonic() + seconds
        ours = Server(self.shell, [bench, "--serve", *quick], 40)
        records: list[Record] = [{**ours.device, "record": "device"}]
        script = Path(__file__).with_name("gpu_rivals.py")
        theirs: Server | str
        try:
            command = [
                given.torch_python,
                script,
                "--serve",
                "--device",
                given.torch_device,
                *quick,
            ]
            theirs = Server(self.shell, command, 60)
            records.append({**theirs.device, "record": "torch"})
        except Failed as error:
            theirs = f"no rival: {error}"
        try:
            records += Rivalry(ours, theirs, end, given.quick).all()
        finally:
            ours.close()
            if isinstance(theirs, Server):
                theirs.close()
        return records
