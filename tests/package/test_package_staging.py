"""Parameters on another device than the CPU: what is copied, and what waits for the copies.

The device is that of delayed_streams.py, which does nothing before something waits for it, so that
a missing wait is a wrong value.
"""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gossamer
import gossamer.torch as gossip
import pytest
import torch
from conftest import Configure
from delayed_streams import DelayedDevices, DelayedLane, DelayedStream, parameters_elsewhere
from gossamer import staging
from gossamer.staging import BlockingLane, Stager, StreamLane
from tasks import torch_task


@pytest.fixture
def program() -> DelayedStream:
    """The stream of a program, which computes as late as the copies are made."""
    return DelayedStream()


@pytest.fixture(params=[True, False], ids=["locked", "buffer"])
def lane(request: Any, program: DelayedStream, monkeypatch: pytest.MonkeyPatch) -> DelayedLane:
    lane = DelayedLane(DelayedDevices(program, locks=request.param))
    monkeypatch.setattr(staging, "on_host", lambda device: False)
    monkeypatch.setattr(staging, "lane_of", lambda device: lane)
    return lane


def parts_of(row: torch.Tensor) -> list[torch.Tensor]:
    return [row[:2], row[2:].view(2, 2)]


def test_a_row_has_what_the_program_computed_before(
    lane: DelayedLane, program: DelayedStream
) -> None:
    row, tensors = torch.zeros(6), [torch.zeros(2), torch.zeros(2, 2)]
    for tensor in tensors:
        program.submit(lambda tensor=tensor: tensor.fill_(3))
    Stager().pull(row, list(zip(parts_of(row), tensors)))
    assert row.tolist() == [3] * 6


def test_the_program_sees_what_the_row_had(lane: DelayedLane, program: DelayedStream) -> None:
    row, tensors = torch.arange(6.0), [torch.zeros(2), torch.zeros(2, 2)]
    before: list[float] = []
    after: list[list[Any]] = []
    program.submit(lambda: before.append(float(tensors[1].sum())))
    stager = Stager()
    stager.push(row, list(zip(tensors, parts_of(row))))
    program.submit(lambda: after.extend(tensor.tolist() for tensor in tensors))
    stager.finish()  # of the copies, which follow the first work of the program
    program.synchronize()
    assert before == [0] and after == [[0, 1], [[2, 3], [4, 5]]]


def test_the_program_waits_for_values_that_it_needs(
    lane: DelayedLane, program: DelayedStream
) -> None:
    row, tensor = torch.arange(2.0), torch.zeros(2)
    seen: list[list[float]] = []
    Stager().push(row, [(tensor, row)])
    program.submit(lambda: seen.append(tensor.tolist()))
    program.synchronize()  # the host waits for nothing else
    assert seen == [[0, 1]]


def test_a_pull_ends_the_pushes_from_its_row(lane: DelayedLane) -> None:
    row, tensor = torch.arange(2.0), torch.zeros(2)
    stager = Stager()
    stager.push(row, [(tensor, row)])
    stager.pull(row, [])
    row.fill_(7)  # as the runtime may now
    stager.finish()
    assert tensor.tolist() == [0, 1]


def test_memory_that_is_being_copied_is_not_used_for_other_tensors(lane: DelayedLane) -> None:
    source, target = torch.ones(2), torch.zeros(2)
    kept = weakref.ref(source)
    lane.submit([(target, source)])
    del source
    assert kept() is not None
    lane.finish()
    assert kept() is None and target.tolist() == [1, 1]


def test_copies_within_the_host_are_made_at_once() -> None:
    row, tensor = torch.arange(2.0), torch.zeros(2)
    stager = Stager()
    stager.push(row, [(tensor, row)])
    assert tensor.tolist() == [0, 1]
    stager.pull(row, [(row, tensor + 1)])
    assert row.tolist() == [1, 2]


def test_devices_without_streams_copy_at_once() -> None:
    assert isinstance(staging.lane_of(torch.device("meta")), BlockingLane)
    assert isinstance(staging.lane_of(torch.device("cuda")), StreamLane)
    row, tensor = torch.arange(2.0), torch.zeros(2)
    lane = BlockingLane()
    assert lane.host_memory(row) is row
    lane.submit([(tensor, row)])
    assert tensor.tolist() == [0, 1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="memory can be page-locked here")
def test_memory_that_cannot_be_locked_is_used_as_it_is() -> None:
    row = torch.arange(2.0)
    assert StreamLane(object()).host_memory(row) is row


# ---- whole runs: the bits are those of parameters that are views of the row

CASES = {
    "atc": {},
    "atc-steps": {"algorithm.local_steps": 3},
    "awc": {"algorithm.order": "awc"},
    "awc-steps": {"algorithm.order": "awc", "algorithm.local_steps": 3},
    "tracking": {"algorithm.kind": "gradient_tracking"},
    "tracking-awc": {"algorithm.kind": "gradient_tracking", "algorithm.order": "awc"},
}


