"""A task on which runs are deterministic iterations: softmax regression with one class per peer.

Gradients are full, and computed here in double.
"""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

Rows = np.ndarray[Any, np.dtype[np.float64]]
PEERS, PIXELS, RATE = 6, 8, 0.5


class Problem:
    """Tiny images of six classes in IDX files, one class per peer, and gradients in double."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder, self._runs = program, folder, 0
        self.weights = "peers"  # data.weights of the runs and of gradients()
        noise = np.random.default_rng(1)
        labels = np.concatenate(
            [np.repeat(np.arange(PEERS), np.arange(3, 3 + PEERS)), np.arange(PEERS)]
        ).astype(np.uint8)
        images = noise.integers(0, 256, (len(labels), 2, PIXELS // 2), dtype=np.uint8)
        (folder / "images-idx3-ubyte").write_bytes(
            struct.pack(">BBBBIII", 0, 0, 8, 3, *images.shape) + images.tobytes()
        )
        (folder / "labels-idx1-ubyte").write_bytes(
            struct.pack(">BBBBI", 0, 0, 8, 1, len(labels)) + labels.tobytes()
        )
        self.images = images.reshape(-1, PIXELS) / 255.0
        self.labels = labels
        self.train = len(labels) - PEERS
        # The class of a peer is the one whose bias grows in one local step.
        stepped = self.run("dpsgd", "ring", 1, "algorithm.order=awc", "run.init=same")
        grown = (
            stepped.reshape(PEERS, PEERS, PIXELS + 1)[:, :, -1]
            - self.start.reshape(PEERS, PEERS, PIXELS + 1)[:, :, -1]
        )
        self.classes = grown.argmax(axis=1)
        assert sorted(self.classes) == list(range(PEERS))

    @property
    def start(self) -> Rows:
        return self.run("dpsgd", "ring", 0)

    @property
    def out(self) -> Path:
        """The folder of the last run."""
        return self.folder / f"run-{self._runs}"

    def command(self, algorithm: str, topology: str, rounds: int, *sets: str) -> list[str]:
        self._runs += 1
        overrides = [
            f"algorithm.kind={algorithm}",
            f"topology.kind={topology}",
            f"run.rounds={rounds}",
            f"run.peers={PEERS}",
            "run.seed=3",
            "model.kind=softmax",
            "data.kind=idx",
            f"data.path={self.folder}",
            f"data.classes={PEERS}",
            f"data.test_count={PEERS}",
            "data.partition=label",
            "data.classes_per_peer=1",
            "data.batch=0",
            f"data.weights={self.weights}",
            f"optimizer.rate={RATE}",
            "local.threads=1",
            *sets,
        ]
        return [
            str(self.program),
            "run",
            "--quiet",
            "--json",
            "--out",
            str(self.out),
            *(argument for each in overrides for argument in ("--set", each)),
        ]

    def tensors(self, algorithm: str, topology: str, rounds: int, *sets: str) -> dict[str, Any]:
        """The tensors of a run's safetensors file, in file order."""
        command = self.command(algorithm, topology, rounds, *sets)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        blob = (self.out / "final-0.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", blob[:8])
        values = blob[8 + length :]
        return {
            name: np.frombuffer(values[slice(*entry["data_offsets"])], dtype="<f4").reshape(
                entry["shape"]
            )
            for name, entry in json.loads(blob[8 : 8 + length]).items()
            if name != "__metadata__"
        }

    def rows(self, algorithm: str, topology: str, rounds: int, *sets: str) -> Rows:
        """The rows after `rounds` rounds of an algorithm whose rows are no model."""
        tensors = self.tensors(algorithm, topology, rounds, *sets)
        own = [
            [tensor for name, tensor in tensors.items() if name.startswith(f"peer{peer}.")]
            for peer in range(PEERS)
        ]
        return np.array([np.concatenate([t.ravel() for t in row]) for row in own], dtype=np.float64)

    def run(self, algorithm: str, topology: str, rounds: int, *sets: str) -> Rows:
        """The parameters after `rounds` rounds, a row per peer: weights and bias of each class."""
        tensors, rows = self.tensors(algorithm, topology, rounds, *sets), []
        for peer in range(PEERS):
            own = [tensor for name, tensor in tensors.items() if name.startswith(f"peer{peer}.")]
            (weight,) = (tensor for tensor in own if tensor.ndim == 2)
            (bias,) = (tensor for tensor in own if tensor.ndim == 1)
            assert weight.shape in ((PEERS, PIXELS), (PIXELS, PEERS))
            rows.append(
                np.column_stack(
                    [weight if weight.shape == (PEERS, PIXELS) else weight.T, bias]
                ).ravel()
            )
        return np.array(rows, dtype=np.float64)

    def error(self, algorithm: str, topology: str, *sets: str) -> str:
        command = self.command(algorithm, topology, 1, *sets)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        return done.stderr.strip().removeprefix("gossamer: ")

    def gradients(self, x: Rows) -> Rows:
        """∇f_i(x_i), f_i the cross entropy on the whole shard of each peer i, times its weight."""
        g = np.zeros_like(x)
        for i, (row, label) in enumerate(zip(x, self.classes, strict=True)):
            images = self.images[: self.train][self.labels[: self.train] == label]
            features = np.column_stack([images, np.ones(len(images))])
            logits = features @ row.reshape(PEERS, PIXELS + 1).T
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            shares[:, label] -= 1
            weight = PEERS / self.train if self.weights == "samples" else 1 / len(features)
            g[i] = (weight * shares.T @ features).ravel()
        return g

    def local_steps(
        self,
        x: Rows,
        steps: int,
        momentum: float = 0,
        velocity: Rows | None = None,
        decay: float = 0,
    ) -> tuple[Rows, Rows]:
        v = np.zeros_like(x) if velocity is None else velocity
        for _ in range(steps):
            v = momentum * v + self.gradients(x) + decay * x
            x = x - RATE * v
        return x, v


UNEVEN = [(0, 1), (0, 2), (0, 4), (1, 2), (2, 3), (3, 4), (3, 0), (4, 5), (5, 0)]


def edge_list(problem: Problem, name: str, edges: list[tuple[int, int]]) -> tuple[str, str]:
    path = problem.folder / f"{name}.edges"
    path.write_text("".join(f"{a} {b}\n" for a, b in edges), encoding="utf-8")
    return f"topology.path={path}", "topology.directed=true"
