"""gpu.sh without a GPU: valid scripts, a table with the reason of each failure, and deadlines."""

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
from gpu_comparison import TrainingComparison  # noqa: E402
from gpu_shell import StageError, LineServer, Shell  # noqa: E402

# Records of a run: values above and below their targets, a missing baseline, failures, and an
# incomplete last line.
SAMPLE = r"""
{"record":"started","time":"2026-11-20 20:15 UTC","commit":"commit a834b09","quick":false}
{"record":"check","id":"build","ok":true,"detail":"for 90, 61 s"}
{"record":"discovery","built":true,"problem":"","driver":13000,"runtime":13000,"gpus":1,
"gpu":"A GPU","multiprocessors":132,"memory_free":1e11,"memory_total":1.5e11}
{"record":"discovery","built":true,"problem":"","driver":13000,"runtime":13000,"gpu":"A GPU"}
{"record":"device","description":"cuda:0, A GPU","quick":false}
{"record":"rates","id":"copy","unit":"bytes/s","ours":[4.0e12,4.2e12,4.1e12]}
{"record":"pairs","id":"mix","ours":[9.5,9.5,9.5,9.5,9.5,9.5],"theirs":[10,10,10,10,10,10]}
{"record":"pairs","id":"update","ours":[8,8,8,8,8,8],"theirs":[10,10,10,10,10,10]}
{"record":"failed","id":"ring","reason":"the device has | too little memory"}
{"record":"pairs","id":"axpy","ours":[null,1],"theirs":[1,1]}
{"record":"pairs","id":"scale","ours":[1,1],"theirs":[1,0]}
{"record":"failed","id":"sketch","reason":"first try"}
{"record":"pairs","id":"sketch","ours":[1,1,1,1,1,1],"theirs":[1,1,1,1,1,1]}
{"record":"rates","id":"mlp1","ours":[5000.0],"missing":"no baseline: there is no torch"}
{"record":"pairs","id":"overlap","ours":[1,1],"theirs":[1,1],"condition":false,"note":"1 ms"}
{"record":"value","id":"sweep","value":180.0,"unit":"s","note":"27 of 27 runs"}
{"record":"check","id":"parity","ok":false,"detail":"41 of 42 test cases passed"}
{"record":"check","id":"racecheck","ok":null,"detail":"the time was over for: training"}
{"record":"pairs","id":"fill","ours":[1
"""


