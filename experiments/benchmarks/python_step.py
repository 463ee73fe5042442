"""A step of gossamer.torch.Optimizer against the steps that a user would write without it.

    .venv/bin/python experiments/benchmarks/python_step.py [--pairs 9] [--parameters 10000000]

Comparisons, each in interleaved pairs, one thread of arithmetic per process, on the CPU but for the
two on a GPU:

- ring: 4 processes, which read each other's rows in shared memory. A step is SGD with a given
  gradient and a mix with both neighbours. The baseline is torch.distributed over gloo and loopback
  TCP, as in gloo_ring.py: the parameters are views of one row, which isend() sends, and three
  in-place passes average. Steps per second of the slowest process. Both ends must hold the same
  values.
- alone: one process without neighbours trains two perceptrons in turn, step by step, on batches of
  32: forward, backward and step, one with the wrapped optimizer, and one with the plain one, which
  is the baseline.
- hidden: 2 processes whose training takes 0.25 s and no processor, as on an accelerator (they
  sleep), in the order adapt while communicate, in which the exchange goes on meanwhile. The
  baseline is the same two processes, which begin together and exchange nothing.
- gpu (only where --only asks for it): 2 processes that share one GPU and train there, in the order
  adapt while communicate. The baseline is the same two processes, which exchange nothing.
- gpu_after (likewise): the same, with the exchange after the training.

Both sides run in the interpreter of --torch-python, which has torch, and numpy for gloo. Prints a
Markdown table; --json also writes all values.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairs import MIN_PAIRS, ROOT, Pairs, measure, report_times

WARMUP, TIMED = 3, 20
PEERS, PAIR, TENSORS, RATE = 4, 2, 16, 0.1
TRAINING_SECONDS = 0.25
RING_TARGET, ALONE_TARGET, HIDDEN_TARGET = 1.2, 0.98, 0.95
GPU_BATCH, GPU_PASSES = 8192, 6
PACKAGE = Path(os.environ.get("GOSSAMER_PACKAGE") or ROOT / "build/release/python")


# ---- in the processes that are measured, which have torch


def timed_steps(step: Callable[[], object]) -> float:
    """Seconds of TIMED steps. One more ends the run, which writes the final parameters."""
    for _ in range(WARMUP):
        step()
    begin = time.perf_counter()
    for _ in range(TIMED):
        step()
    seconds = time.perf_counter() - begin
    step()
    return seconds


def parameters_of(row: Any, peer: int) -> list[Any]:
    """Parameters that are views of equal parts of `row`, with gradients that differ by peer."""
    import torch

    parameters = [torch.nn.Parameter(part) for part in row.chunk(TENSORS)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, float(peer))
    return parameters


def ring_of_gossamer(peer: int, values: int, folder: str) -> dict[str, float]:
    import gossamer.torch as gossip
    import torch

    parameters = parameters_of(torch.zeros(values), peer)
    sgd = torch.optim.SGD(parameters, lr=RATE)
    optimizer = gossip.Optimizer(sgd, f"{folder}/run.toml", peer, out=f"{folder}/out")
    seconds = timed_steps(optimizer.step)
    return {"seconds": seconds, "check": float(parameters[-1].detach()[-1])}


def join_gloo(peer: int, folder: str, peers: int) -> None:
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=peer, world_size=peers
    )


def ring_of_gloo(peer: int, values: int, folder: str) -> dict[str, float]:
    import torch
    import torch.distributed as dist
    from gloo_ring import exchange

    join_gloo(peer, folder, PEERS)
    row = torch.zeros(values)
    left, right = torch.empty_like(row), torch.empty_like(row)
    parameters = parameters_of(row, peer)
    sgd = torch.optim.SGD(parameters, lr=RATE)

    def step() -> None:
        sgd.step()
        exchange(row, left, right, (peer - 1) % PEERS, (peer + 1) % PEERS)

    dist.barrier()
    seconds = timed_steps(step)
    check = float(parameters[-1].detach()[-1])
    dist.barrier()
    dist.destroy_process_group()
    return {"seconds": seconds, "check": check}


def perceptron(values: int) -> tuple[Any, int]:
    """Three layers with `values` parameters in all, and their width."""
    import torch

    torch.manual_seed(0)
    width = round((values / 3) ** 0.5)
    model = torch.nn.Sequential(
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
    )
    return model, width


def training_loop(values: int, wrapped: bool, folder: str) -> Callable[[], float]:
    """A step of a perceptron, which returns its first parameter."""
    import torch

    model, width = perceptron(values)
    inputs, targets = torch.randn(32, width), torch.randint(width, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    if wrapped:
        import gossamer.torch as gossip

        optimizer = gossip.Optimizer(optimizer, f"{folder}/run.toml", 0, out=f"{folder}/out")

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return float(next(model.parameters()).detach().flatten()[0])

    return step


def alternating_loops(values: int, folder: str) -> dict[str, dict[str, float]]:
    """Both loops in turn, step by step, so that both have the machine in the same state."""
    loops = {
        side: training_loop(values, side == "wrapped", folder) for side in ("wrapped", "plain")
    }
    results = {side: {"seconds": 0.0, "check": 0.0} for side in loops}
    for index in range(WARMUP + TIMED):
        for side in sorted(loops, reverse=index % 2 == 0):
            begin = time.perf_counter()
            results[side]["check"] = loops[side]()
            if index >= WARMUP:
                results[side]["seconds"] += time.perf_counter() - begin
    loops["wrapped"]()  # ends the run
    return results


def training_elsewhere(peer: int, values: int, wrapped: bool, folder: str) -> dict[str, float]:
    """All peers have the same gradient, so that mixing changes nothing."""
    import torch
    import torch.distributed as dist

    parameters = parameters_of(torch.zeros(values), 1)
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    if wrapped:
        import gossamer.torch as gossip

        optimizer = gossip.Optimizer(optimizer, f"{folder}/run.toml", peer, out=f"{folder}/out")

    def step() -> None:
        time.sleep(TRAINING_SECONDS)
        optimizer.step()

    if not wrapped:
        join_gloo(peer, folder, PAIR)
        dist.barrier()
    seconds = timed_steps(step)
    return {"seconds": seconds, "check": float(parameters[-1].detach()[-1])}


def training_on_gpu(peer: int, values: int, wrapped: bool, folder: str) -> dict[str, float]:
    """A step has the gradients of GPU_PASSES batches; all peers have the same batches, so that
    mixing changes little. Each step waits for the GPU, as a loop that reads its loss does.

    Processes that exchange nothing begin together, and go on until the last of them is timed: a
    process with the GPU for itself alone takes half the time for a step."""
    import torch
    import torch.distributed as dist

    model, width = perceptron(values)
    model.cuda()
    inputs = torch.randn(GPU_BATCH, width, device="cuda")
    targets = torch.randint(width, (GPU_BATCH,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    if wrapped:
        import gossamer.torch as gossip

        optimizer = gossip.Optimizer(optimizer, f"{folder}/run.toml", peer, out=f"{folder}/out")

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(GPU_PASSES):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets) / GPU_PASSES
            loss.backward()
        optimizer.step()
        torch.cuda.synchronize()

    if not wrapped:
        join_gloo(peer, folder, PAIR)
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()  # loads CUDA
        torch.cuda.synchronize()
        dist.barrier()
    seconds = timed_steps(step)
    parameter = next(model.parameters())
    result = {"seconds": seconds, "check": float(parameter.detach().flatten()[0])}
    if not wrapped:
        all_timed = dist.barrier(async_op=True)
        while not all_timed.is_completed():
            step()
        dist.destroy_process_group()
    return result


def work(side: str, peer: int, values: int, folder: str) -> None:
    import torch

    torch.set_num_threads(1)
    result: object
    if side == "ours":
        result = ring_of_gossamer(peer, values, folder)
    elif side == "gloo":
        result = ring_of_gloo(peer, values, folder)
    elif side in ("hidden", "elsewhere"):
        result = training_elsewhere(peer, values, side == "hidden", folder)
    elif side in ("gpu", "gpu_alone", "gpu_after"):
        result = training_on_gpu(peer, values, side != "gpu_alone", folder)
    else:
        result = alternating_loops(values, folder)
    print(json.dumps(result))


# ---- in the process that compares


def run_processes(options: argparse.Namespace, side: str, peers: int) -> list[Any]:
    """What the processes of a side print."""
    with tempfile.TemporaryDirectory(prefix="gossamer-step-") as folder:
        (Path(folder) / "run.toml").write_text(
            f"[run]\npeers = {peers}\nrounds = {WARMUP + TIMED + 1}\n"
            '[topology]\nkind = "ring"\n[model]\nkind = "external"\n'
            f'[algorithm]\norder = "{"awc" if side in ("hidden", "gpu") else "atc"}"\n'
            f'[log]\nevery = {WARMUP + TIMED + 1}\nsketch = "off"\n[local]\nthreads = 1\n'
            '[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\nfailure_timeout = 60\n'
        )
        environment = os.environ | {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [options.torch_python, __file__, "--side", side, "--peer", str(peer)]
                + ["--parameters", str(options.parameters), "--folder", folder],
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for peer in range(peers)
        ]
        outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        raise SystemExit(f"python_step.py: a process of {side} failed; its message is above")
    return [json.loads(output) for output in outputs]


class Rates:
    """Steps per second of the slowest process of a side.

    Of sides that alternate in one process, the second has been measured with the first.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._measured: dict[str, dict[str, float]] = {}
        self.checks: dict[str, list[float]] = {}

    def measure(self, side: str, peers: int) -> float:
        if side not in self._measured:
            if peers == 1:
                self._measured = run_processes(self._options, "alternating", peers)[0]
            else:
                results = run_processes(self._options, side, peers)
                slowest = max(results, key=lambda result: float(result["seconds"]))
                self._measured = {side: slowest | {"check": results[0]["check"]}}
        measured = self._measured.pop(side)
        self.checks.setdefault(side, []).append(measured["check"])
        return TIMED / measured["seconds"]


