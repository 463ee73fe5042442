#!/usr/bin/env python3
"""Softmax regression on the digits in NumPy: a gossamer.Trainer without an automatic gradient.

  python3 numpy_peer.py      simulates 4 peers
  for i in 0 1 2 3; do python3 numpy_peer.py --peer $i --meet meet --out run & done; wait

PYTHONPATH has the package, for example build/release/python. Every peer has a quarter of the
training samples, and the parameters of all peers approach those of one machine with all samples.
"""

from __future__ import annotations

from pathlib import Path

import example
import idx_data
import numpy as np

RATE, BATCH, CLASSES = 0.1, 16, 10


class Softmax:
    """Values in, values out: row = weights (pixels × classes), and then the bias (classes)."""

    linear_steps = True  # update() is SGD, so every algorithm may be used

    def __init__(self, peers: int, data: idx_data.Images) -> None:
        self.peers, self.data = peers, data
        self.pixels = data.images[0].size

    def tensors(self) -> dict[str, tuple[int, ...]]:
        return {"weights": (self.pixels, CLASSES), "bias": (CLASSES,)}

    def initial(self, peer: int) -> np.ndarray:
        return np.zeros((self.pixels + 1) * CLASSES, np.float32)

    def batch(self, peer: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = idx_data.batch(len(self.data.labels), self.peers, peer, step, BATCH)
        return self.data.images[chosen].reshape(-1, self.pixels), self.data.labels[chosen]

    def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
        """The cross entropy −log p(label), and its gradient: (p − one-hot) by the features."""
        features, labels = self.batch(peer, step)
        log_p = self.log_probabilities(values, features)
        error = (np.exp(log_p) - np.eye(CLASSES, dtype=np.float32)[labels]) / len(labels)
        loss = -log_p[np.arange(len(labels)), labels].mean()
        return float(loss), np.concatenate([(features.T @ error).ravel(), error.sum(0)])

    def update(self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return values - np.float32(RATE) * gradient

    def rate(self, peer: int) -> float:
        return RATE

    def evaluate(self, values: np.ndarray) -> tuple[float, float]:
        features = self.data.test_images.reshape(-1, self.pixels)
        labels = self.data.test_labels
        log_p = self.log_probabilities(values, features)
        loss = -log_p[np.arange(len(labels)), labels].mean()
        return float(loss), float((log_p.argmax(1) == labels).mean())

    def log_probabilities(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        weights, bias = np.split(values, [self.pixels * CLASSES])
        outputs = features @ weights.reshape(self.pixels, CLASSES) + bias
        outputs -= outputs.max(1, keepdims=True)
        return outputs - np.log(np.exp(outputs).sum(1, keepdims=True))


def main() -> None:
    config = Path(__file__).with_name("digits.toml")
    options = example.parser(__doc__, config, peers=4, rounds=200).parse_args()
    example.train(Softmax(options.peers, idx_data.load()), options)


if __name__ == "__main__":
    main()
