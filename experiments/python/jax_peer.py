#!/usr/bin/env python3
"""Softmax regression on the digits in JAX: a gossamer.Trainer whose gradient is jax.grad's.

  python3 jax_peer.py        simulates 4 peers
  for i in 0 1 2 3; do python3 jax_peer.py --peer $i --meet meet --out run & done; wait

PYTHONPATH has the package, for example build/release/python. The parameters are a tree of arrays,
as in Flax or Equinox; ravel_pytree makes it the row of the runtime. For a model of yours, change
parameters() and loss().
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import example
import idx_data
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

RATE, BATCH, CLASSES = 0.1, 16, 10

Parameters = dict[str, jax.Array]


def parameters(pixels: int) -> Parameters:
    return {"weights": jnp.zeros((pixels, CLASSES)), "bias": jnp.zeros(CLASSES)}


def outputs(tree: Parameters, features: jax.Array) -> jax.Array:
    return features @ tree["weights"] + tree["bias"]


def loss(tree: Parameters, features: jax.Array, labels: jax.Array) -> jax.Array:
    log_p = jax.nn.log_softmax(outputs(tree, features))
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()


class Softmax:
    linear_steps = True  # update() is SGD, so every algorithm may be used

    def __init__(self, peers: int, data: idx_data.Images) -> None:
        self.peers, self.data = peers, data
        self.pixels = data.images[0].size
        self.tree = parameters(self.pixels)
        self.row, to_tree = ravel_pytree(self.tree)  # in the order of jax.tree_util
        self.loss_and_gradient = jax.jit(
            jax.value_and_grad(lambda row, *batch: loss(to_tree(row), *batch))
        )
        self.loss = jax.jit(lambda row, *batch: loss(to_tree(row), *batch))
        self.outputs = jax.jit(lambda row, features: outputs(to_tree(row), features))

    def tensors(self) -> dict[str, tuple[int, ...]]:
        leaves, _ = jax.tree_util.tree_flatten_with_path(self.tree)
        return {path[-1].key: leaf.shape for path, leaf in leaves}

    def initial(self, peer: int) -> Any:
        return self.row

    def batch(self, peer: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = idx_data.batch(len(self.data.labels), self.peers, peer, step, BATCH)
        return self.data.images[chosen].reshape(-1, self.pixels), self.data.labels[chosen]

    def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, Any]:
        value, gradient = self.loss_and_gradient(values, *self.batch(peer, step))
        return float(value), gradient

    def update(self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray) -> Any:
        return values - np.float32(RATE) * gradient

    def rate(self, peer: int) -> float:
        return RATE

    def evaluate(self, values: np.ndarray) -> tuple[float, float]:
        features = self.data.test_images.reshape(-1, self.pixels)
        found = self.outputs(values, features).argmax(1)
        accuracy = (found == self.data.test_labels).mean()
        return float(self.loss(values, features, self.data.test_labels)), float(accuracy)


def main() -> None:
    config = Path(__file__).with_name("digits.toml")
    options = example.parser(__doc__, config, peers=4, rounds=200).parse_args()
    example.train(Softmax(options.peers, idx_data.load()), options)


if __name__ == "__main__":
    main()
