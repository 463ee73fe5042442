"""The program's random numbers, in numpy (src/base/philox.hpp)."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

NO_PEER = 0xFFFFFFFF


def philox(
    seed: int, peer: int, purpose: int, step: int, count: int, first_block: int = 0
) -> np.ndarray[Any, Any]:
    """Numbers of the stream with this key, from a block of four on: Philox4x32-10."""
    blocks = (count + 3) // 4
    counter = [
        np.arange(first_block, first_block + blocks, dtype=np.uint64),
        *(
            np.full(blocks, word, np.uint64)
            for word in (step & 0xFFFFFFFF, peer, purpose << 22 | step >> 32)
        ),
    ]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [
            second >> shift ^ counter[1] ^ np.uint64(key[0]),
            second & low,
            first >> shift ^ counter[3] ^ np.uint64(key[1]),
            first & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, axis=1).reshape(-1)[:count]


def stream(seed: int, peer: int, purpose: int, step: int = 0) -> Iterator[int]:
    for block in itertools.count(step=16):
        yield from philox(seed, peer, purpose, step, 64, block).tolist()


def below(numbers: Iterator[int], bound: int) -> int:
    """Uniform in 0..bound−1 (Lemire 2019)."""
    while True:
        product = next(numbers) * bound
        if product & 0xFFFFFFFF >= 2**32 % bound:
            return product >> 32


def unit(numbers: Iterator[int]) -> float:
    """Uniform in [0, 1): 53 bits of two numbers."""
    high = next(numbers)
    return float((high << 32 | next(numbers)) >> 11) * 2.0**-53


def shuffle(numbers: Iterator[int], values: list[int]) -> None:
    """Fisher and Yates, from the end (Durstenfeld 1964)."""
    for last in range(len(values) - 1, 0, -1):
        other = below(numbers, last + 1)
        values[last], values[other] = values[other], values[last]


def random_order(count: int, numbers: Iterator[int]) -> list[int]:
    order = list(range(count))
    shuffle(numbers, order)
    return order
