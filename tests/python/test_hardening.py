"""The program is built with the hardening that a program of a distribution has."""

import subprocess
from pathlib import Path

import pytest


def readelf(program: Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "--wide", *options, program], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("options", "words", "meaning"),
    [
        (["--file-header"], "DYN (Position-Independent Executable file)", "PIE"),
        (["--program-headers"], "GNU_RELRO", "RELRO"),
        (["--dynamic"], "BIND_NOW", "full RELRO"),
        (["--dyn-syms"], "__stack_chk_fail", "a stack protector"),
        (["--dyn-syms"], "_chk@GLIBC", "FORTIFY"),
    ],
)
def test_program_is_hardened(gossamer: Path, options: list[str], words: str, meaning: str) -> None:
    assert words in readelf(gossamer, *options), f"{gossamer} has no {meaning}"
