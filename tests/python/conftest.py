"""What the Python tests share: the built program, and a stand-in for it that is fast and can fail on request."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from network_test_util import Make, networks

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))


@pytest.fixture(scope="session")
def gossamer() -> Path:
    """The program: $GOSSAMER_BIN, else the release build. Without it nothing of the product is tested: an error."""
    path = Path(os.environ.get("GOSSAMER_BIN") or ROOT / "build" / "release" / "bin" / "gossamer")
    if not path.is_file():
        pytest.fail(f"no gossamer program at {path}: build it first, or set GOSSAMER_BIN")
    return path.resolve()


@pytest.fixture
def network(gossamer: Path, tmp_path: Path) -> Iterator[Make]:
    """network(4, "topology.kind=ring", …); whatever still runs at the test's end is killed."""
    with networks(gossamer, tmp_path) as make:
        yield make


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fake_gossamer.py as a program of its own, started by this very Python without its site packages: quickly."""
    source = (Path(__file__).parent / "fake_gossamer.py").read_text(encoding="utf-8")
    program = tmp_path_factory.mktemp("bin") / "gossamer"
    program.write_text(f"#!{sys.executable} -IS\n" + source.partition("\n")[2], encoding="utf-8")
    program.chmod(0o755)
    return program


Lab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lab(tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """lab("sweep", "topology.kind=ring", …): the entry point called in an empty folder that holds a config `small.toml`,
    against the stand-in or another `program`."""
    (tmp_path / "small.toml").write_text(
        '[run]\npeers = 4\nrounds = 6\nseed = 0\n[topology]\nkind = "ring"\n[algorithm]\nkind = "dpsgd"\n'
        '[model]\nkind = "softmax"\n[data]\nkind = "digits"\n[optimizer]\nrate = 0.5\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)

    def call(
        script: str, *words: object, program: Path = stand_in
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("GOSSAMER_BIN", str(program))
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = importlib.import_module(script).main([str(word) for word in words])
        return subprocess.CompletedProcess([script], code, stdout.getvalue(), stderr.getvalue())

    return call
