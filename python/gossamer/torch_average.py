"""Averaging of PyTorch tensors (gossamer.torch.Averager)."""

from typing import Any

import torch

from gossamer import average


class Averager(average.Averager):
    """Averages tensors with those of the neighbours, in place: gossamer.Averager for PyTorch.

    The tensors may be on any device, and may be parameters: `model.state_dict()` without integer
    tensors, or `dict(model.named_parameters())`.
    """

    def _problem(self, tensor: Any) -> str | None:
        if not isinstance(tensor, torch.Tensor):
            return f"is of {type(tensor).__name__}, and no torch.Tensor"
        if hasattr(tensor, "to_local"):
            return "is a DTensor; give its local tensor, tensor.to_local(), which is averaged"
        if not tensor.is_floating_point():
            return f"is of {tensor.dtype}; rows hold real numbers"
        if tensor.is_meta or tensor.layout != torch.strided:
            return f"is on {tensor.device} with layout {tensor.layout}, and has no dense values"
        return None

    def _place(self, tensor: Any) -> str:
        return f"{tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}"

    def _flat(self, row: Any) -> Any:
        return torch.from_dlpack(row)

    def _assign(self, target: Any, source: Any) -> None:
        target.detach().copy_(source.detach())

    def _is_finite(self, tensor: Any) -> bool:
        return bool(torch.isfinite(tensor).all())
