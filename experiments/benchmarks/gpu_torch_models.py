"""The models of the PyTorch baselines (gpu_torch_baseline.py), and their training steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

CLASSES, RATE = 10, 0.01
BATCHES = 64  # batches drawn before the measurement; then they repeat

Step = Callable[[], None]


@dataclass(frozen=True)
class Shape:
    """The task that bench_gpu trains under the same name."""

    peers: int
    side: int
    batch: int
    shard: int
    hidden: tuple[int, ...] = ()
    channels: tuple[int, int] = (8, 16)


FULL = {
    "mlp64": Shape(64, 28, 32, 512, (128,)),
    "mlp1": Shape(1, 28, 512, 8192, (1024, 1024)),
    "cnn1": Shape(1, 28, 256, 8192),
}
QUICK = {
    "mlp64": Shape(4, 4, 4, 16, (8,)),
    "mlp1": Shape(1, 4, 8, 32, (16, 16)),
    "cnn1": Shape(1, 8, 2, 8, (), (4, 4)),
}


class Batches:
    """All peers' samples on the device, and the indices of BATCHES batches, [peers, batch] each.

    Samples are drawn without replacement within an epoch.
    """

    def __init__(self, shape: Shape, device: torch.device, images: bool) -> None:
        features = (1, shape.side, shape.side) if images else (shape.side * shape.side,)
        self.features = torch.randn(shape.peers * shape.shard, *features, device=device)
        self.labels = torch.randint(CLASSES, (shape.peers * shape.shard,), device=device)
        steps: list[torch.Tensor] = []
        offsets = (torch.arange(shape.peers) * shape.shard).unsqueeze(1)
        while len(steps) < BATCHES:
            order = torch.stack([torch.randperm(shape.shard) for _ in range(shape.peers)]) + offsets
            steps += list(order.split(shape.batch, dim=1))
        self.order = torch.stack(steps[:BATCHES]).to(device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)

    def draw(self) -> torch.Tensor:
        """The indices of the next batch, [peers, batch]. Runs on the device only."""
        rows = self.order.index_select(0, self.counter)[0]
        self.counter.add_(1).remainder_(BATCHES)
        return rows


def leaf(*shape: int, scale: float, device: torch.device) -> torch.Tensor:
    return (torch.randn(*shape, device=device) * scale).requires_grad_()


def constant(value: float, *shape: int, device: torch.device) -> torch.Tensor:
    return torch.full(shape, float(value), device=device).requires_grad_()


def descend(loss: torch.Tensor, parameters: list[torch.Tensor]) -> None:
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        torch._foreach_add_(parameters, gradients, alpha=-RATE)


def mlp_parameters(sizes: list[int], device: torch.device) -> list[torch.Tensor]:
    parameters = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        parameters.append(leaf(outputs, inputs, scale=(2 / inputs) ** 0.5, device=device))
        parameters.append(constant(0, outputs, device=device))
    return parameters


def mlp_forward(parameters: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    for i in range(0, len(parameters), 2):
        x = F.linear(x, parameters[i], parameters[i + 1])
        if i + 2 < len(parameters):
            x = F.relu(x)
    return x


def sizes_of(shape: Shape) -> list[int]:
    return [shape.side * shape.side, *shape.hidden, CLASSES]


def mlp_loop(shape: Shape, device: torch.device) -> Step:
    """Trains the models one after the other. One draw gives the indices of all models."""
    batches = Batches(shape, device, images=False)
    models = [mlp_parameters(sizes_of(shape), device) for _ in range(shape.peers)]

    def step() -> None:
        drawn = batches.draw()
        for peer, parameters in enumerate(models):
            rows = drawn[peer]
            x, y = batches.features.index_select(0, rows), batches.labels.index_select(0, rows)
            descend(F.cross_entropy(mlp_forward(parameters, x), y), parameters)

    return step


def mlp_bmm(shape: Shape, device: torch.device) -> Step:
    """Trains all models as one tensor with a leading peer dimension and one gather."""
    batches = Batches(shape, device, images=False)
    parameters = []
    sizes = sizes_of(shape)
    for inputs, outputs in zip(sizes, sizes[1:]):
        parameters.append(
            leaf(shape.peers, inputs, outputs, scale=(2 / inputs) ** 0.5, device=device)
        )
        parameters.append(constant(0, shape.peers, 1, outputs, device=device))

    def step() -> None:
        rows = batches.draw().reshape(-1)
        x = batches.features.index_select(0, rows).view(shape.peers, shape.batch, -1)
        for i in range(0, len(parameters), 2):
            x = torch.baddbmm(parameters[i + 1], x, parameters[i])
            if i + 2 < len(parameters):
                x = F.relu(x)
        # The gradient of the sum of the peers' mean losses is the gradient of each peer.
        y = batches.labels.index_select(0, rows)
        descend(
            F.cross_entropy(x.reshape(-1, CLASSES), y, reduction="sum") / shape.batch, parameters
        )

    return step


def mlp_vmap(shape: Shape, device: torch.device) -> Step:
    """The gradient of one model, mapped over stacked parameters and batches."""
    if not hasattr(torch, "func"):
        raise RuntimeError(f"torch {torch.__version__} has no torch.func")
    batches = Batches(shape, device, images=False)
    models = [mlp_parameters(sizes_of(shape), device) for _ in range(shape.peers)]
    stacked = tuple(
        torch.stack([model[i].detach() for model in models]) for i in range(len(models[0]))
    )

    def loss(
        parameters: tuple[torch.Tensor, ...], x: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        return F.cross_entropy(mlp_forward(list(parameters), x), y)

    gradient = torch.func.vmap(torch.func.grad(loss))

    def step() -> None:
        rows = batches.draw()
        x = batches.features.index_select(0, rows.reshape(-1)).view(shape.peers, shape.batch, -1)
        y = batches.labels.index_select(0, rows.reshape(-1)).view(shape.peers, shape.batch)
        torch._foreach_add_(list(stacked), list(gradient(stacked, x, y)), alpha=-RATE)

    return step


def cnn(shape: Shape, device: torch.device, channels_last: bool) -> Step:
    """The model of src/train/models/cnn.cpp.

    It has (convolution 5x5, group norm of 4 groups, relu, max-pool 2x2) twice, and a dense layer.
    """
    batches = Batches(shape, device, images=True)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    parameters = []
    inputs, pixels = 1, shape.side
    for outputs in shape.channels:
        weight = torch.randn(outputs, inputs, 5, 5, device=device) * (2 / (25 * inputs)) ** 0.5
        parameters += [
            weight.to(memory_format=layout).requires_grad_(),
            constant(0, outputs, device=device),
        ]
        parameters += [constant(1, outputs, device=device), constant(0, outputs, device=device)]
        inputs, pixels = outputs, pixels // 2
    parameters += mlp_parameters([inputs * pixels * pixels, CLASSES], device)

    def step() -> None:
        rows = batches.draw()[0]
        x = batches.features.index_select(0, rows).to(memory_format=layout)
        for i in (0, 4):
            x = F.conv2d(x, parameters[i], parameters[i + 1], padding=2)
            x = F.max_pool2d(F.relu(F.group_norm(x, 4, parameters[i + 2], parameters[i + 3])), 2)
        y = batches.labels.index_select(0, rows)
        descend(
            F.cross_entropy(F.linear(x.flatten(1), parameters[8], parameters[9]), y), parameters
        )

    return step
