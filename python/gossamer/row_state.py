"""The state of an optimizer whose parameters are one tensor, the row."""

from collections.abc import Sequence
from typing import Any

import torch


class RowState:
    """The state of a group of parameters that lie in a row, one after the other.

    values   the state of the row, by name: tensors of its shape, and numbers of the whole group

    The optimizer's own state, by parameter, has views of these tensors, and copies of those of
    shape (), such as a count of steps: as if the parameters had stepped one by one.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor], values: Any
    ) -> None:
        self.values: dict[str, Any] = values
        self._optimizer, self._parameters = optimizer, parameters
        self._lengths = [parameter.numel() for parameter in parameters]
        self.length = sum(self._lengths)
        self._shared: list[dict[str, Any]] = []  # by parameter
        self._names: list[tuple[str, int]] = []  # with the identity of the tensor that has views

    @classmethod
    def of(
        cls, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]
    ) -> "RowState | None":
        """None if the states of the parameters are not those of one tensor."""
        if all(parameter.shape == () for parameter in parameters):  # as numbers of the group are
            return None if parameters else cls(optimizer, parameters, {})
        states = [optimizer.state.get(parameter) or {} for parameter in parameters]
        if any(each.keys() != states[0].keys() for each in states):
            return None
        values, shaped = {}, []
        for name in states[0]:
            own = [each[name] for each in states]
            if all(map(has_shape_of, own, parameters)):
                shaped.append(name)
            elif all(is_equal_number(value, own[0]) for value in own):
                values[name] = own[0].clone() if isinstance(own[0], torch.Tensor) else own[0]
            else:
                return None
        for name in shaped:
            values[name] = torch.cat([each[name].reshape(-1) for each in states])
        return cls(optimizer, parameters, values)

    def is_current(self) -> bool:
        """Nothing else has replaced the state of the parameters."""
        state = self._optimizer.state
        if not self._shared:
            return not any(state.get(parameter) for parameter in self._parameters)
        return all(
            state.get(parameter) is own
            for parameter, own in zip(self._parameters, self._shared, strict=True)
        )

    def share(self) -> None:
        """The optimizer's state has the values of the row, after a step."""
        names = [(name, id(value)) for name, value in self.values.items()]
        if names == self._names:  # the step was in place
            for name, value in self.values.items():
                if isinstance(value, torch.Tensor) and value.shape == ():
                    for own in self._shared:
                        own[name].copy_(value)
            return
        self._names = names
        self._shared = [{} for _ in self._parameters]
        for name, value in self.values.items():
            if not isinstance(value, torch.Tensor):
                parts: Sequence[Any] = [value] * len(self._parameters)
            elif value.shape == ():
                parts = [value.clone() for _ in self._parameters]
            else:
                of_row = zip(value.split(self._lengths), self._parameters, strict=True)
                parts = [part.view(parameter.shape) for part, parameter in of_row]
            for own, part in zip(self._shared, parts, strict=True):
                own[name] = part
        for parameter, own in zip(self._parameters, self._shared, strict=True):
            self._optimizer.state[parameter] = own


def has_shape_of(value: Any, parameter: torch.Tensor) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == parameter.shape


def is_equal_number(value: Any, other: Any) -> bool:
    """Both are None, the same number, or tensors of shape () with it."""
    if isinstance(value, torch.Tensor) != isinstance(other, torch.Tensor):
        return False
    if isinstance(value, torch.Tensor) and (value.shape != () or other.shape != ()):
        return False
    return bool(value == other)
