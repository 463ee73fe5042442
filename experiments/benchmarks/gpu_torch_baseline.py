"""The PyTorch baselines of the training measurements on a GPU.

    python3 gpu_torch_baseline.py [--device cuda] [--quick]   # measures each baseline once
    python3 gpu_torch_baseline.py --serve                     # answers lines NAME SECONDS

    mlp64_loop   64 models MLP 784-128-10, batch 32, one after the other
    mlp64_bmm    the same 64 models as one batched computation (baddbmm)
    mlp64_vmap   the same 64 models with torch.func.vmap of the gradient
    mlp1, cnn1   one MLP 784-1024-1024-10, batch 512; one CNN on 28x28, batch 256
    copy         a copy of a row of 100M floats on the GPU: bytes read and written per second
    product      a product of 8192 x 8192 matrices: floating-point operations per second

A step gathers its batch from the data set on the GPU, with shuffled indices that were uploaded
before and a counter on the GPU. It computes forward and backward passes and plain SGD, which
updates all parameters in one call (torch._foreach_add_). The step is one CUDA graph, which is
replayed without synchronisation. Graphs of 1 and of 8 steps, and both memory formats of the CNN,
are tried, and the fastest counts. Arithmetic is plain fp32: allow_tf32 is False for products and
for cuDNN. cuDNN may choose its algorithms (cudnn.benchmark). Losses are not summed; our program
sums them. On a CPU (--device cpu) there are no graphs, which only tests this script. Prints JSON
lines in the format of bench_gpu.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

CLASSES, RATE = 10, 0.01
UNROLLED = (1, 8)  # steps per graph
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


class Rate:
    """A prepared step, and the number of its units (node steps, bytes, operations)."""

    def __init__(
        self, step: Step, units: float, device: torch.device, unrolled: int = 1, graph: bool = True
    ) -> None:
        self.units, self.device = units * unrolled, device

        def body() -> None:
            for _ in range(unrolled):
                step()

        self.body = body  # keeps the tensors of the graph alive
        self.replay = self.captured(body) if graph and device.type == "cuda" else body

    def captured(self, body: Step) -> Step:
        # PyTorch's notes on CUDA graphs: warm up on a side stream, then capture.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                body()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body()
        return graph.replay

    def finish(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def seconds_of(self, repeats: int) -> float:
        self.finish()
        start = time.perf_counter()
        for _ in range(repeats):
            self.replay()
        self.finish()
        return time.perf_counter() - start

    def measure(self, seconds: float) -> float:
        """Units per second."""
        self.seconds_of(2)
        repeats = 1
        while (elapsed := self.seconds_of(repeats)) < seconds / 4:
            repeats *= 4
        repeats = max(1, round(repeats * seconds / elapsed))
        return self.units * repeats / self.seconds_of(repeats)


class Baselines:
    """Prepares a baseline at its first measurement, with the fastest of its implementations."""

    def __init__(self, device: torch.device, quick: bool) -> None:
        self.device, self.quick = device, quick
        self.ready: dict[str, Rate] = {}
        self.how: dict[str, str] = {}

    def implementations(self, name: str) -> list[tuple[str, Callable[[], Rate]]]:
        shapes, device = (QUICK if self.quick else FULL), self.device

        def training(
            make: Callable[[], Step], peers: int, prefix: str
        ) -> list[tuple[str, Callable[[], Rate]]]:
            counts = UNROLLED if device.type == "cuda" else UNROLLED[:1]
            return [
                (f"{prefix}{n} step(s) per graph", lambda n=n: Rate(make(), peers, device, n))
                for n in counts
            ]

        if name in ("mlp64_loop", "mlp64_bmm", "mlp64_vmap"):
            shape = shapes["mlp64"]
            make = {"mlp64_loop": mlp_loop, "mlp64_bmm": mlp_bmm, "mlp64_vmap": mlp_vmap}[name]
            return training(lambda: make(shape, device), shape.peers, "")
        if name == "mlp1":
            return training(lambda: mlp_loop(shapes["mlp1"], device), 1, "")
        if name == "cnn1":
            return [
                implementation
                for last, prefix in ((False, ""), (True, "channels last, "))
                for implementation in training(
                    lambda last=last: cnn(shapes["cnn1"], device, last), 1, prefix
                )
            ]
        if name == "copy":
            return [("copy_", self.copy)]
        if name == "product":
            return [("matmul", self.product)]
        raise RuntimeError(f"'{name}' is not a baseline; they are {', '.join(NAMES)}")

    def copy(self) -> Rate:
        a = torch.rand(10_000 if self.quick else 100_000_000, device=self.device)
        b = torch.empty_like(a)
        return Rate(lambda: b.copy_(a), 2 * a.numel() * a.element_size(), self.device, graph=False)

    def product(self) -> Rate:
        n = 64 if self.quick else 8192
        a, b = torch.randn(n, n, device=self.device), torch.randn(n, n, device=self.device)
        out = torch.empty_like(a)
        return Rate(lambda: torch.matmul(a, b, out=out), 2 * n**3, self.device, graph=False)

    def prepare(self, name: str) -> None:
        best, problems = 0.0, []
        for how, make in self.implementations(name):
            try:
                rate = make()
                speed = rate.measure(0.001 if self.quick else 0.05)
            except Exception as error:  # this PyTorch may lack one implementation
                problems.append(f"{how}: {type(error).__name__}: {error}")
                continue
            if speed > best:
                best, self.ready[name], self.how[name] = speed, rate, how
        if name not in self.ready:
            raise RuntimeError("; ".join(problems))

    def measure(self, name: str, seconds: float) -> dict[str, object]:
        try:
            if name not in self.ready:
                self.prepare(name)
            return {
                "record": "rate",
                "id": name,
                "rate": self.ready[name].measure(seconds),
                "how": self.how[name],
            }
        except Exception as error:  # the answer has the reason
            return {
                "record": "failed",
                "id": name,
                "reason": " ".join(str(error).split()) or type(error).__name__,
            }


NAMES = ("mlp64_loop", "mlp64_bmm", "mlp64_vmap", "mlp1", "cnn1", "copy", "product")


def print_record(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--only", choices=NAMES, nargs="+", default=NAMES)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes: tests the script, without measurements",
    )
    parser.add_argument(
        "--serve", action="store_true", help="answer lines of standard input: NAME SECONDS"
    )
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print_record(
            {
                "record": "failed",
                "id": "device",
                "reason": f"PyTorch {torch.__version__} finds no GPU",
            }
        )
        return 3
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    print_record(
        {
            "record": "device",
            "description": name,
            "torch": torch.__version__,
            "allow_tf32": False,
            "quick": options.quick,
        }
    )
    baselines = Baselines(device, options.quick)
    if options.serve:
        for line in sys.stdin:
            fields = line.split()
            if len(fields) == 2:
                print_record(baselines.measure(fields[0], float(fields[1])))
        return 0
    answers = [
        baselines.measure(name, 0.001 if options.quick else options.seconds)
        for name in options.only
    ]
    for answer in answers:
        print_record(answer)
    return 0 if all(answer["record"] == "rate" for answer in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
