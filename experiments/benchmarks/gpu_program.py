"""The parts of gpu.sh that need the whole program: agreement with the CPU, determinism, hidden communication, a sweep."""

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
from gpu_shell import Done, Failed, Record, Shell, one_line

Settings = dict[str, object]


@dataclass
class Program:
    """A gossamer binary built elsewhere, and a folder for what its runs leave."""

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

    def command(self, verb: str, out: Path, settings: Settings, *words: object) -> list[object]:
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [self.binary, verb, "--quiet", "--out", out, *words, *sets]

    def run(self, out: Path, settings: Settings, seconds: float) -> Record:
        """`gossamer run`'s summary."""
        done = self.shell.call(self.command("run", out, settings, "--json"), seconds)
        if done.code != 0:
            raise Failed(f"gossamer run: {done.why()}")
        return dict(json.loads(done.stdout))


def doctor(program: Program, seconds: float) -> Record:
    done = program.shell.call([program.binary, "doctor", "--json"], seconds)
    if done.code != 0:
        raise Failed(f"gossamer doctor: {done.why()}")
    found = json.loads(done.stdout)
    cuda = found["cuda"]
    gpus = ", ".join(f"{gpu['device']} {gpu['name']}" for gpu in cuda["gpus"])
    words = (
        cuda["problem"]
        or f"driver {cuda['driver']}, runtime {cuda['runtime']}, {cuda['blas']}; {gpus}"
    )
    return {
        "record": "check",
        "id": "doctor",
        "ok": not cuda["problem"],
        "words": f"{words}; auto: {found['auto']['device']}",
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
    """50 rounds of D-PSGD on a ring of 8, on the CPU and on the GPU, for an MLP and the CNN on the built-in digits."""
    end, worst, words = time.monotonic() + seconds, 0.0, []
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
            raise Failed(f"{model}: the two runs do not log the same rounds")
        difference = max(abs(value - logs[1][key]) for key, value in logs[0].items())
        worst = max(worst, difference if math.isfinite(difference) else math.inf)
        words.append(f"{model} {difference:.2g}")
    return {
        "record": "check",
        "id": "agreement",
        "ok": worst <= 1e-3,
        "words": f"largest difference of any peer's train or test loss: {', '.join(words)}",
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
        "words": " and ".join(hashes),
    }


class Overlap:
    """Two processes on this machine, one peer each, on one GPU. A round is H local steps and one exchange of the whole row
    over loopback TCP. `awc` lets the exchange run beside the steps; `atc` after them; `alone` are two networks of one peer
    each, at the same time, which train the same and exchange nothing. A round's time is that of the slower process, between
    two of its log records."""

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
            "net.silence": 30,
        }

    def round_seconds(self, variant: str, seconds: float) -> float:
        processes, outs, begin = [], [], time.monotonic()
        meeting = self.program.folder()
        for peer in range(2):
            out = self.program.folder()
            own = (
                {"run.peers": 1, "net.rendezvous": meeting / str(peer)}
                if variant == "alone"
                else {"run.peers": 2, "net.rendezvous": meeting, "algorithm.order": variant}
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
                    raise Failed(
                        f"gossamer peer ({variant}): not finished after {seconds:.0f} s"
                    ) from None
                if code != 0:
                    said = (out / "stderr.txt").read_text(encoding="utf-8").strip().splitlines()
                    raise Failed(
                        f"gossamer peer ({variant}): exit code {code}: {one_line(said[-1] if said else '')}"
                    )
        finally:
            for process in processes:
                self.program.shell.end(process)
        return max(self.timed(out / f"log-{number}.jsonl") for out, number in outs)

    def timed(self, log: Path) -> float:
        at = {}
        for line in log.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["record"] == "round":
                at[record["round"]] = record["seconds"]
        return float(at[self.WARMUP + self.rounds] - at[self.WARMUP]) / self.rounds

    def measure(self, seconds: float) -> Record:
        end = time.monotonic() + seconds
        times: dict[str, list[float]] = {"awc": [], "alone": [], "atc": []}
        wanted = 6
        for pair in range(wanted):
            order = ("awc", "alone") if pair % 2 == 0 else ("alone", "awc")
            for variant in (*order, "atc") if pair % 3 == 0 else order:
                left = end - time.monotonic()
                if (
                    pair > 0
                    and left
                    < 1.5 * sum(map(statistics.median, filter(None, times.values()))) * self.rounds
                ):
                    return self.record(times)  # fewer pairs have a wider interval
                times[variant].append(self.round_seconds(variant, left))
        return self.record(times)

    def record(self, times: dict[str, list[float]]) -> Record:
        count = min(len(times["awc"]), len(times["alone"]))
        compute = statistics.median(times["alone"])
        exchange = statistics.median(times["atc"]) - compute
        note = (
            f"round alone {1e3 * compute:.2f} ms, with an exchange after it (atc) {1e3 * (exchange + compute):.2f} ms, "
            f"beside it (awc) {1e3 * statistics.median(times['awc']):.2f} ms; {count} pairs"
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
    """Nine graphs of 256 peers: kinds of `gossamer list` that run as they are, and if those are fewer, a torus that is no
    square."""
    done = program.shell.call([program.binary, "list", "--json"], 20)
    if done.code != 0:
        raise Failed(f"gossamer list: {done.why()}")
    found: list[tuple[str, Settings]] = []
    for kind in json.loads(done.stdout)["topology"]:
        own = {"topology.kind": kind}
        checked = program.shell.call(
            [
                program.binary,
                "run",
                "--check",
                *(
                    word
                    for key, value in {**settings, **own}.items()
                    for word in ("--set", f"{key}={value}")
                ),
            ],
            20,
        )
        if checked.code == 0 and len(found) < 9:
            found.append((kind, own))
    if not found:
        raise Failed(f"gossamer run --check: {checked.why()}")
    peers = int(str(settings["run.peers"]))
    rows = max(3, round(peers**0.5) // 4)
    if len(found) < 9 and peers % rows == 0:
        found.append(
            (f"torus {rows} × {peers // rows}", {"topology.kind": "torus", "topology.rows": rows})
        )
    return found


def sweep(program: Program, data: Path | None, seconds: float) -> Record:
    """256 peers × 9 topologies × 3 seeds, MLP 784-128-10, batch 32, one step a round, ten epochs of each peer's 234
    samples (7 batches each), evaluated once an epoch; four runs at a time. The time is from the first run's start to the
    last one's end."""
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

    def one(run: Settings) -> Done:
        left = end - time.monotonic()
        if left < 1:
            return Done(None, "", "", 0)
        return program.shell.call(program.command("run", program.folder(), run), left)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, runs))
    elapsed = time.monotonic() - begin
    finished = sum(done.code == 0 for done in outcomes)
    if broken := [done for done in outcomes if done.code not in (0, None)]:
        raise Failed(f"{len(broken)} of {len(runs)} runs failed; the first: {broken[0].why()}")
    source = "the files given" if data else "made-up files of that size"
    words = (
        f"{finished} of {len(runs)} runs of {peers} peers, on {source}; "
        f"{len(graphs)} graphs: {', '.join(name for name, _ in graphs)}"
    )
    record: Record = {
        "record": "value",
        "id": "sweep",
        "value": elapsed,
        "unit": "s",
        "note": words,
    }
    if finished < len(runs):
        record["missing"] = f"time was up after {elapsed:.0f} s"
    elif len(graphs) < 9:
        record["condition"] = False
    return record
