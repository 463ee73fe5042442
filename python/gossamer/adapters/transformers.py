"""Hugging Face's Trainer as a peer:

Trainer(model, arguments, …, callbacks=[GossamerCallback("run.toml")]).train()
"""

import os
from typing import Any

import transformers

import gossamer
import gossamer.torch as gossip


class GossamerCallback(transformers.TrainerCallback):  # type: ignore[misc]
    """Joins the network when the training starts, and ends the training after the last round.

    config, peer and the other options are those of gossamer.torch.Optimizer. A step of the
    Trainer's optimizer is a local step. The Trainer's own limit of steps should be at least
    run.rounds × algorithm.local_steps; otherwise this peer leaves before the last round.
    """

    def __init__(
        self, config: str | os.PathLike[str], peer: int | None = None, **options: Any
    ) -> None:
        self._config, self._peer, self._options = config, peer, options
        self.optimizer: gossip.Optimizer | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        accelerated = kwargs["optimizer"]  # accelerate's, which calls step() of its `optimizer`
        if not hasattr(accelerated, "optimizer"):
            raise gossamer.Error(
                f"the Trainer's optimizer is {type(accelerated).__name__}, and not accelerate's: "
                "train without DeepSpeed and FSDP"
            )
        self.optimizer = gossip.Optimizer(
            accelerated.optimizer, self._config, self._peer, module=kwargs["model"], **self._options
        )
        accelerated.optimizer = self.optimizer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.optimizer is not None and self.optimizer.finished:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.optimizer is not None:
            kwargs["optimizer"].optimizer = self.optimizer.wrapped
            self.optimizer.close()
