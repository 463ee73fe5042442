"""Optimizer steps of many peers in one call, for gossamer.torch.Task with vmap=True."""

import copy
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from gossamer.replica import Replica


@torch.no_grad()
def step_together(replicas: Sequence[Replica], rows: Sequence[Any]) -> None:
    """local_step() of each replica on its row: one call where their optimizers are alike."""
    joint = joint_optimizer([replica.optimizer for replica in replicas])
    if joint is None:
        for replica, row in zip(replicas, rows, strict=True):
            replica.local_step()
            replica.store(row)
        return
    with ExitStack() as stack:
        for replica in replicas:
            if not replica.steps_in_place:
                gradients = [master.parameter.grad for master in replica.masters]
                stack.enter_context(replica.stepping(gradients))
        joint.step()
    for replica, row in zip(replicas, rows, strict=True):
        take_state(replica.optimizer, joint)
        replica.store(row)


def joint_optimizer(optimizers: Sequence[torch.optim.Optimizer]) -> torch.optim.Optimizer | None:
    """One optimizer with the parameters and the state of all; None if they are not alike.

    Those of PyTorch that have the option foreach work on each parameter by itself, so parameters of
    several models are as those of one.
    """
    first = optimizers[0]
    if any(is_special(each) or type(each) is not type(first) for each in optimizers):
        return None
    if len({len(each.param_groups) for each in optimizers}) > 1:
        return None
    joint = copy.copy(first)
    joint.param_groups = []
    for groups in zip(*(each.param_groups for each in optimizers), strict=True):
        options = [
            {key: value for key, value in group.items() if key != "params"} for group in groups
        ]
        if any(each != options[0] for each in options):
            return None
        parameters = [parameter for group in groups for parameter in group["params"]]
        joint.param_groups.append(options[0] | {"params": parameters, "foreach": True})
    joint.state = defaultdict(dict)
    for each in optimizers:
        joint.state.update(each.state)
    return joint


def is_special(optimizer: torch.optim.Optimizer) -> bool:
    """Of another library, or with hooks, or with options that foreach does not take."""
    groups = optimizer.param_groups
    options = ("fused", "capturable", "differentiable")
    return (
        not type(optimizer).__module__.startswith("torch.optim.")
        or "foreach" not in optimizer.defaults
        or "step" in vars(optimizer)
        or any(vars(optimizer).get(f"_optimizer_step_{when}_hooks") for when in ("pre", "post"))
        or any(group.get("foreach") is False for group in groups)
        or any(bool(group.get(option)) for group in groups for option in options)
        or any(isinstance(value, torch.Tensor) for group in groups for value in group.values())
    )


def take_state(optimizer: torch.optim.Optimizer, joint: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter in joint.state:
                optimizer.state[parameter] = joint.state[parameter]
