"""gpu.sh without a GPU: its scripts are whole, its table tells what failed, and every part ends by its deadline."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "benchmarks"
sys.path.insert(0, str(FOLDER))

import gpu_idx  # noqa: E402
import gpu_report  # noqa: E402
from gpu_program import Program, losses, sweep_topologies  # noqa: E402
from gpu_rivalry import Rivalry  # noqa: E402
from gpu_shell import Failed, Server, Shell  # noqa: E402

# What a run leaves: figures above and below what they must reach, a rival that is missing, failures, a cut-off line.
SAMPLE = r"""
{"record":"started","time":"2026-11-20 20:15 UTC","commit":"commit a834b09","quick":false}
{"record":"check","id":"build","ok":true,"words":"for 90, 61 s"}
{"record":"discovery","built":true,"problem":"","driver":13000,"runtime":13000,"blas":"cuBLAS 13.0","gpus":1,"gpu":"A GPU",
"compute":"90","multiprocessors":132,"memory_free":1e11,"memory_total":1.5e11}
{"record":"discovery","built":true,"problem":"","driver":13000,"runtime":13000,"blas":"cuBLAS 13.0","gpus":1,"gpu":"A GPU"}
{"record":"device","description":"cuda:0, A GPU","quick":false}
{"record":"rates","id":"copy","unit":"bytes/s","ours":[4.0e12,4.2e12,4.1e12]}
{"record":"pairs","id":"mix","ours":[9.5,9.5,9.5,9.5,9.5,9.5],"theirs":[10,10,10,10,10,10]}
{"record":"pairs","id":"update","ours":[8,8,8,8,8,8],"theirs":[10,10,10,10,10,10]}
{"record":"failed","id":"ring","reason":"the device has | too little memory"}
{"record":"pairs","id":"axpy","ours":[null,1],"theirs":[1,1]}
{"record":"pairs","id":"scale","ours":[1,1],"theirs":[1,0]}
{"record":"failed","id":"dot","reason":"first try"}
{"record":"pairs","id":"dot","ours":[1,1,1,1,1,1],"theirs":[1,1,1,1,1,1]}
{"record":"rates","id":"mlp1","ours":[5000.0],"missing":"no rival: there is no torch"}
{"record":"pairs","id":"overlap","ours":[1,1],"theirs":[1,1],"condition":false,"note":"round alone 1 ms"}
{"record":"value","id":"sweep","value":180.0,"unit":"s","note":"27 of 27 runs"}
{"record":"check","id":"parity","ok":false,"words":"41 of 42 test cases passed"}
{"record":"check","id":"racecheck","ok":null,"words":"time was up for: training"}
{"record":"pairs","id":"fill","ours":[1
"""


def row(table: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [result for result in (*table["figures"], *table["checks"]) if result["id"] == name]
    return dict(found)


def test_scripts_are_whole() -> None:
    for script in FOLDER.glob("*.sh"):
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
        assert os.access(script, os.X_OK)
    for script in FOLDER.glob("gpu_*.py"):
        py_compile.compile(str(script), doraise=True)


def test_table_says_what_was_reached_and_what_has_no_figure(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(SAMPLE, encoding="utf-8")
    markdown, table = gpu_report.report(gpu_report.read(lines))
    outcomes = {result["id"]: result["outcome"] for result in (*table["figures"], *table["checks"])}
    assert (
        outcomes["mix"] == "reached"
        and outcomes["update"] == "**not reached**"
        and outcomes["sweep"] == "reached"
    )
    assert outcomes["ring"] == r"no figure: the device has \| too little memory"
    assert outcomes["axpy"].startswith("no figure") and outcomes["scale"].startswith("no figure")
    assert outcomes["dot"] == "–" and row(table, "dot")["ratio"]["median"] == 1
    assert (
        outcomes["mlp1"] == "no figure: no rival: there is no torch"
        and row(table, "mlp1")["ours"] == 5000
    )
    assert outcomes["overlap"] == "not judged: the condition is not met"
    assert outcomes["fill"] == "no figure: did not run: the suite ended before its turn"
    assert (
        outcomes["parity"] == "**FAILED**"
        and outcomes["racecheck"] == "not whole"
        and outcomes["build"] == "ok"
    )
    assert "A GPU" in markdown and "No GPU" not in markdown
    widths = {
        line.replace(r"\|", "").count("|") for line in markdown.splitlines() if line.startswith("|")
    }
    assert widths == {8, 4}, "every row has all cells"
    json.dumps(table, allow_nan=False)


def test_nothing_is_filled_in_where_there_is_no_gpu() -> None:
    discovery = {"record": "discovery", "built": True, "problem": "no driver", "gpus": 0}
    markdown, table = gpu_report.report([discovery])
    assert "**No GPU: no driver.**" in markdown
    assert all(result["ours"] is None and result["ratio"] is None for result in table["figures"])
    assert all(result["outcome"].startswith("no figure") for result in table["figures"])


def test_small_sizes_are_never_judged() -> None:
    pairs = {"record": "pairs", "id": "mix", "ours": [1.0] * 6, "theirs": [1.0] * 6}
    markdown, table = gpu_report.report([{"record": "device", "quick": True}, pairs])
    assert (
        "not judged" in row(table, "mix")["outcome"] and "No number below is a figure" in markdown
    )


def test_commands_end_by_their_deadline(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log.txt")
    begin = time.monotonic()
    done = shell.call(["bash", "-c", "echo begun; sleep 60 & wait"], 0.5)
    assert done.code is None and done.stdout == "begun\n" and "not finished" in done.why()
    assert time.monotonic() - begin < 30
    done = shell.call(
        ["bash", "-c", "echo one; echo 'b.cu(3): error: this'; echo last >&2; exit 3"], 30
    )
    assert done.why() == "exit code 3: b.cu(3): error: this"
    with pytest.raises(Failed, match="nothing-of-that-name"):
        shell.call(["/nothing-of-that-name"], 1)
    assert "error: this" in (tmp_path / "log.txt").read_text(encoding="utf-8")


# A program that answers as bench_gpu and gpu_rivals.py do; `bad` fails, `die` ends it.
ANSWERS = """
import json, sys
print('not JSON')
print(json.dumps({'record': 'device', 'description': 'stand-in'}), flush=True)
for line in sys.stdin:
    word = line.split()[0]
    if word == 'die':
        print('the end', file=sys.stderr)
        sys.exit(4)
    bad = word == 'mlp64_vmap'
    answer = {'record': 'failed', 'reason': 'cannot'} if bad else {'record': 'rate', 'rate': 2.0 if '_bmm' in word else 6.0}
    print(json.dumps(answer), flush=True)
"""


def server(shell: Shell, text: str = ANSWERS) -> Server:
    return Server(shell, [sys.executable, "-c", text], 30)


def test_pairs_with_rivals_that_fail(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log.txt")
    records = Rivalry(server(shell), server(shell), time.monotonic() + 60).all()
    found = {record["id"]: record for record in records}
    assert len(found["mlp64_batched"]["ours"]) == len(found["mlp64_batched"]["theirs"]) == 9
    assert found["mlp64_batched"]["theirs"][0] == 2 and found["mlp64_loop"]["theirs"][0] == 6
    assert "mlp64_vmap: cannot" in found["mlp64_batched"]["note"]
    assert found["torch_copy"]["record"] == "rates"
    alone = {
        record["id"]: record
        for record in Rivalry(server(shell), "no rival: none", time.monotonic() + 60).all()
    }
    assert alone["cnn1"]["record"] == "rates" and alone["cnn1"]["missing"] == "no rival: none"
    assert alone["torch_copy"]["record"] == "failed"
    dying = server(shell)
    with pytest.raises(Failed, match="exit code 4: the end"):
        dying.ask("die", 30)
    silent = server(shell, ANSWERS.replace("print(json.dumps(answer), flush=True)", "pass"))
    with pytest.raises(Failed, match="no answer"):
        silent.ask("mlp1 1 1", 0.2)
    with pytest.raises(Failed, match="no GPU here"):
        server(shell, 'print(\'{"record": "failed", "reason": "no GPU here"}\')')
    shell.end_all()


def test_made_up_files_train_and_nine_topologies_are_found(gossamer: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log.txt")
    program = Program(shell, gossamer, tmp_path / "scratch", device="cpu", quick=True)
    data = gpu_idx.make(tmp_path / "data", 256, 64)
    settings = {
        "run.peers": 4,
        "run.rounds": 3,
        "model.kind": "softmax",
        "data.kind": "idx",
        "data.path": data,
        "log.every": 1,
        "local.device": "cpu",
    }
    out = program.folder()
    assert program.run(out, settings, 60)["reason"] == "finished"
    assert len(losses(out / "log-0.jsonl")) == 4 * (4 + 3)
    graphs = sweep_topologies(program, {"run.peers": 256, "run.rounds": 1, "data.batch": 2})
    assert len(graphs) == 9 and len({name for name, _ in graphs}) == 9
    with pytest.raises(Failed, match="fewer than a batch"):
        sweep_topologies(program, {"run.peers": 256, "run.rounds": 1})


def test_the_suite_ends_cleanly_without_toolkit_and_gpu(tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = {key: value for key, value in os.environ.items() if key != "GOSSAMER_BINARY"}
    done = subprocess.run(
        [
            FOLDER / "gpu.sh",
            "--out",
            out,
            "--build",
            tmp_path / "build",
            "--minutes",
            "0.5",
            "--only",
            "rows,training,sanitizer,doctor",
        ],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert (out / "table.md").read_text(encoding="utf-8") == done.stdout
    assert all(result["outcome"].startswith("no figure") for result in table["figures"])
    assert row(table, "mix")["outcome"] == "no figure: bench_gpu was not built"
    assert "GOSSAMER_BINARY is not set" in row(table, "doctor")["note"]


# A bench_gpu that crashes at `update`, cannot do `dot`, and with $GONE finds the device gone.
CRASHING = """
import json, os, sys
def say(**record): print(json.dumps(record), flush=True)
say(record='discovery', built=True, problem='', gpu='A GPU', gpus=1)
if '--discover' in sys.argv: sys.exit()
say(record='device', quick=False)
if os.environ.get('GONE'): say(record='failed', id='device', reason='the GPU is gone'); sys.exit(3)
for name in sys.argv[sys.argv.index('--only') + 1].split(','):
    if name == 'update': os.abort()
    if name == 'dot': say(record='failed', id=name, reason='CUDA said no'); continue
    say(record='pairs', id=name, ours=[1.0] * 9, theirs=[1.0] * 9)
"""


def test_what_comes_after_a_crash_gets_another_chance(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    bench.write_text(f"#!{sys.executable} -IS\n{CRASHING}", encoding="utf-8")
    bench.chmod(0o755)

    def outcomes(**environment: str) -> dict[str, str]:
        subprocess.run(
            [
                FOLDER / "gpu.sh",
                "--bench",
                bench,
                "--tests",
                "/bin/true",
                "--out",
                tmp_path,
                "--only",
                "rows,parity",
            ],
            capture_output=True,
            check=False,
            timeout=120,
            env={**os.environ, **environment},
        )
        table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
        return {result["id"]: result["outcome"] for result in (*table["figures"], *table["checks"])}

    found = outcomes()
    assert found["mix"] == found["ring"] == "reached" and found["sketch"] == "–"
    assert (
        found["update"] == "no figure: bench_gpu: signal 6: it said nothing"
        and found["dot"] == "no figure: CUDA said no"
    )
    assert found["parity"] == "**FAILED**", "a test program that tests nothing is no success"
    assert outcomes(GONE="1")["mix"] == "no figure: the GPU is gone"


@pytest.mark.parametrize(
    ("skipped", "outcome"),
    [
        ("", "ok"),
        ("skipped: 2 GPUs are needed, 1 are here (GPUs: x)", "ok"),
        ("skipped: no NVIDIA GPU (x)", "**FAILED**"),
    ],
)
def test_one_gpu_is_enough_for_parity(tmp_path: Path, skipped: str, outcome: str) -> None:
    tests, bench = tmp_path / "tests", tmp_path / "bench"
    tests.write_text(
        f"#!/bin/sh\necho '{skipped}'\necho '[doctest] test cases: 3 | 3 passed | 0 failed'\n",
        encoding="utf-8",
    )
    bench.write_text(f"#!{sys.executable} -IS\n{CRASHING}", encoding="utf-8")
    for program in (tests, bench):
        program.chmod(0o755)
    subprocess.run(
        [
            FOLDER / "gpu.sh",
            "--bench",
            bench,
            "--tests",
            tests,
            "--out",
            tmp_path,
            "--only",
            "parity",
        ],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (
        row(json.loads((tmp_path / "table.json").read_text(encoding="utf-8")), "parity")["outcome"]
        == outcome
    )


def test_the_suite_runs_on_the_emulated_gpu(gossamer: Path, tmp_path: Path) -> None:
    bench = gossamer.parent / "bench_gpu_emulated"
    if not bench.is_file():
        pytest.skip(f"no {bench}: build everything first")
    done = subprocess.run(
        [
            FOLDER / "gpu.sh",
            "--quick",
            "--bench",
            bench,
            "--tests",
            "/bin/true",
            "--out",
            tmp_path,
            "--only",
            "rows,training",
            "--torch-python",
            "/bin/false",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    ours = {result["id"]: result["ours"] for result in table["figures"]}
    missing = {name for name, value in ours.items() if value is None}
    assert missing == {"overlap", "sweep", "torch_copy", "torch_product"}, done.stdout + done.stderr
    assert row(table, "mix")["outcome"] == row(table, "update")["outcome"] == "not judged"
    assert row(table, "mlp64_loop")["outcome"].startswith("no figure: no rival")
