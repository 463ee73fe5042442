"""Sharded models: each shard is a network of its own, and the shards together train the model."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from gossamer.replica import Replica
from gossamer.shards import Shard
from gossamer.torch import OneReplica
from process_test_util import Processes, wait_until
from tasks import batch_of, loss_of, softmax

PEERS, SHARDS, ROUNDS = 2, 2, 6
Join = Callable[..., gossip.Optimizer]


@pytest.fixture
def config(configure: Configure) -> Path:
    """With run.id, and the folders of the networks in the file."""
    path = configure(PEERS, ROUNDS, "[checkpoint]", "every = 2")
    text = path.read_text(encoding="utf-8").replace("[run]", '[run]\nid = "whole"')
    path.write_text(text.replace("[local]", '[local]\nout = "out"'), encoding="utf-8")
    return path


def values_of(peer: int) -> torch.Tensor:
    return torch.arange(10.0) * (1 + peer)


def train(config: Path, peer: int, part: slice, shard: tuple[int, int] | None) -> torch.Tensor:
    """SGD on a part of ten parameters, whose gradients depend on the peer and on the value."""
    parameter = torch.nn.Parameter(values_of(0)[part].clone())
    inner = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
    with gossip.Optimizer(inner, config, peer, shard=shard) as optimizer:
        while not optimizer.finished:
            parameter.grad = parameter.detach().sin() * (1 + peer)
            optimizer.step()
    return parameter.detach()


def test_the_shards_of_a_model_end_as_the_whole_model(config: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(PEERS * SHARDS) as threads:
        whole = list(threads.map(lambda p: train(config, p, slice(None), None), range(PEERS)))
        parts = [
            threads.submit(train, config, peer, slice(5 * index, 5 * index + 5), (index, SHARDS))
            for peer in range(PEERS)
            for index in range(SHARDS)
        ]
        found = [part.result() for part in parts]
    for peer in range(PEERS):
        assert torch.equal(torch.cat(found[2 * peer : 2 * peer + 2]), whole[peer])
    folders = {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert folders == {"shard0of2", "shard1of2", "checkpoints"}


def test_a_process_of_another_shard_is_refused_by_name(config: Path, tmp_path: Path) -> None:
    """A stale address leads peer 0 of shard 1 to peer 1 of shard 0."""
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(train, config, 1, slice(5), (0, SHARDS))
        address = tmp_path / "meet" / "shard0of2" / "peer-1.addr"
        wait_until("peer 1 has an address", address.exists)
        (tmp_path / "meet" / "shard1of2").mkdir()
        text = address.read_text().replace("whole-shard0of2", "whole-shard1of2")
        (tmp_path / "meet" / "shard1of2" / "peer-1.addr").write_text(text)
        with pytest.raises(gossamer.Error, match="its run is not ours, whole-shard1of2"):
            train(config, 0, slice(5, 10), (1, SHARDS))
        train(config, 0, slice(5), (0, SHARDS))
        first.result()


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        ((2, 2), "shard: there is no shard 2 of 2"),
        ((-1, 2), "shard: there is no shard -1 of 2"),
        ((0,), r"shard: give \(index, count\), such as \(rank, ranks\), and not \(0,\)"),
        (("0", "2"), "shard: give"),
        (1, "shard: give"),
    ],
)
def test_a_shard_that_does_not_exist_is_refused(config: Path, shard: Any, message: str) -> None:
    with pytest.raises(gossamer.Error, match=message):
        train(config, 0, slice(5), shard)


def test_the_name_of_the_run_is_needed(configure: Configure) -> None:
    with pytest.raises(gossamer.Error, match="shard: each shard is a network .* set run.id"):
        train(configure(PEERS, 1), 0, slice(5), (0, SHARDS))


def test_the_rank_of_a_launcher_is_no_peer(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOSSAMER_ID", raising=False)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(
        gossamer.Error, match="peer: with shard, the rank .* give peer, or set GOSS"
    ):
        gossip.Optimizer(torch.optim.SGD(softmax(0).parameters(), lr=0.1), config, shard=(0, 2))


def test_a_file_that_cannot_be_read_is_reported_by_the_run(tmp_path: Path) -> None:
    with pytest.raises(gossamer.Error, match="none.toml"):
        train(tmp_path / "none.toml", 0, slice(5), (0, SHARDS))


def test_settings_of_a_shard(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('[run]\nid = "a"\n[net]\nrendezvous = "meet"\n', encoding="utf-8")
    shard = Shard(1, 2)
    assert shard.overrides(config, ["run.rounds=3"]) == [
        "run.rounds=3",
        "run.id=a-shard1of2",
        f"net.rendezvous={tmp_path}/meet/shard1of2",
    ]
    given = ["run.id=b", "net.rendezvous=", "local.out=/x/y", "checkpoint.folder=/z"]
    assert shard.overrides(config, given)[len(given) :] == [
        "run.id=b-shard1of2",
        "local.out=/x/y/shard1of2",
        "checkpoint.folder=/z/shard1of2",
    ]


def test_a_checkpoint_of_another_shard_is_refused_by_name() -> None:
    def handler(shard: Shard | None) -> OneReplica:
        module = softmax(0)
        return OneReplica(Replica(torch.optim.SGD(module.parameters(), lr=0.1)), [], shard)

    saved = handler(Shard(0, 2))._state()
    handler(Shard(0, 2))._load(saved)
    with pytest.raises(gossamer.Error, match="is of shard0of2, and this process holds shard1of2"):
        handler(Shard(1, 2))._load(saved)
    with pytest.raises(gossamer.Error, match="is of shard0of2, .* holds a whole model"):
        handler(None)._load(saved)


needs_fsdp = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6),
    reason="fully_shard came with PyTorch 2.6: tests/python_versions.sh torch",
)


@needs_fsdp
def test_a_model_that_fsdp_shards_ends_as_the_whole_model(
    config: Path, processes: Processes, tmp_path: Path
) -> None:
    """Two peers of two ranks, stopped after 3 of 6 steps, and resumed from the checkpoint of 2."""

    def run(*options: str) -> list[dict[str, Any]]:
        started = [
            processes.start("shard_loop.py", config, peer, rank, tmp_path, *options)
            for peer in range(PEERS)
            for rank in range(SHARDS)
        ]
        return [each.result() for each in started]

    assert [end["steps"] for end in run("stop=3")] == [3] * 4
    found = run("resume=auto")
    task = gossip.Task(softmax, lambda p: torch.optim.Adam(p, lr=0.01), batch_of, loss_of)
    gossamer.run(config, task, out=tmp_path / "simulated")
    expected = digits.read_tensors(tmp_path / "simulated" / "final-0.safetensors")
    for peer in range(PEERS):
        for rank in range(SHARDS):
            end = found[2 * peer + rank]
            assert end["steps"] == ROUNDS
            for name, values in end["parameters"].items():
                assert np.abs(np.array(values) - expected[f"peer{peer}.{name}"]).max() <= 1e-5


@needs_fsdp
def test_a_shard_that_is_not_the_one_of_the_mesh_is_refused(
    config: Path, processes: Processes, tmp_path: Path
) -> None:
    started = [
        processes.start("shard_loop.py", config, 0, rank, tmp_path, f"shard={1 - rank}")
        for rank in range(SHARDS)
    ]
    for rank, each in enumerate(started):
        assert each.wait() != 0
        assert f"of which this process holds shard {rank} of 2, and not {1 - rank}" in each.output
