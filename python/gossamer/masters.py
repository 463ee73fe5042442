"""The float32 tensors in which an optimizer steps, and which a row of the runtime holds."""

from typing import Any

import torch

from gossamer._core import Error
from gossamer.staging import on_host

Own = tuple[torch.Tensor, torch.Tensor | None]  # the values and the gradient of a parameter


class Master:
    """A parameter, and the float32 tensor in which its optimizer steps.

    The master of a parameter on the CPU is a view of a row. On another device it is a buffer there,
    which the replica copies from and to the row. A float32 parameter is its master; one of another
    precision is rounded from it.
    """

    def __init__(self, parameter: torch.Tensor, name: str) -> None:
        if not parameter.is_floating_point():
            raise Error(f"parameter {name} is of {parameter.dtype}; rows hold real numbers")
        self.parameter, self.name = parameter, name
        self.shape, self.device = parameter.shape, parameter.device
        self.dtype = parameter.dtype
        self.exact = parameter.dtype == torch.float32
        self.in_place = on_host(parameter.device)
        self.tensor = self._own_tensor()

    def values(self) -> torch.Tensor:
        """The values of the parameter that this process holds."""
        return self.parameter.detach()

    def gradient(self) -> torch.Tensor | None:
        """The gradient of values()."""
        gradient: torch.Tensor | None = self.parameter.grad
        return gradient

    def wrap(self, local: torch.Tensor) -> torch.Tensor:
        """A gradient or a moment of values(), as the optimizer takes it."""
        wrapped: torch.Tensor = local.to(self.device)
        return wrapped

    def copied(self) -> torch.Tensor:
        """The tensor that is copied from and to the row, unless in_place."""
        return self.tensor

    def take(self, view: torch.Tensor) -> None:
        """The parameter takes the values of its part of a row, which copied() has already."""
        if self.in_place:
            self.tensor = view
        if self.exact:
            self.parameter.data = self.tensor
        else:
            self.parameter.data.copy_(self.tensor)

    def bind(self) -> Own:
        """The parameter is its master, without gradient, until unbind(), which takes the result."""
        own = self.parameter.data, self.parameter.grad
        self.parameter.grad = None
        if not self.exact:
            self.parameter.data = self.tensor
        return own

    def unbind(self, own: Own) -> None:
        data, gradient = own
        self.parameter.grad = None
        if not self.exact:
            self.parameter.data = data
            data.copy_(self.tensor)
        self.parameter.grad = gradient

    def release(self) -> None:
        """The parameter owns its memory again, with the values it has."""
        self.parameter.data = self.parameter.data.clone()
        self.tensor = self._own_tensor()

    def check(self) -> None:
        """The parameter is still the one that was wrapped."""
        if self.parameter.shape != self.shape or self.parameter.device != self.device:
            raise Error(
                f"parameter {self.name} has changed: its shape was {tuple(self.shape)} on "
                f"{self.device}, and is {tuple(self.parameter.shape)} on {self.parameter.device}; "
                "move and resize a model before its optimizer is wrapped"
            )
        if self.parameter.dtype != self.dtype:
            raise Error(
                f"parameter {self.name} has changed: it was of {self.dtype}, and is of "
                f"{self.parameter.dtype}; convert a model before its optimizer is wrapped"
            )
        if self.exact and self.parameter.data_ptr() != self.tensor.data_ptr():
            raise Error(
                f"parameter {self.name} has other memory than its row: something replaced its "
                ".data; write its values in place (parameter.copy_ under torch.no_grad)"
            )

    def _own_tensor(self) -> torch.Tensor:
        """The master while there is no row."""
        tensor = self.parameter.detach()
        return tensor if self.exact and self.in_place else tensor.float().clone()


class ShardMaster(Master):
    """A DTensor, of which the row holds the shard of this process.

    The optimizer steps on the DTensor. Its memory belongs to the code that made it, such as FSDP,
    so the local tensor is copied from and to the row.
    """

    def __init__(self, parameter: Any, name: str) -> None:
        if parameter.dtype != torch.float32:
            raise Error(
                f"parameter {name} is a DTensor of {parameter.dtype}; keep sharded parameters in "
                "float32, and compute in another precision (MixedPrecisionPolicy of fully_shard)"
            )
        self.parameter, self.name = parameter, name
        self.shape, self.device = self.values().shape, parameter.device
        self.exact, self.in_place = True, False

    def values(self) -> torch.Tensor:
        parameter: Any = self.parameter
        with torch.no_grad():
            local: torch.Tensor = parameter.to_local()
        return local.detach()

    def gradient(self) -> torch.Tensor | None:
        gradient: Any = self.parameter.grad
        if gradient is None:
            return None
        parameter: Any = self.parameter
        with torch.no_grad():
            if gradient.placements != parameter.placements:  # such as partial sums
                gradient = gradient.redistribute(placements=parameter.placements)
            local: torch.Tensor = gradient.to_local()
        return local

    def wrap(self, local: torch.Tensor) -> torch.Tensor:
        parameter: Any = self.parameter
        wrapped: torch.Tensor = type(parameter).from_local(
            local.to(self.device),
            parameter.device_mesh,
            parameter.placements,
            run_check=False,
            shape=parameter.shape,
            stride=parameter.stride(),
        )
        return wrapped

    def copied(self) -> torch.Tensor:
        return self.values()

    def take(self, view: torch.Tensor) -> None:
        """The local tensor has the values already."""

    def bind(self) -> Own:
        gradient = self.parameter.grad
        self.parameter.grad = None
        return self.parameter, gradient

    def unbind(self, own: Own) -> None:
        self.parameter.grad = own[1]

    def release(self) -> None:
        """The parameter has memory of its own already."""

    def check(self) -> None:
        local = self.values()
        if local.shape != self.shape or local.device != self.device:
            raise Error(
                f"parameter {self.name} has changed: the shape of its shard was "
                f"{tuple(self.shape)} on {self.device}, and is {tuple(local.shape)} on "
                f"{local.device}; shard and move a model before its optimizer is made"
            )

    def position(self) -> tuple[int, int]:
        """The number of this process in the parameter's device mesh, and the size of the mesh."""
        parameter: Any = self.parameter
        mesh, index = parameter.device_mesh, 0
        for coordinate, size in zip(mesh.get_coordinate(), mesh.mesh.shape, strict=True):
            index = index * size + coordinate
        return index, int(mesh.mesh.numel())


def master_of(parameter: torch.Tensor, name: str) -> Master:
    """DTensors are known by their method, so that torch.distributed need not be imported."""
    if parameter.device.type == "meta":
        raise Error(
            f"parameter {name} is on the device meta, and has no values; give it memory and values "
            "(Module.to_empty, load_state_dict) before the optimizer is wrapped"
        )
    sharded = hasattr(parameter, "to_local") and hasattr(parameter, "device_mesh")
    return ShardMaster(parameter, name) if sharded else Master(parameter, name)


def local_parts(value: Any) -> Any:
    """The state of an optimizer with each DTensor replaced by the shard of this process."""
    if isinstance(value, dict):
        return {key: local_parts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(local_parts(each) for each in value)
    return value.to_local() if hasattr(value, "to_local") else value
