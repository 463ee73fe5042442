"""Checkpoints of a program's own model: a resumed run equals one that was never stopped."""

import io
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from gossamer.replica import Replica
from gossamer.state_bytes import from_bytes, to_bytes
from process_test_util import Processes
from tasks import NumpySoftmax, accuracy_of, batch_of, loss_of, sgd, softmax, torch_task
from test_package_network import final_hash

CHECKPOINTS = {"checkpoint.every": 5}


class Stop(Exception):
    """In place of a crash."""


def deep(peer: int) -> torch.nn.Module:
    """A model with random numbers and with statistics of its own."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(16, 10),
    )


def deep_task(stop: tuple[int, int] = (-1, -1), precision: torch.dtype = torch.float32) -> Any:
    """Adam on `deep`; raises Stop at batch `stop`, (peer, step)."""

    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        if (peer, step) == stop:
            raise Stop
        features, labels = batch_of(peer, step)
        return features.to(precision), labels

    return gossip.Task(
        lambda peer: deep(peer).to(precision),
        lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        batch,
        lambda module, batch: torch.nn.functional.cross_entropy(module(batch[0]).float(), batch[1]),
        buffers="keep",
    )


class Momentum(NumpySoftmax):
    """Heavy-ball steps, whose velocities the trainer keeps."""

    linear_steps = False

    def __init__(self, stop: tuple[int, int] = (-1, -1)) -> None:
        super().__init__()
        self.stop = stop
        self.velocity = {peer: np.zeros(650, np.float32) for peer in range(4)}

    def update(self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        if (peer, step) == self.stop:
            raise Stop
        self.velocity[peer] = np.float32(0.9) * self.velocity[peer] + gradient
        return values - np.float32(0.05) * self.velocity[peer]

    def state(self, peer: int) -> bytes:
        return self.velocity[peer].tobytes()

    def load_state(self, peer: int, state: bytes) -> None:
        self.velocity[peer] = np.frombuffer(state, np.float32).copy()


@pytest.mark.parametrize("stop", [(0, 5), (2, 13), (3, 19)])
@pytest.mark.parametrize("task", [deep_task, Momentum], ids=["torch", "numpy"])
def test_a_resumed_simulation_equals_one_never_stopped(
    configure: Configure,
    tmp_path: Path,
    task: Callable[..., Any],
    stop: tuple[int, int],
) -> None:
    config = configure(4, 20)
    whole = gossamer.run(config, task(), settings=CHECKPOINTS, out=tmp_path / "whole")
    with pytest.raises(Stop):
        gossamer.run(config, task(stop), settings=CHECKPOINTS, out=tmp_path / "stopped")
    resumed = gossamer.run(
        config, task(), settings=CHECKPOINTS, out=tmp_path / "stopped", resume="auto"
    )
    assert resumed["final_hash"] == whole["final_hash"]
    files = sorted(path.name for path in (tmp_path / "stopped" / "checkpoints").iterdir())
    assert files == [
        f"round-{number:08}-0.{suffix}"
        for number in (15, 20)
        for suffix in ("json", "safetensors", "state")
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm.kind": "server"},
        {"algorithm.kind": "server", "algorithm.servers": 2},
        {"algorithm.kind": "fedavg", "algorithm.local_steps": 2, "algorithm.fraction": 0.5},
    ],
    ids=["server", "servers", "fedavg"],
)
def test_a_server_resumes_with_the_state_of_its_optimizer(
    configure: Configure, tmp_path: Path, settings: dict[str, object]
) -> None:
    def task(stop: int = -1) -> Any:
        def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
            if (peer, step) == (0, stop):
                raise Stop
            return batch_of(peer, step)

        linear = settings["algorithm.kind"] == "fedavg"  # needs SGD
        return gossip.Task(
            softmax, sgd if linear else torch.optim.Adam, batch, loss_of, accuracy_of
        )

    config, settings = configure(4, 20), CHECKPOINTS | settings
    whole = gossamer.run(config, task(), settings=settings, out=tmp_path / "whole")
    with pytest.raises(Stop):
        gossamer.run(config, task(13), settings=settings, out=tmp_path / "stopped")
    out = tmp_path / "stopped"
    resumed = gossamer.run(config, task(), settings=settings, out=out, resume="auto")
    assert resumed["final_hash"] == whole["final_hash"]


def test_half_precision_resumes_with_the_precision_of_its_masters(
    configure: Configure, tmp_path: Path
) -> None:
    def task(*stop: tuple[int, int]) -> Any:
        return deep_task(*stop, precision=torch.bfloat16)

    config = configure(4, 12)
    whole = gossamer.run(config, task(), settings=CHECKPOINTS, out=tmp_path / "whole")
    with pytest.raises(Stop):
        gossamer.run(config, task((1, 7)), settings=CHECKPOINTS, out=tmp_path / "stopped")
    resumed = gossamer.run(
        config, task(), settings=CHECKPOINTS, out=tmp_path / "stopped", resume="auto"
    )
    assert resumed["final_hash"] == whole["final_hash"]


def test_a_network_that_was_killed_resumes(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    config = configure(2, 20, "[checkpoint]", "every = 5")
    whole = gossamer.run(config, torch_task(), out=tmp_path / "whole")
    first = [
        processes.start("loop.py", config, peer, tmp_path / "out", "pause=12") for peer in (0, 1)
    ]
    for each in first:
        each.wait_for("paused")
    for each in first:
        each.process.send_signal(signal.SIGKILL)
        each.wait()
    again = [
        processes.start("loop.py", config, peer, tmp_path / "out", "resume=auto") for peer in (0, 1)
    ]
    for each in again:
        assert each.result()["steps"] == 20
        assert "step 11\n" in each.output and "step 10\n" not in each.output
    assert final_hash(program, tmp_path / "out") == whole["final_hash"]


def test_a_damaged_state_is_skipped(configure: Configure, tmp_path: Path) -> None:
    config = configure(4, 20)
    whole = gossamer.run(config, deep_task(), settings=CHECKPOINTS, out=tmp_path / "whole")
    with pytest.raises(Stop):
        gossamer.run(config, deep_task((0, 12)), settings=CHECKPOINTS, out=tmp_path / "stopped")
    state = tmp_path / "stopped" / "checkpoints" / "round-00000010-0.state"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    resumed = gossamer.run(
        config, deep_task(), settings=CHECKPOINTS, out=tmp_path / "stopped", resume="auto"
    )
    assert resumed["final_hash"] == whole["final_hash"]


class Cursor:
    """An object of the program with a state."""

    position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


def test_a_loop_resumes_with_its_objects_and_its_scheduler(
    configure: Configure, tmp_path: Path
) -> None:
    config = configure(1, 20, "[checkpoint]", "every = 5")

    def loop(folder: str, last: int = 20) -> tuple[int, int, float, torch.Tensor]:
        module, cursor = softmax(0), Cursor()
        optimizer = gossip.Optimizer(
            sgd(module.parameters()),
            config,
            0,
            settings={"topology.kind": "complete"},
            out=tmp_path / folder,
            resume="auto",
            state=[cursor],
        )
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 1 / (1 + step), last_epoch=optimizer.steps - 1
        )
        with optimizer:
            while not optimizer.finished and optimizer.steps < last:
                optimizer.zero_grad()
                loss_of(module, batch_of(0, cursor.position)).backward()
                cursor.position += 1
                optimizer.step()
                scheduler.step()
        rate = optimizer.param_groups[0]["lr"]
        return cursor.position, optimizer.steps, rate, module.weight.detach()

    whole = loop("whole")
    assert loop("stopped", 13)[:2] == (13, 13)
    resumed = loop("stopped")
    assert resumed[:2] == (20, 20)
    assert resumed[2] == pytest.approx(whole[2], abs=1e-12)
    assert torch.equal(resumed[3], whole[3])


def test_an_object_without_a_state_is_refused(configure: Configure) -> None:
    with pytest.raises(gossamer.Error, match=r"state: int has no state_dict\(\)"):
        gossip.Optimizer(sgd(softmax(0).parameters()), configure(1, 1), 0, state=[1])


def test_no_code_of_a_state_runs() -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return exec, ("raise SystemExit('code of the file has run')",)

    stream = io.BytesIO()
    torch.save([Attack()], stream)
    good = to_bytes({"a": torch.zeros(3), "b": [1.5, None, (True, "c")], 7: float("inf")})
    assert str(from_bytes(good)) == (
        "{'a': tensor([0., 0., 0.]), 'b': [1.5, None, (True, 'c')], 7: inf}"
    )
    shape_end = 8 + int.from_bytes(good[:8], "little")
    attack = good[:shape_end] + stream.getvalue()
    for bad in (attack, good[:-40], good[: shape_end - 3], b"", b"\xff" * 64):
        with pytest.raises(gossamer.Error, match="the state of the program in the checkpoint"):
            from_bytes(bad)
    with pytest.raises(gossamer.Error, match="state: a checkpoint holds .* and no Attack"):
        to_bytes({"a": Attack()})


def test_a_state_of_another_model_is_named() -> None:
    def replica(width: int) -> Replica:
        module = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.BatchNorm1d(width))
        return Replica(torch.optim.SGD(module.parameters(), lr=0.1), module, "keep")

    saved = from_bytes(to_bytes(replica(3).state()))
    with pytest.raises(gossamer.Error, match=r"no buffer 1.running_mean of shape \(4,\)"):
        replica(4).load_state(saved)
