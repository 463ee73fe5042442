"""Models that are trained together step as rows, and their optimizers keep the state of tensors."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from gossamer import joint_step
from gossamer.row_state import RowState
from tasks import batch_of, loss_of, sgd, softmax

Made = Callable[[Any], torch.optim.Optimizer]


class Tempered(torch.nn.Module):
    """Two parameters of shape (), which may be a group of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(64, 10)
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.shift = torch.nn.Parameter(torch.zeros(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.dense(inputs) * self.scale + self.shift


def tempered(peer: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return Tempered()


def groups(kind: Any, **options: Any) -> Made:
    """Tensors, nothing, and numbers, each with a group of its own."""

    def make(parameters: Any) -> torch.optim.Optimizer:
        own = list(parameters)
        tensors, numbers = ([p for p in own if (p.dim() > 0) == large] for large in (True, False))
        return kind([{"params": tensors}, {"params": []}, {"params": numbers}], **options)

    return make


def task(model: Any = softmax, optimizer: Any = sgd, vmap: bool = True) -> gossip.Task:
    return gossip.Task(model, optimizer, batch_of, loss_of, vmap=vmap)


@pytest.mark.parametrize(
    "make",
    [
        groups(torch.optim.SGD, lr=0.1, momentum=0.9),
        groups(torch.optim.Adam, lr=0.01),
        groups(torch.optim.Adagrad, lr=0.1),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
    ids=["sgd", "adam", "adagrad", "adagrad in one group"],
)
def test_groups_of_numbers_and_of_nothing(configure: Configure, tmp_path: Path, make: Made) -> None:
    config = configure(4, 6, "[checkpoint]", "every = 3")
    finals = []
    for vmap in (False, True):
        gossamer.run(config, task(tempered, make, vmap), out=tmp_path / str(vmap))
        finals.append(digits.read_tensors(tmp_path / str(vmap) / "final-0.safetensors"))
    assert all(np.abs(finals[1][name] - value).max() < 1e-4 for name, value in finals[0].items())
    middle = tmp_path / "True" / "checkpoints" / "round-00000003-0.json"
    resumed = task(tempered, make)
    again = gossamer.run(config, resumed, out=tmp_path / "again", resume=str(middle))
    assert again["final_hash"] == summary_of(tmp_path / "True")["final_hash"]


def summary_of(folder: Path) -> dict[str, Any]:
    return gossamer.runs.read_json(folder / "summary.json")


@pytest.mark.parametrize("vmap", [False, True])
def test_a_parameter_that_is_frozen_stays(configure: Configure, tmp_path: Path, vmap: bool) -> None:
    models: list[torch.nn.Linear] = []

    def model(peer: int) -> torch.nn.Module:
        models.append(softmax(peer))
        return models[-1]

    frozen: list[torch.Tensor] = []

    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        if peer == 0 and step == 2:
            for each in models:
                each.bias.requires_grad_(False)
            frozen.append(models[0].bias.detach().clone())
        return batch_of(peer, step)

    made = gossip.Task(model, sgd, batch, loss_of, vmap=vmap)
    gossamer.run(configure(1, 5), made, out=tmp_path / "out")
    final = digits.read_tensors(tmp_path / "out" / "final-0.safetensors")["peer0.bias"]
    assert np.array_equal(final, frozen[0].numpy())


def test_the_state_of_a_row_is_that_of_its_parameters(configure: Configure, tmp_path: Path) -> None:
    """Models step as rows; what is saved, read and changed is the state of each parameter."""
    optimizers: list[torch.optim.Optimizer] = []

    def adam(parameters: Any) -> torch.optim.Optimizer:
        optimizers.append(torch.optim.Adam(parameters, lr=0.01))
        return optimizers[-1]

    made = task(optimizer=adam)
    assert step_rows_of(made, configure(4, 3), tmp_path / "a") == 3
    weight, bias = optimizers[1].param_groups[0]["params"]
    state = optimizers[1].state
    assert state[weight]["exp_avg"].shape == weight.shape
    assert state[bias]["exp_avg"].shape == bias.shape
    assert float(state[weight]["step"]) == float(state[bias]["step"]) == 3
    assert RowState.of(optimizers[1], [weight, bias]) is not None
    state[bias]["step"] += 1  # the parameters have not the same number of steps any more
    assert RowState.of(optimizers[1], [weight, bias]) is None
    copied = copy.deepcopy(optimizers[2].state_dict())  # keeps what tensors share
    optimizers[2].load_state_dict(copied)
    replica = made._peers[2][1]
    for master in replica.masters:
        master.parameter.grad = torch.ones_like(master.parameter)
    replica.local_step()
    steps = [float(each["step"]) for each in optimizers[2].state.values()]
    assert steps == [4, 4]


def step_rows_of(made: gossip.Task, config: Path, out: Path) -> int:
    """How many steps of a run were steps of rows."""
    counted: list[bool] = []
    inner = joint_step.step_rows

    def count(*arguments: Any) -> bool:
        counted.append(inner(*arguments))
        return counted[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_step, "step_rows", count)
        gossamer.run(config, made, out=out)
    assert all(counted)
    return len(counted)
