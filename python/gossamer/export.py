"""The log of a run for TensorBoard, Weights & Biases or MLflow: gossamer export RUN …

The numbers of each logged round become series, by peer (peer3/train_loss), by server and of the
network (network/consensus_distance); rounds are their steps. The configuration becomes parameters.
"""

import argparse
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

NO_SERIES = ("record", "round", "peer", "server", "seconds", "sketch")


class Scalar(NamedTuple):
    name: str
    round: int
    time: float  # seconds since 1970: the start of the run, and the seconds of the record
    value: float


class Log(NamedTuple):
    run_id: str
    config: dict[str, str]  # by section.key
    scalars: list[Scalar]  # ordered by round


def read(folder: Path) -> Log:
    """The logs of all processes in a run folder. A log may end within a line."""
    run_id, config, start, scalars = "", dict[str, str](), 0.0, list[Scalar]()
    for path in sorted(folder.glob("log-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            record: dict[str, Any] = json.loads(line) if line.endswith("\n") else {"record": ""}
            if record["record"] == "header":
                run_id, config = record["run_id"], flat(record["config"])
                start = datetime.fromisoformat(record["started"]).timestamp()
            elif record["record"] in ("round", "server", "network"):
                scalars += scalars_of(record, start)
    if not run_id:
        raise SystemExit(f"{folder}: there is no log-*.jsonl of a run (docs/LOG.md)")
    return Log(run_id, config, sorted(scalars, key=lambda scalar: scalar.round))


def flat(config: dict[str, dict[str, Any]]) -> dict[str, str]:
    pairs = ((f"{name}.{key}", config[name][key]) for name in config for key in config[name])
    return {key: str(value) for key, value in pairs}


def scalars_of(record: dict[str, Any], start: float) -> Iterator[Scalar]:
    node = next((kind for kind in ("peer", "server") if kind in record), None)
    owner = "network" if node is None else f"{node}{record[node]}"
    time = start + float(record.get("seconds") or 0)
    for field, value in record.items():
        if field in NO_SERIES or isinstance(value, bool) or not isinstance(value, int | float):
            continue  # null: the run has no such value
        if math.isfinite(value):
            yield Scalar(f"{owner}/{field}", record["round"], time, float(value))


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        wanted = name.partition(".")[0]
        raise SystemExit(
            f"the package {wanted} is missing ({error}): pip install {wanted}"
        ) from None


def to_tensorboard(log: Log, folder: Path) -> None:
    """Event files. Only the package tensorboard is needed."""
    event = package("tensorboard.compat.proto.event_pb2")
    summary = package("tensorboard.compat.proto.summary_pb2")
    files = package("tensorboard.summary.writer.event_file_writer")
    writer = files.EventFileWriter(str(folder / log.run_id))
    for scalar in log.scalars:
        value = summary.Summary.Value(tag=scalar.name, simple_value=scalar.value)
        values = summary.Summary(value=[value])
        writer.add_event(event.Event(wall_time=scalar.time, step=scalar.round, summary=values))
    writer.close()


def to_wandb(log: Log, folder: Path) -> None:
    """A run that is not uploaded; `wandb sync FOLDER/wandb/offline-run-…` does so."""
    folder.mkdir(parents=True, exist_ok=True)
    run = package("wandb").init(
        mode="offline", dir=str(folder), project="gossamer", id=log.run_id, config=log.config
    )
    rounds: dict[int, dict[str, float]] = {}
    for scalar in log.scalars:
        rounds.setdefault(scalar.round, {})[scalar.name] = scalar.value
    for number, values in rounds.items():
        run.log(values, step=number)
    run.finish()


def to_mlflow(log: Log, folder: Path) -> None:
    """A database, for `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db`."""
    mlflow = package("mlflow")
    folder.mkdir(parents=True, exist_ok=True)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder.resolve()}/mlflow.db")
    if experiment := client.get_experiment_by_name("gossamer"):
        number = experiment.experiment_id
    else:
        artifacts = (folder.resolve() / "artifacts").as_uri()
        number = client.create_experiment("gossamer", artifact_location=artifacts)
    run = client.create_run(number, run_name=log.run_id).info.run_id
    metrics = [
        mlflow.entities.Metric(each.name, each.value, int(1000 * each.time), each.round)
        for each in log.scalars
    ]
    params = [mlflow.entities.Param(key, value) for key, value in log.config.items()]
    for first in range(0, len(params), 100):  # MLflow's limits of a batch
        client.log_batch(run, params=params[first : first + 100])
    for first in range(0, len(metrics), 1000):
        client.log_batch(run, metrics=metrics[first : first + 1000])
    client.set_terminated(run)


WRITERS: dict[str, Callable[[Log, Path], None]] = {
    "tensorboard": to_tensorboard,
    "wandb": to_wandb,
    "mlflow": to_mlflow,
}


def is_writer(argument: str) -> bool:
    """The argument asks for another program's format, and not for the table of the C++ program."""
    return argument.split("=")[0] in [f"--{name}" for name in WRITERS]


def main(arguments: list[str]) -> None:
    """The command `gossamer export` with the options of WRITERS."""
    parser = argparse.ArgumentParser(prog="gossamer export", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder, with its log-*.jsonl")
    for name, writer in WRITERS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=writer.__doc__)
    options = vars(parser.parse_args(arguments))
    log = read(options["run"])
    for name, writer in WRITERS.items():
        if (folder := options[name]) is not None:
            writer(log, folder)
            print(f"{len(log.scalars)} values of run {log.run_id}: {folder}", file=sys.stderr)
