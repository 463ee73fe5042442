"""The PyTorch baseline of the training benchmark: the same small models on one thread.

    python3 torch_baseline.py WORKLOAD MODE --seconds 3    # needs a Python with torch

WORKLOAD: softmax (64-10, batch 16), mlp (784-128-10, batch 32), cnn (28x28, batch 32). MODE: `loop`
trains 16 models one after the other; `bmm` trains the 16 models as one batched computation. A step
gathers a random batch of the model's own shard (without replacement within an epoch), and computes
forward and backward passes and plain SGD. Prints one JSON object.

The faster of several implementations was kept: `torch.autograd.grad` instead of `backward()` with
`torch.optim.SGD`; `p.sub_(g, alpha=rate)` on the leaves; `index_select` with one permutation per
epoch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

PEERS = 16
RATE = 0.01
SHAPES = {"softmax": (1, 8, 8), "mlp": (1, 28, 28), "cnn": (1, 28, 28)}
BATCH = {"softmax": 16, "mlp": 32, "cnn": 32}
SHARD = 512  # samples per peer
CLASSES = 10

Step = Callable[[], None]


class Shard:
    """One peer's samples, drawn without replacement within an epoch."""

    def __init__(self, features: torch.Tensor, labels: torch.Tensor, batch: int) -> None:
        self.features, self.labels, self.batch = features, labels, batch
        self.next: list[torch.Tensor] = []

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.next:
            order = torch.randperm(len(self.labels))
            self.next = list(order.split(self.batch))
        rows = self.next.pop()
        return self.features.index_select(0, rows), self.labels.index_select(0, rows)


def shards(workload: str) -> list[Shard]:
    generator = torch.Generator().manual_seed(0)
    shape = SHAPES[workload] if workload == "cnn" else (SHAPES[workload][1] * SHAPES[workload][2],)
    return [
        Shard(
            torch.randn(SHARD, *shape, generator=generator),
            torch.randint(CLASSES, (SHARD,), generator=generator),
            BATCH[workload],
        )
        for _ in range(PEERS)
    ]


def leaf(*shape: int, scale: float) -> torch.Tensor:
    return (torch.randn(*shape) * scale).requires_grad_()


def dense(inputs: int, outputs: int) -> list[torch.Tensor]:
    return [leaf(outputs, inputs, scale=inputs**-0.5), torch.zeros(outputs, requires_grad=True)]


def cnn_layers() -> list[torch.Tensor]:
    parameters: list[torch.Tensor] = []
    for inputs, outputs in ((1, 8), (8, 16)):
        parameters += [leaf(outputs, inputs, 5, 5, scale=(2 / (25 * inputs)) ** 0.5)]
        parameters += [torch.zeros(outputs, requires_grad=True)]
        parameters += [
            torch.ones(outputs, requires_grad=True),
            torch.zeros(outputs, requires_grad=True),
        ]
    return parameters + dense(16 * 7 * 7, CLASSES)


def softmax_forward(p: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, p[0], p[1])


def mlp_forward(p: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return F.linear(F.relu(F.linear(x, p[0], p[1])), p[2], p[3])


def cnn_forward(p: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    for i in (0, 4):
        x = F.group_norm(F.conv2d(x, p[i], p[i + 1], padding=2), 4, p[i + 2], p[i + 3])
        x = F.max_pool2d(F.relu(x), 2)
    return F.linear(x.flatten(1), p[8], p[9])


def sgd(loss: torch.Tensor, parameters: list[torch.Tensor]) -> None:
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            parameter.sub_(gradient, alpha=RATE)


def loop(workload: str) -> Step:
    make = {
        "softmax": lambda: dense(64, CLASSES),
        "mlp": lambda: dense(784, 128) + dense(128, CLASSES),
        "cnn": cnn_layers,
    }
    forward = {"softmax": softmax_forward, "mlp": mlp_forward, "cnn": cnn_forward}[workload]
    models = [(make[workload](), shard) for shard in shards(workload)]

    def step() -> None:
        for parameters, shard in models:
            x, y = shard.draw()
            sgd(F.cross_entropy(forward(parameters, x), y), parameters)

    return step


def bmm(workload: str) -> Step:
    """Trains all models as one tensor with a leading peer dimension and one gather."""
    if workload == "cnn":
        raise SystemExit(
            "cnn: there is no batched mode (grouped convolutions are slower than the loop)"
        )
    sizes = {"softmax": [64, CLASSES], "mlp": [784, 128, CLASSES]}[workload]
    parameters = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        parameters += [
            leaf(PEERS, inputs, outputs, scale=inputs**-0.5),
            torch.zeros(PEERS, 1, outputs, requires_grad=True),
        ]
    batch = BATCH[workload]
    features = torch.cat([shard.features for shard in shards(workload)])
    labels = torch.cat([shard.labels for shard in shards(workload)])
    offsets = (torch.arange(PEERS) * SHARD).unsqueeze(1)
    orders: list[torch.Tensor] = []

    def step() -> None:
        if not orders:
            shuffled = torch.stack([torch.randperm(SHARD) for _ in range(PEERS)]) + offsets
            orders.extend(part.reshape(-1) for part in shuffled.split(batch, dim=1))
        rows = orders.pop()
        x = features.index_select(0, rows).view(PEERS, batch, -1)
        for i in range(0, len(parameters), 2):
            x = torch.baddbmm(parameters[i + 1], x, parameters[i])
            if i + 2 < len(parameters):
                x = F.relu(x)
        # The gradient of the sum of the peers' mean losses is the gradient of each peer.
        loss = (
            F.cross_entropy(
                x.view(PEERS * batch, -1), labels.index_select(0, rows), reduction="sum"
            )
            / batch
        )
        sgd(loss, parameters)

    return step


def measure(step: Step, seconds: float) -> float:
    """Node steps per second of CPU time."""
    for _ in range(3):
        step()
    done, start = 0, time.process_time()
    while (now := time.process_time()) - start < seconds:
        step()
        done += PEERS
    return done / (now - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=sorted(SHAPES))
    parser.add_argument("mode", choices=["loop", "bmm"])
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = {"loop": loop, "bmm": bmm}[arguments.mode](arguments.workload)
    print(
        json.dumps(
            {
                "workload": arguments.workload,
                "mode": arguments.mode,
                "torch": torch.__version__,
                "steps_per_second": measure(step, arguments.seconds),
            }
        )
    )


if __name__ == "__main__":
    main()
