"""Lightning's Trainer as a peer:

Trainer(callbacks=[GossamerCallback("run.toml")]).fit(module)
"""

import os
from typing import Any

import lightning

import gossamer
import gossamer.torch as gossip


class GossamerCallback(lightning.Callback):  # type: ignore[misc]
    """Joins the network when the training starts, and ends the training after the last round.

    config, peer and the other options are those of gossamer.torch.Optimizer. A step of the
    module's one optimizer is a local step. The Trainer's own limit of steps should be at least
    run.rounds × algorithm.local_steps; otherwise this peer leaves before the last round.
    """

    def __init__(
        self, config: str | os.PathLike[str], peer: int | None = None, **options: Any
    ) -> None:
        self._config, self._peer, self._options = config, peer, options
        self.optimizer: gossip.Optimizer | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if len(trainer.optimizers) != 1:
            raise gossamer.Error(
                f"the module has {len(trainer.optimizers)} optimizers, and a peer steps with one"
            )
        self.optimizer = gossip.Optimizer(
            trainer.optimizers[0], self._config, self._peer, module=pl_module, **self._options
        )
        trainer.optimizers = [self.optimizer]

    def on_train_batch_end(self, trainer: Any, *arguments: Any) -> None:
        if self.optimizer is not None and self.optimizer.finished:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.optimizer is not None:
            trainer.optimizers = [self.optimizer.wrapped]
            self.optimizer.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.optimizer is not None:
            self.optimizer.close()
