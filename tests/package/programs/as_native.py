"""Trains an example's model as the native one is trained: as_native.py NAME CONFIG START OUT.

NAME is an example of experiments/python/; START is the folder of a native run of no round. Peers
have the initial parameters of that run, and the batches of native runs.
"""

import sys
from pathlib import Path

import digits
import gossamer
import numpy as np
from gossamer.task_file import load_module

name, config, start, out = sys.argv[1:]
module = load_module(digits.ROOT / "experiments" / "python" / f"{name}.py")
initial = digits.read_tensors(Path(start) / "final-0.safetensors")


class Trainer(module.Softmax):  # type: ignore[name-defined]
    def initial(self, peer: int) -> np.ndarray:
        blocks = {
            "weights": initial["peer0.0.dense.weights"],
            "bias": initial["peer0.0.dense.bias"],
        }
        return np.concatenate([blocks[name].ravel() for name in self.tensors()])

    def batch(self, peer: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        features, labels = digits.batch(self.peers, peer, step)
        return features, labels.astype(np.int64)


peers = gossamer.configuration(config)["run"]["peers"]
gossamer.run(config, Trainer(peers, sys.modules["idx_data"].load()), out=out)
