"""Averaging of PyTorch tensors (gossamer.torch.Averager, gossamer.torch.average)."""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import torch

from gossamer import averager
from gossamer.staging import Stager


class Averager(averager.Averager):
    """Averages tensors with those of the neighbours, in place: gossamer.Averager for PyTorch.

    The tensors may be of any float dtype, shape and device, and may be parameters:
    `model.state_dict()` without integer tensors, or `dict(model.named_parameters())`.
    """

    def close(self) -> None:
        """Leaves the network. The tensors keep their values."""
        self._stager.release()
        super().close()

    @cached_property
    def _stager(self) -> Stager:
        return Stager()

    def _store(self, row: Any) -> None:
        copies = [(part, tensor.detach()) for part, tensor in self._parts(row)]
        self._stager.pull(self._flat(row), copies)

    def _take(self, row: Any) -> None:
        copies = [(tensor.detach(), part) for part, tensor in self._parts(row)]
        self._stager.push(self._flat(row), copies)

    def _problem(self, tensor: Any) -> str | None:
        if not isinstance(tensor, torch.Tensor):
            return f"is of {type(tensor).__name__}, and no torch.Tensor"
        if hasattr(tensor, "to_local"):
            return "is a DTensor; give its local tensor, tensor.to_local(), which is averaged"
        if not tensor.is_floating_point():
            return f"is of {tensor.dtype}; rows hold real numbers"
        if tensor.is_meta or tensor.layout != torch.strided:
            return f"is on {tensor.device} with layout {tensor.layout}, and has no dense values"
        if any(
            each == 0 < size - 1 for each, size in zip(tensor.stride(), tensor.shape, strict=True)
        ):
            return "has several elements in one place of memory; give a clone, tensor.clone()"
        return None

    def _place(self, tensor: Any) -> str:
        return f"{tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}"

    def _flat(self, row: Any) -> Any:
        return torch.from_dlpack(row)

    def _is_finite(self, tensor: Any) -> bool:
        return bool(torch.isfinite(tensor.float()).all())


def average(
    tensors: Mapping[str, torch.Tensor] | Iterable[torch.Tensor],
    config: str | os.PathLike[str],
    peer: int | None = None,
    **options: Any,
) -> bool:
    """Mixes tensors once with the neighbours', in place: gossamer.average() for PyTorch."""
    return averager.average_once(Averager, tensors, config, peer, options)
