"""`gossamer launch`: processes on this machine, and through a program in the place of ssh.

And the job of Slurm, deploy/slurm.sh, with a program in the place of srun.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from network_test_util import keygen, wait_until

ROUNDS = 40
LONG = 3000  # rounds that outlast what a test does to the network


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a launcher that is killed leaves a folder there
    (tmp_path / "run.toml").write_text(
        "[run]\npeers = 6\n[data]\nbatch = 8\n[local]\nthreads = 1\n", encoding="utf-8"
    )
    (tmp_path / "local.txt").write_text("localhost slots=4\n", encoding="utf-8")
    (tmp_path / "remote.txt").write_text("node1 slots=2\nalice@node2\n", encoding="utf-8")
    # What sshd does: the user's shell runs the last argument.
    (tmp_path / "fake_ssh").write_text(
        '#!/bin/sh\necho "$#: $1 $2 $3" >>"$0.calls"\nfor last; do :; done\nexec sh -c "$last"\n',
        encoding="utf-8",
    )
    (tmp_path / "fake_ssh").chmod(0o755)
    return tmp_path


def command(gossamer: Path, hosts: str, rounds: int, *more: str) -> list[str]:
    sets = ("--set", f"run.rounds={rounds}")
    return [str(gossamer), "launch", hosts, "run.toml", "--out", "net", *sets, *more]


def launch(gossamer: Path, folder: Path, *arguments: str, **options: str) -> tuple[int, str, str]:
    hosts = options.get("hosts", "local.txt")
    done = subprocess.run(
        command(gossamer, hosts, ROUNDS, *arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def restore_signals() -> None:
    """These are ignored where the tests run under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def started(
    gossamer: Path, folder: Path, hosts: str, rounds: int, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """A launcher whose first process has shown its progress."""
    with subprocess.Popen(
        command(gossamer, hosts, rounds, *options),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_signals,
    ) as process:
        assert process.stderr is not None
        assert f"round {rounds // 10}/{rounds}" in process.stderr.readline()
        yield process


@contextlib.contextmanager
def launched(gossamer: Path, folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """A launcher of a script in Python, in place of the program."""
    program = folder / "program"
    program.write_text(f"#!{sys.executable}\nimport signal\n{script}", encoding="utf-8")
    program.chmod(0o755)
    with subprocess.Popen(
        command(gossamer, "local.txt", ROUNDS, "--program", str(program)),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_signals,
    ) as process:
        yield process


def await_all(process: subprocess.Popen[str], word: str) -> None:
    """Until each process of local.txt has written this line."""
    assert process.stdout is not None
    waiting = {f"[{ids}] {word}\n" for ids in ("0", "1-2", "3", "4-5")}
    while waiting:
        line = process.stdout.readline()
        assert line != "", waiting
        waiting.discard(line)


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stderr is not None
    return process.stderr.read().splitlines()


def final_hash(gossamer: Path, folder: Path, run: str) -> str:
    done = subprocess.run(
        [gossamer, "collect", run], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "final hash" in line)
    return line.split()[-1]


def expected_hash(gossamer: Path, folder: Path) -> str:
    subprocess.run(
        [gossamer, "run", "run.toml", "--quiet", "--out", "one"]
        + ["--set", f"run.rounds={ROUNDS}"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return final_hash(gossamer, folder, "one")


def pids_of(folder: Path, rank: int) -> list[int]:
    """The peer process of a rank; its shell, which has the same folder, has no rank."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            here = process.name.isdigit() and (process / "cwd").readlink() == folder.resolve()
            variables = (process / "environ").read_bytes().split(b"\0") if here else []
        except OSError:
            continue
        if f"GOSSAMER_RANK={rank}".encode() in variables:
            found.append(int(process.name))
    return found


def test_processes_of_this_machine_have_the_bits_of_one(gossamer: Path, folder: Path) -> None:
    code, out, err = launch(gossamer, folder)
    assert code == 0, err
    assert out.splitlines()[-1] == "4 processes finished"
    assert "[0] gossamer: " not in err and "[0] round 40/40" in err
    assert final_hash(gossamer, folder, "net") == expected_hash(gossamer, folder)


def test_workers_of_a_cut_model_are_started_one_a_slot(gossamer: Path, folder: Path) -> None:
    sets = [
        argument
        for each in ("run.peers=2", "model.kind=mlp", "model.hidden=[16]", "split.layers=2")
        for argument in ("--set", each)
    ]
    code, out, err = launch(gossamer, folder, *sets)
    assert code == 0, err
    assert out.splitlines()[-1] == "4 processes finished"
    assert "[0.0] round 40/40" in err
    found = final_hash(gossamer, folder, "net")
    subprocess.run(
        [gossamer, "run", "run.toml", "-q", "--out", "one", "--set", f"run.rounds={ROUNDS}", *sets],
        cwd=folder,
        check=True,
    )
    assert found == final_hash(gossamer, folder, "one")
    code, _, err = launch(gossamer, folder, *sets, "--set", "split.layers=3")
    assert code == 2
    assert "the hosts have 4 slots: give 6, and each is one worker of the 2 replicas of 3" in err


def test_machines_are_reached_through_ssh(gossamer: Path, folder: Path) -> None:
    options = ("--ssh", f"{folder}/fake_ssh -q", "--set", f"net.rendezvous={folder}/meet", "-q")
    code, out, err = launch(gossamer, folder, *options, hosts="remote.txt")
    assert (code, out, err) == (0, "", "")
    calls = (folder / "fake_ssh.calls").read_text(encoding="utf-8").splitlines()
    assert sorted(calls) == ["4: -q -- alice@node2", "4: -q -- node1", "4: -q -- node1"]
    assert final_hash(gossamer, folder, "net") == expected_hash(gossamer, folder)


def test_a_folder_of_this_machine_is_not_shared_with_others(gossamer: Path, folder: Path) -> None:
    """They meet at the address of the first host instead, which needs keys or net.insecure."""
    (folder / "mixed.txt").write_text(
        "localhost address=10.0.0.5 slots=3\nnode2\n", encoding="utf-8"
    )
    ssh = ("--ssh", f"{folder}/fake_ssh")
    code, _, err = launch(gossamer, folder, *ssh, hosts="mixed.txt")
    assert code == 2 and "10.0.0.5:" in err and "net.insecure" in err
    assert not (folder / "fake_ssh.calls").exists()


def test_the_others_go_on_when_a_process_is_killed(gossamer: Path, folder: Path) -> None:
    with started(gossamer, folder, "local.txt", LONG) as process:
        (victim,) = pids_of(folder, 2)
        os.kill(victim, signal.SIGKILL)
        lines = lines_of(process)
    assert process.returncode == 128 + signal.SIGKILL
    assert "gossamer: peer 3 on localhost ended by signal 9" in lines
    assert any("round 3000/3000" in line for line in lines)


def test_an_interrupt_reaches_every_process(gossamer: Path, folder: Path) -> None:
    options = ("--ssh", f"{folder}/fake_ssh", "--set", f"net.rendezvous={folder}/meet")
    with started(gossamer, folder, "remote.txt", 10 * LONG, *options) as process:
        process.send_signal(signal.SIGINT)
        lines = lines_of(process)
    assert process.returncode == 130, lines
    assert [line for line in lines if "exit code 130" in line and line.startswith("gossamer: ")]
    assert not any(pids_of(folder, rank) for rank in range(3))


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_the_end_of_the_terminal_ends_every_process(
    gossamer: Path, folder: Path, number: signal.Signals
) -> None:
    with started(gossamer, folder, "local.txt", 10 * LONG) as process:
        process.send_signal(number)
        lines = lines_of(process)
    assert process.returncode == 130, lines
    assert not any(pids_of(folder, rank) for rank in range(4))


def test_what_still_runs_is_said_while_the_output_is_held(gossamer: Path, folder: Path) -> None:
    """A terminal may take nothing, and its end may come as several signals."""
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    print('x' * 1000)\n"
    with launched(gossamer, folder, script) as process:
        await_all(process, "x" * 1000)  # all pipes fill up from here on
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
        assert process.stdout is not None and process.stderr is not None
        said = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert said.startswith("gossamer: waiting for peer 0 on localhost"), said
    assert process.returncode != 0


def test_processes_that_do_not_end_are_named_and_then_killed(gossamer: Path, folder: Path) -> None:
    script = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        "print('ready', flush=True)\nwhile True:\n"
        "    signal.sigwait({signal.SIGTERM})\n    print('asked', flush=True)\n"
    )
    with launched(gossamer, folder, script) as process:
        assert process.stdout is not None and process.stderr is not None
        await_all(process, "ready")
        process.send_signal(signal.SIGTERM)
        await_all(process, "asked")
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline() == (
            "gossamer: waiting for peer 0 on localhost, peers 1-2 on localhost, peer 3 on "
            "localhost, peers 4-5 on localhost; another Ctrl-C or SIGTERM kills the processes of "
            "this machine\n"
        )
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        lines = lines_of(process)
    assert process.returncode == 128 + signal.SIGKILL
    assert "gossamer: peers 4-5 on localhost ended by signal 9" in lines
    wait_until("the processes end", lambda: not any(pids_of(folder, rank) for rank in range(4)))


def test_a_network_outlives_its_launcher(gossamer: Path, folder: Path) -> None:
    with started(gossamer, folder, "local.txt", LONG) as process:
        process.kill()
    wait_until("every process ends", lambda: not any(pids_of(folder, rank) for rank in range(4)))
    assert final_hash(gossamer, folder, "net")  # collect refuses a network that is not whole


def test_closed_streams_and_a_blocked_reader_stop_no_process(gossamer: Path, folder: Path) -> None:
    quoted = " ".join(command(gossamer, "local.txt", ROUNDS))
    subprocess.run(["sh", "-c", f"exec {quoted} <&- >&- 2>&-"], cwd=folder, check=False, timeout=60)
    assert final_hash(gossamer, folder, "net") == expected_hash(gossamer, folder)


def test_an_interrupt_is_heard_while_nobody_reads(gossamer: Path, folder: Path) -> None:
    # What stands in the place of gossamer fills every pipe, and ends when it is asked to.
    (folder / "chatty").write_text("#!/bin/sh\nexec yes\n", encoding="utf-8")
    (folder / "chatty").chmod(0o755)
    with subprocess.Popen(
        [*command(gossamer, "local.txt", ROUNDS), "--program", f"{folder}/chatty"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"["
        process.send_signal(signal.SIGINT)
        wait_until("the processes end", lambda: not any(pids_of(folder, rank) for rank in range(4)))
        process.stdout.read()
    assert process.returncode == 130


def test_what_cannot_be_launched_is_named(gossamer: Path, folder: Path) -> None:
    code, _, err = launch(gossamer, folder, hosts="missing.txt")
    assert code == 3 and "missing.txt" in err
    key = ("--key", "k.key")
    code, _, err = launch(gossamer, folder, *key, hosts="remote.txt")
    assert code == 2 and "name a file of them in net.members" in err
    code, _, err = launch(gossamer, folder, hosts="remote.txt")
    assert code == 2 and "remote.txt: node1:7000 can be reached from other machines" in err
    code, _, err = launch(gossamer, folder, "--set", "run.peers=3")
    assert code == 2 and "the hosts have 4 slots, and the network has 3 nodes" in err
    code, _, err = launch(
        gossamer, folder, "--ssh", "no-such-ssh", "--set", "net.insecure=true", hosts="remote.txt"
    )
    assert code == 3
    assert err == "gossamer: no-such-ssh: cannot be started: No such file or directory\n"
    code, _, err = launch(gossamer, folder, "--directory", "/no/such/folder")
    assert code == 3 and "on localhost ended with exit code 3" in err
    code, _, err = launch(
        gossamer, folder, "--ssh", "false", "--set", "net.insecure=true", hosts="remote.txt"
    )
    assert code == 1 and "gossamer: peers 4-5 on alice@node2 ended with exit code 1\n" in err


@pytest.mark.parametrize("addresses", [True, False])
def test_addresses_of_members_are_those_of_the_processes(
    gossamer: Path, folder: Path, addresses: bool
) -> None:
    public = keygen(gossamer, str(folder / "k.key")).stdout.splitlines()[0]
    (folder / "members.toml").write_text(
        "".join(
            f'[[member]]\nid = {peer}\nkey = "{public}"\n'
            + (f'address = "10.0.0.{peer}:7000"\n' if addresses else "")
            for peer in range(6)
        ),
        encoding="utf-8",
    )
    (folder / "says").write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    (folder / "says").chmod(0o755)
    code, out, err = launch(
        gossamer,
        folder,
        *("--key", "k.key", "--set", "net.members=members.toml"),
        *("--ssh", str(folder / "fake_ssh"), "--program", str(folder / "says")),
        hosts="remote.txt",
    )
    assert code == 0, err
    assert ("net.peers=node1:7000" in out) != addresses


def test_the_configuration_is_the_one_in_the_folder_of_the_processes(
    gossamer: Path, folder: Path
) -> None:
    there = folder / "there"
    there.mkdir()
    (there / "run.toml").write_bytes((folder / "run.toml").read_bytes())
    (folder / "run.toml").write_text("[run]\npeers = 3\n", encoding="utf-8")  # not enough
    code, _, err = launch(gossamer, folder, "--directory", str(there))
    assert code == 0, err
    assert (there / "net" / "log-0.jsonl").is_file()
    shutil.rmtree(there / "net")
    (folder / "run.toml").unlink()
    code, _, err = launch(gossamer, folder, "--directory", str(there))
    assert code == 0, err


def slurm_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """deploy/slurm.sh as in a job, with an srun that prints its arguments."""
    (folder / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    (folder / "srun").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(ROOT / "deploy" / "slurm.sh"), *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path, "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("arguments", [(), ("",), ("--set", "run.peers=3")])
def test_the_job_of_slurm_without_a_configuration_says_what_it_takes(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = slurm_script(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: sbatch --ntasks=N deploy/slurm.sh run.toml")


def test_the_job_of_slurm_labels_its_output(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[run]\npeers = 4\n", encoding="utf-8")
    done = slurm_script(tmp_path, "run.toml", "--set", "run.rounds=3")
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    assert "--label" in words[: words.index("peer")]
    assert words[words.index("peer") :][:2] == ["peer", "run.toml"]
    assert words[-2:] == ["--set", "run.rounds=3"] and "net.insecure=true" in words
