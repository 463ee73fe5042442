"""The optimizer of a network of one peer: the wrapped optimizer's steps, bit by bit, on views of a
row, and what may happen to a model while it is wrapped."""

import copy
import gc
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gossamer
import gossamer.torch as gossip
import pytest
import torch
from conftest import Configure
from tasks import batch_of, loss_of

Wrap = Callable[..., gossip.Optimizer]


@pytest.fixture
def wrap(configure: Configure, tmp_path: Path) -> Iterator[Wrap]:
    """wrap(optimizer, rounds=10, module=model) joins a network of one peer."""
    wrapped: list[gossip.Optimizer] = []

    def join(optimizer: torch.optim.Optimizer, rounds: int = 10, **more: Any) -> gossip.Optimizer:
        out = tmp_path / f"out-{len(wrapped)}"
        wrapped.append(gossip.Optimizer(optimizer, configure(1, rounds), 0, out=out, **more))
        return wrapped[-1]

    yield join
    for optimizer in wrapped:
        optimizer.close()


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 12), torch.nn.Tanh(), torch.nn.Linear(12, 10))


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int = 10) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch_of(0, step)).backward()
        optimizer.step()


def equal(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))


@pytest.mark.parametrize(
    "kind", ["dpsgd", "gradient_tracking", "push_sum", "choco", "power_gossip"]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
        lambda p: torch.optim.AdamW(p, lr=1e-2),
        lambda p: torch.optim.RMSprop(p, lr=1e-3),
    ],
    ids=["sgd", "adamw", "rmsprop"],
)
def test_a_peer_alone_takes_the_steps_of_its_optimizer(wrap: Wrap, make: Any, kind: str) -> None:
    plain, model = network(), network()
    train(plain, make(plain.parameters()))
    optimizer = wrap(make(model.parameters()), settings={"algorithm.kind": kind})
    train(model, optimizer)
    assert optimizer.finished
    if kind == "gradient_tracking":  # its tracker is a sum of gradients, and rounds
        for a, b in zip(plain.parameters(), model.parameters()):
            assert torch.allclose(a, b, atol=1e-4)
    else:
        assert equal(plain, model)


def test_parameters_are_views_of_one_row_and_their_own_again(wrap: Wrap) -> None:
    model = network()
    weight, bias = model[0].weight, model[0].bias
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), rounds=2)
    assert bias.data_ptr() == weight.data_ptr() + weight.numel() * 4
    kept = model.state_dict()  # tensors that share the row's memory
    train(model, optimizer, 2)
    assert optimizer.finished
    assert model[0].weight is weight and torch.isfinite(weight).all()
    assert bias.data_ptr() != weight.data_ptr() + weight.numel() * 4
    optimizer.close()
    gc.collect()
    assert all(torch.isfinite(values).all() for values in kept.values())


def test_a_scheduler_and_the_state_are_the_wrapped_optimizers(wrap: Wrap) -> None:
    plain, model = network(), network()
    inner = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    outer = wrap(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    for each, optimizer in ((plain, inner), (model, outer)):
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        for step in range(6):
            optimizer.zero_grad()
            loss_of(each, batch_of(0, step)).backward()
            optimizer.step()
            scheduler.step()
    assert equal(plain, model)
    assert outer.param_groups[0]["lr"] == inner.param_groups[0]["lr"] == 0.1 / 8
    outer.load_state_dict(copy.deepcopy(outer.state_dict()))
    assert isinstance(outer, torch.optim.Optimizer) and "SGD" in repr(outer)


def test_a_closure_is_called_once_and_its_loss_recorded(wrap: Wrap, tmp_path: Path) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), settings={"log.every": 1})

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(0, 0))
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    assert optimizer.metrics()["round"] == 3
    optimizer.close()
    records = map(json.loads, (tmp_path / "out-0" / "log-0.jsonl").read_text().splitlines())
    rounds = [record for record in records if record["record"] == "round"]
    assert [record["train_loss"] for record in rounds] == [None, *losses]


