"""The program's random numbers, in numpy (src/base/philox.hpp)."""

from typing import Any

import numpy as np


def philox(seed: int, peer: int, purpose: int, step: int, count: int) -> np.ndarray[Any, Any]:
    """The first numbers of the stream with this key: Philox4x32-10."""
    blocks = (count + 3) // 4
    counter = [
        np.arange(blocks, dtype=np.uint64),
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
