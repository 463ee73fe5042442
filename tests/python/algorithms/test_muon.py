"""MuLoCo, DiLoCo with Muon as inner optimizer, against its formulas in numpy, over 200 rounds.

Three things would make more of the rounding of float32 than 1e-6, and the settings avoid them. All
steps have the same error in 1 − rate · decay, momenta and rates if these are rounded: here they are
multiples of powers of two. Five iterations of Newton and Schulz multiply small singular values of a
gradient, and with them their rounding, by up to 3.4⁵ = 485: steps are small. The outer step
multiplies the sum of the inner ones by outer_rate / (1 − outer_momentum): here by 1. With the usual
rates (0.02, 1e-3, 0.7 and 0.9), models agree to 1e-3 only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iteration_test_util import ROUNDS, TOLERANCE
from softmax_problem import PEERS, Problem

HIDDEN, STEPS = 3, 2
RATE, ADAMW_RATE, MOMENTUM, DECAY = 2**-8, 2**-11, 7 / 8, 1 / 8
OUTER_RATE, OUTER_MOMENTUM = 1 / 2, 1 / 2
NAMES = ("0.dense.weights", "0.dense.bias", "1.dense.weights", "1.dense.bias")
Matrix = np.ndarray[Any, np.dtype[np.float64]]
Model = dict[str, Matrix]


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


def run(problem: Problem, rounds: int) -> list[Model]:
    """The models of the peers after `rounds` rounds."""
    tensors = problem.tensors(
        "diloco",
        "complete",
        rounds,
        "model.kind=mlp",
        f"model.hidden=[{HIDDEN}]",
        "model.activation=tanh",
        f"algorithm.local_steps={STEPS}",
        f"algorithm.outer_rate={OUTER_RATE}",
        f"algorithm.outer_momentum={OUTER_MOMENTUM}",
        "optimizer.kind=muon",
        f"optimizer.rate={RATE}",
        f"optimizer.adamw_rate={ADAMW_RATE}",
        f"optimizer.momentum={MOMENTUM}",
        f"optimizer.weight_decay={DECAY}",
        "optimizer.epsilon=1e-8",
    )
    return [
        {name: tensors[f"peer{peer}.{name}"].astype(np.float64) for name in NAMES}
        for peer in range(PEERS)
    ]


def gradient(problem: Problem, peer: int, model: Model) -> Model:
    """Of the mean cross entropy of all samples of the peer's class."""
    label = problem.classes[peer]
    inputs = problem.images[: problem.train][problem.labels[: problem.train] == label]
    hidden = np.tanh(inputs @ model["0.dense.weights"] + model["0.dense.bias"])
    logits = hidden @ model["1.dense.weights"] + model["1.dense.bias"]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[:, label] -= 1
    shares /= len(inputs)
    back = shares @ model["1.dense.weights"].T * (1 - hidden**2)
    return {
        "0.dense.weights": inputs.T @ back,
        "0.dense.bias": back.sum(axis=0),
        "1.dense.weights": hidden.T @ shares,
        "1.dense.bias": shares.sum(axis=0),
    }


def orthogonalised(update: Matrix) -> Matrix:
    """Jordan 2024, zeropower_via_newtonschulz5, for an update with more rows than columns."""
    x = update.T / (np.linalg.norm(update) + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T


class InnerOptimizer:
    """Of one peer: Muon for the first layer's weights, AdamW for everything else."""

    def __init__(self, model: Model) -> None:
        self.first = {name: np.zeros_like(tensor) for name, tensor in model.items()}
        self.second = {name: np.zeros_like(tensor) for name, tensor in model.items()}
        self.steps = 0

    def step(self, model: Model, g: Model) -> Model:
        self.steps += 1
        stepped = {}
        for name, tensor in model.items():
            if name == "0.dense.weights":
                self.first[name] = MOMENTUM * self.first[name] + (1 - MOMENTUM) * g[name]
                update = (1 - MOMENTUM) * g[name] + MOMENTUM * self.first[name]
                inputs, outputs = tensor.shape
                scale = max(1, outputs / inputs) ** 0.5
                stepped[name] = (1 - RATE * DECAY) * tensor - RATE * scale * orthogonalised(update)
                continue
            self.first[name] = 0.9 * self.first[name] + 0.1 * g[name]
            self.second[name] = 0.95 * self.second[name] + 0.05 * g[name] ** 2
            mean = self.first[name] / (1 - 0.9**self.steps)
            square = self.second[name] / (1 - 0.95**self.steps)
            update = mean / (np.sqrt(square) + 1e-8)
            stepped[name] = (1 - ADAMW_RATE * DECAY) * tensor - ADAMW_RATE * update
        return stepped


def test_muloco(problem: Problem) -> None:
    """Thérien et al. 2025: the inner steps are Muon's, the outer one is DiLoCo's."""
    model = run(problem, 0)[0]
    start = model
    velocity = {name: np.zeros_like(tensor) for name, tensor in model.items()}
    inner = [InnerOptimizer(model) for _ in range(PEERS)]
    for t in range(ROUNDS):
        ends = []
        for peer in range(PEERS):
            own = model
            for _ in range(STEPS):
                own = inner[peer].step(own, gradient(problem, peer, own))
            ends.append(own)
        following = {}
        for name, tensor in model.items():
            outer = tensor - np.mean([end[name] for end in ends], axis=0)
            velocity[name] = OUTER_MOMENTUM * velocity[name] + outer
            following[name] = tensor - OUTER_RATE * (outer + OUTER_MOMENTUM * velocity[name])
        model = following
        if t > 2 and t < ROUNDS - 1:
            continue
        for peer, actual in enumerate(run(problem, t + 1)):
            for name, tensor in model.items():
                error = np.linalg.norm(actual[name] - tensor) / np.linalg.norm(tensor)
                assert error <= TOLERANCE, (t, peer, name, error)
    moved = np.linalg.norm(model["0.dense.weights"] - start["0.dense.weights"])
    assert moved > 0.1 * np.linalg.norm(start["0.dense.weights"])


def test_a_server_refuses_muon(problem: Problem) -> None:
    error = problem.error("server", "complete", "optimizer.kind=muon", "model.kind=mlp")
    assert error.startswith("optimizer.kind: 'muon' steps with whole matrices"), error
