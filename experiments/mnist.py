#!/usr/bin/env python3
"""Fetches 10,000 digits of MNIST, which tell graphs apart better than the built-in ones.

The images are MNIST's test set, 28 x 28 pixels: Y. LeCun, C. Cortes and C. J. C. Burges, under the
licence Creative Commons Attribution-Share Alike 3.0. They are no part of Gossamer. Every file is
checked against its SHA-256 before it is kept.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from lab.binary import ROOT

FOLDER = ROOT / "data" / "mnist"  # that of the studies of published results
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


@dataclass(frozen=True)
class RemoteFile:
    name: str  # here
    remote: str
    size: int  # bytes
    sha256: str


FILES = (
    RemoteFile(
        "images-idx3-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    RemoteFile(
        "labels-idx1-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)


class FetchError(Exception):
    pass


def is_right(data: bytes, file: RemoteFile) -> bool:
    return len(data) == file.size and hashlib.sha256(data).hexdigest() == file.sha256


def fetch(file: RemoteFile, mirrors: tuple[str, ...]) -> bytes:
    """The content of the file, of the first mirror that has the right one."""
    tried = []
    for mirror in mirrors:
        url = mirror.rstrip("/") + "/" + file.remote
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310: checked below
                data = answer.read(file.size + 1)
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            tried.append(f"{url}: {reason}")
            continue
        if is_right(data, file):
            return data
        tried.append(f"{url}: another file than the one that was expected")
    raise FetchError("\n  ".join([f"no mirror has {file.remote}:", *tried]))


def fetch_all(folder: Path, mirrors: tuple[str, ...]) -> int:
    """Fetches the files that are not there; returns how many. A file is whole or absent."""
    folder.mkdir(parents=True, exist_ok=True)
    fetched = 0
    for file in FILES:
        path = folder / file.name
        if path.exists():
            if is_right(path.read_bytes(), file):
                continue
            raise FetchError(
                f"{path} is another file than MNIST's: move it away, or choose another folder"
            )
        partial = path.with_suffix(".part")
        partial.write_bytes(fetch(file, mirrors))
        partial.replace(path)
        fetched += 1
    return fetched


def refusal(error: Exception, folder: Path) -> str:
    return (
        f"{error}\n  Without a network, copy the files of the same names from another "
        f"machine to {folder}."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument(
        "--from", dest="mirrors", action="append", metavar="URL", help="another mirror's folder"
    )
    options = parser.parse_args(arguments)
    try:
        fetched = fetch_all(options.folder, tuple(options.mirrors or MIRRORS))
    except (FetchError, OSError) as error:
        print(f"mnist: {refusal(error, options.folder)}", file=sys.stderr)
        return 1
    print(
        f"mnist: {options.folder} has 10,000 images ({fetched} of {len(FILES)} files fetched). "
        f"Train on 8,000:\n  --set data.kind=idx --set data.path={options.folder} "
        "--set data.test_count=2000"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
