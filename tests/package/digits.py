"""The digits, their shards and their batches, as src/train/ makes them: the data of native runs.

Random numbers are those of src/base/philox.hpp, written once more in Python.
"""

import gzip
import json
import struct
from functools import lru_cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PIXELS, CLASSES = 64, 10
SHUFFLE, PARTITION = 2, 3  # enum Purpose
NO_PEER = 0xFFFFFFFF
MASK = 0xFFFFFFFF


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """Philox4x32-10 (Salmon et al. 2011)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        low, high = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (high >> 32) ^ c1 ^ k0, high & MASK, (low >> 32) ^ c3 ^ k1, low & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


class RandomStream:
    def __init__(self, seed: int, peer: int, purpose: int, step: int = 0) -> None:
        self._key = (seed & MASK, seed >> 32)
        self._counter = (step & MASK, peer, purpose << 22 | step >> 32)
        self._block, self._numbers = 0, iter(())

    def next_u32(self) -> int:
        for number in self._numbers:
            return number
        self._numbers = iter(philox((self._block, *self._counter), self._key))
        self._block += 1
        return next(self._numbers)

    def below(self, bound: int) -> int:
        """Uniform without bias (Lemire 2019)."""
        threshold = -bound % (1 << 32) % bound
        while True:
            product = self.next_u32() * bound
            if product & MASK >= threshold:
                return product >> 32

    def shuffle(self, values: list[int]) -> None:
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]


@lru_cache
def digits() -> tuple[np.ndarray, np.ndarray, int]:
    """Features, labels, and the number of training samples, which come first."""

    def content(name: str, header: int) -> np.ndarray:
        data = gzip.decompress((ROOT / "data" / "digits" / name).read_bytes())
        return np.frombuffer(data, np.uint8, offset=header)

    labels = content("labels-idx1-ubyte.gz", 8)
    images = content("images-idx3-ubyte.gz", 16).reshape(-1, PIXELS)
    seen, train, test = [0] * CLASSES, [], []
    for sample, label in enumerate(labels):
        seen[label] += 1
        (test if seen[label] % 5 == 0 else train).append(sample)
    order = train + test
    return (images[order] / np.float32(16)).astype(np.float32), labels[order], len(train)


@lru_cache
def shards(peers: int, seed: int = 0) -> list[list[int]]:
    """The iid shards, each in ascending order."""
    order = list(range(digits()[2]))
    RandomStream(seed, NO_PEER, PARTITION).shuffle(order)
    size, larger = divmod(len(order), peers)
    begin, cut = 0, []
    for peer in range(peers):
        end = begin + size + (peer < larger)
        cut.append(sorted(order[begin:end]))
        begin = end
    return cut


@lru_cache(maxsize=64)
def epoch_order(peers: int, peer: int, epoch: int, seed: int) -> list[int]:
    order = list(shards(peers, seed)[peer])
    RandomStream(seed, peer, SHUFFLE, epoch).shuffle(order)
    return order


def batch(
    peers: int, peer: int, step: int, size: int = 16, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of local step `step` of a peer."""
    features, labels, _ = digits()
    epoch, position = divmod(step, len(shards(peers, seed)[peer]) // size)
    samples = epoch_order(peers, peer, epoch, seed)[position * size : (position + 1) * size]
    return features[samples], labels[samples]


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    body, tensors = data[8 + length :], {}
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            tensors[name] = np.frombuffer(body[begin:end], np.float32).reshape(info["shape"])
    return tensors
