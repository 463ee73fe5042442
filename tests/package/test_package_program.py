"""The program with tasks: python -m gossamer run and peer, and what is passed on to C++."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import gossamer
import numpy as np
import pytest
from conftest import ROOT, Configure
from gossamer.task_file import checked_settings, load_task
from network_test_util import wait_until
from process_test_util import PROGRAMS
from tasks import NumpySoftmax

DIVERGED, INTERRUPTED = 8, 130  # exit codes


def gossamer_program(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gossamer", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def config(configure: Configure) -> Path:
    """A configuration of 4 peers and 5 rounds, which names the file of a task."""
    path = configure(4, 5)
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            'kind = "external"\n', f'kind = "external"\nfile = "{PROGRAMS / "numpy_task.py"}"\n'
        ),
        encoding="utf-8",
    )
    return path


def refusal(config: Path, *settings: str) -> str:
    done = gossamer_program("run", config, *[text for each in settings for text in ("--set", each)])
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_the_program_names_its_options(config: Path, tmp_path: Path) -> None:
    command = ["run", config, "--out", tmp_path / "out", "-q"]
    assert gossamer_program(*command).returncode == 0
    again = gossamer_program(*command)
    assert again.returncode == 3
    assert "resume it with --resume auto, choose another folder with --out" in again.stderr


def test_a_task_runs_from_its_file_as_from_python(config: Path, tmp_path: Path) -> None:
    task = load_task(gossamer.configuration(config, settings={"model.rate": 0.05}))
    expected = gossamer.run(config, task, settings=["model.rate=0.05"], out=tmp_path / "python")
    done = gossamer_program(
        "run", config, "--set", "model.rate=0.05", "--out", tmp_path / "program", "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["final_hash"] == expected["final_hash"]
    assert summary["config"]["model"]["rate"] == 0.05
    assert "round 5/5" in done.stderr
    other = gossamer_program("run", config, "--out", tmp_path / "other", "-q")
    assert (other.returncode, other.stdout, other.stderr) == (0, "", "")
    found = json.loads((tmp_path / "other" / "summary.json").read_text(encoding="utf-8"))
    assert found["final_hash"] != expected["final_hash"]


def test_processes_end_with_the_bits_of_a_simulation(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "network"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "gossamer", "peer", str(config), "--id", str(peer)]
            + ["--out", str(out), "-q"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for peer in range(4)
    ]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    collected = gossamer_program("collect", out)
    assert collected.returncode == 0, collected.stderr
    simulated = gossamer_program("run", config, "--out", tmp_path / "simulated", "--json")
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    expected = json.loads(simulated.stdout)
    assert summary["final_hash"] == expected["final_hash"]
    assert summary["final"]["test_loss"] == expected["final"]["test_loss"]


def test_a_task_runs_without_a_configuration_file(tmp_path: Path) -> None:
    settings = ["model.kind=external", f"model.file={PROGRAMS / 'numpy_task.py'}", "run.peers=4"]
    options = [text for each in settings for text in ("--set", each)]
    done = gossamer_program(
        "run", *options, "--set", "run.rounds=2", "--out", tmp_path / "out", "-q"
    )
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["config"]["run"]["rounds"] == 2
    assert gossamer_program("predict", *options).returncode == 0


def test_check_runs_nothing(config: Path, tmp_path: Path) -> None:
    done = gossamer_program("run", config, "--check", "--json", "--out", tmp_path / "out")
    assert json.loads(done.stdout) == {"peers": 4, "servers": 0, "parameters": 650}
    assert not (tmp_path / "out").exists()
    assert (
        "configuration is valid: 4 peers, ring, 650"
        in gossamer_program("run", config, "--check").stderr
    )


def test_theory_predicts_the_bytes_of_a_task(config: Path, tmp_path: Path) -> None:
    done = gossamer_program("predict", config, "--json")
    assert done.returncode == 0, done.stderr
    predicted = json.loads(done.stdout)
    task = load_task(gossamer.configuration(config))
    assert gossamer.predict(config, task) == predicted
    summary = gossamer.run(config, task, out=tmp_path / "out")
    assert predicted["bytes_sent"] == summary["bytes_sent"]
    assert f"{summary['bytes_sent']:,}".replace(",", "") in gossamer_program(
        "predict", config
    ).stdout.replace(",", "")
    attack = ["--set", "attack.kind=sign_flip", "--set", "attack.peers=0"]
    attacked = gossamer_program("predict", config, *attack)
    assert attacked.returncode == 2 and "set attack.kind = none" in attacked.stderr
    assert gossamer_program("predict", config, "--decay", "2").returncode == 2


def test_an_array_is_a_tuple_where_the_default_is_one() -> None:
    def task(_config: object, layers: tuple[int, ...] = (64,), rates: object = None) -> None: ...

    given = {"layers": [32, 16], "rates": [0.1]}
    checked = checked_settings(task, given, Path("task.py"))
    assert checked == {"layers": (32, 16), "rates": [0.1]}
    with pytest.raises(gossamer.Error, match="another type than the default, \\(64,\\)"):
        checked_settings(task, {"layers": 32}, Path("task.py"))


def test_a_task_that_takes_any_setting_still_has_those_that_it_names_checked() -> None:
    def task(_config: object, width: int, layers: tuple[int, ...] = (64,), **more: int) -> None: ...

    given = {"width": 8, "layers": [32], "other": "text"}
    assert checked_settings(task, given, Path("task.py")) == {**given, "layers": (32,)}
    with pytest.raises(gossamer.Error, match="model.width: task.* needs this setting"):
        checked_settings(task, {"other": 1}, Path("task.py"))
    with pytest.raises(gossamer.Error, match="another type than the default, \\(64,\\)"):
        checked_settings(task, {"width": 8, "layers": 32}, Path("task.py"))


def test_wrong_settings_and_files_are_named(config: Path, tmp_path: Path) -> None:
    assert "model.raet: task() in " in (found := refusal(config, "model.raet=1"))
    assert "there are: rate, fails_at" in found
    assert "model.rate: 'fast' is a value of another type" in refusal(config, "model.rate=fast")
    assert "there is no such file" in refusal(config, "model.file=none.py")
    assert "no effect with model.kind = external" in refusal(config, "optimizer.rate=1")
    for name, text, fault in (
        ("no_task.py", "", "has no function task(config)"),
        ("wrong_task.py", "def task(config): return 3", "returned int"),
        ("needy_task.py", "def task(config, *, size): ...", "model.size: task() in "),
        ("json.py", "", "Python has a module 'json'"),
        ("task.txt", "", "ends with .py"),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert fault in refusal(config, f"model.file={path}")


def test_a_fault_of_the_task_ends_the_run_with_its_traceback(config: Path, tmp_path: Path) -> None:
    done = gossamer_program("run", config, "--set", "model.fails_at=3", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: step 3")


def test_a_diverged_run_has_the_exit_code_of_the_program(config: Path, tmp_path: Path) -> None:
    done = gossamer_program("run", config, "--set", "model.rate=1e30", "--out", tmp_path / "out")
    assert done.returncode == DIVERGED, done.stderr
    assert "a smaller learning rate usually helps" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_its_round(
    config: Path, tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gossamer", "run", str(config), "--set", "run.rounds=1000000"]
        + ["--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until("the log exists", (tmp_path / "out" / "log-0.jsonl").exists)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    log = (tmp_path / "out" / "log-0.jsonl").read_text(encoding="utf-8")
    assert json.loads(log.splitlines()[-1])["reason"] == "interrupted"


SIGNALLED_WHILE_IT_STARTS = """
import signal, sys
from gossamer import program, runs
def start(*arguments, **options):
    background = runs.start(*arguments, **options)
    signal.raise_signal(signal.SIGTERM)
    return background