def compare(
    options: argparse.Namespace,
    name: str,
    target: float,
    sides: tuple[str, str],
    peers: int,
) -> Pairs:
    rates = Rates(options)
    pairs = measure(
        name,
        target,
        options.pairs,
        lambda: rates.measure(sides[0], peers),
        lambda: rates.measure(sides[1], peers),
    )
    if any(
        abs(a - b) > 1e-4 * max(1.0, abs(b)) for a, b in zip(*rates.checks.values(), strict=True)
    ):
        raise SystemExit(f"python_step.py: {name}: the two sides computed different values")
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9, help=f"at least {MIN_PAIRS}")
    parser.add_argument("--parameters", type=int, default=10_000_000)
    parser.add_argument("--torch-python", default=str(ROOT / ".venv-torch/bin/python"))
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="such as alone or hidden"
    )
    parser.add_argument("--json", type=Path, help="a file for all values")
    parser.add_argument("--side", help=argparse.SUPPRESS)  # this call is one of the processes
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        work(options.side, options.peer, options.parameters, options.folder)
        return
    if options.pairs < MIN_PAIRS:
        parser.error(f"--pairs: at least {MIN_PAIRS}")
    comparisons: list[tuple[str, float, tuple[str, str], int]] = [
        ("ring of 4, torch.distributed", RING_TARGET, ("ours", "gloo"), PEERS),
        ("alone, plain SGD", ALONE_TARGET, ("wrapped", "plain"), 1),
        ("hidden, without an exchange", HIDDEN_TARGET, ("hidden", "elsewhere"), PAIR),
    ]
    on_request: list[tuple[str, float, tuple[str, str], int]] = [
        ("gpu, without an exchange", HIDDEN_TARGET, ("gpu", "gpu_alone"), PAIR),
        ("gpu_after, without an exchange", HIDDEN_TARGET, ("gpu_after", "gpu_alone"), PAIR),
    ]
    chosen = [each for each in comparisons + on_request if each[0].split(",")[0] in options.only]
    measured = [compare(options, *each) for each in chosen or comparisons]
    report_times(measured, "comparison", "step", options.json)


if __name__ == "__main__":
    main()