def test_half_precision_is_rounded_from_float32_masters(wrap: Wrap) -> None:
    """Steps of less than half a unit in the last place of bfloat16 are not lost."""
    half = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    optimizer = wrap(torch.optim.SGD([half], lr=1e-3), rounds=50)
    for _ in range(50):
        half.grad = torch.ones(4, dtype=torch.bfloat16)
        optimizer.step()
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, torch.full((4,), 0.95, dtype=torch.bfloat16))


@pytest.mark.parametrize("buffers", ["keep", "mix"])
def test_buffers_are_kept_or_mixed_by_choice(wrap: Wrap, buffers: str) -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 10))
    with pytest.raises(gossamer.Error, match=r"0\.running_mean.*buffers='keep'.*buffers='mix'"):
        wrap(torch.optim.SGD(model.parameters(), lr=0.1), module=model)
    plain = copy.deepcopy(model)
    train(plain, torch.optim.SGD(plain.parameters(), lr=0.1))
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), module=model, buffers=buffers)
    train(model, optimizer)
    assert equal(plain, model)
    with pytest.raises(gossamer.Error, match="buffers: 'mean' is not one of refuse, keep, mix"):
        wrap(torch.optim.SGD(model.parameters(), lr=0.1), module=model, buffers="mean")


def test_a_change_of_the_parameters_is_named(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), module=model)
    train(model, optimizer, 1)
    with pytest.raises(gossamer.Error, match="add parameter groups before"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    model.load_state_dict(network().state_dict())  # in place, which is fine
    train(model, optimizer, 1)
    model[0].bias.data = model[0].bias.data.clone()
    with pytest.raises(gossamer.Error, match=r"parameter 0\.bias has other memory than its row"):
        train(model, optimizer, 1)
    other = network()
    second = wrap(torch.optim.SGD(other.parameters(), lr=0.1))
    second.wrapped.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    with pytest.raises(gossamer.Error, match="the parameter list of the optimizer has changed"):
        train(other, second, 1)


def test_a_parameter_without_gradient_stays(wrap: Wrap) -> None:
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
    optimizer = wrap(torch.optim.SGD([used, unused], lr=0.5), rounds=1)
    used.grad = torch.ones(2)
    optimizer.step()
    assert torch.equal(used, torch.full((2,), 0.5)) and torch.equal(unused, torch.ones(3))


def test_what_no_step_can_be_taken_with_is_refused_before_the_program_joins(wrap: Wrap) -> None:
    with pytest.raises(gossamer.Error, match="LBFGS computes the loss several times a step"):
        wrap(torch.optim.LBFGS(network().parameters()))
    with pytest.raises(gossamer.Error, match="optimizer: Sequential is no optimizer of torch"):
        wrap(network())
    without_values = torch.nn.Parameter(torch.empty(3, device="meta"))
    with pytest.raises(gossamer.Error, match=r"parameter 0\.0 is on the device meta, and has no"):
        wrap(torch.optim.SGD([without_values], lr=0.1))


def test_a_skipped_batch_is_no_step(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), rounds=1, check_gradients=True)
    loss_of(model, batch_of(0, 0)).backward()
    model[2].bias.grad[0] = float("inf")
    with pytest.raises(gossamer.Error, match=r"parameter 0\.3 is not finite in local step 0"):
        optimizer.step()
    train(model, optimizer, 1)
    assert optimizer.finished


class Failing(torch.optim.SGD):
    """Its second step raises once."""

    calls = 0

    def step(self, closure: Any = None) -> Any:
        self.calls += 1
        if self.calls == 2:
            raise ZeroDivisionError("a bug of the user")
        return super().step(closure)


