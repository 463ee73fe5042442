"""A Trainer of a library as a peer: adapter_peer.py transformers|lightning CONFIG PEER OUT."""

import json
import sys
from pathlib import Path

import torch
from tasks import batch_of, loss_of

library, config, peer, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
STEPS = 1000  # more than the rounds of the run
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.Linear(64, 10)


class Batches(torch.utils.data.IterableDataset):
    """The batches of tasks.batch_of(), one sample after the other."""

    def __iter__(self):
        for step in range(STEPS):
            inputs, labels = batch_of(peer, step)
            for pair in zip(inputs, labels):
                yield {"inputs": pair[0], "labels": pair[1]}


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def train_transformers() -> None:
    import transformers
    from gossamer.adapters.transformers import GossamerCallback

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, inputs, labels):
            return {"loss": loss_of(self.layer, (inputs, labels))}

    arguments = transformers.TrainingArguments(
        output_dir=str(out / f"trainer-{peer}"),
        per_device_train_batch_size=16,
        max_steps=STEPS,
        lr_scheduler_type="constant",
        max_grad_norm=0,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    model = Model()
    trainer = transformers.Trainer(
        model,
        arguments,
        train_dataset=Batches(),
        optimizers=(sgd(model.parameters()), None),
        callbacks=[GossamerCallback(config, peer, out=out)],
    )
    print(json.dumps({"steps": trainer.train().global_step}))


def train_lightning() -> None:
    import lightning
    from gossamer.adapters.lightning import GossamerCallback

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def training_step(self, batch, index):
            return loss_of(self.layer, (batch["inputs"], batch["labels"]))

        def configure_optimizers(self):
            return sgd(self.parameters())

    trainer = lightning.Trainer(
        max_steps=STEPS,
        max_epochs=1,
        accelerator="cpu",
        callbacks=[GossamerCallback(config, peer, out=out)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(Batches(), batch_size=16))
    print(json.dumps({"steps": trainer.global_step}))


train_transformers() if library == "transformers" else train_lightning()
