"""Parameters of a module that its optimizer does not have, such as those of a frozen backbone.

Rows do not hold them, and peers do not average them. With run.init = "same" they start alike at all
peers, as the parameters in the rows do.
"""

from hashlib import sha256
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gossamer.trainer import TensorHash


def untrained_parameters(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> list[tuple[str, torch.Tensor]]:
    """Those that have values: a parameter on the device meta, and a lazy one, has none."""
    trained = {id(each) for group in optimizer.param_groups for each in group["params"]}
    return [
        (name, each)
        for name, each in module.named_parameters()
        if id(each) not in trained and each.device.type != "meta" and not is_lazy(each)
    ]


def tensor_hash(name: str, tensor: Any) -> TensorHash:
    """Of the values and their type. Of a DTensor, of the part that this process holds."""
    values = tensor.detach()
    values = values.to_local() if hasattr(values, "to_local") else values
    values = values if values.layout == torch.strided else values.to_dense()
    found = sha256(str(values.dtype).encode())
    found.update(values.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return name, list(values.shape), found.hexdigest()
