#!/usr/bin/env python3
"""Compares predicted and measured times of a round for eight workers of whole and of cut models.

    sudo tests/chaos/predicted_workers.py --program build/release/bin/gossamer

The eight workers of each cut of experiments/split_variants.toml are processes in network namespaces
of their own, with links of 5 Mbit/s and some latency between any two: the router (packet_router.py)
carries no more packets in time. They train the model of experiments/split.toml with half the width,
whose rows have 0.5 MB. `gossamer probe` measures such a link, and `gossamer run` predicts the time
of the same rounds in virtual time, from the probe's latency and bandwidth, and with the time of a
sample that one process with one thread has measured.

Prints one line of JSON for each cut. Exit code 1: a prediction is off by more than 10 %. Needs
root, iproute2, nsenter and /dev/net/tun; without them it prints the reason, and the exit code is
77.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos_test_util import run_to_end
from packet_router import Emulation, address, can_route, routed_namespaces
from partitions import inside
from predicted_time import priority

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
LARGEST_ERROR = 0.10
WORKERS = 8
MBIT_S = 5.0
HIDDEN = f"model.hidden={[128] * 8}"
# Evaluations take no virtual time: those of the first and the last round are of few samples.
EVALUATION = ("data.validation=0.01", "data.evaluate=validation")


@dataclass(frozen=True)
class Costs:
    """What the prediction is made from."""

    sample_ms: float
    latency_ms: float
    bandwidth_mbit_s: float


def links(nodes: int, latency_ms: float) -> Emulation:
    pairs = list(itertools.combinations(range(nodes), 2))
    latencies, paths = dict.fromkeys(pairs, latency_ms), dict.fromkeys(pairs, MBIT_S)
    return Emulation(nodes, latencies, path=paths, fair=True)


class Cut:
    """Eight workers, of replicas that are cut in one way."""

    def __init__(self, options: argparse.Namespace, folder: Path, name: str) -> None:
        variants = tomllib.loads((EXPERIMENTS / "split_variants.toml").read_text())["variants"]
        self.program, self.rounds, self.folder = options.program.resolve(), options.rounds, folder
        self.settings = [
            HIDDEN,
            *EVALUATION,
            *(f"{key}={value}" for key, value in variants[name].items()),
        ]
        self.replicas: int = variants[name]["run.peers"]

    def command(self, verb: str, *options: str, sets: tuple[str, ...] = ()) -> list[str]:
        every = [*self.settings, f"run.rounds={self.rounds}", f"log.every={self.rounds}", *sets]
        overrides = [argument for each in every for argument in ("--set", each)]
        return [str(self.program), verb, str(EXPERIMENTS / "split.toml"), *options, *overrides]

    def seconds(self, out: str) -> float:
        """From the start of the first worker, after all have joined, to the end of the last."""
        records: list[dict[str, Any]] = []
        for log in (self.folder / out).rglob("log-*.jsonl"):
            records += map(json.loads, log.read_text(encoding="utf-8").splitlines())
        rounds = [record for record in records if record["record"] == "round"]
        begin = min(record["seconds"] for record in rounds if record["round"] == 0)
        return float(
            max(record["seconds"] for record in rounds if record["round"] == self.rounds) - begin
        )

    def predicted(self, costs: Costs) -> float:
        network = (
            f"sim.sample_ms={costs.sample_ms}",
            f"sim.bandwidth_mbit_s={costs.bandwidth_mbit_s}",
            f"sim.latency_ms={costs.latency_ms}",
        )
        command = self.command(
            "run", "--quiet", "--out", str(self.folder / "predicted"), sets=network
        )
        subprocess.run(command, check=True, timeout=600)
        return self.seconds("predicted")

    def measured(self, latency_ms: float) -> float:
        out = str(self.folder / "measured")
        sets = (
            f"net.rendezvous={self.folder / 'meet'}",
            "net.insecure=true",
            "net.failure_timeout=30",
        )
        with routed_namespaces(links(WORKERS, latency_ms)) as names:
            commands = {}
            parts = WORKERS // self.replicas
            for k, name in enumerate(names):
                worker = str(k) if parts == 1 else f"{k // parts}.{k % parts}"
                command = self.command(
                    "peer", "--quiet", "--id", worker, "--out", out,
                    sets=(*sets, f"net.listen={address(k)}:0"),
                )  # fmt: skip
                commands[worker] = [*inside(name), *command]
            run_to_end(commands, self.folder, 600)
        return self.seconds("measured")


def measured_sample_ms(options: argparse.Namespace, folder: Path) -> float:
    """The time of a sample in a process that has the whole model, and a processor to itself."""
    samples = 32 * 200
    command = [
        str(options.program.resolve()), "run", str(EXPERIMENTS / "split.toml"), "--quiet",
        "--out", str(folder / "sample"), "--set", "run.peers=1", "--set", "run.rounds=200",
        "--set", "data.batch=32", "--set", "log.every=200", "--set", HIDDEN,
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=600)
    summary = json.loads((folder / "sample" / "summary.json").read_text(encoding="utf-8"))
    return 1e3 * float(summary["wall_seconds"]) / samples


def probed_link(options: argparse.Namespace, folder: Path) -> tuple[float, float]:
    """Latency in ms and bandwidth in Mbit/s of a link between two processes: means of both ways."""
    with routed_namespaces(links(2, options.latency)) as names:
        commands = {}
        for k, name in enumerate(names):
            command = [
                str(options.program.resolve()), "probe", "--quiet", "--id", str(k),
                "--out", str(folder / "probe"), "--set", "run.peers=2",
                "--set", f"net.rendezvous={folder / 'meet-probe'}", "--set", "net.insecure=true",
                "--set", f"net.listen={address(k)}:0",
            ]  # fmt: skip
            commands[str(k)] = [*inside(name), *command]
        run_to_end(commands, folder, 300)

    def mean(table: str) -> float:
        rows = (folder / "probe" / table).read_text(encoding="utf-8").splitlines()
        values = [[float(cell) for cell in row.split()] for row in rows if row[:1].isdigit()]
        return (values[0][1] + values[1][0]) / 2

    return mean("latency.txt"), mean("bandwidth.txt")


def compare(options: argparse.Namespace, name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="gossamer-workers-") as folder:
        cut = Cut(options, Path(folder), name)
        costs = Costs(
            measured_sample_ms(options, Path(folder)), *probed_link(options, Path(folder))
        )
        predicted, measured = cut.predicted(costs), cut.measured(options.latency)
    ratio = predicted / measured
    report = {
        "cut": name,
        "sample_ms": round(costs.sample_ms, 4),
        "probed_latency_ms": round(costs.latency_ms, 3),
        "probed_mbit_s": round(costs.bandwidth_mbit_s, 3),
        "predicted_seconds_per_round": round(predicted / options.rounds, 4),
        "measured_seconds_per_round": round(measured / options.rounds, 4),
        "ratio": round(ratio, 3),
    }
    print(json.dumps(report), flush=True)
    return abs(ratio - 1) <= LARGEST_ERROR


def main() -> int:
    cuts = tomllib.loads((EXPERIMENTS / "split_variants.toml").read_text())["variants"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--latency", type=float, default=5, help="of each link, in ms")
    parser.add_argument("--cut", choices=cuts, action="append", help="all by default")
    options = parser.parse_args()
    if not can_route():
        return 77
    with priority():
        return 0 if all([compare(options, name) for name in options.cut or cuts]) else 1


if __name__ == "__main__":
    sys.exit(main())
