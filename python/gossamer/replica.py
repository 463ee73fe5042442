"""A PyTorch model whose parameters are taken from rows of the runtime, and written back to them."""

import copy
import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gossamer._core import Error
from gossamer.masters import Master, ShardMaster, local_parts, master_of
from gossamer.row_state import RowState
from gossamer.staging import Copy, Stager
from gossamer.trainer import TensorHash
from gossamer.untrained import tensor_hash, untrained_parameters

BUFFERS = ("refuse", "keep", "mix")


class Replica:
    """The parameters of one peer: those of an optimizer, and a module's buffers if they are mixed.

    Rows are 1-dimensional float32 arrays of the runtime, and are taken over DLPack.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        module: torch.nn.Module | None = None,
        buffers: str = "refuse",
    ) -> None:
        if buffers not in BUFFERS:
            raise Error(f"buffers: '{buffers}' is not one of {', '.join(BUFFERS)}")
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.masters: list[Master] = []
        names = {} if module is None else {id(p): name for name, p in module.named_parameters()}
        for number, group in enumerate(optimizer.param_groups):
            for index, parameter in enumerate(group["params"]):
                name = names.get(id(parameter), f"{number}.{index}")
                self.masters.append(master_of(parameter, name))
        self.buffers = mixed_buffers(module, buffers)
        mixed = {name for name, _ in self.buffers}
        named = [] if module is None else module.named_buffers()
        self.own_buffers = [(name, buffer) for name, buffer in named if name not in mixed]
        self._length = sum(master.shape.numel() for master in self.masters)
        self._length += sum(buffer.numel() for _, buffer in self.buffers)
        self._listed = self._parameter_ids()
        self._untrained = [] if module is None else untrained_parameters(module, optimizer)
        self._module = module
        self._of_module = self._module_ids()
        if module is not None and not set(self._listed) & set(self._of_module):
            raise Error(
                "module: none of its parameters is the optimizer's; make the optimizer with the "
                "parameters of this module, after the last time that the module was changed"
            )
        self._first_state = copy.deepcopy(local_parts(optimizer.state_dict())["state"])
        self._views: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}
        self._stager = Stager()
        # A step on a row is one on the parameters, which are views of it.
        self.steps_in_place = all(
            type(master) is Master and master.exact and master.in_place for master in self.masters
        )
        self._row_states: list[RowState] = []
        # The gradients of the parameters one after the other, for the next step.
        self.gradient_row: torch.Tensor | None = None

    @property
    def rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def has_buffers(self) -> bool:
        return bool(self.buffers)

    @property
    def linear_steps(self) -> bool:
        """torch wraps the methods of optimizer classes, those of subclasses anew."""
        sgd, own = torch.optim.SGD, type(self.optimizer)
        return issubclass(own, sgd) and inspect.unwrap(own.step) is inspect.unwrap(sgd.step)

    def tensors(self) -> list[tuple[str, list[int]]]:
        named = [(master.name, list(master.shape)) for master in self.masters]
        return named + [(name, list(buffer.shape)) for name, buffer in self.buffers]

    @torch.no_grad()
    def write_initial(self, row: Any) -> None:
        parts = self._split(row)
        tensors = [master.values() for master in self.masters]
        for tensor, view in zip(tensors + [each for _, each in self.buffers], parts, strict=True):
            view.copy_(tensor)

    def initial_bytes(self) -> bytes:
        row = torch.empty(self._length)
        self.write_initial(row)
        return bytes(row.numpy().tobytes())

    def untrained_hashes(self) -> list[TensorHash]:
        """Those of the module's parameters that no row has."""
        return [tensor_hash(name, parameter) for name, parameter in self._untrained]

    @torch.no_grad()
    def take_copy(self, x: Any) -> None:
        """take() of a row that does not last: the parameters own their memory afterwards."""
        parts = [part.clone() for part in self._split(x)]
        for target, part in self._master_copies(parts) + self._buffer_copies(parts):
            target.copy_(part)
        self._adopt(parts)

    @torch.no_grad()
    def take_mean_buffers(self, replicas: Sequence["Replica"]) -> None:
        """Floating-point buffers that no row has take the mean of those of `replicas`, if any; one
        that has another shape there stays."""
        named = [dict(each.own_buffers) for each in replicas]
        for name, own in self.own_buffers if named else []:
            values = [each.get(name, own) for each in named]
            if not own.is_floating_point() or any(each.shape != own.shape for each in values):
                continue
            mean = torch.stack([each.to(own.device, torch.float64) for each in values]).mean(0)
            if not torch.equal(own, mean.to(own.dtype)):  # an expanded buffer cannot be written
                own.copy_(mean)

    @torch.no_grad()
    def take(self, x: Any) -> None:
        """The parameters, and the mixed buffers, take the values of x, which must not change until
        store() or write_gradient()."""
        row, parts = self._row(x)
        self._stager.push(row, self._master_copies(parts) + self._buffer_copies(parts))
        self._adopt(parts)

    @torch.no_grad()
    def write_gradient(self, gradient: Any) -> None:
        row, parts = self._row(gradient)
        copies: list[Copy] = []
        for index, view in enumerate(parts):
            own = self.masters[index].gradient() if index < len(self.masters) else None
            if own is None:  # of a parameter that has none, or of a buffer
                view.zero_()
            else:
                copies.append((view, own.to_dense() if own.is_sparse else own))
        self._stager.pull(row, copies)

    @torch.no_grad()
    def local_step(self) -> None:
        """One step of the optimizer with the gradients of the parameters. A row has the new values
        after store()."""
        with self.stepping([master.parameter.grad for master in self.masters]):
            self.optimizer.step()

    @torch.no_grad()
    def update(self, x: Any, gradient: Any) -> None:
        """One step of the optimizer on x with the gradient of a row."""
        row, parts = self._row(x)
        self._stager.push(row, self._master_copies(parts))  # buffers are newer than x
        self._adopt(parts)
        with self.stepping(self._gradients(gradient)):
            self.optimizer.step()
        self.store(x)

    def _gradients(self, gradient: Any) -> list[torch.Tensor]:
        """The parts of a row with a gradient, each where its parameter is."""
        row, parts = self._row(gradient)
        copies: list[Copy] = []
        gradients = []
        for master, part in zip(self.masters, parts, strict=False):
            local = part
            if not master.in_place:
                local = torch.empty_like(part, device=master.device)
                copies.append((local, part))
            gradients.append(master.wrap(local))
        self._stager.push(row, copies)
        return gradients

    def drop_gradients(self) -> None:
        self.gradient_row = None
        for master in self.masters:
            master.parameter.grad = None

    def row_states(self) -> list[RowState] | None:
        """The state of the optimizer by group, as that of parts of a row; None if it has no such
        form, or if there is no row of gradients."""
        if self.gradient_row is None:
            return None
        if self._row_states and all(each.is_current() for each in self._row_states):
            return self._row_states
        states = [
            RowState.of(self.optimizer, group["params"]) for group in self.optimizer.param_groups
        ]
        self._row_states = [each for each in states if each is not None]
        return self._row_states if len(self._row_states) == len(states) else None

    def row_parts(self, x: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The part of a row that each group of the optimizer has, and that of gradient_row."""
        assert self.gradient_row is not None
        lengths = [state.length for state in self._row_states]
        row = self._row(x)[0][: len(self.gradient_row)]
        parts = list(zip(row.split(lengths), self.gradient_row.split(lengths), strict=True))
        self.gradient_row = None
        return parts

    @contextmanager
    def stepping(self, gradients: Sequence[torch.Tensor | None]) -> Iterator[None]:
        """The optimizer may step: the parameters are their masters, and have these gradients."""
        self._row_states, self.gradient_row = [], None
        with self._on_masters():
            for master, gradient in zip(self.masters, gradients, strict=True):
                if gradient is not None:
                    master.parameter.grad = gradient.to(torch.float32)
            yield
            for master in self.masters:
                master.parameter.grad = None

    @torch.no_grad()
    def store(self, x: Any) -> None:
        """The row takes the values that no view of it has: of other devices, and of buffers."""
        row, parts = self._row(x)
        copies = self._master_copies(parts) + self._buffer_copies(parts)
        self._stager.pull(row, [(part, tensor) for tensor, part in copies])

    def state(self) -> dict[str, Any]:
        """What the row lacks: the state of the optimizer, and buffers that are not mixed."""
        return {
            "optimizer": local_parts(self.optimizer.state_dict()),
            "buffers": {name: buffer.detach() for name, buffer in self.own_buffers},
        }

    def reset(self) -> None:
        """The optimizer's state is again as it was when it was wrapped; its options stay."""
        now = local_parts(self.optimizer.state_dict())
        self._load_optimizer(now | {"state": copy.deepcopy(self._first_state)})

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        self._load_optimizer(state["optimizer"])
        saved = state["buffers"]
        for name, buffer in self.own_buffers:
            if name not in saved or saved[name].shape != buffer.shape:
                raise Error(f"the checkpoint has no buffer {name} of shape {tuple(buffer.shape)}")
            buffer.copy_(saved[name])

    def _load_optimizer(self, state: dict[str, Any]) -> None:
        self._wrap_state(state)
        with self._on_masters():  # torch gives the state the precision of the parameters
            self.optimizer.load_state_dict(state)

    def release(self) -> None:
        self._stager.release()
        for master in self.masters:
            master.release()
        self._views.clear()

    def check(self) -> None:
        """The optimizer has the parameters that it had when it was wrapped."""
        if self._parameter_ids() != self._listed:
            raise Error(
                "the parameter list of the optimizer has changed; rows have a fixed layout, so add "
                "and remove parameters before the optimizer is wrapped"
            )
        for master in self.masters:
            master.check()

    def check_module(self) -> None:
        """The module has the parameters that it had: a walk through it, once in a round."""
        if self._module_ids() != self._of_module:
            raise Error(
                "the parameters of the module are others than those that the optimizer was "
                "wrapped with; change a model before its optimizer is made"
            )

    def check_gradients(self, step: int) -> None:
        name = first_not_finite((master.name, master.gradient()) for master in self.masters)
        if name is not None:
            raise Error(
                f"the gradient of parameter {name} is not finite in local step {step}; leave the "
                "batch out (optimizer.zero_grad(), and no step), or use a smaller learning rate"
            )

    def first_not_finite(self) -> str | None:
        """The name of the first parameter that is not finite."""
        return first_not_finite((master.name, master.values()) for master in self.masters)

    @contextmanager
    def _on_masters(self) -> Iterator[None]:
        """The parameters are their masters, without gradients; afterwards they are as before."""
        own = [master.bind() for master in self.masters]
        try:
            yield
        finally:
            for master, each in zip(self.masters, own, strict=True):
                master.unbind(each)

    def _wrap_state(self, saved: dict[str, Any]) -> None:
        """The reverse of local_parts(): moments have the shape of their parameter."""
        for number, master in enumerate(self.masters):
            if isinstance(master, ShardMaster):
                moments = saved["state"].get(number, {})
                for name, value in moments.items():
                    if isinstance(value, torch.Tensor) and value.shape == master.shape != ():
                        moments[name] = master.wrap(value)

    def _module_ids(self) -> list[int]:
        return [] if self._module is None else [id(p) for p in self._module.parameters()]

    def _parameter_ids(self) -> list[int]:
        return [id(p) for group in self.optimizer.param_groups for p in group["params"]]

    def _row(self, row: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """One of the run's rows, and its parts. They are few, and last, so both are kept."""
        flat = torch.from_dlpack(row)
        if flat.data_ptr() not in self._views:
            self._views[flat.data_ptr()] = flat, self._split(flat)
        return self._views[flat.data_ptr()]

    def _split(self, row: Any) -> list[torch.Tensor]:
        """Views of the parts of a row, by tensor."""
        flat = row if isinstance(row, torch.Tensor) else torch.from_dlpack(row)
        shapes = [master.shape for master in self.masters]
        shapes += [buffer.shape for _, buffer in self.buffers]
        lengths = [shape.numel() for shape in shapes]
        return [part.view(shape) for part, shape in zip(flat.split(lengths), shapes, strict=True)]

    def _master_copies(self, parts: list[torch.Tensor]) -> list[Copy]:
        """The tensors that are copied from parts of a row."""
        return [
            (master.copied(), part)
            for master, part in zip(self.masters, parts, strict=False)
            if not master.in_place
        ]

    def _buffer_copies(self, parts: list[torch.Tensor]) -> list[Copy]:
        return [
            (buffer, part)
            for (_, buffer), part in zip(self.buffers, parts[len(self.masters) :], strict=True)
        ]

    def _adopt(self, parts: list[torch.Tensor]) -> None:
        """The parameters take the values that their masters have after the copies."""
        for master, part in zip(self.masters, parts, strict=False):
            master.take(part)


def check_optimizer(optimizer: Any) -> None:
    if not all(hasattr(optimizer, name) for name in ("param_groups", "step", "state_dict")):
        raise Error(f"optimizer: {type(optimizer).__name__} is no optimizer of torch")
    # That of the class: a scheduler replaces the method, by a function without a sound signature.
    step = getattr(type(optimizer), "step", None)
    arguments = [] if step is None else list(inspect.signature(step).parameters.values())[1:]
    if any(
        each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        for each in arguments
    ):
        raise Error(
            f"optimizer: {type(optimizer).__name__} computes the loss several times a step, and a "
            "local step has one gradient; use one whose step() needs no argument, such as SGD or "
            "AdamW"
        )


def first_not_finite(tensors: Iterable[tuple[str, torch.Tensor | None]]) -> str | None:
    """The name of the first tensor that is not finite. Waits for a device once: for the sums."""
    named = [
        (name, each.coalesce().values() if each.is_sparse else each)
        for name, each in tensors
        if each is not None
    ]
    if not named or bool(torch.isfinite(sum_of_sums([each for _, each in named]))):
        return None
    for name, each in named:
        if not bool(torch.isfinite(each).all()):
            return name
    return None  # only the sum is too large


def sum_of_sums(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    device = tensors[0].device
    return torch.stack([each.sum().float().to(device) for each in tensors]).sum()


def mixed_buffers(module: torch.nn.Module | None, option: str) -> list[tuple[str, torch.Tensor]]:
    """The floating-point buffers of a module that travel with its parameters."""
    if module is None:
        if option == "mix":
            raise Error(
                "buffers = 'mix' needs the module whose buffers are mixed: give module=model"
            )
        return []
    found = [
        (name, buffer) for name, buffer in module.named_buffers() if buffer.is_floating_point()
    ]
    if found and option == "refuse":
        raise Error(
            f"the module has buffers that are no parameters ({found[0][0]}, and "
            f"{len(found) - 1} more), such as the statistics of a batch norm; choose "
            "buffers='keep' (each peer keeps its own) or buffers='mix' (they are averaged with the "
            "parameters)"
        )
    return found if option == "mix" else []
