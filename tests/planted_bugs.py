#!/usr/bin/env python3
"""Plants each bug of tests/bugs in a copy of the tree, builds the program, and shows which seed of the simulator finds it.

    tests/planted_bugs.py --work FOLDER [NAME …]

Takes a build for the first bug and a few files for each further one, so it runs on demand and not in ./test.sh. With
CMAKE_CXX_COMPILER_LAUNCHER=ccache in the environment the compiler is called through ccache, which knows most files already.
Exit code 1: a bug was not found, or the tree without any was found faulty.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEP = 50  # seeds that are simulated before looking whether one failed


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], text=True, capture_output=True, check=False, **options
    )


def build(work: Path) -> Path:
    made = run("cmake", "--build", work / "build", "--target", "gossamer", "-j2")
    if made.returncode != 0:
        sys.exit(f"does not build:\n{made.stdout[-3000:]}{made.stderr[-3000:]}")
    return work / "build" / "bin" / "gossamer"


def synchronise(tree: Path) -> None:
    """Makes the copy of the tree. What differs is newer than all that was built before, of a bug that was planted last time too."""
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


def found(program: Path, seeds: int, seconds: float) -> str | None:
    """The first seed that shows it, and what it says."""
    for first in range(0, seeds, STEP):
        span = f"{first}..{min(first + STEP, seeds) - 1}"
        try:
            done = run(
                program, "simulate", "--seeds", span, "--faults", "swarm", "--json", timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return f"seeds {span}: not over after {seconds:g} s"
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
    parser.add_argument("names", nargs="*", help="bugs by name; all where none is given")
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="a folder for the copy and its build; kept for the next time",
    )
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument(
        "--seconds", type=float, default=600, help=f"for {STEP} seeds; longer counts as found"
    )
    options = parser.parse_args()
    patches = sorted((ROOT / "tests" / "bugs").glob("*.patch"))
    if unknown := set(options.names) - {patch.stem for patch in patches}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    tree = options.work / "tree"
    options.work.mkdir(parents=True, exist_ok=True)
    synchronise(tree)
    launcher = os.environ.get(
        "CMAKE_CXX_COMPILER_LAUNCHER", ""
    )  # CMake itself looks at it when it sees a folder first
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
            sys.exit(f"{name}: the patch does not apply any more")
        verdict = found(build(options.work), options.seeds, options.seconds)
        if patch and run("patch", "-sRp1", "-i", patch, cwd=tree).returncode != 0:
            sys.exit(f"{name}: the patch cannot be taken back")
        wrong = (verdict is None) == (patch is not None)
        missed += wrong
        print(
            f"{'NOT AS DUE' if wrong else 'ok':10}  {name:36}  {verdict or f'nothing in {options.seeds} seeds'}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
