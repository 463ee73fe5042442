"""Tasks with vmap=True: peers that are trained in one call end as those trained one by one."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from gossamer.joint_step import joint_optimizer
from gossamer.torch_vmap import VmapGradients
from tasks import accuracy_of, batch_of, loss_of, sgd, softmax

PEERS = 4
Model = Callable[[int], torch.nn.Module]


class Convolutions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.norm = torch.nn.GroupNorm(2, 4)
        self.dense = torch.nn.Linear(64, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        images = torch.relu(self.norm(self.convolution(inputs.view(-1, 1, 8, 8))))
        return self.dense(torch.nn.functional.max_pool2d(images, 2).flatten(1))


class Noise(torch.nn.Module):
    """Dropout, which functorch of PyTorch 1.13 cannot map."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * (torch.rand(inputs.shape) < 0.5)


def noisy_softmax(peer: int) -> torch.nn.Module:
    return torch.nn.Sequential(Noise(), softmax(peer))


def with_statistics() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(64, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    )


def with_shared_weight() -> torch.nn.Module:
    first, second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
    second.weight = first.weight
    return torch.nn.Sequential(first, torch.nn.Tanh(), second, torch.nn.Linear(64, 10))


def with_frozen_layer() -> torch.nn.Module:
    layers = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10))
    layers[0].weight.requires_grad_(False)
    return layers


def seeded(make: Callable[[], torch.nn.Module]) -> Model:
    def model(peer: int) -> torch.nn.Module:
        torch.manual_seed(0)
        return make()

    return model


def task(model: Model = softmax, **more: Any) -> gossip.Task:
    options: dict[str, Any] = {"optimizer": sgd, "batch": batch_of, "loss": loss_of, "vmap": True}
    return gossip.Task(model, **(options | more))


class Runs:
    def __init__(self, config: Path, out: Path) -> None:
        self.config, self.out, self._count = config, out, 0

    def run(self, task: gossip.Task, **more: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The summary and the final parameters of a simulation."""
        self._count += 1
        out = self.out / str(self._count)
        summary = gossamer.run(self.config, task, out=out, **more)
        return summary, digits.read_tensors(out / "final-0.safetensors")


@pytest.fixture
def runs(configure: Configure, tmp_path: Path) -> Runs:
    return Runs(configure(PEERS, 10), tmp_path)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of peers of all calls."""
    found: list[int] = []
    inner = VmapGradients.backward

    def backward(self: VmapGradients, peers: Any) -> list[float]:
        found.append(len(peers))
        return inner(self, peers)

    monkeypatch.setattr(VmapGradients, "backward", backward)
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm.kind": "server", "algorithm.servers": 2},
        {"algorithm.kind": "fedavg", "algorithm.local_steps": 2},
        {"data.weights": "samples", "algorithm.local_steps": 2},
    ],
    ids=["server", "fedavg", "samples"],
)
def test_servers_and_weights_with_peers_that_are_trained_together(
    runs: Runs, calls: list[int], settings: dict[str, Any]
) -> None:
    options = {"samples": lambda peer: 100 + peer}
    _, alone = runs.run(task(softmax, vmap=False, **options), settings=settings)
    _, together = runs.run(task(softmax, **options), settings=settings)
    assert calls and set(calls) == {PEERS}
    for name, values in alone.items():
        assert np.abs(together[name] - values).max() <= 1e-4, name


