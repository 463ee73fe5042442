"""Sweeps on workers of Dask: here, of a given scheduler, and of a batch system."""

import csv
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest
from conftest import ROOT
from lab.on_worker import run_cell
from lab.runner import RunnerOptions
from test_sweep import statuses


one_scheduler = pytest.mark.xdist_group("dask-scheduler")  # its tests share one process


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of a scheduler with two workers, which do not have the sources of the lab.

    A task whose worker was lost is started again once.
    """
    folder = tmp_path_factory.mktemp("scheduler")
    file = folder / "scheduler.json"
    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        # A worker, such as one in place of a lost one, is a copy of a process with all imports.
        "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
    }
    environment.pop("PYTHONPATH", None)
    commands = [
        ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"],
        ["dask_worker", "--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder)],
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]]
            + ["--no-dashboard", "--scheduler-file", str(file)],
            cwd=folder,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        until(file.exists)
        yield file
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def table(folder: Path) -> list[dict[str, str]]:
    """The results of runs; their hashes depend on the process that runs the fake program."""
    with (folder / "results.csv").open(encoding="utf-8") as lines:
        return [{**row, "final_hash": ""} for row in csv.DictReader(lines)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def background(lab: Any, tmp_path: Path, fake_gossamer: Path) -> Iterator[Callable[..., Any]]:
    """background("run.seed=1", …) starts a sweep into out/ as a process."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        script = str(ROOT / "experiments" / "sweep.py")
        process = subprocess.Popen(
            [sys.executable, script, "small.toml", "--out", "out", *arguments],
            cwd=tmp_path,
            env={**os.environ, "GOSSAMER_BIN": str(fake_gossamer)},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def free(lock: Path) -> bool:
    """If no run has the lock, which the processes of a run keep until they have ended."""
    with lock.open("r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_workers_here_give_the_same_tables_and_the_sweep_continues(
    lab: Any, tmp_path: Path
) -> None:
    grid = ("sweep", "small.toml", "topology.kind=ring,rong,complete", "--skip-impossible")
    command = (*grid, "--rates", "0.1,0.5", "--selection-seeds", "7", "-j", "2", "--out")
    assert lab(*command, "plain").returncode == 0
    half = lab(*command, "out", "--on", "dask", "--shard", "1/2")
    assert half.returncode == 0, half.stderr
    assert len(statuses(tmp_path / "out")) == 3
    done = lab(*command, "out", "--on", "dask")
    assert done.returncode == 0, done.stderr
    assert "4 run(s) to select step sizes in out, 2 of them complete" in done.stderr
    assert "2 run(s) in out, 1 of them complete" in done.stderr
    assert table(tmp_path / "out") == table(tmp_path / "plain")
    assert not (tmp_path / "out" / ".locks").exists()


@one_scheduler
def test_lost_workers_are_replaced_and_failures_have_names(
    lab: Any, tmp_path: Path, scheduler: Path
) -> None:
    done = lab(
        "sweep", "small.toml", "run.seed=0,13,17,18", "--on", f"dask:{scheduler}", "--out", "out"
    )
    assert done.returncode == 1
    assert "seed13 FAILED: run (exit status 3): gossamer: data.path: the thirt" in done.stderr
    assert "seed17 started again on " in done.stderr
    assert "seed18 FAILED: every worker that ran it was lost" in done.stderr
    assert statuses(tmp_path / "out") == {
        "seed0": "finished",
        "seed13": "failed",
        "seed17": "finished",
        "seed18": "failed",
    }
    until(lambda: free(tmp_path / "out" / ".locks" / "seed18"))


def test_a_cell_waits_for_the_run_of_a_lost_worker(lab: Any, tmp_path: Path) -> None:
    lock = tmp_path / "out" / ".locks" / "seed0"
    lock.parent.mkdir(parents=True)
    held = lock.open("w", encoding="utf-8")
    fcntl.flock(held, fcntl.LOCK_EX)

    def release() -> bool:
        until(lambda: (tmp_path / "out" / "seed1" / "summary.json").exists())
        with held:
            return not (tmp_path / "out" / "seed0").exists()

    with ThreadPoolExecutor(1) as thread:
        waited = thread.submit(release)
        done = lab("sweep", "small.toml", "run.seed=0,1", "--on", "dask", "-j", "2", "--out", "out")
    assert done.returncode == 0 and waited.result(), done.stderr


@one_scheduler
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_runs_end_with_the_sweep(
    tmp_path: Path, background: Any, scheduler: Path, number: signal.Signals
) -> None:
    sweep = background("run.seed=15,0..5", "--on", f"dask:{scheduler}")
    log = tmp_path / "out" / "seed15" / "log-0.jsonl"
    until(lambda: log.exists() and '"round": 6' in log.read_text(encoding="utf-8"))
    sweep.send_signal(number)
    _, stderr = sweep.communicate()
    if number == signal.SIGINT:
        assert sweep.returncode == 130 and "sweep: stopping" in stderr
        assert statuses(tmp_path / "out")["seed15"] == "missing"
        assert '"interrupted"' in (log.parent / "summary.json").read_text(encoding="utf-8")
        assert free(tmp_path / "out" / ".locks" / "seed15")
    else:
        until(lambda: free(tmp_path / "out" / ".locks" / "seed15"))


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    fields = {"name": "run", "folder": tmp_path / "no" / "run", "overrides": {}, "labels": {}}
    options = RunnerOptions(None, {}, {}, "", False, 1)  # type: ignore[arg-type]
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        status, message, _ = client.submit(run_cell, options, "topic", fields, "").result()
    assert status == "refused" and f"does not see the folder {tmp_path}/no" in message


SBATCH = """#!/bin/sh
cp "$1" job.sh  # the caller removes it
setsid sh job.sh >job.log 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -- "-$1"
echo "$1" >>cancelled
"""


def test_a_batch_system_starts_the_workers(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = ("sweep", "small.toml", "run.seed=0..2", "--on", "slurm", "--out", "out")
    unset = lab(*command)
    assert unset.returncode == 2 and "--on slurm: You must specify" in unset.stderr
    refused = "#!/bin/sh\necho no such account >&2\nexit 1\n"
    queue = {"cores": 1, "memory": "1GB", "interface": "lo", "nanny": False}
    queue["scheduler-options"] = {"dashboard_address": ":0"}
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in queue.items()}):
        done = lab(*command)
        (tmp_path / "sbatch").write_text(refused, encoding="utf-8")
        no_job = lab(*command, "--again")
    assert no_job.returncode == 2 and "no such account" in no_job.stderr, no_job.stderr
    assert done.returncode == 0, done.stderr
    assert set(statuses(tmp_path / "out").values()) == {"finished"}
    assert len((tmp_path / "cancelled").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "slrum"], "--on slrum: write dask, dask:ADDRESS, dask:FILE.json, or a batch"),
        (["--on", "oar"], "--on oar: this machine has no oarsub"),
        (["--on", "slurm:x"], "--on slurm:x: write dask, "),
        (["--on", "dask:"], "--on dask:: name the scheduler"),
        (["--on", "dask:tcp://127.0.0.1:1"], "--on dask:tcp://127.0.0.1:1: Timed out"),
        (["--on", "dask:none.json"], "--on dask:none.json: there is no file none.json"),
        (["--on", "dask:tcp://127.0.0.1:1", "-j", "2"], "-j 2: --on dask:tcp://127.0.0.1:1 uses"),
    ],
)
def test_workers_that_cannot_be_are_refused(lab: Any, options: list[str], message: str) -> None:
    with dask.config.set({"distributed.comm.timeouts.connect": "0.1s"}):
        done = lab("sweep", "small.toml", "--out", "out", *options)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.parametrize(
    ("on", "module", "install"),
    [
        ("dask", "distributed", "pip install dask distributed"),
        ("slurm", "dask_jobqueue", "pip install dask-jobqueue"),
    ],
)
def test_a_missing_package_is_named(
    lab: Any, monkeypatch: pytest.MonkeyPatch, on: str, module: str, install: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = lab("sweep", "small.toml", "--out", "out", "--on", on)
    assert done.returncode == 2 and f"--on {on} needs a package" in done.stderr
    assert install in done.stderr
