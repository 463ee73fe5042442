"""Gradients of many peers in one call: gossamer.torch.Task with vmap=True.

The parameters of the peers are stacked, tensor by tensor, and the loss is mapped over them
(torch.func.vmap). Each peer's gradients are parts of the stacked gradients.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from gossamer._core import Error
from gossamer.replica import Replica

logger = logging.getLogger("gossamer")

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]


@dataclass(frozen=True)
class Transforms:
    """functional_call, grad_and_value and vmap, of torch.func or of functorch."""

    functional_call: Callable[..., Any]
    grad_and_value: Callable[..., Any]
    vmap: Callable[..., Any]


def find_transforms() -> Transforms | None:
    """None, and a warning with the reason, where this version of PyTorch has none."""
    for mapping, calling in (
        ("torch.func", "torch.func"),
        ("functorch", "torch.nn.utils.stateless"),
    ):
        try:
            found: Any = import_module(mapping)
            functional_call = import_module(calling).functional_call
        except ImportError as error:
            missing = error
        else:
            return Transforms(functional_call, found.grad_and_value, found.vmap)
    logger.warning(
        f"vmap: PyTorch {torch.__version__} has no torch.func, and functorch is missing "
        f"({missing}): peers are trained one by one; PyTorch 2.0 or newer has torch.func"
    )
    return None


@dataclass(frozen=True)
class Training:
    """A peer whose module has the parameters, and the batch of its next step."""

    module: torch.nn.Module
    replica: Replica
    batch: Any


class Structure:
    """The tensors of a module: trained parameters, then frozen ones, then buffers.

    names    of each tensor, of which a shared one has several
    trained  the numbers of the trained parameters among the replica's
    """

    def __init__(self, module: torch.nn.Module, replica: Replica) -> None:
        self._parameters = list(module.parameters())  # a walk through the module takes long
        self._trains = [each.requires_grad for each in self._parameters]
        masters = [(k, m) for k, m in enumerate(replica.masters) if m.parameter.requires_grad]
        self.trained = [number for number, _ in masters]
        trained = {id(master.parameter): master.name for _, master in masters}
        found: dict[int, list[str]] = {each: [] for each in trained}
        frozen: dict[int, tuple[torch.nn.Module, str]] = {}
        buffers: dict[int, tuple[torch.nn.Module, str]] = {}
        for prefix, owner in module.named_modules(remove_duplicate=False):
            for kind, own in (
                (frozen, owner.named_parameters(recurse=False)),
                (buffers, owner.named_buffers(recurse=False)),
            ):
                for attribute, tensor in own:
                    name = f"{prefix}.{attribute}" if prefix else attribute
                    found.setdefault(id(tensor), []).append(name)
                    if id(tensor) not in trained:
                        kind[id(tensor)] = owner, attribute
        for each, name in trained.items():
            if not found[each]:
                raise Error(
                    f"vmap: parameter {name} of the optimizer is no parameter of the module; make "
                    "it one, or train peers one by one (vmap=False)"
                )
        self.names = [found[each] for each in (*trained, *frozen, *buffers)]
        self._frozen, self._buffers = list(frozen.values()), list(buffers.values())

    def has_changed(self) -> bool:
        """A parameter was frozen, or is trained again."""
        return self._trains != [each.requires_grad for each in self._parameters]

    def frozen(self) -> list[torch.Tensor]:
        return [getattr(owner, attribute).detach() for owner, attribute in self._frozen]

    def buffers(self) -> list[torch.Tensor]:
        return [getattr(owner, attribute).detach() for owner, attribute in self._buffers]


class LossModule(torch.nn.Module):
    """A loss as a module, so that functional_call replaces the tensors that it sees."""

    def __init__(self, module: torch.nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module, self._loss = module, loss

    def forward(self, batch: Any) -> torch.Tensor:
        return self._loss(self.module, batch)


class VmapGradients:
    """Gradients of peers whose modules have the same structure."""

    def __init__(self, loss: Loss, transforms: Transforms) -> None:
        self._loss, self._transforms = loss, transforms
        self._structures: dict[int, Structure] = {}

    def forget(self) -> None:
        """The modules are not used any more."""
        self._structures.clear()

    def backward(self, peers: Sequence[Training]) -> list[float]:
        """The losses, in order. Writes .grad of the parameters, and the modules' buffers.

        Peers whose batches have different shapes are different calls.
        """
        groups: dict[Any, list[int]] = {}
        batches = [FlatBatch(each.batch) for each in peers]
        for index, batch in enumerate(batches):
            groups.setdefault(batch.key, []).append(index)
        losses = [0.0] * len(peers)
        for group in groups.values():
            found = self._backward([peers[i] for i in group], [batches[i] for i in group])
            for index, loss in zip(group, found, strict=True):
                losses[index] = loss
        return losses

    def _backward(self, peers: list[Training], batches: list["FlatBatch"]) -> list[float]:
        for each in peers:  # what was trained before may be frozen now
            each.replica.drop_gradients()
        structures = [self._structure(each) for each in peers]
        buffers = [each.buffers() for each in structures]
        parameters = [
            [each.replica.masters[number].parameter for number in structures[0].trained]
            for each in peers
        ]
        mapped = self._mapped(peers[0].module, structures[0], batches[0])
        try:
            gradients, (losses, changed) = mapped(
                stacked(parameters),
                stacked([each.frozen() for each in structures]),
                stacked(buffers),
                stacked([each.tensors for each in batches]),
            )
        except (RuntimeError, ValueError) as error:
            raise Error(
                "vmap: the loss cannot be computed for all peers in one call; train peers one by "
                f"one (vmap=False), or change the model or the loss: {error}"
            ) from error
        for number, parts in zip(structures[0].trained, gradients, strict=True):
            for each, gradient in zip(peers, parts.unbind(), strict=True):
                each.replica.masters[number].parameter.grad = gradient
        if len(gradients) == len(peers[0].replica.masters) and all(
            each.replica.steps_in_place for each in peers
        ):
            rows = torch.cat([each.reshape(len(peers), -1) for each in gradients], 1)
            for each, row in zip(peers, rows.unbind(), strict=True):
                each.replica.gradient_row = row
        for number, values in enumerate(changed):
            for own, value in zip(buffers, values.unbind(), strict=True):
                own[number].copy_(value)
        return [float(each) for each in losses.tolist()]

    def _mapped(
        self, module: torch.nn.Module, structure: Structure, batch: "FlatBatch"
    ) -> Callable[..., Any]:
        """(trained, frozen, buffers, inputs) -> (gradients, (losses, buffers)), all stacked."""
        loss = LossModule(module, self._loss)
        names = [[f"module.{name}" for name in each] for each in structure.names]

        def of_one_peer(trained: Any, frozen: Any, buffers: Any, inputs: Any) -> Any:
            values = [*trained, *frozen, *buffers]
            tensors = {
                name: value for each, value in zip(names, values, strict=True) for name in each
            }
            found = self._transforms.functional_call(loss, tensors, (batch.rebuilt(inputs),))
            changed = names[len(trained) + len(frozen) :]
            return found, [tensors[each[0]] for each in changed]

        gradient = self._transforms.grad_and_value(of_one_peer, has_aux=True)
        mapped: Callable[..., Any] = self._transforms.vmap(gradient, randomness="different")
        return mapped

    def _structure(self, peer: Training) -> Structure:
        known = self._structures.get(id(peer.replica))
        if known is None or known.has_changed():
            known = self._structures[id(peer.replica)] = Structure(peer.module, peer.replica)
        check_hooks(peer.replica)
        return known


def check_hooks(replica: Replica) -> None:
    """No parameter has a hook: the gradients are made beside them."""
    for master in replica.masters:
        hooks = ("_backward_hooks", "_post_accumulate_grad_hooks")
        if any(getattr(master.parameter, name, None) for name in hooks):
            raise Error(
                f"vmap: parameter {master.name} has a hook, which would not be called; change "
                "gradients in the optimizer, or train peers one by one (vmap=False)"
            )


@torch.no_grad()
def stacked(tensors: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """The tensors of the peers, stacked number by number."""
    return [torch.stack(each) for each in zip(*tensors, strict=True)]


class FlatBatch:
    """The tensors of a batch, and the rest of it: containers, numbers and texts."""

    def __init__(self, batch: Any) -> None:
        self._containers: Any
        if type(batch) in (tuple, list) and all(isinstance(each, torch.Tensor) for each in batch):
            self._leaves, self._containers = list(batch), type(batch)  # at a tenth of the time
        else:
            self._leaves, self._containers = tree_flatten(batch)
        self.tensors = [leaf for leaf in self._leaves if isinstance(leaf, torch.Tensor)]
        self.key = str(self._containers), tuple(self._kind(leaf) for leaf in self._leaves)

    def rebuilt(self, tensors: list[Any]) -> Any:
        """The batch with other tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        if isinstance(self._containers, type):
            return self._containers(leaves)
        return tree_unflatten(leaves, self._containers)

    def _kind(self, leaf: Any) -> Any:
        """Batches whose leaves have the same kinds can be stacked."""
        if isinstance(leaf, torch.Tensor):
            return leaf.shape, leaf.dtype, leaf.device
        if leaf is None or isinstance(leaf, bool | int | float | str):
            return type(leaf), leaf
        raise Error(
            f"vmap: a batch holds tensors, numbers, texts and containers of them, and no "
            f"{type(leaf).__name__}; convert it, or train peers one by one (vmap=False)"
        )
