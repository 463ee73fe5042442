"""Federated averaging against the iteration in numpy (McMahan et al. 2017, Alg. 1; Li et al. 2020).

The test draws shards, chosen clients and dropouts itself, from the definition of the program's
random streams.
"""

import json
import math
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from philox_reference import NO_PEER, random_order, stream, unit

PEERS, SAMPLES, SIDE, CLASSES, SEED, RATE = 6, 20, 3, 4, 11, 0.5
PARTITION, CLIENTS = 3, 16  # purposes of random streams, src/base/philox.hpp
Model = tuple[np.ndarray, np.ndarray]  # weights [inputs, outputs], bias


@dataclass(frozen=True)
class Case:
    fraction: float = 1.0
    dropout: float = 0.0
    steps: int = 1
    prox: float = 0.0
    cosine: bool = False  # cosine schedule; local steps given as epochs of one full batch each
    weights: str = "samples"

    def weight(self, samples: int) -> float:
        """The weight of a client's model, up to a factor."""
        return samples if self.weights == "samples" else 1

    def rate(self, t: int, step: int, rounds: int) -> float:
        """The step size of a client's local step in round t."""
        progress = (t * self.steps + step) / (rounds * self.steps)
        return RATE * (1 + math.cos(math.pi * progress)) / 2 if self.cosine else RATE

    def settings(self) -> list[str]:
        local = "local_epochs" if self.cosine else "local_steps"
        return [
            f"algorithm.fraction={self.fraction}",
            f"algorithm.dropout={self.dropout}",
            f"algorithm.{local}={self.steps}",
            f"algorithm.prox={self.prox}",
            f"optimizer.schedule={'cosine' if self.cosine else 'constant'}",
            f"data.weights={self.weights}",
        ]

    def reporting(self, t: int) -> list[int]:
        chosen = random_order(PEERS, stream(SEED, NO_PEER, CLIENTS, t))[
            : max(1, round(self.fraction * PEERS))
        ]
        return [k for k in sorted(chosen) if unit(stream(SEED, k, CLIENTS, t)) >= self.dropout]


def gradient(model: Model, images: np.ndarray, labels: np.ndarray) -> Model:
    """The gradient of the mean cross entropy."""
    logits = images @ model[0] + model[1]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return images.T @ p / len(labels), p.mean(axis=0)


def federated(
    case: Case, model: Model, data: list[tuple[np.ndarray, np.ndarray]], rounds: int
) -> Model:
    for t in range(rounds):
        reporting = case.reporting(t)
        if not reporting:
            continue
        total, average = (
            sum(case.weight(len(data[k][1])) for k in reporting),
            [np.zeros_like(part) for part in model],
        )
        for k in reporting:
            own = list(model)
            for step in range(case.steps):
                rate = case.rate(t, step, rounds)
                slope = gradient((own[0], own[1]), *data[k])
                own = [
                    y - rate * (g + case.prox * (y - x))
                    for y, g, x in zip(own, slope, model, strict=True)
                ]
            for part, y in zip(average, own, strict=True):
                part += case.weight(len(data[k][1])) / total * y
        model = (average[0], average[1])
    return model


def server_model(file: Path) -> Model:
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])

    def tensor(name: str) -> np.ndarray:
        entry = header[f"server{PEERS}.0.dense.{name}"]
        begin, end = entry["data_offsets"]
        return (
            np.frombuffer(content[8 + size + begin : 8 + size + end], "<f4")
            .reshape(entry["shape"])
            .astype(float)
        )

    return tensor("weights"), tensor("bias")


@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case(steps=4),
        Case(fraction=0.5, steps=3),
        Case(fraction=0.5, dropout=0.5, steps=2),
        Case(fraction=0.2, dropout=0.6, steps=3, prox=0.8),
        Case(prox=1.5, steps=5),
        Case(fraction=0.5, dropout=0.3, steps=2, cosine=True),
        Case(fraction=0.5, steps=3, prox=0.5, cosine=True),
        Case(fraction=0.5, steps=3, weights="peers"),
    ],
    ids=repr,
)
def test_rounds_match_the_reference(gossamer: Path, tmp_path: Path, case: Case) -> None:
    noise = np.random.default_rng(3)
    pixels = noise.integers(0, 256, (SAMPLES + 4, SIDE, SIDE), dtype=np.uint8)
    labels = noise.integers(0, CLASSES, SAMPLES + 4, dtype=np.uint8)
    (tmp_path / "images-idx3-ubyte").write_bytes(
        struct.pack(">BBBBIII", 0, 0, 8, 3, *pixels.shape) + pixels.tobytes()
    )
    (tmp_path / "labels-idx1-ubyte").write_bytes(
        struct.pack(">BBBBI", 0, 0, 8, 1, len(labels)) + labels.tobytes()
    )
    order, data = random_order(SAMPLES, stream(SEED, NO_PEER, PARTITION)), []
    for p in range(PEERS):  # 20 samples: four for each of two peers, three for each of the others
        own, order = order[: 4 if p < 2 else 3], order[4 if p < 2 else 3 :]
        data.append((pixels[own].reshape(len(own), -1) / 255.0, labels[own]))

    def run(rounds: int) -> Model:
        sets = [
            f"run.peers={PEERS}",
            f"run.rounds={rounds}",
            f"run.seed={SEED}",
            "model.kind=softmax",
            "data.kind=idx",
            f"data.path={tmp_path}",
            f"data.train_count={SAMPLES}",
            f"data.classes={CLASSES}",
            "data.partition=iid",
            "data.batch=0",
            f"optimizer.rate={RATE}",
            "algorithm.kind=fedavg",
            *case.settings(),
        ]
        out = tmp_path / f"rounds-{rounds}"
        done = subprocess.run(
            [
                gossamer,
                "run",
                "--quiet",
                "--out",
                out,
                *(argument for each in sets for argument in ("--set", each)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return server_model(out / "final-0.safetensors")

    start = run(0)
    for rounds in (1, 2, 3, 7, 25):
        expected = federated(case, start, data, rounds)
        for actual, part in zip(run(rounds), expected, strict=True):
            assert np.abs(actual - part).max() < 2e-6 * max(1.0, float(np.abs(part).max())), rounds
