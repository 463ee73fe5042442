"""Which samples a task is evaluated on: those of the test set, or validation samples."""

from pathlib import Path

import gossamer
import pytest
from conftest import Configure
from tasks import NumpySoftmax, batch_of, loss_of, sgd, softmax


@pytest.mark.parametrize("held_out", [0, 0.1])
def test_validation_samples_are_measured_in_place_of_the_test_set(
    configure: Configure, tmp_path: Path, held_out: float
) -> None:
    made = {"model": softmax, "optimizer": sgd, "batch": batch_of, "loss": loss_of}
    task = gossamer.torch.Task(**made, evaluate=lambda _: (1, 0.1), validate=lambda _: (2, 0.2))
    trainer = NumpySoftmax()
    trainer.evaluate, trainer.validate = lambda _: (1, 0.1), lambda _: (2, 0.2)
    for samples, expected in {"validation": 2, "test": 1}.items():  # one task, several runs
        settings = {"data.evaluate": samples, "data.validation": held_out}
        for kind in (task, trainer):
            out = tmp_path / f"{samples} {type(kind).__name__}"
            summary = gossamer.run(configure(4, 2), kind, settings=settings, out=out)
            assert summary["final"]["test_loss"]["mean"] == expected
            assert summary["final"]["averaged_accuracy"] == pytest.approx(expected / 10)
    made["validate"] = lambda _: None
    with pytest.raises(gossamer.Error, match=r"validate\(module\) returned NoneType; it returns"):
        gossamer.run(
            configure(),
            gossamer.torch.Task(**made),
            settings={"data.evaluate": "validation"},
            out=tmp_path / "out",
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data.evaluate": "validation"}, "data.evaluate: the task has no function validate, whi"),
        ({"data.validation": 0.1}, "data.validation: the task has no function validate"),
    ],
)
def test_a_task_without_validation_samples_is_refused(
    configure: Configure, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(), NumpySoftmax(), settings=settings)
