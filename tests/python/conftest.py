"""Fixtures of the Python tests: the built programs, models that train, a fake program."""

import contextlib
import gc
import importlib
import io
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from network_test_util import NetworkFactory, networks
from softmax_problem import Problem

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "experiments"), str(ROOT / "tests" / "python" / "programs")]

# Tests read JSON of many megabytes. At Python's thresholds a tenth of their time is spent in search
# of cycles.
gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keeps the tests of an xdist_group in one process, which --dist loadgroup promises.

    pytest-xdist 3.8 appends the group to _nodeid, which pytest 9.2 does not read any more.
    """
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)


@pytest.fixture(scope="session")
def gossamer() -> Path:
    """The program: $GOSSAMER_BIN, else that of the release build. A missing program is an error."""
    path = Path(os.environ.get("GOSSAMER_BIN") or ROOT / "build" / "release" / "bin" / "gossamer")
    if not path.is_file():
        pytest.fail(f"no gossamer program at {path}: build it first, or set GOSSAMER_BIN")
    return path.resolve()


@pytest.fixture(scope="session")
def simulator(gossamer: Path) -> Path:
    """The fault simulator, which the build places beside the program."""
    path = gossamer.with_name("gossamer-simulator")
    if not path.is_file():
        pytest.fail(f"no fault simulator at {path}: build gossamer_simulator_program first")
    return path


@pytest.fixture
def network(gossamer: Path, tmp_path: Path) -> Iterator[NetworkFactory]:
    """network(4, "topology.kind=ring", …) creates a network; the end of the test kills it."""
    with networks(gossamer, tmp_path) as make:
        yield make


@pytest.fixture(scope="module", params=["peers", "samples"])
def problem(
    request: pytest.FixtureRequest, gossamer: Path, tmp_path_factory: pytest.TempPathFactory
) -> Problem:
    """With both objectives; shards have three to eight samples."""
    problem = Problem(gossamer, tmp_path_factory.mktemp("classes"))
    problem.weights = request.param
    return problem


@pytest.fixture(scope="session")
def fake_gossamer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fake_gossamer.py, compiled, as a program. It starts this Python without site packages.

    Both make it start fast. A compiled module without its source is named like the source.
    """
    folder = tmp_path_factory.mktemp("bin")
    source = Path(__file__).parent / "programs" / "fake_gossamer.py"
    py_compile.compile(str(source), str(folder / "fake_gossamer.pyc"), doraise=True)
    program = folder / "gossamer"
    program.write_text(
        f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(folder)!r})\n"
        "import fake_gossamer\nfake_gossamer.main(sys.argv[1:])\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def draw_only(patch: pytest.MonkeyPatch, *stems: str) -> None:
    """Lets reports save only these figures. They make all, but drawing takes most of their time."""
    report = importlib.import_module("report")
    save_figures = report.save_figures

    def save(figures: list[Any], folder: Path) -> dict[str, str]:
        texts = save_figures([item for item in figures if item.stem in stems], folder)
        return {item.stem: texts.get(item.stem, "<svg></svg>") for item in figures}

    patch.setattr(report, "save_figures", save)


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the text of a report."""
    draw_only(monkeypatch)


Lab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lab(tmp_path: Path, fake_gossamer: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """lab("sweep", "small.toml", "topology.kind=ring", …) calls main() of a script of experiments/.

    The working folder is empty but for the configuration small.toml. The script uses the fake
    program, unless `program` is given.
    """
    (tmp_path / "small.toml").write_text(
        '[run]\npeers = 4\nrounds = 6\nseed = 0\n[topology]\nkind = "ring"\n'
        '[algorithm]\nkind = "dpsgd"\n[model]\nkind = "softmax"\n'
        '[data]\nkind = "digits"\n[optimizer]\nrate = 0.5\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lab.page.PNG_DPI", 30)  # the same figures in a tenth of the pixels

    def call(
        script: str, *arguments: object, program: Path = fake_gossamer
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("GOSSAMER_BIN", str(program))
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = importlib.import_module(script).main([str(argument) for argument in arguments])
        return subprocess.CompletedProcess([script], code, stdout.getvalue(), stderr.getvalue())

    return call
