"""Networks whose peers compute on a GPU: rows pass through pinned memory and keep their bits.

`gossamer_emulated` is the program with the CUDA kernels emulated on the CPU. As on a GPU, the host
cannot read device memory.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from network_test_util import NetworkFactory, networks


@pytest.fixture
def network(gossamer: Path, tmp_path: Path) -> Iterator[NetworkFactory]:
    program = gossamer.with_name("gossamer_emulated")
    if not program.is_file():
        pytest.fail(f"no program at {program}: build it first")
    with networks(program, tmp_path, "local.device=cuda") as make:
        yield make


@pytest.mark.parametrize("groups", [["0", "1", "2", "3"], ["0,2", "1,3"]], ids=["4x1", "2x2"])
@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=ring", "net.chunk_kib=4", "model.kind=mlp", "model.hidden=[40]"),
        ("topology.kind=star", "algorithm.order=awc", "algorithm.local_steps=2"),
        ("algorithm.kind=allreduce", "topology.kind=complete", "net.chunk_kib=4", "net.window=1"),
        (
            "algorithm.kind=consensus",
            "algorithm.length=5000",
            "net.chunk_kib=4",
            "topology.kind=path",
        ),
        ("algorithm.kind=push_sum", "topology.kind=star"),
        ("algorithm.kind=relay_sgd", "topology.kind=path", "net.chunk_kib=4"),
        ("algorithm.kind=choco", "codec.kind=topk", "topology.kind=star"),
        ("algorithm.kind=dpsgd", "codec.kind=int8", "topology.kind=path"),
        ("mixing.rule=cs_plus", "topology.kind=complete", "net.chunk_kib=4"),
        ("mixing.rule=median", "topology.kind=ring", "net.chunk_kib=4"),
    ],
    ids=[
        *("ring", "awc", "allreduce", "consensus", "push_sum", "relay_sgd", "topk", "int8"),
        *("cs_plus", "median"),
    ],
)
def test_rows_on_gpus_have_the_bits_of_one_process(
    network: NetworkFactory, sets: tuple[str, ...], groups: list[str]
) -> None:
    net = network(4, *sets)
    for ids in groups:
        net.start(ids)
    assert net.wait() == [0] * len(groups), [peer.stderr for peer in net.processes]
    here, there = net.run_in_one_process(), net.summary()
    assert there["final_hash"] == here["final_hash"]
    for key in ("run_id", "reason", "rounds", "node_steps", "bytes_sent"):
        assert there[key] == here[key], key


@pytest.mark.parametrize(
    "sets",
    [
        ("split.layers=2", "optimizer.momentum=0.9"),
        ("split.layers=2", "split.parameters=2", "algorithm.kind=gradient_tracking"),
        ("split.layers=2", "split.parameters=2", "split.encode=part", "codec.kind=int8"),
        ("split.layers=2", "split.encode=part", "algorithm.kind=choco", "codec.kind=topk"),
    ],
    ids=["layers", "both", "int8", "topk"],
)
def test_workers_of_cut_models_on_gpus_have_the_bits_of_one_process(
    network: NetworkFactory, sets: tuple[str, ...]
) -> None:
    net = network(
        2, "topology.kind=complete", "model.kind=mlp", "model.hidden=[32,32]", "run.rounds=3", *sets
    )
    parts = 4 if "split.parameters=2" in sets else 2
    for worker in range(2 * parts):
        net.start(f"{worker // parts}.{worker % parts}")
    assert net.wait() == [0] * 2 * parts, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


@pytest.mark.parametrize(
    ("size", "devices"),
    [
        (2, ["cuda:0,", "cuda:1-2,"]),
        (1, ["cuda:0-2,", "cuda:0-2,"]),
        (None, ["cuda:0,", "cuda:1,"]),
    ],
    ids=["one machine", "two machines", "unknown"],
)
@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=complete", "net.chunk_kib=4", "model.kind=mlp", "model.hidden=[40]"),
        (
            "topology.kind=star",
            "algorithm.order=awc",
            "algorithm.local_steps=2",
            "optimizer.momentum=0.9",
        ),
    ],
    ids=["complete", "awc"],
)
def test_processes_share_three_gpus(
    network: NetworkFactory, sets: tuple[str, ...], size: int | None, devices: list[str]
) -> None:
    net = network(6, *sets)
    for process, ids in enumerate(["0-2", "3-5"]):
        local_rank = (
            {}
            if size is None
            else {"LOCAL_RANK": str(process % size), "LOCAL_WORLD_SIZE": str(size)}
        )
        net.start(ids, env={**os.environ, "GOSSAMER_EMULATED_GPUS": "3", **local_rank})
    assert net.wait() == [0, 0], [peer.stderr for peer in net.processes]
    for first, device in zip((0, 3), devices, strict=True):
        assert net.records(first)[0]["device"].startswith(device)
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_deterministic_mode_gives_the_same_bits(network: NetworkFactory) -> None:
    net = network(4, "local.deterministic=true")
    for ids in ("0-1", "2-3"):
        net.start(ids)
    assert net.wait() == [0, 0], [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


@pytest.mark.parametrize(
    "call", ["cudaEventRecord:90", "cudaEventSynchronize:20", "cudaLaunchKernel:150"]
)
def test_a_gpu_that_fails_ends_its_process_alone(network: NetworkFactory, call: str) -> None:
    net = network(2, "run.rounds=60", "net.failure_timeout=5")
    net.start("0", env={**os.environ, "GOSSAMER_EMULATED_LOSS": call})
    net.start("1")
    assert net.wait() == [1, 0], [peer.stderr for peer in net.processes]
    # All calls fail after that one, and another thread's may be reported first.
    assert re.search(r"cuda\w+: unspecified launch failure", net.processes[0].stderr)
    assert net.records(0)[-1]["record"] != "end"
    assert not (net.out / "final-0.safetensors").exists()
    assert "peer 0 is unreachable; 1 of 2 peers continue" in net.processes[1].stderr


def test_a_killed_peer_is_named_by_the_others(network: NetworkFactory) -> None:
    net = network(
        3, "run.rounds=1000000000", "log.every=1", "topology.kind=complete", "net.on_loss=stop"
    )
    peers = [net.start(str(i)) for i in range(3)]
    net.wait_until_training(0, 1, 2)
    peers[1].process.kill()
    assert [peers[0].wait(), peers[2].wait()] == [5, 5]
    assert "peer 1" in peers[0].last_message and "peer 1" in peers[2].last_message