def test_a_step_that_raised_has_not_been_done(wrap: Wrap, tmp_path: Path) -> None:
    model = network()
    optimizer = wrap(Failing(model.parameters(), lr=0.1), rounds=2)
    losses = []
    for index in range(2):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(0, index))
        loss.backward()
        if index == 1:
            with pytest.raises(ZeroDivisionError):
                optimizer.step(loss=100)
            assert optimizer.steps == 1
        optimizer.step(loss=loss)
        losses.append(float(loss))
    assert optimizer.steps == 2
    assert optimizer.finished
    records = (tmp_path / "out-0" / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    rounds = [each for each in map(json.loads, records) if each["record"] == "round"]
    assert rounds[-1]["train_loss"] == pytest.approx(sum(losses) / 2)


def step_of(optimizer: gossip.Optimizer, model: torch.nn.Module, queue: Any) -> None:
    loss_of(model, batch_of(0, 0)).backward()
    for _ in range(2):  # within a round, and then at its end
        try:
            optimizer.step()
        except gossamer.Error as error:
            queue.put(str(error))
            return
    queue.put("no error")


def test_an_optimizer_that_has_a_scheduler_is_wrapped(wrap: Wrap) -> None:
    model, alone = network(), network()
    own = torch.optim.SGD(alone.parameters(), lr=0.1)
    schedules = [torch.optim.lr_scheduler.StepLR(own, 2)]
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    schedules.append(torch.optim.lr_scheduler.StepLR(inner, 2))  # replaces inner.step
    optimizer = wrap(inner)
    for _ in range(5):
        for each, steps in ((alone, own), (model, optimizer)):
            train(each, steps, 1)
        for schedule in schedules:
            schedule.step()
    assert equal(model, alone)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)


def test_a_module_that_changes_is_noticed(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), module=model)
    model[2] = torch.nn.Linear(12, 10)
    with pytest.raises(gossamer.Error, match="the parameters of the module are others than those"):
        train(model, optimizer, 1)


def test_a_type_that_changes_is_named(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1))
    model.double()
    with pytest.raises(gossamer.Error, match="0.0 has changed: it was of torch.float32, and is of"):
        optimizer.step()


def test_an_optimizer_has_no_copy(wrap: Wrap) -> None:
    optimizer = wrap(torch.optim.SGD(network().parameters(), lr=0.1))
    with pytest.raises(gossamer.Error, match="has no copy; copy or pickle its state_dict"):
        copy.deepcopy(optimizer)


def test_a_fork_between_two_rounds_is_noticed_at_the_next_step(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(
        torch.optim.SGD(model.parameters(), lr=0.1), settings={"algorithm.local_steps": 4}
    )
    train(model, optimizer, 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            optimizer.step()
        except gossamer.Error as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).startswith(b"this process was forked after it joined the run")
    train(model, optimizer, 39)
    assert optimizer.finished


def test_a_forked_process_is_told_so_and_harms_nothing(wrap: Wrap) -> None:
    model = network()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=step_of, args=(optimizer, model, queue))
    child.start()
    message = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert "this process was forked after it joined the run" in message
    train(model, optimizer)
    assert optimizer.finished


def test_a_closed_optimizer_takes_no_steps(wrap: Wrap) -> None:
    model = network()
    with wrap(torch.optim.SGD(model.parameters(), lr=0.1)) as optimizer:
        train(model, optimizer, 3)
    optimizer.close()  # again
    with pytest.raises(gossamer.Error, match=r"has left the network \(close\(\)\)"):
        optimizer.step()
    assert all(torch.isfinite(values).all() for values in model.parameters())


def test_the_id_comes_from_the_environment(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join(**more: Any) -> gossip.Optimizer:
        inner = torch.optim.SGD(network().parameters(), lr=0.1)
        return gossip.Optimizer(inner, configure(1, 1), out=tmp_path / "out", **more)

    monkeypatch.delenv("GOSSAMER_ID", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(gossamer.Error, match="the id of this peer is missing: give peer=…,"):
        join()
    with pytest.raises(gossamer.Error, match="peer id 7 is not one of run.peers = 1"):
        join(peer=7)
    monkeypatch.setenv("RANK", "0")
    join().close()


def test_a_program_that_ends_without_close_ends_at_once(
    configure: Configure, tmp_path: Path
) -> None:
    program = (
        "import torch, gossamer.torch as gossip\n"
        "model = torch.nn.Linear(64, 10)\n"
        "inner = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"optimizer = gossip.Optimizer(inner, {str(configure(1, 5))!r}, 0, out={str(tmp_path)!r})\n"
        "model(torch.ones(1, 64)).sum().backward()\n"
        "optimizer.step()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, env=dict(os.environ))
    assert done.returncode == 0
    assert '"reason":"interrupted"' in (tmp_path / "log-0.jsonl").read_text()
