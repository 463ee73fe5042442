"""Images in MNIST's file format and of its size, for timing where MNIST itself is not at hand.

    python3 gpu_idx.py FOLDER [--train 60000] [--test 10000]

Every class is 64 random images; a sample is one of its class, so a model can learn them. Not a data set to report on.
"""

from __future__ import annotations

import argparse
import random
import struct
from pathlib import Path

CLASSES, SIDE, VARIANTS = 10, 28, 64


def write(
    folder: Path, name: str, count: int, images: list[list[bytes]], dice: random.Random
) -> None:
    labels = bytes(dice.randrange(CLASSES) for _ in range(count))
    pixels = b"".join(images[label][dice.randrange(VARIANTS)] for label in labels)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(
        struct.pack(">4I", 0x803, count, SIDE, SIDE) + pixels
    )
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)


def make(folder: Path, train: int = 60_000, test: int = 10_000) -> Path:
    """The folder, with the four files."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(0)
    images = [[dice.randbytes(SIDE * SIDE) for _ in range(VARIANTS)] for _ in range(CLASSES)]
    write(folder, "train", train, images, dice)
    write(folder, "t10k", test, images, dice)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=60_000)
    parser.add_argument("--test", type=int, default=10_000)
    given = parser.parse_args()
    make(given.folder, given.train, given.test)


if __name__ == "__main__":
    main()