class Model(torch.nn.Module):
    """Two parameters and a buffer, which is mixed with them."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.a = torch.nn.Parameter(torch.linspace(-1, 1, 6, dtype=dtype).view(2, 3))
        self.unused = torch.nn.Parameter(torch.ones(2, dtype=dtype))
        self.b = torch.nn.Parameter(torch.linspace(0, 2, 4, dtype=dtype))
        self.register_buffer("mean", torch.zeros(3))


def train(
    config: Path, folder: Path, peer: int, settings: dict[str, Any], dtype: torch.dtype
) -> list[Any]:
    model = Model(dtype)
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    options: dict[str, Any] = {"settings": settings, "out": folder / f"out-{peer}"}
    with gossip.Optimizer(inner, config, peer, module=model, buffers="mix", **options) as optimizer:
        while not optimizer.finished:
            for parameter in (model.a, model.b):
                parameter.grad = parameter.detach().sin() * (1 + peer)
            model.mean += model.a.detach().float().mean(0) * (peer - 0.5)
            optimizer.step()
    return [each.tolist() for each in (model.a, model.unused, model.b, model.mean)]


def train_all(
    config: Path, settings: dict[str, Any], dtype: torch.dtype = torch.float32
) -> list[list[Any]]:
    folder = Path(mkdtemp(dir=config.parent))
    settings = settings | {"net.rendezvous": str(folder / "meet")}
    with ThreadPoolExecutor(2) as threads:
        peers = threads.map(lambda peer: train(config, folder, peer, settings, dtype), range(2))
        return list(peers)


@pytest.mark.parametrize("locks", [True, False], ids=["locked", "buffer"])
@pytest.mark.parametrize("case", CASES)
def test_a_network_ends_with_the_same_bits(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, case: str, locks: bool
) -> None:
    config = configure(2, 6)
    expected = train_all(config, CASES[case])
    with parameters_elsewhere(monkeypatch, locks=locks) as lanes:
        assert train_all(config, CASES[case]) == expected
    assert len(lanes) == 2 and not any(lane.locked for lane in lanes)


def test_half_precision_ends_with_the_same_bits(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(2, 6)
    expected = train_all(config, CASES["awc-steps"], torch.bfloat16)
    with parameters_elsewhere(monkeypatch):
        assert train_all(config, CASES["awc-steps"], torch.bfloat16) == expected


@pytest.mark.parametrize("vmap", [False, True])
def test_a_task_ends_with_the_same_bits(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vmap: bool
) -> None:
    config = configure(4, 4)
    settings = {"algorithm.local_steps": 2, "log.every": 1}
    found = []
    for elsewhere in (False, True):
        with parameters_elsewhere(monkeypatch) if elsewhere else nullcontext():
            summary = gossamer.run(
                config, torch_task(vmap), settings=settings, out=tmp_path / f"out-{elsewhere}"
            )
        found.append((summary["final_hash"], summary["final"]["test_loss"]))
    assert found[0] == found[1]


def test_an_averager_ends_with_the_same_bits(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = configure(2, 3)

    def averaged(folder: Path, peer: int) -> list[float]:
        values = torch.arange(5.0) * (1 + peer)
        settings = {"net.rendezvous": str(folder / "meet")}
        out = folder / f"out-{peer}"
        with gossip.Averager([values], config, peer, settings=settings, out=out) as averager:
            while not averager.finished:
                averager.average()
                values += 0.1 * values.sin()
        return values.tolist()

    found = []
    for elsewhere in (False, True):
        folder = tmp_path / str(elsewhere)
        with parameters_elsewhere(monkeypatch) if elsewhere else nullcontext([]) as lanes:
            with ThreadPoolExecutor(2) as threads:
                found.append(list(threads.map(lambda peer: averaged(folder, peer), range(2))))
        assert len(lanes) == 2 * elsewhere and not any(lane.locked for lane in lanes)
    assert found[0] == found[1]


def test_the_steps_of_a_round_copy_nothing_in_between(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, tensors = 5, 4
    with parameters_elsewhere(monkeypatch) as lanes:
        train_all(configure(2, rounds), CASES["atc-steps"])
    for lane in lanes:
        assert lane.copied == 2 * tensors * rounds


def test_rows_are_locked_while_they_are_used(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parameter = torch.nn.Parameter(torch.ones(5))
    parameter.grad = torch.ones(5)
    with parameters_elsewhere(monkeypatch) as lanes:
        for closes in (True, False):
            inner = torch.optim.SGD([parameter], lr=0.25)
            optimizer = gossip.Optimizer(inner, configure(1, 10), 0, out=tmp_path / f"out-{closes}")
            optimizer.step()
            assert lanes[-1].locked
            if closes:
                optimizer.close()
                assert not lanes[-1].locked
            del optimizer
            gc.collect()
            locked = lanes[-1].locked
            lanes.clear()
            gc.collect()
            assert not locked
    assert parameter.tolist() == [0.5] * 5
