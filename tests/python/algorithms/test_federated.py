"""Federated averaging against the iteration in numpy, over 200 rounds.

tests/python/test_fedavg.py has more cases, for fewer rounds.
"""

from __future__ import annotations


import numpy as np
import pytest
from iteration_test_util import DECAY, DECAYED, ROUNDS, SEED, check_rows, order_of_peers
from philox_reference import stream, unit
from softmax_problem import PEERS, RATE, Problem, Rows

CLIENTS = 16  # the purpose of random streams, src/base/philox.hpp


def reporting(t: int, fraction: float, dropout: float) -> list[int]:
    """The clients that are chosen in round t and do not fail."""
    chosen = sorted(order_of_peers(CLIENTS, t)[: max(1, round(fraction * PEERS))])
    return [k for k in chosen if unit(stream(SEED, k, CLIENTS, t)) >= dropout]


@pytest.mark.parametrize(
    ("fraction", "dropout", "steps", "prox"),
    [(1.0, 0.0, 1, 0.0), (0.5, 0.0, 3, 0.0), (0.5, 0.5, 2, 0.8)],
)
def test_fedavg(problem: Problem, fraction: float, dropout: float, steps: int, prox: float) -> None:
    """McMahan et al. 2017, Alg. 1; Li et al. 2020 (FedProx) with the proximal term."""
    sets = (
        f"algorithm.fraction={fraction}",
        f"algorithm.dropout={dropout}",
        f"algorithm.local_steps={steps}",
        f"algorithm.prox={prox}",
        DECAYED,
    )

    def server(rounds: int) -> Rows:
        tensors = problem.tensors("fedavg", "complete", rounds, *sets)
        weights, bias = (tensors[f"server{PEERS}.0.dense.{name}"] for name in ("weights", "bias"))
        return np.column_stack([weights.T, bias]).reshape(1, -1).astype(np.float64)

    samples = np.bincount(problem.labels[: problem.train])[problem.classes]
    weighted = problem.weights == "samples"
    # Clients step with the mean gradient of their samples under both weights.
    means = (problem.train / PEERS / samples if weighted else np.ones(PEERS))[:, None]
    shares = samples if weighted else np.ones(PEERS)
    x, absent = server(0), 0
    for t in range(ROUNDS):
        y = np.repeat(x, PEERS, axis=0)
        for _step in range(steps):
            y = y - RATE * (means * problem.gradients(y) + DECAY * y + prox * (y - x))
        clients = reporting(t, fraction, dropout)
        absent += PEERS - len(clients)
        if clients:
            x = np.average(y[clients], axis=0, weights=shares[clients])[None]
        if t < 3 or t == ROUNDS - 1:
            check_rows(server(t + 1), x, t + 1)
    assert (absent > 0) == (fraction < 1)
