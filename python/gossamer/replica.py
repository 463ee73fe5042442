"""A PyTorch model whose parameters are taken from rows of the runtime, and written back to them."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gossamer._core import Error
from gossamer.masters import Master, ShardMaster, local_parts, master_of

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
        self._views: dict[int, list[torch.Tensor]] = {}

    @property
    def rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def linear_steps(self) -> bool:
        return isinstance(self.optimizer, torch.optim.SGD)

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

    def take_copy(self, x: Any) -> None:
        """take() of a row that does not last: the parameters own their memory afterwards."""
        self._take([part.clone() for part in self._split(x)])

    def take(self, x: Any) -> None:
        """The parameters, and the mixed buffers, take the values of x."""
        self._take(self._parts(x))

    @torch.no_grad()
    def write_gradient(self, row: Any) -> None:
        for master, view in zip(self.masters, self._parts(row), strict=False):
            gradient = master.gradient()
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        for _, view in self._buffer_parts(row):
            view.zero_()

    @torch.no_grad()
    def local_step(self, x: Any) -> None:
        """One step of the optimizer with the gradients of the parameters, which hold x."""
        with self.stepping([master.parameter.grad for master in self.masters]):
            self.optimizer.step()
        self.store(x)

    @torch.no_grad()
    def update(self, x: Any, gradient: Any) -> None:
        """One step of the optimizer on x with the gradient of a row."""
        for master, view in zip(self.masters, self._parts(x), strict=False):
            master.take(view)
        gradients = [
            master.wrap(view)
            for master, view in zip(self.masters, self._parts(gradient), strict=False)
        ]
        with self.stepping(gradients):
            self.optimizer.step()
        self.store(x)

    @contextmanager
    def stepping(self, gradients: Sequence[torch.Tensor | None]) -> Iterator[None]:
        """The optimizer may step: the parameters are their masters, and have these gradients."""
        with self._on_masters():
            for master, gradient in zip(self.masters, gradients, strict=True):
                if gradient is not None:
                    master.parameter.grad = gradient.to(torch.float32)
            yield
            for master in self.masters:
                master.parameter.grad = None

    def store(self, row: Any) -> None:
        """The row takes the values that no view of it has: of other devices, and of buffers."""
        for master, view in zip(self.masters, self._parts(row), strict=False):
            master.store(view)
        for (_, buffer), view in self._buffer_parts(row):
            view.copy_(buffer)

    def state(self) -> dict[str, Any]:
        """What the row lacks: the state of the optimizer, and buffers that are not mixed."""
        return {
            "optimizer": local_parts(self.optimizer.state_dict()),
            "buffers": {name: buffer.detach() for name, buffer in self.own_buffers},
        }

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        self._wrap_state(state["optimizer"])
        with self._on_masters():  # torch gives the state the precision of the parameters
            self.optimizer.load_state_dict(state["optimizer"])
        saved = state["buffers"]
        for name, buffer in self.own_buffers:
            if name not in saved or saved[name].shape != buffer.shape:
                raise Error(f"the checkpoint has no buffer {name} of shape {tuple(buffer.shape)}")
            buffer.copy_(saved[name])

    def release(self) -> None:
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

    def _parameter_ids(self) -> list[int]:
        return [id(p) for group in self.optimizer.param_groups for p in group["params"]]

    def _parts(self, row: Any) -> list[torch.Tensor]:
        """The parts of one of the run's rows. They are few, and last, so the parts are kept."""
        flat = torch.from_dlpack(row)
        parts = self._views.get(flat.data_ptr())
        if parts is None:
            parts = self._views[flat.data_ptr()] = self._split(flat)
        return parts

    def _split(self, row: Any) -> list[torch.Tensor]:
        """Views of the parts of a row, by tensor."""
        flat = row if isinstance(row, torch.Tensor) else torch.from_dlpack(row)
        shapes = [master.shape for master in self.masters]
        shapes += [buffer.shape for _, buffer in self.buffers]
        lengths = [shape.numel() for shape in shapes]
        return [part.view(shape) for part, shape in zip(flat.split(lengths), shapes, strict=True)]

    def _buffer_parts(self, row: Any) -> Iterable[tuple[tuple[str, torch.Tensor], torch.Tensor]]:
        return zip(self.buffers, self._parts(row)[len(self.masters) :], strict=True)

    @torch.no_grad()
    def _take(self, parts: list[torch.Tensor]) -> None:
        for master, part in zip(self.masters, parts, strict=False):
            master.take(part)
        for (_, buffer), part in zip(self.buffers, parts[len(self.masters) :], strict=True):
            buffer.copy_(part)


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


def to_bytes(state: Any) -> bytes:
    """A state of tensors, numbers, texts, and dicts, lists and tuples of them."""
    tensors: list[torch.Tensor] = []
    shape = json.dumps(_shape(state, tensors)).encode()
    stream = io.BytesIO()
    torch.save(tensors, stream)
    return len(shape).to_bytes(8, "little") + shape + stream.getvalue()


def from_bytes(saved: bytes) -> Any:
    """Reads to_bytes(). No code of the file runs: torch's full unpickler would run it, and its
    restricted one reads no numbers in torch 1.13."""
    try:
        end = 8 + int.from_bytes(saved[:8], "little")
        shape = json.loads(saved[8:end])
        tensors = torch.load(io.BytesIO(saved[end:]), map_location="cpu", weights_only=True)
        return _filled(shape, tensors)
    except Exception as error:
        raise Error(
            f"the state of the program in the checkpoint cannot be read: {error}"
        ) from error


def _shape(value: Any, tensors: list[torch.Tensor]) -> Any:
    """The value as JSON, without its tensors: a container is an object of one entry."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, dict):
        entries = [[_shape(key, tensors), _shape(each, tensors)] for key, each in value.items()]
        return {"dict": entries}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_shape(each, tensors) for each in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Error(
        f"state: a checkpoint holds tensors, numbers, texts and containers of them, and no "
        f"{type(value).__name__}"
    )


def _filled(shape: Any, tensors: list[torch.Tensor]) -> Any:
    if not isinstance(shape, dict):
        return shape
    ((kind, content),) = shape.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_filled(key, tensors): _filled(each, tensors) for key, each in content}
    values = [_filled(each, tensors) for each in content]
    return values if kind == "list" else tuple(values)


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
