"""The errors of peers that refuse each other because of their models."""

import hashlib
import re
from pathlib import Path

import gossamer
import pytest
import torch
from conftest import Configure
from gossamer.initial import initial_hash, with_remedy
from gossamer.replica import Replica
from gossamer.torch import OneReplica
from tasks import batch_of, loss_of, sgd

ADVICE = r"seed random numbers alike .*, or set run.init = \"different\""


def handler(seed: int = 0, layers: int = 1) -> OneReplica:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(layers)))
    return OneReplica(Replica(torch.optim.SGD(module.parameters(), lr=0.1), module), [], None)


def start(seed: int) -> str:
    """As the handshake shows it."""
    return initial_hash(handler(seed), 0)[:10]


def remedy(text: str, own: OneReplica) -> str:
    return str(with_remedy(gossamer.Error(text), own, [1]))


def test_both_starts_are_known() -> None:
    def text(theirs: str, ours: str) -> str:
        return (
            f"after 6 s (net.join_timeout) peer 1 misses peer 0: it connected and was rejected, "
            f"its model is external ab, start {theirs}, ours is external ab, start {ours}"
        )

    found = remedy(text(start(1), start(0)), handler(0))
    assert found.startswith(
        text(start(1), start(0)) + "; the two peers start from different parameters: "
    )
    assert re.search(ADVICE, found)
    hashes = (
        r"of the initial tensors of peer 1, .*: 0.weight \(2×2\) (\w{8}), 0.bias \(2\) (\w{8})$"
    )
    here = re.search(hashes, found)
    there = re.search(hashes, remedy(text(start(0), start(1)), handler(1)))
    assert here is not None and there is not None and here[1] != there[1]


def test_only_the_own_start_is_known() -> None:
    text = (
        f"peer 1 at 127.0.0.1:4000 rejected this peer: its model is not ours, external ab, start "
        f"{start(0)}"
    )
    found = remedy(text, handler(0))
    assert (
        "the models of the two peers have different tensors, or start from different parameters ("
        in found
    )
    assert re.search(ADVICE + r"\). Shapes and hashes of the initial tensors", found)


@pytest.mark.parametrize(
    ("theirs", "ours", "reason"),
    [
        ("start a/64", "start a/3", "the moments of 3 features here and of 64 there"),
        ("start a", "start a/3", "the moments of 3 features here and of none there"),
        ("start any/3", "start any/4", "the moments of 4 features here and of 3 there"),
        ("start a/3", "start b/3", "the two peers start from different parameters"),
    ],
)
def test_other_features_are_no_other_start(theirs: str, ours: str, reason: str) -> None:
    text = f"its model is external ab, {theirs}, ours is external ab, {ours}"
    assert reason in remedy(text, handler())
    own = remedy(f"its model is not ours, external ab, {ours}", handler())
    assert "parameters" in own or "any" in ours
    assert "give the moments of different features" in own
    assert ("run.init" in own) == ("any" not in ours)


def test_other_tensors_are_no_other_start() -> None:
    text = f"its model is external ab, start {start(1)}, ours is external cd, start {start(0)}"
    assert remedy(text, handler(0)).endswith(
        "the models have different tensors: their names, shapes and order must be the same at all "
        "peers"
    )


def test_parameters_that_were_trained_have_no_initial_hashes() -> None:
    text = f"its model is not ours, external ab, start {start(0)}"
    assert "hashes" not in remedy(text, handler(1))


def test_a_large_model_lists_its_first_tensors() -> None:
    own = handler(0, layers=20)
    text = f"its model is not ours, external ab, start {initial_hash(own, 0)[:10]}"
    assert "3.bias " in (found := remedy(text, own)) and found.endswith(", …")
    assert "4.weight" not in found


@pytest.mark.parametrize("text", ["its topology is ring, ours is torus", "peer 2 has diverged"])
def test_other_errors_stay(text: str) -> None:
    error = gossamer.Error(text)
    assert with_remedy(error, handler(), [0]) is error


def with_backbone(seed: int, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    """A frozen layer of this seed, a number that no optimizer has, and a head."""
    torch.manual_seed(seed)
    backbone = torch.nn.Linear(64, 8).to(dtype).requires_grad_(False)
    backbone.register_parameter("scale", torch.nn.Parameter(torch.tensor(float(seed))))
    torch.manual_seed(0)
    return torch.nn.Sequential(backbone, torch.nn.Linear(8, 10))


def head_alone(module: torch.nn.Module) -> OneReplica:
    return OneReplica(Replica(sgd(module[1].parameters()), module), [], None)


def test_parameters_that_the_optimizer_lacks_belong_to_the_start() -> None:
    whole = handler(0)  # has no other parameters: its hash is that of the row
    assert initial_hash(whole, 0) == hashlib.sha256(whole.initial_bytes(0)).hexdigest()
    own, alike, other = (head_alone(with_backbone(seed)) for seed in (0, 0, 1))
    assert own.initial_bytes(0) == other.initial_bytes(0)
    assert initial_hash(own, 0) == initial_hash(alike, 0) != initial_hash(other, 0)
    assert initial_hash(head_alone(with_backbone(0, torch.bfloat16)), 0) != initial_hash(own, 0)
    starts = [initial_hash(each, 0)[:12] for each in (own, other)]
    text = f"its model is external ab, start {starts[1]}, ours is external ab, start {starts[0]}"
    listed = r"; not in its optimizer: 0.weight \(8×64\) (\w{8}), 0.bias .*, 0.scale \(1\) \w{8}$"
    here = re.search(listed, remedy(text, own))
    there = re.search(listed, remedy(text, alike))
    assert here is not None and there is not None and here[1] == there[1]


@pytest.mark.parametrize("init", ["same", "different"])
def test_a_frozen_layer_of_another_start_is_named(
    configure: Configure, tmp_path: Path, init: str
) -> None:
    def run(model: object, out: Path) -> None:
        def optimizer(parameters: object) -> torch.optim.Optimizer:
            return sgd(list(parameters)[-2:])

        task = gossamer.torch.Task(model, optimizer, batch_of, loss_of)
        gossamer.run(configure(4, 2), task, settings={"run.init": init}, out=out)

    run(lambda peer: with_backbone(0), tmp_path / "alike")
    if init == "different":
        return run(with_backbone, tmp_path / "other")
    with pytest.raises(gossamer.Error, match="peers 0 and 1 .*the first is 0.weight, which its o"):
        run(with_backbone, tmp_path / "other")
