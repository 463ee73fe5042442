"""Images and labels from files in MNIST's IDX format, and the peers' shards of them."""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

DIGITS = Path(__file__).resolve().parents[2] / "data" / "digits"


class Images(NamedTuple):
    """Training and test samples: float32 images of shape (n, height, width), and labels."""

    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @property
    def name(self) -> str:
        """Tells data apart, wherever their files are: the shape of the images and a checksum."""
        checksum = 0
        for values in self:
            checksum = zlib.crc32(np.ascontiguousarray(values).data, checksum)
        return f"{'x'.join(map(str, self.images.shape))}-{checksum:08x}"


def load(folder: Path = DIGITS) -> Images:
    """The training and test files of a folder in MNIST's names, or its one pair of files.

    Of one pair, every fifth sample of a class is for tests. Pixels are scaled to [0, 1].
    """
    if find(folder, "train-images-idx3-ubyte") is not None:
        images, labels = pair(folder, "train-")
        test_images, test_labels = pair(folder, "t10k-")
    else:
        images, labels = pair(folder, "")
        seen = np.zeros(len(labels), int)
        for label in np.unique(labels):
            seen[labels == label] = np.arange(1, (labels == label).sum() + 1)
        test = seen % 5 == 0
        test_images, test_labels = images[test], labels[test]
        images, labels = images[~test], labels[~test]
    largest = np.float32(images.max())
    return Images(images / largest, labels, test_images / largest, test_labels)


def pair(folder: Path, prefix: str) -> tuple[np.ndarray, np.ndarray]:
    images = read_idx(folder, f"{prefix}images-idx3-ubyte")
    labels = read_idx(folder, f"{prefix}labels-idx1-ubyte")
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise SystemExit(f"{folder}: {images.shape} images and {labels.shape} labels")
    return images.astype(np.float32), labels.astype(np.int64)


def find(folder: Path, name: str) -> Path | None:
    paths = [folder / name, folder / f"{name}.gz"]
    return next((path for path in paths if path.is_file()), None)


def read_idx(folder: Path, name: str) -> np.ndarray:
    """An array of bytes: the magic 00 00 08 and the number of dimensions, the sizes, the values."""
    path = find(folder, name)
    if path is None:
        raise SystemExit(f"{folder}: there is no file {name} or {name}.gz")
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if data[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: not a file of bytes in IDX format")
    header = 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:header], ">u4").astype(int))
    if len(data) - header != np.prod(shape):
        raise SystemExit(f"{path}: {len(data) - header} values, and the header says {shape}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


@lru_cache
def shard(samples: int, peers: int, peer: int, seed: int = 0) -> np.ndarray:
    """The samples of one peer: a part of a permutation that is the same at all peers."""
    return np.array_split(np.random.default_rng(seed).permutation(samples), peers)[peer]


def batch(samples: int, peers: int, peer: int, step: int, size: int, seed: int = 0) -> np.ndarray:
    """The samples of batch `step` of a peer, without replacement within an epoch."""
    own = shard(samples, peers, peer, seed)
    size = min(size, len(own))
    epoch, position = divmod(step, len(own) // size)
    order = np.random.default_rng((seed, peer, epoch)).permutation(own)
    return order[position * size : (position + 1) * size]
