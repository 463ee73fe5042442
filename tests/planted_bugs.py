#!/usr/bin/env python3
"""Applies each patch of tests/bugs to a copy of the tree; the simulator must find the bug.

    tests/planted_bugs.py --work FOLDER [NAME …]

The first bug needs a whole build and each further one a few files, so ./test.sh does not run this.
With CMAKE_CXX_COMPILER_LAUNCHER=ccache in the environment, the build uses ccache.
Exit code 1: the simulator did not find a bug, or found a violation in the tree without bugs.
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


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(argument) for argument in command],
        text=True,
        capture_output=True,
        check=False,
        **options,
    )


def build(work: Path) -> Path:
    built = run("cmake", "--build", work / "build", "--target", "gossamer_simulator_program", "-j2")
    if built.returncode != 0:
        sys.exit(f"the build failed:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")
    return work / "build" / "bin" / "gossamer-simulator"


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


def first_violation(program: Path, seeds: int, seconds: float) -> str | None:
    """The first failing seed and its violation; None if there is none."""
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
    if unknown := set(options.names) - {patch.stem for patch in patches}:
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
        "-DBUILD_TESTING=OFF",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
        f"-DGOSSAMER_PRECOMPILE={'OFF' if launcher else 'ON'}",
    )
    missed = 0
    for patch in [None, *(p for p in patches if not options.names or p.stem in options.names)]:
        name = patch.stem if patch else "(none)"
        if patch and run("patch", "-sp1", "-i", patch, cwd=tree).returncode != 0:
            sys.exit(f"{name}: the patch does not apply")
        violation = first_violation(build(options.work), options.seeds, options.seconds)
        if patch and run("patch", "-sRp1", "-i", patch, cwd=tree).returncode != 0:
            sys.exit(f"{name}: the patch cannot be reverted")
        wrong = (violation is None) == (patch is not None)
        missed += wrong
        print(
            f"{'WRONG' if wrong else 'ok':5}  {name:52}  "
            f"{violation or f'no violation in {options.seeds} seeds'}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
