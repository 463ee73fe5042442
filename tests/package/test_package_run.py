"""Tasks simulated in one process: the same results as native models, and errors that say why."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import digits
import gossamer
import numpy as np
import pytest
import torch
from conftest import Configure
from tasks import NumpySoftmax, accuracy_of, batch_of, loss_of, sgd, softmax, torch_task

TOLERANCE = 1e-5  # of parameters after 100 rounds; the sums have another order


def native(program: Path, out: Path, *settings: str) -> dict[str, np.ndarray]:
    """The final parameters of a native run."""
    overrides = [argument for each in settings for argument in ("--set", each)]
    command = [str(program), "run", "--quiet", "--out", str(out), *overrides]
    subprocess.run(command, check=True)
    return digits.read_tensors(out / "final-0.safetensors")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("dpsgd", {}),
        ("dpsgd", {"algorithm.order": "awc", "algorithm.local_steps": 2}),
        ("gradient_tracking", {}),
        ("push_sum", {"topology.kind": "exponential"}),
        ("allreduce", {}),
        ("d2", {"topology.lazy": True}),
        ("qg_momentum", {}),
        ("server", {}),
        ("server", {"algorithm.servers": 3}),
        ("async_server", {"algorithm.servers": 2}),
        ("fedavg", {"algorithm.local_steps": 3, "algorithm.fraction": 0.5}),
        ("fedavg", {"algorithm.local_steps": 2, "algorithm.prox": 0.1}),
        ("dpsgd", {"data.weights": "samples", "algorithm.local_steps": 3}),
        ("gradient_tracking", {"data.weights": "samples"}),
        ("fedavg", {"data.weights": "samples", "algorithm.local_steps": 3}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_softmax_on_digits_as_the_native_model(
    configure: Configure, program: Path, tmp_path: Path, kind: str, settings: dict[str, object]
) -> None:
    settings = {"algorithm.kind": kind, **settings}
    both = [f"{key}={str(value).lower()}" for key, value in settings.items()]
    both += ["run.peers=4", "local.threads=1", "data.batch=16", "optimizer.rate=0.1"]
    momentum = 0.0 if kind in ("d2", "qg_momentum", "async_server") else 0.9
    both.append(f"optimizer.momentum={momentum}")
    start = native(program, tmp_path / "start", "run.rounds=0", *both)
    expected = native(program, tmp_path / "native", "run.rounds=100", *both)

    def model(peer: int) -> torch.nn.Module:
        module = softmax(peer)
        with torch.no_grad():
            module.weight.copy_(torch.tensor(start["peer0.0.dense.weights"]).T)
            module.bias.copy_(torch.tensor(start["peer0.0.dense.bias"]))
        return module

    task = gossamer.torch.Task(
        model,
        lambda parameters: sgd(parameters, momentum),
        batch_of,
        loss_of,
        accuracy_of,
        samples=lambda peer: len(digits.shards(4)[peer]),  # 360 and 359: weights of 1 ± 0.0007
    )
    summary = gossamer.run(configure(4, 100), task, settings=settings, out=tmp_path / "torch")
    found = digits.read_tensors(tmp_path / "torch" / "final-0.safetensors")
    for peer in range(4):
        weights, bias = found[f"peer{peer}.weight"], found[f"peer{peer}.bias"]
        assert np.abs(weights.T - expected[f"peer{peer}.0.dense.weights"]).max() <= TOLERANCE
        assert np.abs(bias - expected[f"peer{peer}.0.dense.bias"]).max() <= TOLERANCE
    reference = json.loads((tmp_path / "native" / "summary.json").read_text())
    for field in ("train_loss", "test_loss", "test_accuracy"):
        assert summary["final"][field]["mean"] == pytest.approx(
            reference["final"][field]["mean"], abs=1e-4
        )
    assert summary["bytes_sent"] == reference["bytes_sent"]


def test_numpy_trains_without_torch(configure: Configure, tmp_path: Path) -> None:
    program = (
        "import sys, gossamer\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "class Mean:\n"
        "    def tensors(self): return {'x': [3]}\n"
        "    def initial(self, peer): return np.zeros(3)\n"
        "    def gradient(self, peer, step, values): return 0.5, values - peer\n"
        "    def update(self, peer, step, values, gradient): return values - 0.1 * gradient\n"
        f"s = gossamer.run({str(configure(4, 200))!r}, Mean(), out={str(tmp_path / 'out')!r},\n"
        "                 settings={'algorithm.kind': 'gradient_tracking'})\n"
        "assert s['final']['train_loss']['mean'] == 0.5\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    for values in digits.read_tensors(tmp_path / "out" / "final-0.safetensors").values():
        assert values == pytest.approx(1.5, abs=1e-4)  # the minimiser of the peers' sum


def test_virtual_network_faults_and_log_are_those_of_native_runs(
    configure: Configure, tmp_path: Path
) -> None:
    config = configure(8, 20, "[sim]", "latency_ms = 10", "compute_ms = 5", "slow_peers = 1")
    settings = {"algorithm.policy": "deadline", "log.every": 5}
    summary = gossamer.run(config, NumpySoftmax(8), settings=settings, out=tmp_path / "a")
    again = gossamer.run(config, NumpySoftmax(8), settings=settings, out=tmp_path / "b")
    assert summary["virtual_seconds"] > 20 * 0.015
    assert summary["final_hash"] == again["final_hash"]
    assert summary["final"]["averaged_accuracy"] > 0.7
    log = (tmp_path / "a" / "log-0.jsonl").read_text().splitlines()
    networks = [json.loads(line) for line in log if '"record":"network"' in line]
    assert [record["round"] for record in networks] == [0, 5, 10, 15, 20]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.kind": "softmax"}, "model.kind: 'softmax' is a model of gossamer's own"),
        ({"algorithm.kind": "fedavg"}, "algorithm.local_steps: 'fedavg' would count passes"),
        ({"algorithm.kind": "consensus"}, "algorithm.kind: 'consensus' trains nothing"),
        ({"optimizer.rate": 0.3}, "optimizer.rate: has no effect with model.kind = external"),
        ({"data.kind": "quadratic"}, "data.kind: has no effect with model.kind = external"),
        ({"checkpoint.every": 5}, "checkpoint.every: a checkpoint would lack the task's own state"),
        ({"run.round": 5}, "run.round: unknown"),
        ({"data.weights": "samples"}, "data.weights: the program does not say how many samples"),
        ({"data.batch": 8}, "data.batch: has no effect with model.kind = external"),
    ],
)
def test_a_configuration_that_cannot_run_is_refused(
    configure: Configure, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(), NumpySoftmax(), settings=settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"loss": lambda module, batch: 0.5},
            "the loss of peer 0 is float; loss.module, batch. re",
        ),
        (
            {"loss": lambda module, batch: module(batch[0])},
            r"the loss of peer 0 is a tensor of shape \(16, 10\); loss.module, batch. returns a t",
        ),
        (
            {"model": lambda peer: None},
            r"task: model\(0\) returned NoneType; it returns a torch.nn",
        ),
        ({"model": lambda peer: torch.nn.Linear}, "returned the class Linear; it returns a torch"),
        (
            {"evaluate": lambda module: 0.5},
            r"evaluate\(module\) returned float; it returns \(loss, a",
        ),
        (
            {"evaluate": lambda module: (1, None)},
            r"evaluate\(module\) returned no two numbers; it re",
        ),
        (
            {"optimizer": lambda _: sgd([torch.nn.Parameter(torch.ones(3))])},
            "module: none of its parameters is the optimizer's",
        ),
        (
            {"model": lambda peer: torch.nn.Linear(64, 10)},
            r"run.init: peers 0 and 1 start from different parameters \(the first is weight\); s",
        ),
    ],
)
def test_what_a_task_must_not_return(
    configure: Configure, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    made = {"model": softmax, "optimizer": sgd, "batch": batch_of, "loss": loss_of}
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(), gossamer.torch.Task(**(made | changes)), out=tmp_path / "out")


def replace_data(module: torch.nn.Module, batch: Any) -> torch.Tensor:
    parameters = list(module.parameters())
    values = torch.nn.utils.parameters_to_vector(parameters).clamp(-0.3, 0.3)
    torch.nn.utils.vector_to_parameters(values, parameters)
    return loss_of(module, batch)


def replace_layer(module: torch.nn.Module, batch: Any) -> torch.Tensor:
    loss = loss_of(module, batch)
    module[0] = torch.nn.Linear(64, 10)
    return loss


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (replace_data, r"parameter 0\.weight has other memory than its row"),
        (replace_layer, "the parameters of the module are others"),
    ],
)
@pytest.mark.parametrize("kind", ["dpsgd", "gradient_tracking"])
def test_a_loss_that_replaces_parameters_is_noticed(
    configure: Configure, tmp_path: Path, loss: Any, message: str, kind: str
) -> None:
    """The optimizer would step on parameters that are not those of the row, or not be trained."""
    model = lambda peer: torch.nn.Sequential(softmax(peer))  # noqa: E731
    task = gossamer.torch.Task(model, sgd, batch_of, loss)
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(), task, out=tmp_path / "out", settings={"algorithm.kind": kind})


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("gradient", 3.0, r"gradient\(peer, step, values\) returned float; it returns \(loss, gra"),
        ("gradient", (1, 2, 3), r"returned tuple of length 3; it returns \(loss, gradient\)"),
        ("gradient", (1, np.ones(650, complex)), r"gradient\(\) returned complex numbers"),
        ("update", np.ones(3), r"update\(\) returned an array of shape \(3,\)"),
        ("evaluate", None, r"evaluate\(values\) returned NoneType; it returns \(loss, accuracy\)"),
        ("state", "text", r"task: state\(\) returned str; it returns bytes"),
    ],
)
def test_what_a_trainer_must_not_return(
    configure: Configure, tmp_path: Path, method: str, value: Any, message: str
) -> None:
    trainer = NumpySoftmax()
    setattr(trainer, method, lambda *_: value)
    trainer.load_state = lambda *_: None
    if method != "state":
        trainer.state = lambda peer: b""
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(4, 2, "[checkpoint]", "every = 1"), trainer, out=tmp_path / "out")


def test_settings_are_no_text(configure: Configure) -> None:
    with pytest.raises(gossamer.Error, match=r"settings: give .* such as \['run.rounds=3'\]"):
        gossamer.run(configure(), NumpySoftmax(), settings="run.rounds=3")


class RenamedSGD(torch.optim.SGD):
    """Has the steps of SGD."""


class ClippedSGD(torch.optim.SGD):
    """Has steps of its own, of bounded length."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], 0.01)
        return super().step(closure)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, ClippedSGD])
