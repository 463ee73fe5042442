"""Lightning's Trainer as a peer:

Trainer(callbacks=[GossamerCallback("run.toml")]).fit(module)
"""

from typing import Any

import lightning

import gossamer
from gossamer.adapters import JoiningCallback


class GossamerCallback(JoiningCallback, lightning.Callback):  # type: ignore[misc]
    __doc__ = JoiningCallback.__doc__

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if len(trainer.optimizers) != 1:
            raise gossamer.Error(
                f"the module has {len(trainer.optimizers)} optimizers, and a peer steps with one"
            )
        trainer.optimizers = [self.join(trainer.optimizers[0], pl_module)]

    def on_train_batch_end(self, trainer: Any, *arguments: Any) -> None:
        if self.finished:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.optimizer is not None:
            trainer.optimizers = [self.optimizer.wrapped]
            self.optimizer.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.optimizer is not None:
            self.optimizer.close()
