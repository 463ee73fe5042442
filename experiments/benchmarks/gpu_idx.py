"""Writes synthetic images in the file format and size of MNIST, for timing without MNIST.

    python3 gpu_idx.py FOLDER [--train 60000] [--test 10000]

Each class has 64 random images, and a sample is one of them, so that a model can learn the classes.
Accuracies on these files are meaningless.
"""

from __future__ import annotations

import argparse
import random
import struct
from pathlib import Path

CLASSES, SIDE, VARIANTS = 10, 28, 64


def write(
    folder: Path, name: str, count: int, images: list[list[bytes]], rng: random.Random
) -> None:
    labels = bytes(rng.randrange(CLASSES) for _ in range(count))
    pixels = b"".join(images[label][rng.randrange(VARIANTS)] for label in labels)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(
        struct.pack(">4I", 0x803, count, SIDE, SIDE) + pixels
    )
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)


def make(folder: Path, train: int = 60_000, test: int = 10_000) -> Path:
    """Writes the four files. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    images = [[rng.randbytes(SIDE * SIDE) for _ in range(VARIANTS)] for _ in range(CLASSES)]
    write(folder, "train", train, images, rng)
    write(folder, "t10k", test, images, rng)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=60_000)
    parser.add_argument("--test", type=int, default=10_000)
    options = parser.parse_args()
    make(options.folder, options.train, options.test)


if __name__ == "__main__":
    main()
