"""Hugging Face's Trainer as a peer:

Trainer(model, arguments, …, callbacks=[GossamerCallback("run.toml")]).train()
"""

from typing import Any

import transformers

import gossamer
from gossamer.adapters import JoiningCallback


class GossamerCallback(JoiningCallback, transformers.TrainerCallback):  # type: ignore[misc]
    __doc__ = JoiningCallback.__doc__

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        accelerated = kwargs["optimizer"]  # accelerate's, which calls step() of its `optimizer`
        if not hasattr(accelerated, "optimizer"):
            raise gossamer.Error(
                f"the Trainer's optimizer is {type(accelerated).__name__}, and not accelerate's: "
                "train without DeepSpeed and FSDP"
            )
        accelerated.optimizer = self.join(accelerated.optimizer, kwargs["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.finished:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.optimizer is not None:
            kwargs["optimizer"].optimizer = self.optimizer.wrapped
            self.optimizer.close()
