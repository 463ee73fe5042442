"""What the README shows of a run is what its command prints."""

import re
import shlex
import subprocess
from pathlib import Path

from conftest import ROOT

README = ROOT / "README.md"
RUN = re.compile(r"^\$ build/release/bin/gossamer (run .*)\n((?:.+\n)+?)```", re.MULTILINE)
RUN_FOLDER = re.compile(r"\bruns/[0-9a-f]{16}\b")


def test_the_first_run(gossamer: Path, tmp_path: Path) -> None:
    """All but its figures, which depend on the processor. Other pages name its run folder."""
    ((command, shown),) = RUN.findall(README.read_text(encoding="utf-8"))
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    printed = subprocess.run(
        [gossamer, *shlex.split(command)],
        cwd=tmp_path,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert without_figures(shown) == without_figures(printed)
    (folder,) = RUN_FOLDER.findall(printed)
    assert (tmp_path / folder).is_dir()
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        named = RUN_FOLDER.findall(page.read_text(encoding="utf-8"))
        assert set(named) <= {folder}, page.name


def without_figures(output: str) -> list[str]:
    """The lines, in which # stands for hashes and numbers, and one space for several."""
    text = re.sub(r"\b[0-9a-f]{32}\b|\b\d[\d.,]*(e[+-]?\d+)?", "#", output)
    return [" ".join(line.split()) for line in text.splitlines()]
