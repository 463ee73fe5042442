"""The types of the package: mypy --strict of .venv, with the PyTorch that runs these tests."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

LAB_PYTHON = ROOT / ".venv" / "bin" / "python"


def mypy(cache: Path, *files: Path) -> str:
    """The output, which names each error and ends with their number."""
    command = [str(LAB_PYTHON), "-m", "mypy", "--python-executable", sys.executable]
    command += ["--cache-dir", str(cache), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.skipif(not LAB_PYTHON.exists(), reason="no .venv: scripts/install.sh")
def test_the_package_has_the_types_that_it_declares(tmp_path: Path) -> None:
    package = ROOT / "python" / "gossamer"
    found = mypy(tmp_path / "cache", package)
    assert found.startswith("Success: no issues found in "), found
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import gossamer.torch as gossip\n"
        'gossip.Optimizer(1, "run.toml")\n'
        'gossip.Averager([], "run.toml").average(3, 4)\n'
    )
    found = mypy(tmp_path / "cache", package, wrong)
    assert 'Argument 1 to "Optimizer" has incompatible type "int"' in found
    assert 'Too many arguments for "average"' in found