def test_exact_methods_ask_for_sgd(configure: Configure, optimizer: Any) -> None:
    task = gossamer.torch.Task(
        softmax, lambda parameters: optimizer(parameters, lr=0.1), batch_of, loss_of
    )
    settings = {"algorithm.kind": "d2", "topology.lazy": True}
    with pytest.raises(gossamer.Error, match="'d2' needs steps that are linear.*use SGD"):
        gossamer.run(configure(), task, settings=settings)


def test_a_subclass_with_the_steps_of_sgd_is_one() -> None:
    for made in (RenamedSGD, torch.optim.SGD, RenamedSGD):  # torch wraps step() at the first call

        def optimizer(parameters: Any, kind: Any = made) -> torch.optim.Optimizer:
            return kind(parameters, lr=0.1)

        assert gossamer.torch.Task(softmax, optimizer, batch_of, loss_of).linear_steps


def test_servers_refuse_buffers_that_are_mixed(configure: Configure, tmp_path: Path) -> None:
    def model(peer: int) -> torch.nn.Module:
        return torch.nn.Sequential(softmax(peer), torch.nn.BatchNorm1d(10))

    def task(buffers: str) -> gossamer.torch.Task:
        return gossamer.torch.Task(model, sgd, batch_of, loss_of, buffers=buffers)

    settings = {"algorithm.kind": "server"}
    with pytest.raises(gossamer.Error, match="buffers: 'server' sends gradients, and buffers have"):
        gossamer.run(configure(), task("mix"), settings=settings)
    kept = gossamer.run(configure(), task("keep"), settings=settings, out=tmp_path / "out")
    assert kept["final"]


