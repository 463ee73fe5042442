#!/usr/bin/env python3
"""Applies each patch of tests/bugs to a copy of the tree; the bug must be found.

    tests/planted_bugs.py --work FOLDER [NAME …]

The simulator has to find the bugs of the protocol, and tests on the emulated GPU those of
tests/bugs/cuda. A NAME is that of a bug, or "cuda" for all of these. The first bug needs a whole
build and each further one a few files, so ./test.sh does not run this.
With CMAKE_CXX_COMPILER_LAUNCHER=ccache in the environment, the build uses ccache.
Exit code 1: a bug was not found, or something was found in the tree without bugs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEP = 50  # seeds of one run of the simulator
CUDA_TESTS = ("test_cuda_emulation", "test_cuda")  # the quicker one first


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(argument) for argument in command],
        text=True,
        capture_output=True,
        check=False,
        **options,
    )


def build(work: Path, target: str) -> None:
    built = run("cmake", "--build", work / "build", "--target", target, "-j2")
    if built.returncode != 0:
        sys.exit(f"the build failed:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")


def is_cuda(patch: Path) -> bool:
    return "cuda" in patch.relative_to(ROOT / "tests" / "bugs").parts


def synchronise(tree: Path) -> None:
    """Updates the copy of the tree.

    Only files that differ are written, so that the build recompiles those, including files of a bug
    of an earlier run.
    """
    listed = run("git", "-C", ROOT, "ls-files", "-z").stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for path in tree.rglob("*"):
        if path.is_file() and str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names:
        original, copy = (ROOT / name).read_bytes(), tree / name
        if copy.is_file() and copy.read_bytes() == original:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)


def failing_test(work: Path, seconds: float) -> str | None:
    """The first failing test on the emulated GPU; None if there is none."""
    for name in CUDA_TESTS:
        build(work, name)
        try:
            done = run(work / "build" / "bin" / name, timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"{name}: not finished after {seconds:g} s"
        if done.returncode != 0:
            cases = [line for line in done.stdout.splitlines() if line.startswith("TEST CASE:")]
            case = " ".join(cases[0].split()[2:]) if cases else f"ended with {done.returncode}"
            return f"{name}: {case}"
    return None


def first_violation(work: Path, seeds: int, seconds: float) -> str | None:
    """The first failing seed and its violation; None if there is none."""
    build(work, "gossamer_simulator_program")
    program = work / "build" / "bin" / "gossamer-simulator"
    for first in range(0, seeds, STEP):
        span = f"{first}..{min(first + STEP, seeds) - 1}"
        try:
            done = run(program, "--seeds", span, "--faults", "swarm", "--json", timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"seeds {span}: not finished after {seconds:g} s"
        if done.returncode < 0:
            return (
                f"seeds {span}: {done.stderr.strip().splitlines()[-1] if done.stderr else 'killed'}"
            )
        if failed := json.loads(done.stdout)["failed"]:
            return f"seed {failed[0]['seed']}: {failed[0]['violations'][0]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="names of bugs (default: all)")
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="a folder for the copy and its build, which later runs reuse",
    )
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument(
        "--seconds",
        type=float,
        default=600,
        help=f"for {STEP} seeds; a longer run counts as a violation",
    )
    options = parser.parse_args()
    patches = sorted((ROOT / "tests" / "bugs").rglob("*.patch"), key=lambda path: path.name)
    if "cuda" in options.names:
        options.names += [patch.stem for patch in patches if is_cuda(patch)]
    if unknown := set(options.names) - {patch.stem for patch in patches} - {"cuda"}:
        parser.error(f"there is no bug {', '.join(sorted(unknown))}")
    tree = options.work / "tree"
    options.work.mkdir(parents=True, exist_ok=True)
    synchronise(tree)
    # CMake itself reads the variable only when it configures a folder for the first time.
    launcher = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "")
    run(
        "cmake",
        "-S",
        tree,
        "-B",
        options.work / "build",
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DGOSSAMER_CUDA=OFF",
        "-DGOSSAMER_PYTHON=OFF",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
        f"-DGOSSAMER_PRECOMPILE={'OFF' if launcher else 'ON'}",
    )
    chosen = [patch for patch in patches if not options.names or patch.stem in options.names]
    missed = 0
    for on_gpu in (False, True):
        planted = [patch for patch in chosen if is_cuda(patch) == on_gpu]
        for patch in [None, *planted] if planted else []:
            name = patch.stem if patch else "(none)"
            if patch and run("patch", "-sp1", "-i", patch, cwd=tree).returncode != 0:
                sys.exit(f"{name}: the patch does not apply")
            if on_gpu:
                found = failing_test(options.work, options.seconds)
            else:
                found = first_violation(options.work, options.seeds, options.seconds)
            if patch and run("patch", "-sRp1", "-i", patch, cwd=tree).returncode != 0:
                sys.exit(f"{name}: the patch cannot be reverted")
            wrong = (found is None) == (patch is not None)
            missed += wrong
            nothing = "no failing test" if on_gpu else f"no violation in {options.seeds} seeds"
            print(f"{'WRONG' if wrong else 'ok':5}  {name:52}  {found or nothing}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
