"""The bytes of a program's state in a checkpoint, which are read without running code."""

import io
import json
from typing import Any

import torch

from gossamer._core import Error


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