def test_clients_begin_each_round_with_a_new_optimizer(
    configure: Configure, tmp_path: Path
) -> None:
    class Momentum(NumpySoftmax):
        """Heavy-ball momentum that the trainer itself keeps."""

        def __init__(self) -> None:
            super().__init__()
            self.momentum: dict[int, np.ndarray] = {}
            self.resets: list[int] = []

        def update(
            self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray
        ) -> np.ndarray:
            gradient = gradient + np.float32(0.9) * self.momentum.get(peer, np.float32(0))
            self.momentum[peer] = gradient
            return super().update(peer, step, values, gradient)

        def reset(self, peer: int) -> None:
            self.resets.append(peer)
            self.momentum.pop(peer, None)

    settings = {"algorithm.kind": "fedavg", "algorithm.local_steps": 3}
    trainer = Momentum()
    gossamer.run(configure(4, 5), trainer, settings=settings, out=tmp_path / "numpy")
    assert sorted(trainer.resets) == sorted([0, 1, 2, 3] * 5)


def test_a_trainer_that_returns_the_wrong_shape_is_named(
    configure: Configure, tmp_path: Path
) -> None:
    class Short(NumpySoftmax):
        def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, values[:5]

    with pytest.raises(gossamer.Error, match=r"gradient\(\) returned an array of shape \(5,\)"):
        gossamer.run(configure(), Short(), out=tmp_path / "out")
    with pytest.raises(gossamer.Error, match="object is no gossamer.Trainer"):
        gossamer.run(configure(), object())


