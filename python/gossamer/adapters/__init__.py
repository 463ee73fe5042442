"""Callbacks that make the training loops of other libraries peers, one module for each library."""

import os
from typing import Any

import torch

import gossamer.torch as gossip


class JoiningCallback:
    """Joins the network when the training starts, and ends the training after the last round.

    config, peer and the other options are those of gossamer.torch.Optimizer. A step of the
    library's one optimizer is a local step. The library's own limit of steps should be at least
    run.rounds × algorithm.local_steps; otherwise this peer leaves before the last round.
    """

    def __init__(
        self, config: str | os.PathLike[str], peer: int | None = None, **options: Any
    ) -> None:
        self._config, self._peer, self._options = config, peer, options
        self.optimizer: gossip.Optimizer | None = None

    def join(self, optimizer: torch.optim.Optimizer, module: torch.nn.Module) -> gossip.Optimizer:
        """The optimizer with which the library trains from now on."""
        self.optimizer = gossip.Optimizer(
            optimizer, self._config, self._peer, module=module, **self._options
        )
        return self.optimizer

    @property
    def finished(self) -> bool:
        """The last round is done."""
        return self.optimizer is not None and self.optimizer.finished
