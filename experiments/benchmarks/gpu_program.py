"""The stages of gpu.sh that need the gossamer program: agreement, determinism, overlap, sweep."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import math
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import gpu_idx
from gpu_shell import CommandResult, Record, Shell, StageError, one_line
from pairs import MIN_PAIRS

Settings = dict[str, object]


def overrides(settings: Settings) -> list[str]:
    return [argument for key, value in settings.items() for argument in ("--set", f"{key}={value}")]


@dataclass
class Program:
    """A gossamer program built elsewhere, and a folder for the files of its runs."""

    shell: Shell
    binary: Path
    scratch: Path
    device: str = "cuda"
    quick: bool = False
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def folder(self) -> Path:
        path = self.scratch / f"run-{next(self.numbers)}"
        path.mkdir(parents=True)
        return path

    def command(self, verb: str, out: Path, settings: Settings, *options: object) -> list[object]:
        return [self.binary, verb, "--quiet", "--out", out, *options, *overrides(settings)]

    def run(self, out: Path, settings: Settings, seconds: float) -> Record:
        """Runs `gossamer run`. Returns the summary."""
        done = self.shell.call(self.command("run", out, settings, "--json"), seconds)
        if done.code != 0:
            raise StageError(f"gossamer run: {done.failure_reason()}")
        return dict(json.loads(done.stdout))


def doctor(program: Program, seconds: float) -> Record:
    done = program.shell.call([program.binary, "doctor", "--json"], seconds)
    if done.code != 0:
        raise StageError(f"gossamer doctor: {done.failure_reason()}")
    report = json.loads(done.stdout)
    cuda = report["cuda"]
    gpus = ", ".join(f"{gpu['device']} {gpu['name']}" for gpu in cuda["gpus"])
    detail = (
        cuda["problem"]
        or f"driver {cuda['driver']}, runtime {cuda['runtime']}, {cuda['blas']}; {gpus}"
    )
    return {
        "record": "check",
        "id": "doctor",
        "ok": not cuda["problem"],
        "detail": f"{detail}; auto: {report['auto']['device']}",
    }


def losses(log: Path) -> dict[tuple[int, int, str], float]:
    """Every finite loss of a log, by round, peer and kind."""
    found = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["record"] == "round":
            for kind in ("train_loss", "test_loss"):
                if record[kind] is not None:
                    found[record["round"], record["peer"], kind] = record[kind]
    return found


def agreement(program: Program, seconds: float) -> Record:
    """50 rounds of D-PSGD on a ring of 8 with an MLP and a CNN on digits, on CPU and GPU."""
    end, worst, differences = time.monotonic() + seconds, 0.0, []
    for model in ("mlp", "cnn"):
        settings = {
            "run.peers": 8,
            "run.rounds": 50,
            "topology.kind": "ring",
            "model.kind": model,
            "data.kind": "digits",
            "optimizer.rate": 0.05,
            "log.every": 5,
        }
        logs = []
        for device in ("cpu", program.device):
            out = program.folder()
            program.run(out, {**settings, "local.device": device}, end - time.monotonic())
            logs.append(losses(out / "log-0.jsonl"))
        if logs[0].keys() != logs[1].keys():
            raise StageError(f"{model}: the two runs do not log the same rounds")
        difference = max(abs(value - logs[1][key]) for key, value in logs[0].items())
        worst = max(worst, difference if math.isfinite(difference) else math.inf)
        differences.append(f"{model} {difference:.2g}")
    return {
        "record": "check",
        "id": "agreement",
        "ok": worst <= 1e-3,
        "detail": f"largest difference of any peer's train or test loss: {', '.join(differences)}",
    }


def determinism(program: Program, seconds: float) -> Record:
    end, hashes = time.monotonic() + seconds, []
    settings = {
        "run.peers": 16,
        "run.rounds": 50,
        "topology.kind": "torus",
        "model.kind": "cnn",
        "data.kind": "digits",
        "local.device": program.device,
        "local.deterministic": "true",
        "log.every": 0,
    }
    for _ in range(2):
        hashes.append(program.run(program.folder(), settings, end - time.monotonic())["final_hash"])
    return {
        "record": "check",
        "id": "determinism",
        "ok": hashes[0] == hashes[1],
        "detail": " and ".join(hashes),
    }


class Overlap:
    """How much of the communication is hidden behind training.

    Two processes of one peer each run on one GPU. A round is H local steps and one exchange of the
    row over loopback TCP. In the order `awc` the exchange runs in parallel with the steps, in `atc`
    after them. `alone` is two networks of one peer each, which train at the same time and exchange
    nothing. The time of a round is that of the slower process, from its log records.
    """

    WARMUP = 10

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rounds = 10 if program.quick else 60
        self.data = gpu_idx.make(
            program.scratch / "overlap-data", *((256, 64) if program.quick else (8192, 64))
        )
        self.settings: Settings = {
            "run.rounds": self.WARMUP + self.rounds,
            "topology.kind": "ring",
            "model.kind": "mlp",
            "model.hidden": "[16]" if program.quick else "[1024, 1024]",
            "data.kind": "idx",
            "data.path": self.data,
            "data.batch": 16 if program.quick else 512,
            "algorithm.kind": "dpsgd",
            "algorithm.local_steps": 2 if program.quick else 32,
            "optimizer.rate": 0.01,
            "local.device": program.device,
            "local.threads": 2,
            "log.every": self.WARMUP,
            "log.sketch": "off",
            "net.listen": "127.0.0.1:0",
            "net.failure_timeout": 30,
        }

    def round_seconds(self, variant: str, seconds: float) -> float:
        processes, outs, begin = [], [], time.monotonic()
        rendezvous = self.program.folder()
        for peer in range(2):
            out = self.program.folder()
            own = (
                {"run.peers": 1, "net.rendezvous": rendezvous / str(peer)}
                if variant == "alone"
                else {"run.peers": 2, "net.rendezvous": rendezvous, "algorithm.order": variant}
            )
            number = 0 if variant == "alone" else peer
            command = self.program.command("peer", out, {**self.settings, **own}, "--id", number)
            errors = (out / "stderr.txt").open("w", encoding="utf-8")
            null = subprocess.DEVNULL
            processes.append(
                self.program.shell.start(command, stdin=null, stdout=null, stderr=errors)
            )
            errors.close()
            outs.append((out, number))
        try:
            for process, (out, _) in zip(processes, outs):
                try:
                    code = process.wait(max(0.1, seconds - (time.monotonic() - begin)))
                except subprocess.TimeoutExpired:
                    raise StageError(
                        f"gossamer peer ({variant}): not finished after {seconds:.0f} s"
                    ) from None
                if code != 0:
                    lines = (out / "stderr.txt").read_text(encoding="utf-8").strip().splitlines()
                    raise StageError(
                        f"gossamer peer ({variant}): exit code {code}: "
                        f"{one_line(lines[-1] if lines else '')}"
                    )
        finally:
            for process in processes:
                self.program.shell.kill(process)
        return max(self.seconds_per_round(out / f"log-{number}.jsonl") for out, number in outs)

    def seconds_per_round(self, log: Path) -> float:
        at = {}
        for line in log.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["record"] == "round":
                at[record["round"]] = record["seconds"]
        return float(at[self.WARMUP + self.rounds] - at[self.WARMUP]) / self.rounds

    def measure(self, seconds: float) -> Record:
        end = time.monotonic() + seconds
        times: dict[str, list[float]] = {"awc": [], "alone": [], "atc": []}
        for pair in range(MIN_PAIRS):
            order = ("awc", "alone") if pair % 2 == 0 else ("alone", "awc")
            for variant in (*order, "atc") if pair % 3 == 0 else order:
                left = end - time.monotonic()
                if (
                    pair > 0
                    and left
                    < 1.5 * sum(map(statistics.median, filter(None, times.values()))) * self.rounds
                ):
                    return self.record(times)  # with fewer pairs the interval is wider
                times[variant].append(self.round_seconds(variant, left))
        return self.record(times)

    def record(self, times: dict[str, list[float]]) -> Record:
        count = min(len(times["awc"]), len(times["alone"]))
        compute = statistics.median(times["alone"])
        exchange = statistics.median(times["atc"]) - compute
        note = (
            f"round alone {1e3 * compute:.2f} ms, "
            f"with an exchange after it (atc) {1e3 * (exchange + compute):.2f} ms, "
            f"in parallel (awc) {1e3 * statistics.median(times['awc']):.2f} ms; {count} pairs"
        )
        return {
            "record": "pairs",
            "id": "overlap",
            "unit": "rounds/s",
            "note": note,
            "condition": compute >= exchange,
            "ours": [1 / value for value in times["awc"][:count]],
            "theirs": [1 / value for value in times["alone"][:count]],
        }


def sweep_topologies(program: Program, settings: Settings) -> list[tuple[str, Settings]]:
    """Nine graphs for the sweep: the kinds of `gossamer list` that run with their defaults.

    If there are only eight, a torus that is not square is added.
    """
    done = program.shell.call([program.binary, "list", "--json"], 20)
    if done.code != 0:
        raise StageError(f"gossamer list: {done.failure_reason()}")
    found: list[tuple[str, Settings]] = []
    for kind in json.loads(done.stdout)["topology"]:
        own = {"topology.kind": kind}
        command = [program.binary, "run", "--check", *overrides({**settings, **own})]
        checked = program.shell.call(command, 20)
        if checked.code == 0 and len(found) < 9:
            found.append((kind, own))
    if not found:
        raise StageError(f"gossamer run --check: {checked.failure_reason()}")
    peers = int(str(settings["run.peers"]))
    rows = max(3, round(peers**0.5) // 4)
    if len(found) < 9 and peers % rows == 0:
        found.append(
            (f"torus {rows} × {peers // rows}", {"topology.kind": "torus", "topology.rows": rows})
        )
    return found


def sweep(program: Program, data: Path | None, seconds: float) -> Record:
    """The wall time of a sweep: 256 peers × 9 topologies × 3 seeds, with four runs in parallel.

    Each run trains an MLP 784-128-10 with batch 32 and one step per round, for ten epochs of a
    peer's 234 samples (7 batches), and evaluates once per epoch.
    """
    end = time.monotonic() + seconds
    peers, epochs, size = (16, 2, (1024, 64)) if program.quick else (256, 10, (60_000, 10_000))
    folder = data or gpu_idx.make(program.scratch / "sweep-data", *size)
    per_epoch = 2 if program.quick else 7
    settings: Settings = {
        "run.peers": peers,
        "run.rounds": epochs * per_epoch,
        "model.kind": "mlp",
        "data.kind": "idx",
        "data.path": folder,
        "data.batch": 32,
        "optimizer.rate": 0.05,
        "log.every": per_epoch,
        "local.device": program.device,
        "local.threads": 3,
    }
    graphs = sweep_topologies(program, settings)
    seeds = range(1 if program.quick else 3)
    runs = [{**settings, **own, "run.seed": seed} for seed in seeds for _, own in graphs]
    begin = time.monotonic()

    def one(run: Settings) -> CommandResult:
        left = end - time.monotonic()
        if left < 1:
            return CommandResult(None, "", "", 0)
        return program.shell.call(program.command("run", program.folder(), run), left)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, runs))
    elapsed = time.monotonic() - begin
    finished = sum(done.code == 0 for done in outcomes)
    if failed := [done for done in outcomes if done.code not in (0, None)]:
        raise StageError(
            f"{len(failed)} of {len(runs)} runs failed; the first: {failed[0].failure_reason()}"
        )
    source = "MNIST" if data else "synthetic files of that size"
    note = (
        f"{finished} of {len(runs)} runs of {peers} peers, on {source}; "
        f"{len(graphs)} graphs: {', '.join(name for name, _ in graphs)}"
    )
    record: Record = {
        "record": "value",
        "id": "sweep",
        "value": elapsed,
        "unit": "s",
        "note": note,
    }
    if finished < len(runs):
        record["missing"] = f"the time was over after {elapsed:.0f} s"
    elif len(graphs) < 9:
        record["condition"] = False
    return record
