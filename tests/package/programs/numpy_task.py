"""The file of a task, which a configuration names."""

from collections.abc import Mapping
from typing import Any

from tasks import NumpySoftmax


class Scaled(NumpySoftmax):
    def __init__(self, peers: int, rate: float, fails_at: int) -> None:
        super().__init__(peers)
        self.own_rate, self.fails_at = rate, fails_at

    def update(self, peer: int, step: int, values: Any, gradient: Any) -> Any:
        if step == self.fails_at:
            raise ValueError(f"step {step}")
        return values - self.own_rate * gradient

    def rate(self, peer: int) -> float:
        return self.own_rate


def task(
    config: Mapping[str, Mapping[str, Any]], *, rate: float = 0.1, fails_at: int = -1
) -> NumpySoftmax:
    return Scaled(config["run"]["peers"], rate, fails_at)
