"""The log of a run in TensorBoard, Weights & Biases and MLflow, read with their own readers.

tests/python_versions.sh trackers installs the packages; without them, their tests are skipped.
"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gossamer
import gossamer.export
import pytest
from conftest import Configure
from tasks import NumpySoftmax

MISSING = "is not installed: tests/python_versions.sh trackers"
PEERS, ROUNDS = 2, 3
Series = list[tuple[int, float]]


@pytest.fixture
def run(configure: Configure, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    gossamer.run(
        configure(PEERS, ROUNDS), NumpySoftmax(PEERS), settings=["log.every=1"], out=folder
    )
    return folder


def command(run: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gossamer", "export", str(run), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "WANDB_SILENT": "true", "WANDB_MODE": "offline"},
    )


def export(run: Path, *options: str) -> None:
    done = command(run, *options)
    assert done.returncode == 0, done.stderr


def series(run: Path, kind: str, field: str, peer: int | None = None) -> Series:
    """A field of the log's records."""
    records = map(json.loads, (run / "log-0.jsonl").read_text().splitlines())
    return [
        (record["round"], pytest.approx(record[field]))
        for record in records
        if record["record"] == kind and record.get("peer") == peer and record[field] is not None
    ]


def test_the_numbers_of_a_log_are_series(run: Path) -> None:
    log = gossamer.export.read(run)
    found = [(each.round, each.value) for each in log.scalars if each.name == "peer1/test_loss"]
    assert found == series(run, "round", "test_loss", 1) and len(found) == ROUNDS + 1
    names = {each.name for each in log.scalars}
    assert {"peer0/train_loss", "peer1/bytes_sent", "network/consensus_distance"} <= names
    assert not any("seconds" == name.split("/")[1] for name in names)
    assert log.config["run.peers"] == str(PEERS)
    assert log.scalars[0].time > 1.7e9


def test_a_log_that_ends_within_a_line_is_read(run: Path) -> None:
    log = run / "log-0.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:4]) + lines[4][:20])
    assert gossamer.export.read(run).run_id == json.loads(lines[0])["run_id"]


def test_a_folder_without_a_run_or_a_missing_package_is_named(run: Path, tmp_path: Path) -> None:
    assert "there is no log-*.jsonl of a run" in command(tmp_path / "a", "--wandb", "w").stderr
    with pytest.raises(SystemExit, match="package no_such_package is missing"):
        gossamer.export.package("no_such_package.writer")


def test_tensorboard_reads_the_values(run: Path, tmp_path: Path) -> None:
    name = "tensorboard.backend.event_processing.event_accumulator"
    accumulator = pytest.importorskip(name, reason=f"tensorboard {MISSING}")
    export(run, "--tensorboard", str(tmp_path / "board"))
    (folder,) = (tmp_path / "board").iterdir()
    events = accumulator.EventAccumulator(str(folder)).Reload()
    found = [(event.step, event.value) for event in events.Scalars("peer0/test_accuracy")]
    assert found == series(run, "round", "test_accuracy", 0)
    found = [(event.step, event.value) for event in events.Scalars("network/averaged_loss")]
    assert found == series(run, "network", "averaged_loss")


def leveldb_log(data: bytes) -> Iterator[bytes]:
    """The records of LevelDB's log format, which wandb writes after a header of 7 bytes.

    Blocks of 32 KiB have fragments: checksum (4 bytes), length (2), type (full, first, middle,
    last), and the bytes. wandb has no reader in Python.
    """
    header, place, parts = 7, 7, b""
    while place + header <= len(data):
        if 32768 - place % 32768 < header:  # padding at the end of a block
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        parts += data[place + header : place + header + length]
        place += header + length
        if kind in (1, 4):
            yield parts
            parts = b""


def test_weights_and_biases_reads_the_values(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason=f"wandb {MISSING}")
    from wandb.proto import wandb_internal_pb2

    export(run, "--wandb", str(tmp_path / "w"))
    (path,) = (tmp_path / "w").glob("wandb/offline-run-*/run-*.wandb")
    found = []
    for data in leveldb_log(path.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(data)
        items = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
        if "peer0/test_loss" in items:
            found.append((int(items["_step"]), float(items["peer0/test_loss"])))
    assert found == series(run, "round", "test_loss", 0)


def test_mlflow_reads_the_values(run: Path, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason=f"mlflow {MISSING}")
    export(run, "--mlflow", str(tmp_path / "store"))
    export(run, "--mlflow", str(tmp_path / "store"))  # another run of the same experiment
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/store/mlflow.db")
    experiment = client.get_experiment_by_name("gossamer")
    first, _ = client.search_runs([experiment.experiment_id])
    assert first.data.params["algorithm.kind"] == "dpsgd"
    history = client.get_metric_history(first.info.run_id, "network/consensus_distance")
    found = [(metric.step, metric.value) for metric in history]
    assert found == series(run, "network", "consensus_distance")
