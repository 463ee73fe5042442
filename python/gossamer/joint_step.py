"""Optimizer steps of many peers in one call, for gossamer.torch.Task with vmap=True."""

import copy
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from gossamer.replica import Replica

# The step of these is the same for each value of a tensor, so that the parameters of a model can be
# one tensor: its row.
ELEMENTWISE = (
    *("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
    *("RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop"),
)


@torch.no_grad()
def step_together(replicas: Sequence[Replica], rows: Sequence[Any]) -> None:
    """local_step() of each replica on its row: one call where their optimizers are alike."""
    joint = joint_optimizer([replica.optimizer for replica in replicas])
    if joint is None:
        for replica in replicas:
            replica.local_step()
    elif not step_rows(joint, replicas, rows):
        step_parameters(joint, replicas)
    for replica, row in zip(replicas, rows, strict=True):
        replica.store(row)


def joint_optimizer(optimizers: Sequence[torch.optim.Optimizer]) -> torch.optim.Optimizer | None:
    """An optimizer with the options of all, by group, and without parameters; None if they are not
    alike.

    Those of PyTorch that have the option foreach work on each parameter by itself, so parameters of
    several models are as those of one.
    """
    first = optimizers[0]
    if any(is_special(each) or type(each) is not type(first) for each in optimizers):
        return None
    if len({len(each.param_groups) for each in optimizers}) > 1:
        return None
    joint = copy.copy(first)
    joint.param_groups, joint.state = [], defaultdict(dict)
    for groups in zip(*(each.param_groups for each in optimizers), strict=True):
        options = [
            {key: value for key, value in group.items() if key != "params"} for group in groups
        ]
        if any(each != options[0] for each in options):
            return None
        joint.param_groups.append(options[0] | {"params": [], "foreach": True})
    return joint


def step_parameters(joint: torch.optim.Optimizer, replicas: Sequence[Replica]) -> None:
    """A step on the parameters of all replicas."""
    for replica in replicas:
        for group, own in zip(joint.param_groups, replica.optimizer.param_groups, strict=True):
            group["params"] += own["params"]
    with ExitStack() as stack:
        for replica in replicas:
            gradients = [master.parameter.grad for master in replica.masters]
            stack.enter_context(replica.stepping(gradients))
            joint.state.update(replica.optimizer.state)
        joint.step()
    for replica in replicas:
        for group in replica.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter in joint.state:
                    replica.optimizer.state[parameter] = joint.state[parameter]


def step_rows(
    joint: torch.optim.Optimizer, replicas: Sequence[Replica], rows: Sequence[Any]
) -> bool:
    """A step on the rows, in which the parameters are; false, and no step, if that is impossible.

    It takes a tenth of the calls of step_parameters() for a model of ten tensors, which are most of
    the time where models are small.
    """
    if type(joint).__name__ not in ELEMENTWISE:
        return False
    if not all(replica.steps_in_place for replica in replicas):
        return False
    states = [replica.row_states() for replica in replicas]
    if any(own is None for own in states):
        return False
    for replica, row, own in zip(replicas, rows, states, strict=True):
        assert own is not None
        parts = replica.row_parts(row)
        for group, state, (part, gradient) in zip(joint.param_groups, own, parts, strict=True):
            if state.length == 0:  # a group without parameters
                continue
            part.grad = gradient
            group["params"].append(part)
            joint.state[part] = state.values
    joint.step()
    for own in states:
        for state in own or []:
            state.share()
    return True


# In PyTorch 1 the foreach forms of these are other methods: RAdam's divides by zero where all
# gradients have been zero, and NAdam's takes other steps.
OTHER_WITH_FOREACH = ("NAdam", "RAdam") if torch.__version__.startswith("1.") else ()


def is_special(optimizer: torch.optim.Optimizer) -> bool:
    """Of another library, or with hooks, or with options that foreach does not take."""
    groups = optimizer.param_groups
    options = ("fused", "capturable", "differentiable")
    return (
        not type(optimizer).__module__.startswith("torch.optim.")
        or "foreach" not in optimizer.defaults
        or type(optimizer).__name__ in OTHER_WITH_FOREACH
        or "step" in vars(optimizer)
        or any(vars(optimizer).get(f"_optimizer_step_{when}_hooks") for when in ("pre", "post"))
        or any(group.get("foreach") is False for group in groups)
        or any(bool(group.get(option)) for group in groups for option in options)
        or any(isinstance(value, torch.Tensor) for group in groups for value in group.values())
    )