@pytest.mark.parametrize(
    ("make", "more"),
    [
        (Convolutions, {}),
        (with_statistics, {"buffers": "keep"}),
        (with_statistics, {"buffers": "mix"}),
        (with_shared_weight, {}),
        (with_frozen_layer, {}),
    ],
    ids=["convolutions", "keep", "mix", "shared", "frozen"],
)
@pytest.mark.parametrize(
    "settings",
    [{}, {"algorithm.local_steps": 3}, {"algorithm.kind": "gradient_tracking"}],
    ids=["dpsgd", "local_steps", "tracking"],
)
def test_peers_end_as_those_trained_one_by_one(
    runs: Runs, calls: list[int], make: Any, more: dict[str, Any], settings: dict[str, Any]
) -> None:
    options = {"evaluate": accuracy_of, **more}
    expected, alone = runs.run(task(seeded(make), vmap=False, **options), settings=settings)
    assert not calls
    found, together = runs.run(task(seeded(make), **options), settings=settings)
    assert calls and set(calls) == {PEERS}
    assert together.keys() == alone.keys()
    for name, values in alone.items():
        assert np.abs(together[name] - values).max() <= 1e-4, name
    for field in ("train_loss", "test_loss"):
        assert found["final"][field]["mean"] == pytest.approx(
            expected["final"][field]["mean"], abs=1e-4
        )


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
        lambda p: torch.optim.AdamW(p, lr=1e-2),
        lambda p: torch.optim.RMSprop(p, lr=1e-3),
        lambda p: torch.optim.SGD([{"params": [q], "lr": 0.1 / (1 + q.dim())} for q in p]),
        lambda p: torch.optim.RAdam(p, lr=1e-2),  # pixels are zero, and so are their gradients
        lambda p: torch.optim.NAdam(p, lr=1e-2),
    ],
    ids=["sgd", "adamw", "rmsprop", "groups", "radam", "nadam"],
)
def test_optimizers_step_together_as_one_by_one(runs: Runs, optimizer: Any) -> None:
    _, expected = runs.run(task(optimizer=optimizer, vmap=False))
    _, found = runs.run(task(optimizer=optimizer))
    for name, values in expected.items():
        assert np.abs(found[name] - values).max() <= 1e-4, name


