"""Output that cannot be written, damaged files and wrong arguments: no success, and clear words."""

import json
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

SMALL = ("--set", "run.peers=2", "--set", "run.rounds=1")


def call(program: Path, *arguments: object, to: str = "") -> subprocess.CompletedProcess[str]:
    with open(to or "/dev/null", "w", encoding="utf-8") as out:
        return subprocess.run(
            [str(program), *map(str, arguments)],
            stdout=out if to else subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def folder(gossamer: Path, tmp_path: Path) -> Path:
    """The folder of a finished run."""
    done = call(gossamer, "run", *SMALL, "--quiet", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "RUN", "--csv"),
        ("collect", "RUN", "--json"),
        ("list",),
        ("list", "-v"),
        ("run", *SMALL, "--json", "--quiet", "--out", "RUN/again"),
        ("--help",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_output_that_cannot_be_written_is_an_error(
    gossamer: Path, folder: Path, arguments: tuple[str, ...]
) -> None:
    done = call(gossamer, *(each.replace("RUN", str(folder)) for each in arguments), to="/dev/full")
    assert done.returncode == 3 and "cannot write to standard output" in done.stderr


def test_an_endless_configuration_is_rejected(gossamer: Path) -> None:
    done = call(gossamer, "run", "/dev/zero", "--check")
    assert done.returncode == 3 and "/dev/zero" in done.stderr


def test_a_run_without_memory_leaves_nothing(gossamer: Path, tmp_path: Path) -> None:
    large = ("model.kind=mlp", "model.hidden=[4000,4000]", "run.peers=32", "local.device=cpu")
    done = subprocess.run(
        [gossamer, "run", *(f"--set={each}" for each in large), "--out", tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )
    assert done.returncode == 2 and "out of memory: the rows of the peers" in done.stderr
    assert not (tmp_path / "run").exists()


def test_too_few_open_files_are_named_with_the_limit_to_raise(
    gossamer: Path, tmp_path: Path
) -> None:
    """From a limit at which nothing can be opened to one at which the peer waits for the other."""
    sets = ("run.peers=2", f"net.rendezvous={tmp_path}/meet", "net.join_timeout=0.01")
    codes = set()
    for limit in range(4, 100):
        done = subprocess.run(
            [gossamer, "peer", "--id", "0", *(f"--set={each}" for each in sets)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            preexec_fn=lambda limit=limit: resource.setrlimit(
                resource.RLIMIT_NOFILE, (limit, limit)
            ),
        )
        if done.returncode == 4:
            break
        if "too many open files" in done.stderr.lower():
            codes.add(done.returncode)
            assert done.stderr.endswith("; raise the limit of open files (ulimit -n)\n"), limit
    assert "misses peer 1" in done.stderr, "the limit was enough in the end"
    assert {1, 7} <= codes, "an event loop, and a port"


def test_a_log_cut_within_its_header_does_not_hide_the_others(gossamer: Path, folder: Path) -> None:
    complete = call(gossamer, "export", folder, "--csv").stdout
    (folder / "log-1.jsonl").write_text('{"record":"head', encoding="utf-8")
    done = call(gossamer, "export", folder, "--csv")
    assert done.returncode == 0 and done.stdout == complete
    assert (
        "log-1.jsonl ends within its header: its process was killed before it wrote a record"
        in done.stderr
    )
    rejected = call(gossamer, "collect", folder)
    assert rejected.returncode == 3 and "log-1.jsonl" in rejected.stderr and rejected.stdout == ""


@pytest.mark.parametrize(
    "command", [("export", "--csv"), ("collect",)], ids=lambda command: command[0]
)
def test_a_damaged_log_is_named_with_line_and_field(
    gossamer: Path, folder: Path, command: tuple[str, ...]
) -> None:
    log = folder / "log-0.jsonl"
    log.write_text(
        log.read_text(encoding="utf-8").replace(
            '"peers":2,"servers"', '"peers":2000000000,"servers"'
        ),
        encoding="utf-8",
    )
    done = call(gossamer, *command, folder)
    assert (
        done.returncode == 3 and f"{log}:1: peers: 2000000000" in done.stderr and done.stdout == ""
    )


def completed(program: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words, by the script that the program prints."""
    script = call(program, "completions", "bash").stdout
    typed = " ".join(f"'{word}'" for word in words)
    body = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _gossamer; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{body}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_bash_completes_commands_options_kinds_and_settings(gossamer: Path) -> None:
    assert completed(gossamer, "gossamer", "to") == {"topology"}
    assert {"run", "peer", "launch", "--version"} <= completed(gossamer, "gossamer", "")
    assert completed(gossamer, "gossamer", "run", "--re") == {"--resume"}
    assert completed(gossamer, "gossamer", "topology", "hyper") == {"hypercube", "hypertorus"}
    assert completed(gossamer, "gossamer", "run", "--set", "optimizer.mom") == {
        "optimizer.momentum="
    }
    assert "mixing.rule=" in completed(gossamer, "gossamer", "run", "--set", "mixing.r")
    assert "topology.kind=" in completed(gossamer, "gossamer", "run", "--set", "topology.")
    assert "net.seeds=" in completed(gossamer, "gossamer", "peer", "--set", "net.")
    assert completed(gossamer, "gossamer", "unknown", "--") == set()


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completions_are_scripts_of_their_shell(gossamer: Path, shell: str) -> None:
    script = call(gossamer, "completions", shell).stdout
    assert "hypertorus" in script and "optimizer.momentum=" in script
    if shutil.which(shell):
        checked = subprocess.run(
            [shell, "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0 and checked.stderr == ""


def test_the_page_for_man_has_every_command_and_setting(gossamer: Path) -> None:
    page = call(gossamer, "man").stdout
    sections = json.loads(call(gossamer, "list", "--json").stdout)["section"]
    for name, section in sections.items():
        assert f".SS [{name}]" in page
        for key in section["parameters"]:
            assert f"\\fB{key}\\fR = " in page
    for command in ("run", "peer", "launch", "topology", "keygen", "completions"):
        assert f".SS {command}\n" in page
    assert all(
        line.startswith((".TH", ".S", ".B", ".TP", ".PP", '.\\"'))
        for line in page.split("\n")
        if line.startswith(".")
    )
    if shutil.which("groff"):
        shown = subprocess.run(
            ["groff", "-man", "-k", "-Tutf8", "-ww"],
            input=page,
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0 and shown.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "--quiett"),
            "there is no option '--quiett' (did you mean '--quiet'?); there are:",
        ),
        (("run", "x.toml", "--sett", "a=b"), "there is no option '--sett' (did you mean '--set'?)"),
        (("launch", "--sett", "a=b"), "there is no option '--sett' (did you mean '--set'?)"),
        (("--versio",), "there is no option '--versio' (did you mean '--version'?)"),
        (("runn",), "there is no command 'runn' (did you mean 'run'?)"),
        (("launch",), "hosts is required; `gossamer launch --help` lists the arguments"),
        (("run", "a", "b"), "not expected: b; `gossamer run --help` lists the arguments"),
        ((), "A subcommand is required; `gossamer --help` lists the commands"),
    ],
)
def test_a_wrong_argument_is_named_with_what_to_do(
    gossamer: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = call(gossamer, *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("gossamer: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
