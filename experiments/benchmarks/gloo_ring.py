"""The baseline of ring.py: the same exchange on a ring with torch.distributed and gloo.

    python3 gloo_ring.py --bytes 400000 --rounds 20    # with a Python interpreter that has torch

Each process has one row of float32 values. A round sends the row to both ring neighbours (isend),
receives their rows (irecv), and replaces the row by the average with weights 1/3, in place and on
one thread. Buffers are allocated once. The first rounds set up connections and memory and are not
timed. Prints one JSON object: `seconds` is the time of the slowest process for all timed rounds,
and `check` is a value that every correct implementation has.

The fastest of several implementations was kept: receives are posted before sends, and the average
is three in-place passes (mul_, and add_ with alpha twice), which is faster than torch.stack and
mean, and than the difference form.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def exchange(
    row: torch.Tensor, left: torch.Tensor, right: torch.Tensor, before: int, after: int
) -> None:
    """One round: replaces the row by the average of itself and its two neighbours' rows."""
    pending = [dist.irecv(left, before), dist.irecv(right, after)]
    pending += [dist.isend(row, after), dist.isend(row, before)]
    for work in pending:
        work.wait()
    third = 1.0 / 3.0
    row.mul_(third).add_(left, alpha=third).add_(right, alpha=third)


def peer(
    rank: int, peers: int, values: int, warmup: int, rounds: int, rendezvous: str, output: str
) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=peers)
    row = torch.full((values,), float(rank))
    left, right = torch.empty_like(row), torch.empty_like(row)
    before, after = (rank - 1) % peers, (rank + 1) % peers
    for _ in range(warmup):
        exchange(row, left, right, before, after)
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(rounds):
        exchange(row, left, right, before, after)
    seconds = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    if rank == 0:
        Path(output).write_text(json.dumps({"seconds": float(seconds), "check": float(row[0])}))
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=400_000, help="of a row")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "result.json"
        arguments = (
            options.peers,
            options.bytes // 4,
            options.warmup,
            options.rounds,
            f"{folder}/rendezvous",
            str(output),
        )
        multiprocessing.spawn(peer, arguments, nprocs=options.peers)
        result = json.loads(output.read_text())
    result |= {"peers": options.peers, "bytes": options.bytes, "rounds": options.rounds}
    result["library"] = f"torch {torch.__version__} gloo"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
