"""The tasks of the tests: softmax and a small network on the digits, as PyTorch and NumPy."""

from collections.abc import Callable

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import torch

PEERS, RATE = 4, 0.1


def softmax(peer: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(digits.PIXELS, digits.CLASSES)


def batch_of(peer: int, step: int, peers: int = PEERS) -> tuple[torch.Tensor, torch.Tensor]:
    features, labels = digits.batch(peers, peer, step)
    return torch.from_numpy(features), torch.from_numpy(labels).long()


def moments_of(peer: int, features: int = digits.PIXELS) -> gossamer.Moments:
    """Of samples that only this peer has: those of its shard, in a unit of its own."""
    inputs = digits.digits()[0][digits.shards(PEERS)[peer]] * (peer + 1)
    return gossamer.moments(inputs.reshape(-1, 1, digits.PIXELS), axis=2 if features > 1 else 1)


def loss_of(module: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(module(batch[0]), batch[1])


def accuracy_of(module: torch.nn.Module) -> tuple[float, float]:
    features, labels, train = digits.digits()
    outputs = module(torch.from_numpy(features[train:]))
    targets = torch.from_numpy(labels[train:]).long()
    loss = torch.nn.functional.cross_entropy(outputs, targets)
    return float(loss), float((outputs.argmax(1) == targets).float().mean())


def sgd(parameters: object, momentum: float = 0.9) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=RATE, momentum=momentum)


def torch_task(vmap: bool = False) -> gossip.Task:
    return gossip.Task(softmax, sgd, batch_of, loss_of, accuracy_of, vmap=vmap)


def scaled_task(moments: Callable[[int], gossamer.Moments] = moments_of) -> gossip.Task:
    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = batch_of(peer, step)
        return task.scales(inputs), targets

    task = gossip.Task(softmax, sgd, batch, loss_of, moments=moments)
    return task


class NumpySoftmax:
    """Softmax regression in NumPy, with SGD: a gossamer.Trainer."""

    linear_steps = True

    def __init__(self, peers: int = PEERS) -> None:
        self.peers = peers

    def tensors(self) -> dict[str, tuple[int, ...]]:
        return {"weights": (digits.PIXELS, digits.CLASSES), "bias": (digits.CLASSES,)}

    def initial(self, peer: int) -> np.ndarray:
        return np.zeros((digits.PIXELS + 1) * digits.CLASSES, np.float32)

    def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
        features, labels = digits.batch(self.peers, peer, step)
        loss, error = self._loss(values, features, labels)
        return loss, np.concatenate([(features.T @ error).ravel(), error.sum(0)])

    def update(self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return values - np.float32(RATE) * gradient

    def rate(self, peer: int) -> float:
        return RATE

    def evaluate(self, values: np.ndarray) -> tuple[float, float]:
        features, labels, train = digits.digits()
        loss, _ = self._loss(values, features[train:], labels[train:])
        outputs = features[train:] @ values[:-10].reshape(-1, 10) + values[-10:]
        return loss, float((outputs.argmax(1) == labels[train:]).mean())

    def _loss(
        self, values: np.ndarray, features: np.ndarray, labels: np.ndarray
    ) -> tuple[float, np.ndarray]:
        outputs = features @ values[:-10].reshape(-1, 10) + values[-10:]
        outputs -= outputs.max(1, keepdims=True)
        exponentials = np.exp(outputs)
        probabilities = exponentials / exponentials.sum(1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(probabilities[rows, labels]).mean()
        probabilities[rows, labels] -= 1
        return float(loss), (probabilities / np.float32(len(labels))).astype(np.float32)