def test_an_exception_of_the_task_ends_the_run(configure: Configure, tmp_path: Path) -> None:
    class Failing(NumpySoftmax):
        def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
            if step == 3:
                raise ZeroDivisionError("a bug of the user")
            return super().gradient(peer, step, values)

    with pytest.raises(ZeroDivisionError, match="a bug of the user"):
        gossamer.run(configure(), Failing(), out=tmp_path / "out")


def test_a_diverged_run_names_the_peer(configure: Configure, tmp_path: Path) -> None:
    class Exploding(NumpySoftmax):
        def update(
            self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray
        ) -> np.ndarray:
            return values + np.float32(np.inf if peer == 2 and step == 2 else 0)

    with pytest.raises(gossamer.Error, match="peer 2 .*a smaller learning rate usually helps"):
        gossamer.run(configure(), Exploding(), out=tmp_path / "out")


def test_rows_that_are_kept_stay_readable(configure: Configure, tmp_path: Path) -> None:
    kept: list[np.ndarray] = []

    class Keeping(NumpySoftmax):
        def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
            kept.append(values)
            return super().gradient(peer, step, values)

    gossamer.run(configure(), Keeping(), out=tmp_path / "out")
    assert all(np.isfinite(values).all() for values in kept)
    assert not kept[0].flags.writeable


def test_the_program_of_the_package(program: Path) -> None:
    version = subprocess.run(
        [sys.executable, "-c", "import gossamer.program as p; p.main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == gossamer.__version__
    alone = subprocess.run(
        [program, "run", "--set", "model.kind=external"], capture_output=True, text=True
    )
    assert alone.returncode == 2
    assert "model.kind: 'external' is the model of a task in Python" in alone.stderr


def test_help_reads_well() -> None:
    assert "simulates all peers" in str(gossamer.__doc__)
    for documented in (gossamer.run, gossamer.peer, gossamer.Trainer, gossamer.torch.Optimizer):
        assert documented.__doc__
    assert torch_task().tensors() == [("weight", [10, 64]), ("bias", [10])]


def test_a_task_runs_again_from_its_start(configure: Configure, tmp_path: Path) -> None:
    task = torch_task()
    first, second = (gossamer.run(configure(), task, out=tmp_path / name) for name in "ab")
    assert first["final_hash"] == second["final_hash"]