def row(table: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [
        result for result in (*table["measurements"], *table["checks"]) if result["id"] == name
    ]
    return dict(found)


def test_scripts_are_valid() -> None:
    for script in FOLDER.glob("*.sh"):
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
        assert os.access(script, os.X_OK)
    for script in FOLDER.glob("gpu_*.py"):
        py_compile.compile(str(script), doraise=True)


def test_the_table_has_reached_targets_and_reasons_for_missing_values(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(SAMPLE, encoding="utf-8")
    markdown, table = gpu_report.report(gpu_report.read(lines))
    outcomes = {
        result["id"]: result["outcome"] for result in (*table["measurements"], *table["checks"])
    }
    assert (
        outcomes["mix"] == "reached"
        and outcomes["update"] == "**not reached**"
        and outcomes["sweep"] == "reached"
    )
    assert outcomes["ring"] == r"no value: the device has \| too little memory"
    assert outcomes["axpy"].startswith("no value") and outcomes["scale"].startswith("no value")
    assert outcomes["sketch"] == "–" and row(table, "sketch")["ratio"]["median"] == 1
    assert (
        outcomes["mlp1"] == "no value: no baseline: there is no torch"
        and row(table, "mlp1")["ours"] == 5000
    )
    assert outcomes["overlap"] == "not evaluated: the condition is not met"
    assert outcomes["fill"] == "no value: did not run: the suite ended before"
    assert (
        outcomes["parity"] == "**FAILED**"
        and outcomes["racecheck"] == "incomplete"
        and outcomes["build"] == "ok"
    )
    assert "A GPU" in markdown and "No GPU" not in markdown
    widths = {
        line.replace(r"\|", "").count("|") for line in markdown.splitlines() if line.startswith("|")
    }
    assert widths == {8, 4}, "every row has the same number of cells"
    json.dumps(table, allow_nan=False)


def test_a_machine_without_gpu_has_no_values() -> None:
    discovery = {"record": "discovery", "built": True, "problem": "no driver", "gpus": 0}
    markdown, table = gpu_report.report([discovery])
    assert "**No GPU: no driver.**" in markdown
    assert all(
        result["ours"] is None and result["ratio"] is None for result in table["measurements"]
    )
    assert all(result["outcome"].startswith("no value") for result in table["measurements"])


def test_small_sizes_are_not_evaluated() -> None:
    pairs = {"record": "pairs", "id": "mix", "ours": [1.0] * 6, "theirs": [1.0] * 6}
    markdown, table = gpu_report.report([{"record": "device", "quick": True}, pairs])
    assert (
        "not evaluated" in row(table, "mix")["outcome"]
        and "No number below is a measurement" in markdown
    )


def test_commands_end_by_their_deadline(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log.txt")
    begin = time.monotonic()
    done = shell.call(["bash", "-c", "echo begun; sleep 60 & wait"], 0.5)
    assert (
        done.code is None and done.stdout == "begun\n" and "not finished" in done.failure_reason()
    )
    assert time.monotonic() - begin < 30
    done = shell.call(
        ["bash", "-c", "echo one; echo 'b.cu(3): error: this'; echo last >&2; exit 3"], 30
    )
    assert done.failure_reason() == "exit code 3: b.cu(3): error: this"
    with pytest.raises(StageError, match="nothing-of-that-name"):
        shell.call(["/nothing-of-that-name"], 1)
    assert "error: this" in (tmp_path / "log.txt").read_text(encoding="utf-8")


# A server like bench_gpu and gpu_torch_baseline.py. mlp64_vmap fails, and `die` ends the program.
ANSWERS = """
import json, sys
print('not JSON')
print(json.dumps({'record': 'device', 'description': 'fake'}), flush=True)
for line in sys.stdin:
    name = line.split()[0]
    if name == 'die':
        print('the end', file=sys.stderr)
        sys.exit(4)
    if name == 'mlp64_vmap':
        answer = {'record': 'failed', 'reason': 'cannot'}
    else:
        answer = {'record': 'rate', 'rate': 2.0 if '_bmm' in name else 6.0}
    print(json.dumps(answer), flush=True)
"""


def server(shell: Shell, text: str = ANSWERS) -> LineServer:
    return LineServer(shell, [sys.executable, "-c", text], 30)


def test_pairs_with_failing_baselines(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log.txt")
    records = TrainingComparison(server(shell), server(shell), time.monotonic() + 60).all()
    found = {record["id"]: record for record in records}
    assert len(found["mlp64_batched"]["ours"]) == len(found["mlp64_batched"]["theirs"]) == 9
    assert found["mlp64_batched"]["theirs"][0] == 2 and found["mlp64_loop"]["theirs"][0] == 6
    assert "mlp64_vmap: cannot" in found["mlp64_batched"]["note"]
    assert found["torch_copy"]["record"] == "rates"
    alone = {
        record["id"]: record
        for record in TrainingComparison(
            server(shell), "no baseline: none", time.monotonic() + 60
        ).all()
    }
    assert alone["cnn1"]["record"] == "rates" and alone["cnn1"]["missing"] == "no baseline: none"
    assert alone["torch_copy"]["record"] == "failed"
    dying = server(shell)
    with pytest.raises(StageError, match="exit code 4: the end"):
        dying.request("die", 30)
    silent = server(shell, ANSWERS.replace("print(json.dumps(answer), flush=True)", "pass"))
    with pytest.raises(StageError, match="no answer"):
        silent.request("mlp1 1 1", 0.2)
    with pytest.raises(StageError, match="no GPU here"):
        server(shell, 'print(\'{"record": "failed", "reason": "no GPU here"}\')')
    shell.kill_all()


def test_synthetic_files_are_valid_and_nine_topologies_are_found(
    gossamer: Path, tmp_path: Path
) -> None:
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
    with pytest.raises(StageError, match="fewer than a batch"):
        sweep_topologies(program, {"run.peers": 256, "run.rounds": 1})


def test_the_suite_ends_without_toolkit_and_gpu(tmp_path: Path) -> None:
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
    assert all(result["outcome"].startswith("no value") for result in table["measurements"])
    assert row(table, "mix")["outcome"] == "no value: bench_gpu was not built"
    assert "GOSSAMER_BINARY is not set" in row(table, "doctor")["note"]


# A bench_gpu that crashes at `update` and fails at `adam`. With $GONE, the device fails.
CRASHING = """
import json, os, sys
def put(**record): print(json.dumps(record), flush=True)
put(record='discovery', built=True, problem='', gpu='A GPU', gpus=1)
if '--discover' in sys.argv: sys.exit()
put(record='device', quick=False)
if os.environ.get('GONE'): put(record='failed', id='device', reason='the GPU is gone'); sys.exit(3)
for name in sys.argv[sys.argv.index('--only') + 1].split(','):
    if name == 'update': os.abort()
    if name == 'adam': put(record='failed', id=name, reason='a CUDA error'); continue
    put(record='pairs', id=name, ours=[1.0] * 9, theirs=[1.0] * 9)
"""


def test_rows_after_a_crash_run_again(tmp_path: Path) -> None:
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
        return {
            result["id"]: result["outcome"] for result in (*table["measurements"], *table["checks"])
        }

    found = outcomes()
    assert found["mix"] == found["ring"] == "reached" and found["sketch"] == "–"
    assert (
        found["update"] == "no value: bench_gpu: signal 6: no output"
        and found["adam"] == "no value: a CUDA error"
    )
    assert found["parity"] == "**FAILED**", "a test program without tests must not pass"
    assert outcomes(GONE="1")["mix"] == "no value: the GPU is gone"


@pytest.mark.parametrize(
    ("skipped", "outcome"),
    [
        ("", "ok"),
        ("skipped: 2 GPUs are needed, 1 are here (GPUs: x)", "ok"),
        ("skipped: no NVIDIA GPU (x)", "**FAILED**"),
    ],
)
def test_parity_needs_only_one_gpu(tmp_path: Path, skipped: str, outcome: str) -> None:
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
    ours = {result["id"]: result["ours"] for result in table["measurements"]}
    missing = {name for name, value in ours.items() if value is None}
    assert missing == {"overlap", "sweep", "torch_copy", "torch_product"}, done.stdout + done.stderr
    assert row(table, "mix")["outcome"] == row(table, "update")["outcome"] == "not evaluated"
    assert row(table, "mlp64_loop")["outcome"].startswith("no value: no baseline")
