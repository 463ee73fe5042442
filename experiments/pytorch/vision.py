#!/usr/bin/env python3
"""A convolutional network on images in MNIST's IDX format, trained by peers on a ring.

  python3 vision.py                           simulates 8 peers on the project's digits
  python3 vision.py --data ~/mnist            the four files of MNIST, or of Fashion-MNIST
  for i in 0 1; do python3 vision.py --peers 2 --peer $i --meet meet --out run & done; wait

PYTHONPATH has the package, for example build/release/python. Each peer has its own part of the
training images; with --classes, of a few classes alone, so that it depends on its neighbours.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gossamer.torch as gossip
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
import example  # noqa: E402
import idx_data  # noqa: E402


class Network(nn.Module):
    """(convolution 3×3, group norm, relu, max-pool) twice, and a dense layer."""

    def __init__(self, height: int, width: int, classes: int, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.GroupNorm(4, channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.GroupNorm(4, 2 * channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * channels * (height // 4) * (width // 4), classes),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(images)
        return found


def shards(labels: np.ndarray, peers: int, classes: int) -> list[np.ndarray]:
    """The samples of each peer: equal parts, or with `classes` > 0 parts of a few classes each."""
    if classes == 0:
        return [idx_data.shard(len(labels), peers, peer) for peer in range(peers)]
    by_label = np.argsort(labels, kind="stable")
    pieces = np.array_split(by_label, peers * classes)
    order = np.random.default_rng(0).permutation(len(pieces))
    return [np.concatenate([pieces[k] for k in order[peer::peers]]) for peer in range(peers)]


def task_of(options: argparse.Namespace, data: idx_data.Images) -> gossip.Task:
    _, height, width = data.images.shape
    classes = int(data.labels.max()) + 1
    own = shards(data.labels, options.peers, options.classes)
    device = options.device

    def tensors(images: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(images)[:, None].to(device), torch.from_numpy(labels).to(device)

    test = tensors(data.test_images, data.test_labels)

    def model(peer: int) -> nn.Module:
        torch.manual_seed(0)
        return Network(height, width, classes, options.channels).to(device)

    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        mine = own[peer]
        chosen = mine[idx_data.batch(len(mine), 1, 0, step, options.batch, seed=peer)]
        return tensors(data.images[chosen], data.labels[chosen])

    def loss(module: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(module(batch[0]), batch[1])

    def evaluate(module: nn.Module) -> tuple[float, float]:
        total, correct = 0.0, 0
        for images, labels in zip(test[0].split(500), test[1].split(500), strict=True):
            outputs = module(images)
            total += float(F.cross_entropy(outputs, labels, reduction="sum"))
            correct += int((outputs.argmax(1) == labels).sum())
        return total / len(test[1]), correct / len(test[1])

    return gossip.Task(
        model,
        lambda parameters: torch.optim.SGD(parameters, lr=options.rate, momentum=0.9),
        batch,
        loss,
        evaluate,
        vmap=options.vmap,
    )


def main() -> None:
    config = Path(__file__).with_name("external.toml")
    parser = example.parser(__doc__, config, peers=8, rounds=300)
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        default=idx_data.DIGITS,
        metavar="FOLDER",
        help="IDX files, plain or gzip (default: 1,797 digits of 8×8 pixels)",
    )
    add(
        "--classes",
        type=int,
        default=0,
        metavar="K",
        help="each peer has images of about K classes (0: of all)",
    )
    add("--channels", type=int, default=16, metavar="N", help="of the first convolution (16)")
    add("--batch", type=int, default=32, metavar="N", help="images in a batch (32)")
    add("--rate", type=float, default=0.05, metavar="R", help="of SGD with momentum 0.9 (0.05)")
    add("--device", default="cpu", help="of torch, such as cuda (cpu)")
    add("--vmap", action="store_true", help="all peers of the process are trained in one call")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.set.insert(0, f"log.every={max(1, options.rounds // 10)}")
    data = idx_data.load(options.data)
    chosen = {key: getattr(options, key) for key in ("classes", "channels", "batch", "rate")}
    if options.peer is None:  # each process of a network has its own
        chosen |= {"device": options.device, "vmap": options.vmap}
    example.train(task_of(options, data), options, data=data.name, **chosen)


if __name__ == "__main__":
    main()
