"""64 simulated peers of a small CNN, trained in one call, against a loop over 64 models.

    .venv/bin/python experiments/benchmarks/python_vmap.py [--pairs 9] [--channels 8] [--batch 16]

A round of gossamer.run with vmap=True is, for each of the 64 peers, a step of SGD with momentum on
a batch of images of 8×8 pixels, and a mix on a ring. Two baselines, each in interleaved pairs, on
the CPU, one thread of arithmetic, in CPU time of the process:

- plain: a Python loop over 64 models of PyTorch, each with its own optimizer; no mixing.
- one by one: the same run with vmap=False.

The model is the network of experiments/pytorch/vision.py. All peers have the same images, so that
mixing changes nothing, and all sides must have the same mean loss. All run in the interpreter of
--torch-python. Prints a Markdown table; --json also writes all values.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pairs import MIN_PAIRS, ROOT, Pairs, measure, report_times

WARMUP, TIMED = 3, 20
PEERS, PIXELS, CLASSES, RATE, MOMENTUM = 64, 8, 10, 0.05, 0.9
TARGET = 2.0
PACKAGE = ROOT / "build/release/python"
CONFIG = f"""
[run]
peers = {PEERS}
rounds = {WARMUP + TIMED}
[topology]
kind = "ring"
[model]
kind = "external"
[log]
every = {WARMUP + TIMED}
sketch = "off"
[local]
threads = 1
"""


# ---- in the process that is measured, which has torch


class Problem:
    """The models, batches and optimizers of the peers; it notes when the timed rounds begin."""

    def __init__(self, channels: int, batch: int) -> None:
        import torch

        sys.path[:0] = [str(ROOT / "experiments/pytorch")]
        from vision import Network

        self._torch, self._network, self._channels = torch, Network, channels
        random = torch.Generator().manual_seed(0)
        inputs = torch.randn(batch, 1, PIXELS, PIXELS, generator=random)
        self._batch = inputs, torch.randint(CLASSES, (batch,), generator=random)
        self.begin = 0.0

    def model(self, peer: int) -> Any:
        self._torch.manual_seed(0)
        return self._network(PIXELS, PIXELS, CLASSES, self._channels)

    def optimizer(self, parameters: Any) -> Any:
        return self._torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM)

    def batch(self, peer: int, step: int) -> Any:
        if (peer, step) == (0, WARMUP):
            self.begin = time.process_time()
        return self._batch

    def loss(self, module: Any, batch: Any) -> Any:
        return self._torch.nn.functional.cross_entropy(module(batch[0]), batch[1])


def simulate(problem: Problem, vmap: bool) -> float:
    """The mean loss of the rounds."""
    import gossamer
    import gossamer.torch as gossip

    task = gossip.Task(problem.model, problem.optimizer, problem.batch, problem.loss, vmap=vmap)
    with tempfile.TemporaryDirectory(prefix="gossamer-vmap-") as folder:
        config = Path(folder) / "run.toml"
        config.write_text(CONFIG, encoding="utf-8")
        summary = gossamer.run(config, task, out=Path(folder) / "out")
    return float(summary["final"]["train_loss"]["mean"])


def plain_loop(problem: Problem) -> float:
    models = [problem.model(peer) for peer in range(PEERS)]
    optimizers = [problem.optimizer(model.parameters()) for model in models]
    total = 0.0
    for step in range(WARMUP + TIMED):
        for peer, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            optimizer.zero_grad()
            loss = problem.loss(model, problem.batch(peer, step))
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
    return total / PEERS / (WARMUP + TIMED)


def work(side: str, channels: int, batch: int) -> None:
    import torch

    torch.set_num_threads(1)
    problem = Problem(channels, batch)
    check = plain_loop(problem) if side == "plain" else simulate(problem, side == "vmap")
    seconds = time.process_time() - problem.begin
    print(json.dumps({"seconds": seconds, "check": check, "torch": torch.__version__}))


# ---- in the process that compares


def rate(options: argparse.Namespace, side: str, results: list[dict[str, Any]]) -> float:
    """Rounds per second."""
    environment = os.environ | {"PYTHONPATH": str(options.package), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [options.torch_python, __file__, "--side", side]
        + ["--channels", str(options.channels), "--batch", str(options.batch)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    if done.returncode != 0:
        raise SystemExit(f"python_vmap.py: the process of {side} failed; its message is above")
    results.append(json.loads(done.stdout.splitlines()[-1]))
    return TIMED / results[-1]["seconds"]


def compare(options: argparse.Namespace, baseline: str, target: float | None) -> Pairs:
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    pairs = measure(
        f"{baseline}, PyTorch {options.version}",
        target,
        options.pairs,
        lambda: rate(options, "vmap", ours),
        lambda: rate(options, baseline, theirs),
    )
    if any(abs(a["check"] - b["check"]) > 1e-3 for a, b in zip(ours, theirs, strict=True)):
        raise SystemExit(f"python_vmap.py: {baseline}: the two sides computed different losses")
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {MIN_PAIRS}")
    parser.add_argument("--channels", type=int, default=8, help="of the first convolution (8)")
    parser.add_argument("--batch", type=int, default=16, help="images in a batch (16)")
    parser.add_argument("--torch-python", default=str(ROOT / ".venv-torch/bin/python"))
    parser.add_argument("--package", type=Path, default=PACKAGE, help="folder with the package")
    parser.add_argument("--json", type=Path, help="a file for all values")
    parser.add_argument("--side", help=argparse.SUPPRESS)  # this call is the measured process
    options = parser.parse_args()
    if options.side is not None:
        work(options.side, options.channels, options.batch)
        return
    if options.pairs < MIN_PAIRS:
        parser.error(f"--pairs: at least {MIN_PAIRS}")
    version = [options.torch_python, "-c", "import torch; print(torch.__version__)"]
    options.version = subprocess.check_output(version, text=True).strip()
    measured = [compare(options, "plain", TARGET), compare(options, "one by one", None)]
    report_times(measured, "baseline", "round", options.json)


if __name__ == "__main__":
    main()
