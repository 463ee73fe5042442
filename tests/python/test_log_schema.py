"""docs/log.schema.json accepts every record of real runs and rejects wrong records."""

import copy
import csv
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT

SCHEMA = json.loads((ROOT / "docs" / "log.schema.json").read_text(encoding="utf-8"))

CLASSES = """
[run]
peers = 4
rounds = 5
[topology]
kind = "ring"
[algorithm]
kind = "dpsgd"
[model]
kind = "softmax"
[data]
kind = "digits"
batch = 16
[optimizer]
rate = 0.1
[log]
every = 2
sketch = "on"
"""
REGRESSION = (
    CLASSES.replace('"softmax"', '"linear"')
    .replace('"digits"\nbatch = 16', '"quadratic"')
    .replace("0.1", "0.01")
)


def validate(record: dict[str, Any], name: str) -> None:
    """Validates against the definition of one kind, so that the message names the wrong field."""
    schema = {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"}
    jsonschema.Draft202012Validator(schema).validate(record)


def check_folder(folder: Path, peers: int) -> list[dict[str, Any]]:
    """Validates every record of every log, and the summary. Returns the records."""
    records = [
        json.loads(line)
        for log in sorted(folder.glob("log-*.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    for record in records:
        validate(record, record["record"])
    validate(json.loads((folder / "summary.json").read_text(encoding="utf-8")), "summary")
    counts = Counter(
        (record["round"], record["peer"]) for record in records if record["record"] == "round"
    )
    assert set(counts.values()) == {1}, "a peer has one record per round"
    assert {peer for _, peer in counts} == set(range(peers))
    return records


def run(program: Path, folder: Path, config: str, *options: str) -> list[dict[str, Any]]:
    (folder / "run.toml").write_text(config, encoding="utf-8")
    command = [
        str(program),
        "run",
        str(folder / "run.toml"),
        *options,
        "--out",
        str(folder / "out"),
        "--quiet",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return check_folder(folder / "out", 4)


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.fixture(scope="module")
def classification(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of CLASSES, in out/."""
    folder = tmp_path_factory.mktemp("classification")
    run(gossamer, folder, CLASSES)
    return folder


@pytest.mark.xdist_group("classification")
def test_classification_run(classification: Path) -> None:
    check_classification(check_folder(classification / "out", 4))


def test_classification_run_on_a_topology_that_varies(gossamer: Path, tmp_path: Path) -> None:
    check_classification(
        run(gossamer, tmp_path, CLASSES, "--set", "topology.kind=one_peer_exponential")
    )


def check_classification(records: list[dict[str, Any]]) -> None:
    assert [record["record"] for record in (records[0], records[-1])] == ["header", "end"]
    rounds = [record for record in records if record["record"] == "round"]
    assert sorted({record["round"] for record in rounds}) == [0, 2, 4, 5], (
        "round 0, every second round, and the last round"
    )
    assert all(record["train_loss"] is None for record in rounds if record["round"] == 0)
    assert all(0 <= record["test_accuracy"] <= 1 for record in rounds)
    assert all("sketch" in record for record in rounds)
    assert {record["round"] for record in records if record["record"] == "network"} == {0, 2, 4, 5}


def test_regression_run(gossamer: Path, tmp_path: Path) -> None:
    records = run(gossamer, tmp_path, REGRESSION)
    assert all(record["test_accuracy"] is None for record in records if record["record"] == "round")
    assert all(
        record["distance_to_optimum"] > 0 for record in records if record["record"] == "network"
    )


def test_run_with_a_backdoor(gossamer: Path, tmp_path: Path) -> None:
    settings = ("attack.kind=backdoor", "attack.peers=[1]", "attack.size=2")
    records = run(gossamer, tmp_path, CLASSES, *(f"--set={setting}" for setting in settings))
    shares = [record["backdoor_success"] for record in records if record["record"] == "network"]
    assert len(shares) == 4
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["final"]["backdoor_success"]["mean"] == pytest.approx(shares[-1])


@pytest.mark.parametrize(("kind", "servers"), [("server", 1), ("async_server", 2), ("fedavg", 1)])
def test_run_with_servers(gossamer: Path, tmp_path: Path, kind: str, servers: int) -> None:
    extra = [] if servers == 1 else ["--set", f"algorithm.servers={servers}"]
    records = run(gossamer, tmp_path, CLASSES.replace('"dpsgd"', f'"{kind}"'), *extra)
    assert records[0]["servers"] == servers and records[0]["hosted"] == list(range(4 + servers))
    logged = [record for record in records if record["record"] == "server"]
    assert {record["server"] for record in logged} == set(range(4, 4 + servers))
    assert all((record["test_accuracy"] is None) == (servers > 1) for record in logged), (
        "one of several servers has only a part of the model, which is not evaluated"
    )
    table = subprocess.run(
        [gossamer, "export", tmp_path / "out", "--csv"], capture_output=True, text=True, check=True
    ).stdout
    rows = [row for row in csv.DictReader(table.splitlines()) if row["server"]]
    assert [(row["round"], row["server"], row["bytes_sent"], row["peer"]) for row in rows] == [
        (str(record["round"]), str(record["server"]), str(record["bytes_sent"]), "")
        for record in sorted(logged, key=lambda record: (record["round"], record["server"]))
    ]
    assert int(rows[-1]["bytes_sent"]) > 0
    assert all(
        ("staleness" in record) == (kind == "async_server" and record["round"] > 0)
        for record in logged
    )
    last = [
        record
        for record in records
        if record["record"] in ("round", "server") and record["round"] == 5
    ]
    assert records[-1]["bytes_sent"] == sum(record["bytes_sent"] for record in last)
    assert len(records[-1]["row_hashes"]) == (4 if servers > 1 else 5)


@pytest.mark.xdist_group("classification")
def test_summary_agrees_with_the_log(classification: Path) -> None:
    records = check_folder(classification / "out", 4)
    summary = json.loads((classification / "out" / "summary.json").read_text(encoding="utf-8"))
    last = [record for record in records if record["record"] == "round" and record["round"] == 5]
    network = [record for record in records if record["record"] == "network"][-1]
    assert summary["bytes_sent"] == sum(record["bytes_sent"] for record in last)
    assert summary["final"]["test_loss"]["max"] == pytest.approx(
        max(record["test_loss"] for record in last)
    )
    assert summary["final"]["consensus_distance"] == pytest.approx(network["consensus_distance"])


def test_network_of_processes(gossamer: Path, lab: Any, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CLASSES, encoding="utf-8")
    done = lab("sweep", "run.toml", "--processes", "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    records = check_folder(tmp_path / "out" / "run", 4)
    assert sum(record["record"] == "header" for record in records) == 4


def test_the_fake_program_writes_valid_logs(fake_gossamer: Path, tmp_path: Path) -> None:
    run(fake_gossamer, tmp_path, CLASSES)


@pytest.mark.parametrize(
    "change",
    [{"round": -1}, {"peer": "0"}, {"test_accuracy": 1.5}, {"unknown": 1}, {"seconds": None}],
)
def test_the_schema_rejects_a_wrong_record(change: dict[str, Any]) -> None:
    good = {
        "record": "round",
        "round": 1,
        "peer": 0,
        "seconds": 0.1,
        "train_loss": 2.0,
        "test_loss": None,
        "test_accuracy": 0.5,
        "bytes_sent": 1,
        "bytes_received": 1,
        "train_seconds": 0,
        "wait_seconds": 0,
        "mix_seconds": 0,
    }
    validate(good, "round")
    with pytest.raises(jsonschema.ValidationError):
        validate({**copy.deepcopy(good), **change}, "round")
