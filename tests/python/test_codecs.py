"""CHOCO with every codec has the bits of a reference in numpy."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from philox_reference import philox

PEERS, RATE, SEED = 5, 0.4, 11
Row = np.ndarray[Any, np.dtype[np.float32]]


def run(program: Path, folder: Path, rounds: int, *sets: str) -> list[Row]:
    """The final rows of a ring from different initial rows. The step size is 0 in float32."""
    overrides = [
        f"run.peers={PEERS}",
        f"run.rounds={rounds}",
        f"run.seed={SEED}",
        "run.init=different",
        "algorithm.kind=choco",
        f"algorithm.consensus_rate={RATE}",
        "optimizer.rate=1e-46",
        "data.batch=1",
        "log.every=0",
        "model.kind=mlp",
        "model.hidden=[30]",
        *sets,
    ]
    done = subprocess.run(
        [
            str(program),
            "run",
            "--quiet",
            "--out",
            str(folder),
            *(argument for each in overrides for argument in ("--set", each)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    content = (folder / "final-0.safetensors").read_bytes()
    (header_bytes,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + header_bytes])
    rows: list[list[tuple[int, bytes]]] = [[] for _ in range(PEERS)]
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            rows[int(name.split(".")[0].removeprefix("peer"))].append(
                (begin, content[8 + header_bytes :][begin:end])
            )
    return [
        np.frombuffer(b"".join(data for _, data in sorted(row)), np.float32).copy() for row in rows
    ]


def in_blocks(x: Row, length: int) -> list[Row]:
    return [x[begin : begin + length] for begin in range(0, x.size, length)]


def int8(x: Row) -> Row:
    def block(b: Row) -> Row:
        scale = np.float32(np.abs(b).max() / np.float32(127))
        return scale * np.rint(b / scale) if scale > 0 else np.zeros_like(b)

    return np.concatenate([block(b) for b in in_blocks(x, 256)])


def sign(x: Row) -> Row:
    def block(b: Row) -> Row:
        sums = np.zeros(1024)
        sums[: b.size] = np.abs(b.astype(np.float64))
        sums = sums.reshape(256, 4)
        lanes = (sums[:, 0] + sums[:, 1]) + (sums[:, 2] + sums[:, 3])
        while lanes.size > 1:
            lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
        scale = np.float32(lanes[0] / b.size)
        return np.where(b < 0, -scale, scale)

    return np.concatenate([block(b) for b in in_blocks(x, 1024)])


def bf16(x: Row) -> Row:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))
    return (rounded & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32)


def kept_count(fraction: float, d: int) -> int:
    return max(1, int(np.floor(fraction * d + 0.5)))


def topk(fraction: float, x: Row) -> Row:
    chosen = np.argsort(-np.abs(x), kind="stable")[: kept_count(fraction, x.size)]
    result = np.zeros_like(x)
    result[chosen] = x[chosen]
    return result


def randk(fraction: float, x: Row, peer: int, t: int) -> Row:
    d, k = x.size, kept_count(fraction, x.size)
    edges = np.arange(k + 1, dtype=np.uint64) * np.uint64(d) // np.uint64(k)
    numbers = philox(SEED, peer, 10, t, k)
    chosen = edges[:-1] + (numbers * (edges[1:] - edges[:-1]) >> np.uint64(32))
    result = np.zeros_like(x)
    result[chosen] = x[chosen]
    return result


CODECS: dict[str, tuple[tuple[str, ...], Any]] = {
    "none": ((), lambda x, i, t: x),
    "bf16": ((), lambda x, i, t: bf16(x)),
    "int8": ((), lambda x, i, t: int8(x)),
    "sign": ((), lambda x, i, t: sign(x)),
    "topk": (("codec.fraction=0.03",), lambda x, i, t: topk(0.03, x)),
    "randk": (("codec.fraction=0.3",), lambda x, i, t: randk(0.3, x, i, t)),
}


def choco(start: list[Row], rounds: int, code: Any) -> list[Row]:
    """Koloskova, Stich and Jaggi 2019, Alg. 1, in float32 on a ring with weights 1/3."""
    x, estimates = [row.copy() for row in start], [np.zeros_like(row) for row in start]
    for t in range(rounds):
        for i, own in enumerate(estimates):
            own += code(x[i] - own, i, t)
        for i in range(PEERS):
            for j in sorted(((i - 1) % PEERS, (i + 1) % PEERS)):
                x[i] += np.float32(RATE * (1 / 3)) * (estimates[j] - estimates[i])
    return x


@pytest.mark.parametrize("codec", CODECS)
def test_choco_has_the_bits_of_the_reference(gossamer: Path, tmp_path: Path, codec: str) -> None:
    sets, code = CODECS[codec]
    start = run(gossamer, tmp_path / "start", 0)
    assert len({row.tobytes() for row in start}) == PEERS
    assert start[0].size > 2 * 1024
    for rounds in (1, 2, 20):
        rows = run(gossamer, tmp_path / str(rounds), rounds, f"codec.kind={codec}", *sets)
        for row, expected in zip(rows, choco(start, rounds, code), strict=True):
            np.testing.assert_array_equal(row, expected)


def test_list_has_the_codecs_with_their_parameters(gossamer: Path) -> None:
    done = subprocess.run(
        [str(gossamer), "list", "--json"], capture_output=True, text=True, check=True, timeout=60
    )
    codecs = json.loads(done.stdout)["codec"]
    assert set(codecs) == set(CODECS)
    assert codecs["topk"]["parameters"]["fraction"]["maximum"] == 1