class SignDescent(torch.optim.Optimizer):
    """An optimizer that is not PyTorch's."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        super().__init__(parameters, {"lr": 0.01})

    def step(self, closure: Any = None) -> None:
        for parameter in self.param_groups[0]["params"]:
            parameter.sub_(parameter.grad.sign(), alpha=self.param_groups[0]["lr"])


def test_optimizers_that_are_not_alike_step_one_by_one(runs: Runs) -> None:
    def models(count: int) -> list[torch.nn.Module]:
        return [softmax(0) for _ in range(count)]

    def each(make: Callable[[int, Any], Any]) -> list[torch.optim.Optimizer]:
        return [make(k, m.parameters()) for k, m in enumerate(models(2))]

    assert joint_optimizer(each(lambda k, p: sgd(p))) is not None
    assert joint_optimizer(each(lambda k, p: torch.optim.SGD(p, lr=0.1 + k))) is None
    assert joint_optimizer(each(lambda k, p: SignDescent(p))) is None
    assert joint_optimizer(each(lambda k, p: [sgd, torch.optim.Adam][k](p))) is None
    assert joint_optimizer(each(lambda k, p: torch.optim.SGD(p, lr=0.1, foreach=False))) is None
    scheduled = each(lambda k, p: sgd(p))
    torch.optim.lr_scheduler.StepLR(scheduled[1], 1)  # replaces step()
    assert joint_optimizer(scheduled) is None
    _, expected = runs.run(task(optimizer=SignDescent, vmap=False), settings={"run.rounds": 2})
    _, found = runs.run(task(optimizer=SignDescent), settings={"run.rounds": 2})
    assert all(np.abs(found[name] - values).max() <= 1e-4 for name, values in expected.items())


def test_a_simulation_repeats_with_the_same_bits(runs: Runs) -> None:
    hashes = [runs.run(task(noisy_softmax, seed=seed))[0]["final_hash"] for seed in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_peers_draw_different_random_numbers(runs: Runs) -> None:
    def constant(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ones(16, 64), torch.zeros(16, dtype=torch.int64)

    settings = {"algorithm.local_steps": 2, "algorithm.order": "awc", "run.rounds": 1}
    _, found = runs.run(task(noisy_softmax, batch=constant), settings=settings)
    assert not np.array_equal(found["peer0.1.weight"], found["peer1.1.weight"])


def test_batches_of_several_shapes_are_several_calls(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uneven(peer: int, step: int) -> dict[str, Any]:
        inputs, labels = batch_of(peer, step)
        size = 16 if peer < 3 else 9
        return {"pair": (inputs[:size], labels[:size]), "scale": 1.0, "mask": None}

    def loss(module: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
        assert batch["mask"] is None
        return batch["scale"] * loss_of(module, batch["pair"])

    sizes: list[int] = []
    inner = VmapGradients._backward

    def backward(self: VmapGradients, peers: Any, batches: Any) -> list[float]:
        sizes.append(len(peers))
        return inner(self, peers, batches)

    monkeypatch.setattr(VmapGradients, "_backward", backward)
    _, expected = runs.run(task(batch=uneven, loss=loss, vmap=False))
    _, found = runs.run(task(batch=uneven, loss=loss))
    assert sizes == [3, 1] * 10
    assert all(np.abs(found[name] - values).max() <= 1e-4 for name, values in expected.items())


def test_half_precision_steps_on_its_masters(runs: Runs) -> None:
    def half(peer: int) -> torch.nn.Module:
        return softmax(peer).to(torch.bfloat16)

    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, labels = batch_of(peer, step)
        return inputs.to(torch.bfloat16), labels

    def loss(module: torch.nn.Module, batch: Any) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(module(batch[0]).float(), batch[1])

    options = {"batch": batch, "loss": loss}
    expected, _ = runs.run(task(half, vmap=False, **options))
    found, _ = runs.run(task(half, **options))
    assert found["final"]["train_loss"]["mean"] == pytest.approx(
        expected["final"]["train_loss"]["mean"], abs=0.01
    )


def test_a_resumed_run_equals_one_never_stopped(configure: Configure, tmp_path: Path) -> None:
    class Stop(Exception):
        """In place of a crash."""

    def stopping(peer: int, step: int) -> Any:
        if (peer, step) == (2, 8):
            raise Stop
        return batch_of(peer, step)

    def adam(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=0.01)

    config, settings = configure(PEERS, 12), {"checkpoint.every": 5}

    def run(folder: str, **more: Any) -> dict[str, Any]:
        resume = more.pop("resume", "none")
        trained = task(optimizer=adam, **more)
        out = tmp_path / folder
        return gossamer.run(config, trained, settings=settings, out=out, resume=resume)

    whole = run("whole")
    with pytest.raises(Stop):
        run("stopped", batch=stopping)
    assert run("stopped", resume="auto")["final_hash"] == whole["final_hash"]


def test_peers_of_one_process_of_a_network(
    configure: Configure, tmp_path: Path, calls: list[int]
) -> None:
    end = gossamer.peer(configure(PEERS, 5), task(), "0-3", out=tmp_path / "out")
    assert end["reason"] == "finished"
    assert sum(calls) == PEERS * 5


def test_a_loss_that_branches_on_values_is_refused(runs: Runs) -> None:
    def branching(module: torch.nn.Module, batch: Any) -> torch.Tensor:
        loss = loss_of(module, batch)
        return loss if loss > 1 else 2 * loss

    with pytest.raises(gossamer.Error, match=r"vmap: the loss cannot .*one by one \(vmap=False\)"):
        runs.run(task(loss=branching))


def test_an_exception_of_the_task_is_its_own(runs: Runs) -> None:
    def failing(module: torch.nn.Module, batch: Any) -> torch.Tensor:
        raise ZeroDivisionError("a bug of the user")

    with pytest.raises(ZeroDivisionError, match="a bug of the user"):
        runs.run(task(loss=failing))


def test_a_batch_that_cannot_be_stacked_is_refused(runs: Runs) -> None:
    def arrays(peer: int, step: int) -> Any:
        return digits.batch(PEERS, peer, step)

    with pytest.raises(gossamer.Error, match="vmap: a batch holds tensors.* and no ndarray"):
        runs.run(task(batch=arrays))


def test_a_parameter_outside_of_the_module_is_refused(runs: Runs) -> None:
    def with_temperature(parameters: Any) -> torch.optim.Optimizer:
        return sgd([*parameters, torch.nn.Parameter(torch.ones(()))])

    with pytest.raises(gossamer.Error, match=r"vmap: parameter 0\.2 of the optimizer is no param"):
        runs.run(task(optimizer=with_temperature))


def test_a_hook_of_a_parameter_is_refused(runs: Runs) -> None:
    def clipping(peer: int) -> torch.nn.Module:
        model = softmax(peer)
        next(model.parameters()).register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        return model

    with pytest.raises(gossamer.Error, match=r"vmap: parameter weight has a hook.*\(vmap=False\)"):
        runs.run(task(clipping))
    runs.run(task(clipping, vmap=False), settings={"run.rounds": 1})


def test_without_the_transforms_peers_are_trained_one_by_one(
    runs: Runs, calls: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = runs.run(task(vmap=False))
    for module in ("torch.func", "functorch"):
        monkeypatch.setitem(sys.modules, module, None)
    found, _ = runs.run(task())
    assert found["final_hash"] == expected["final_hash"] and not calls
    assert "has no torch.func, and functorch is missing" in caplog.text
