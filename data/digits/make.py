#!/usr/bin/env python3
"""Writes the two IDX files of this folder from the copy of the digits that scikit-learn carries.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install scikit-learn
    /tmp/venv/bin/python data/digits/make.py

The result does not depend on the machine or the day: no time stamp, no file name inside the gzip.
"""

import gzip
import struct
from pathlib import Path

from sklearn.datasets import load_digits

FOLDER = Path(__file__).resolve().parent
UNSIGNED_BYTE = 0x08  # IDX's code of the element type


def write_idx(name: str, values) -> None:
    """`values`: an array of whole numbers below 256, of any shape."""
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, UNSIGNED_BYTE, values.ndim, *values.shape)
    data = gzip.compress(header + values.astype("uint8").tobytes(), compresslevel=9, mtime=0)
    (FOLDER / name).write_bytes(data)
    print(f"{name}: {values.shape}, {len(data):,} bytes")


def main() -> None:
    digits = load_digits()
    assert (
        digits.images.shape == (1797, 8, 8)
        and digits.images.min() == 0
        and digits.images.max() == 16
    )
    write_idx("images-idx3-ubyte.gz", digits.images)
    write_idx("labels-idx1-ubyte.gz", digits.target)


if __name__ == "__main__":
    main()
