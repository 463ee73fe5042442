"""CHOCO with lossy codecs over 200 rounds: bit by bit in float32, and in double while peers train.

A codec jumps: where a value lies within a rounding of the middle between two codes, of zero (sign)
or of another value (topk), the program in float32 and the reference in double send different codes.
Error feedback makes up for that in later rounds. So the reference in double holds to 1e-6 where no
value lies so, or where enough rounds follow; tests/python/test_codecs.py has the codecs bit by bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iteration_test_util import LAZY, ROUNDS, SEED, check_rows, lazy_ring
from philox_reference import philox
from softmax_problem import PEERS, PIXELS, Problem
from test_codecs import CODECS, choco, run

CODEC = 10  # the purpose of random streams, src/base/philox.hpp
RATE, CONSENSUS_RATE, KEPT = 0.125, 0.1, 14  # a quarter of 54 values
Row = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize("codec", CODECS)
def test_200_rounds_bit_by_bit(gossamer: Path, tmp_path: Path, codec: str) -> None:
    """Peers that take no steps: in float32 a step size of 1e-46 is 0."""
    sets, code = CODECS[codec]
    start = run(gossamer, tmp_path / "start", 0)
    rows = run(gossamer, tmp_path / "end", ROUNDS, f"codec.kind={codec}", *sets)
    for row, expected in zip(rows, choco(start, ROUNDS, code), strict=True):
        np.testing.assert_array_equal(row, expected)


def bf16(x: Row, _peer: int, _t: int) -> Row:
    mantissa, exponent = np.frexp(x)
    row: Row = np.ldexp(np.rint(mantissa * 256) / 256, exponent)
    return row


def int8(x: Row, _peer: int, _t: int) -> Row:
    scale = np.abs(x).max() / 127
    row: Row = scale * np.rint(x / scale)
    return row


def sign(x: Row, _peer: int, _t: int) -> Row:
    row: Row = np.where(x < 0, -1, 1) * np.abs(x).mean()
    return row


def only(x: Row, chosen: Any) -> Row:
    kept = np.zeros_like(x)
    kept[chosen] = x[chosen]
    return kept


def topk(x: Row, _peer: int, _t: int) -> Row:
    return only(x, np.argsort(-np.abs(x), kind="stable")[:KEPT])


def randk(x: Row, peer: int, t: int) -> Row:
    """A value of each of KEPT parts of the row."""
    edges = np.arange(KEPT + 1) * x.size // KEPT
    lengths = np.diff(edges).astype(np.uint64)
    places = (philox(SEED, peer, CODEC, t, KEPT) * lengths >> np.uint64(32)).astype(int)
    return only(x, edges[:-1] + places)


def coded(code: Any, x: Row, peer: int, t: int) -> Row:
    """Of a row with the bias of each class behind its weights. The program has biases last."""
    m = x.reshape(PEERS, PIXELS + 1)
    sent = code(np.concatenate([m[:, :PIXELS].T.ravel(), m[:, PIXELS]]), peer, t)
    weights, bias = sent[: PIXELS * PEERS].reshape(PIXELS, PEERS), sent[PIXELS * PEERS :]
    return np.column_stack([weights.T, bias]).ravel()


@pytest.mark.parametrize(
    ("codec", "code", "decay"),
    [
        ("bf16", bf16, 0.1),
        ("int8", int8, 0.2),
        ("sign", sign, 0.1),
        ("topk", topk, 0.1),
        ("randk", randk, 0.1),
    ],
)
def test_while_peers_train(problem: Problem, codec: str, code: Any, decay: float) -> None:
    """Koloskova, Lin, Stich and Jaggi 2020:
    x ← u + γ_c Σ_j W_ij (x̂_j − x̂_i), x̂ ← x̂ + Q(u − x̂).
    """
    sets = [
        LAZY,
        f"algorithm.consensus_rate={CONSENSUS_RATE}",
        f"optimizer.rate={RATE}",
        f"optimizer.weight_decay={decay}",
        f"codec.kind={codec}",
    ]
    sets += ["codec.fraction=0.25"] if codec in ("topk", "randk") else []
    w, x = lazy_ring(), problem.start
    estimates = np.zeros_like(x)
    for t in range(ROUNDS):
        x = x - RATE * (problem.gradients(x) + decay * x)
        differences = x - estimates
        estimates = estimates + [coded(code, each, i, t) for i, each in enumerate(differences)]
        x = x + CONSENSUS_RATE * (w @ estimates - estimates)
        if t + 1 in (1, 2, 3, 10, ROUNDS):
            check_rows(problem.run("choco", "ring", t + 1, *sets), x, t + 1)