program.start = start
sys.exit(program.main())
"""


def test_a_signal_while_the_run_starts_ends_it_after_a_round(config: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED_WHILE_IT_STARTS, "run", str(config)]
        + ["--set", "run.rounds=1000000", "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == INTERRUPTED, done.stderr
    log = (tmp_path / "out" / "log-0.jsonl").read_text(encoding="utf-8")
    assert json.loads(log.splitlines()[-1])["reason"] == "interrupted"


def test_everything_else_is_done_by_the_program(program: Path) -> None:
    graph = ROOT / "experiments" / "models" / "residual.toml"  # a file of a model, and of no task
    model = ["--set", "model.kind=graph", "--set", f"model.file={graph}"]
    for arguments in (
        ["--version"],
        ["list"],
        ["run", "--help"],
        ["run", "none.toml"],
        ["run", "--set", "run.rounds=2", "--check"],
        ["run", *model, "--check", "--json"],
        ["predict", *model, "--json"],
        ["peer", "--unknown"],
        ["nonsense"],
    ):
        expected = subprocess.run(
            [str(program), *arguments], capture_output=True, text=True, check=False
        )
        done = gossamer_program(*arguments)
        assert done.returncode == expected.returncode
        assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr)


def test_errors_have_exit_codes(config: Path) -> None:
    with pytest.raises(gossamer.Error) as missing:
        gossamer.configuration("none.toml")
    assert missing.value.exit_code == 3
    with pytest.raises(gossamer.Error, match="run.peers") as invalid:
        gossamer.configuration(config, settings={"run.peers": 0})
    assert invalid.value.exit_code == 2
    assert np.isclose(gossamer.configuration(config)["net"]["join_timeout"], 60)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run.participants", ["0,2", "5: 0-3"]),
        ("net.seeds", ["10.0.0.1:7000"]),
        ("net.seeds", []),
        ("topology.weights", "metropolis"),
        ("model.layers", [5, 6]),
        ("model.layers", []),
        ("model.names", ["a, b", " c ", ""]),
        ("model.name", "3"),
        ("model.other", "true enough"),
        ("model.number", 3),
        ("model.flag", True),
    ],
    ids=str,
)
def test_settings_have_the_values_that_were_given(
    configure: Configure, key: str, value: object
) -> None:
    config = configure(8, 10)
    model = 'kind = "external"\nlayers = [1]\nnames = ["x"]\nname = "x"'
    text = config.read_text(encoding="utf-8").replace('kind = "external"', model)
    config.write_text(text, encoding="utf-8")
    section, name = key.split(".")
    for given in (value, tuple(value)) if isinstance(value, list) else (value,):
        assert gossamer.configuration(config, settings={key: given})[section][name] == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.name": None}, "model.name: None is no value; leave the key out"),
        ({"net.seeds": ["a:1", None]}, "net.seeds: None is no value"),
        ({"net.seeds": ['a"b']}, "net.seeds: the item 'a\"b' has a quotation mark, which only the"),
        ({"model.name": "3"}, "model.name: a setting .* '3' would become 3; write model.name in"),
        ({"model.layers": [5, 6]}, r"model.layers: .* \[5, 6\] would become '\[5, 6\]'; write "),
    ],
    ids=str,
)
def test_a_setting_that_would_become_another_value_is_refused(
    configure: Configure, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossamer.configuration(configure(), settings=settings)
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(), NumpySoftmax(), settings=settings)


def test_the_table_of_a_run_is_exported_by_the_program(config: Path, tmp_path: Path) -> None:
    """The package's own formats are options of the same command (test_package_export.py)."""
    assert gossamer_program("run", config, "--out", tmp_path / "out", "-q").returncode == 0
    done = gossamer_program("export", tmp_path / "out", "--csv")
    assert done.returncode == 0 and "train_loss" in done.stdout.splitlines()[0], done.stderr


def test_the_run_folder_says_which_id_a_process_had(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the one that the run has, wherever the caller names it."""
    asked: list[list[str]] = []

    def find_ids(text: str, config: str, overrides: list[str]) -> None:
        asked.append(overrides)
        raise gossamer.Error("no network here")

    monkeypatch.setattr("gossamer._core.find_ids", find_ids)
    for settings in (iter(["run.seed=3"]), {"run.seed": 3}):
        with pytest.raises(gossamer.Error, match="no network here"):
            gossamer.peer(config, NumpySoftmax(), settings=settings, out=tmp_path / "machine")
        assert asked.pop() == ["run.seed=3", f"local.out={tmp_path / 'machine'}"]
