"""Small data sets, graphs and link tables in files, the same bytes on every machine."""

import random
import struct
from pathlib import Path

CIFAR_FEATURES = 3 * 32 * 32
OWN_DATA_PEERS = 6  # as many as the corpus's runs have, unless they say otherwise


def _idx(folder: Path, prefix: str, count: int, numbers: random.Random) -> None:
    side = 6
    pixels, labels = numbers.randbytes(count * side * side), bytes(i % 4 for i in range(count))
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, count, side, side) + pixels
    (folder / f"{prefix}images-idx3-ubyte").write_bytes(images)
    (folder / f"{prefix}labels-idx1-ubyte").write_bytes(
        struct.pack(">BBBBI", 0, 0, 8, 1, count) + labels
    )


def _cifar10(folder: Path, numbers: random.Random) -> None:
    for name in (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"):
        records = (bytes([i % 10]) + numbers.randbytes(CIFAR_FEATURES) for i in range(20))
        (folder / name).write_bytes(b"".join(records))


def _table(path: Path, separator: str, header: str, classes: bool, numbers: random.Random) -> None:
    lines = [header] if header else []
    for _ in range(120):
        x, y, z = (numbers.uniform(-2, 2) for _ in range(3))
        level = ("low", "middle", "high")[(x + y > -1) + (x + y > 1)]
        target = level if classes else f"{x - y + z:.4f}"
        lines.append(separator.join((f"{x:.4f}", f"{y:.4f}", f"{z:.4f}", target)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _graphs(folder: Path) -> None:
    (folder / "tree.txt").write_text("0 1\n0 2\n1 3\n1 4\n2 5\n", encoding="utf-8")
    weighted = "".join(f"{i} {(i + 1) % 6} {0.3}\n" for i in range(6))
    (folder / "weighted.txt").write_text(weighted, encoding="utf-8")
    directed = "".join(f"{i} {(i + step) % 6}\n" for i in range(6) for step in (1, 3))
    (folder / "directed.txt").write_text(directed + "0 2\n", encoding="utf-8")
    nodes = "".join(f'<node id="n{i}"/>' for i in range(6))
    edges = "".join(
        f'<edge source="n{i}" target="n{j}"/>' for i in range(6) for j in range(i) if i - j < 3
    )
    (folder / "graph.graphml").write_text(
        '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>\n',
        encoding="utf-8",
    )


def _model(path: Path) -> None:
    """A model of two branches that are added up."""
    path.write_text(
        '[[operation]]\nname = "stem"\nkind = "convolution"\nchannels = 4\npadding = 1\n'
        '[[operation]]\nname = "norm"\nkind = "group_norm"\ngroups = 2\nactivation = "gelu"\n'
        '[[operation]]\nkind = "add"\ninputs = ["norm", "stem"]\nactivation = "relu"\n'
        '[[operation]]\nkind = "average_pool"\nsize = 2\n'
        '[[operation]]\nkind = "dense"\n',
        encoding="utf-8",
    )


def make_data_files(folder: Path) -> None:
    """Writes all of them below `folder`, which exists."""
    numbers = random.Random(20)
    for name in ("idx", "cifar10"):
        (folder / name).mkdir()
    _idx(folder / "idx", "train-", 120, numbers)
    _idx(folder / "idx", "t10k-", 40, numbers)
    _cifar10(folder / "cifar10", numbers)
    _table(folder / "classes.csv", ",", "x,y,z,level", True, numbers)
    _table(folder / "classes_test.csv", ",", "x,y,z,level", True, numbers)
    for peer in range(OWN_DATA_PEERS):
        own = folder / "own" / str(peer)
        own.mkdir(parents=True)
        _table(folder / "own" / f"{peer}.csv", ",", "x,y,z,level", True, numbers)
        _idx(own, "train-", 60, numbers)
        _idx(own, "t10k-", 20, numbers)
    _table(folder / "plain.csv", ";", "", False, numbers)
    _table(folder / "tabs.csv", "\t", "x\ty\tz\tlevel", True, numbers)
    _graphs(folder)
    _model(folder / "residual.toml")
    (folder / "latency.txt").write_text("0 20 45\n20 0 30\n45 30 0\n", encoding="utf-8")
    (folder / "bandwidth.txt").write_text("0 50 10\n50 0 20\n10 20 0\n", encoding="utf-8")
