"""The program `gossamer` of this package, as a console command."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "gossamer"
    os.execv(program, ["gossamer", *sys.argv[1:]])
