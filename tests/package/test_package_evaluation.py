"""Which samples a task is evaluated on: those of the test set, or validation samples.

And that an evaluation leaves what is trained as it was."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossamer
import pytest
import torch
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


@pytest.mark.parametrize("accuracy", [93.0, -1, math.inf, 1.001])
@pytest.mark.parametrize("function", ["evaluate", "validate"])
def test_an_accuracy_is_from_0_to_1(
    configure: Configure, tmp_path: Path, function: str, accuracy: float
) -> None:
    trainer = NumpySoftmax()
    setattr(trainer, function, lambda _: (1, accuracy))
    settings = {"data.evaluate": "validation" if function == "validate" else "test"}
    text = rf"task: {function}\(values\) returned the accuracy {accuracy:g}; an accuracy is"
    with pytest.raises(gossamer.Error, match=text):
        gossamer.run(configure(), trainer, settings=settings, out=tmp_path / "out")


@pytest.mark.parametrize("accuracy", [math.nan, 1 + 1e-9, 0])
def test_an_accuracy_may_be_rounded_or_missing(
    configure: Configure, tmp_path: Path, accuracy: float
) -> None:
    trainer = NumpySoftmax()
    trainer.evaluate = lambda _: (1, accuracy)
    final = gossamer.run(configure(4, 2), trainer, out=tmp_path / "out")["final"]
    assert final["averaged_accuracy"] == (None if math.isnan(accuracy) else accuracy)


def with_statistics(peer: int) -> torch.nn.Module:
    """Its second batch norm is frozen, as in fine-tuning, and has statistics of its own."""
    layers = torch.nn.BatchNorm1d(64), softmax(peer), torch.nn.BatchNorm1d(10).eval()
    return torch.nn.Sequential(*layers)


def batch_of_own_scale(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Peers differ in their statistics."""
    inputs, targets = batch_of(peer, step)
    return inputs + 3 * peer, targets


def task_with_statistics(
    evaluate: Callable[[torch.nn.Module], Any], loss: Any = loss_of
) -> gossamer.torch.Task:
    return gossamer.torch.Task(
        with_statistics, sgd, batch_of_own_scale, loss, evaluate, buffers="mix"
    )


# Peers compute at different times, so that an evaluation comes between gradient and update of one.
SPREAD = {
    "algorithm.kind": "gradient_tracking",
    "sim.compute_ms": 5,
    "sim.compute_spread": 0.6,
    "sim.latency_ms": 3,
}


def test_evaluations_do_not_change_what_is_trained(configure: Configure, tmp_path: Path) -> None:
    evaluated: list[bool] = []

    def evaluate(module: torch.nn.Module) -> tuple[float, float]:
        evaluated.append(module.training)
        return float(module[0].running_mean.sum()), 0

    hashes = []
    for every in (0, 1):
        settings, out = SPREAD | {"log.every": every}, tmp_path / str(every)
        task = task_with_statistics(evaluate)
        summary = gossamer.run(configure(4, 12), task, settings=settings, out=out)
        hashes.append(summary["final_hash"])
    assert len(evaluated) > 2 * 4 and not any(evaluated)
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("fails", [False, True])
def test_a_module_has_its_modes_and_buffers_after_an_evaluation(
    configure: Configure, tmp_path: Path, fails: bool
) -> None:
    trained: dict[torch.nn.Module, list[torch.Tensor]] = {}
    measured: list[torch.nn.Module] = []  # after their training

    def has_its_modes(module: torch.nn.Module) -> bool:
        return [each.training for each in module.modules()] == [True, True, True, False]

    def loss(module: torch.nn.Module, batch: Any) -> torch.Tensor:
        assert has_its_modes(module)
        found = loss_of(module, batch)
        trained[module] = [each.clone() for each in module.buffers()]
        return found

    def evaluate(module: torch.nn.Module) -> tuple[float, float]:
        module[0].num_batches_tracked += 100
        if module in trained:
            measured.append(module)
        if fails and measured:
            raise ZeroDivisionError("a bug of the user")
        return 1, 0

    task = task_with_statistics(evaluate, loss)
    if fails:
        with pytest.raises(ZeroDivisionError, match="a bug of the user"):
            gossamer.run(configure(4, 1), task, out=tmp_path / "out")
    else:
        gossamer.run(configure(4, 1), task, out=tmp_path / "out")
    for module in measured:
        assert has_its_modes(module)
        for buffer, expected in zip(module.buffers(), trained[module], strict=True):
            assert torch.equal(buffer, expected)
    assert measured


class Shifted(torch.nn.Module):
    """Its loss and its accuracy are buffers, which no optimizer steps with and no row has."""

    def __init__(self, peer: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("shift", torch.tensor(float(peer)))
        self.register_buffer("tenths", torch.tensor(peer))
        self.register_buffer("queue", torch.zeros(peer + 1))  # as long as the peer likes


def shifted_task() -> gossamer.torch.Task:
    return gossamer.torch.Task(
        Shifted,
        sgd,
        lambda peer, step: None,
        lambda module, batch: module.weight.sum(),
        evaluate=lambda module: (float(module.shift), float(module.tenths) / 10),
        buffers="keep",
    )


@pytest.mark.parametrize("hostile", [False, True])
def test_a_model_is_evaluated_with_the_buffers_of_its_peers(
    configure: Configure, tmp_path: Path, hostile: bool
) -> None:
    """And the averaged model with their mean, or with those of its first peer if there is none."""
    settings = {"attack.kind": "sign_flip", "attack.peers": [0]} if hostile else {}
    out = tmp_path / "out"
    summary = gossamer.run(configure(4, 2), shifted_task(), settings=settings, out=out)
    final, averaged = summary["final"], {"loss": 2, "accuracy": 0.1}
    if not hostile:
        averaged = {"loss": 1.5, "accuracy": 0}
        assert final["test_loss"] == {"mean": 1.5, "min": 0, "max": 3}
    lines = (out / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    records = list(map(json.loads, lines))
    of_peer = [each for each in records if each["record"] == "round" and each["peer"] == 2]
    assert {each["test_loss"] for each in of_peer} == {2}
    network = [each for each in records if each["record"] == "network"]
    assert len(network) > 1
    for each in (final, *network):
        assert {name: each[f"averaged_{name}"] for name in averaged} == averaged
