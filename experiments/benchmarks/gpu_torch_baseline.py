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

import torch
from gpu_torch_models import FULL, QUICK, Step, cnn, mlp_bmm, mlp_loop, mlp_vmap

UNROLLED = (1, 8)  # steps per graph


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
