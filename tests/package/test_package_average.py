"""Averagers: consensus of given tensors on their mean, and errors that say why."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from process_test_util import Processes, Program
from tasks import batch_of, loss_of, sgd, softmax, torch_task

PEERS = 4
MEAN = 1.5  # of the ids


class Consensus:
    """Averagers of all peers in threads of this process, which call them at a common pace.

    Without one, a peer of an asynchronous algorithm may end before another has begun.
    """

    def __init__(self, config: Path, out: Path) -> None:
        self.config, self.out = config, out

    def run(self, kind: Any, tensors: Callable[[int], Any], settings: dict[str, Any]) -> list[Any]:
        """The tensors of each peer after the last round, or its error."""

        pace = threading.Barrier(PEERS, timeout=60)

        def peer(number: int) -> Any:
            own = tensors(number)
            try:
                with kind(own, self.config, number, settings=settings, out=self.out) as averager:
                    while not averager.finished:
                        pace.wait()
                        averager.average()
            except gossamer.Error as error:
                return error
            return own

        with ThreadPoolExecutor(PEERS) as threads:
            return list(threads.map(peer, range(PEERS)))


@pytest.fixture
def consensus(configure: Configure, tmp_path: Path) -> Consensus:
    return Consensus(configure(PEERS, 60), tmp_path / "out")


def vectors(peer: int) -> dict[str, torch.Tensor]:
    return {"a": torch.full((2, 3), float(peer)), "b": torch.tensor(10.0 * peer)}


@pytest.mark.parametrize(
    "settings",
    [
        {"topology.kind": "complete", "run.rounds": 1},
        {},  # a ring
        {"algorithm.kind": "push_sum", "topology.kind": "exponential"},
        {"algorithm.kind": "async_push_sum", "algorithm.policy": "async"},
        {"algorithm.kind": "choco", "algorithm.consensus_rate": 0.5},
        {"algorithm.kind": "power_gossip"},
        {"algorithm.kind": "allreduce", "run.rounds": 1},
    ],
    ids=["complete", "ring", "push_sum", "async_push_sum", "choco", "power_gossip", "allreduce"],
)
def test_given_tensors_end_at_their_mean(consensus: Consensus, settings: dict[str, object]) -> None:
    bound = 0.1 if "algorithm.policy" in settings else 1e-4
    for own in consensus.run(gossip.Averager, vectors, settings):
        assert torch.allclose(own["a"], torch.full((2, 3), MEAN), atol=bound)
        assert own["b"].item() == pytest.approx(10 * MEAN, abs=10 * bound)


def test_averages_of_pairs_keep_the_mean(consensus: Consensus) -> None:
    ends = consensus.run(gossip.Averager, vectors, {"algorithm.kind": "ad_psgd"})
    values = torch.stack([own["a"] for own in ends])
    assert torch.allclose(values.mean(0), torch.full((2, 3), MEAN), atol=1e-5)
    assert values.max() - values.min() < 2  # 3 at first


@pytest.mark.parametrize("step", [0, 1])
def test_the_first_values_are_added_to_what_neighbours_made_of_the_zero_start(step: int) -> None:
    """A neighbour that is a round ahead may average before this peer has handed its values over."""
    averager = object.__new__(gossamer.Averager)
    values = np.array([1, 2], np.float32)
    averager._tensors = {"a": values}
    averager._places = {"a": averager._place(values)}
    averager._complete = lambda: None
    x, gradient = np.array([0.5, 0.25], np.float32), np.empty(2, np.float32)
    request = SimpleNamespace(operation="gradient", step=step, x=x, gradient=gradient)
    averager._pending = lambda: request
    averager.average()
    expected = values + x if step == 0 else values
    assert np.array_equal(x - gradient, expected)  # what a step with rate 1 makes of it
    request.operation = "local_steps"
    averager.average()
    assert np.array_equal(x, expected)


def test_parameters_and_half_precision_take_the_mean(consensus: Consensus) -> None:
    def tensors(peer: int) -> list[torch.Tensor]:
        return [
            torch.nn.Parameter(torch.full((3,), float(peer))),
            torch.full((2,), float(peer), dtype=torch.bfloat16),
            torch.arange(6.0).view(2, 3).T,  # not contiguous, and the same at all peers
        ]

    settings = {"topology.kind": "complete", "run.rounds": 1}
    for parameter, half, transposed in consensus.run(gossip.Averager, tensors, settings):
        assert torch.allclose(parameter, torch.full((3,), MEAN), atol=1e-6)
        assert parameter.requires_grad and parameter.is_leaf
        assert torch.equal(half, torch.full((2,), MEAN, dtype=torch.bfloat16))
        assert torch.equal(transposed, torch.arange(6.0).view(2, 3).T)


def test_one_round_is_one_step_of_the_mixing_matrix(consensus: Consensus) -> None:
    """On a ring of 4, each peer weighs itself and its two neighbours with a third."""
    found = consensus.run(gossamer.Averager, lambda peer: [np.eye(4)[peer]], {"run.rounds": 1})
    ring = (1 - np.roll(np.eye(4), 2, axis=1)) / 3
    assert np.concatenate(found) == pytest.approx(ring, abs=1e-6)


def test_a_loop_that_averages_after_each_step_is_dpsgd(consensus: Consensus) -> None:
    """The bits of the simulation, whose optimizer steps and mixes the same."""
    rounds = {"run.rounds": 10}
    models = [softmax(peer) for peer in range(PEERS)]

    def train(peer: int) -> None:
        model, optimizer = models[peer], sgd(models[peer].parameters())
        tensors = dict(model.named_parameters())
        with gossip.Averager(
            tensors, consensus.config, peer, settings=rounds, out=consensus.out
        ) as averager:
            for step in range(10):
                optimizer.zero_grad()
                loss_of(model, batch_of(peer, step)).backward()
                optimizer.step()
                averager.average()
            assert averager.finished

    with ThreadPoolExecutor(PEERS) as threads:
        list(threads.map(train, range(PEERS)))
    simulated = consensus.out.with_name("simulated")
    gossamer.run(consensus.config, torch_task(), settings=rounds, out=simulated)
    expected = digits.read_tensors(simulated / "final-0.safetensors")
    for peer, model in enumerate(models):
        for name, parameter in model.named_parameters():
            assert np.array_equal(parameter.detach().numpy(), expected[f"peer{peer}.{name}"])


def test_numpy_arrays_need_no_torch(configure: Configure, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import gossamer\n"
        "assert 'numpy' not in sys.modules\n"
        "import numpy as np\n"
        "values = np.arange(3.0)\n"
        f"with gossamer.Averager([values], {str(configure(1, 2))!r}, 0,\n"
        f"                       out={str(tmp_path / 'out')!r}) as averager:\n"
        "    averager.average()\n"
        "    assert values.tolist() == [0, 1, 2] and averager.metrics()['round'] == 0\n"
        "    values += 1\n"
        "    averager.average()\n"
        "    assert averager.finished and values.tolist() == [1, 2, 3]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"algorithm.kind": "gradient_tracking"},
            "a round of 'gradient_tracking', as it is configured, is no average",
        ),
        ({"algorithm.local_steps": 3}, "algorithm.local_steps: 3 steps make a round"),
        ({"algorithm.order": "awc"}, "a round of 'dpsgd', as it is configured, is no average"),
    ],
)
def test_a_configuration_without_an_average_is_refused(
    configure: Configure, tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossip.Averager([torch.ones(2)], configure(1), 0, settings=settings, out=tmp_path / "out")


class Sharded(torch.nn.Parameter):
    """In place of a DTensor, which PyTorch 1.13 has not."""

    def to_local(self) -> torch.Tensor:
        return self.detach()


@pytest.mark.parametrize(
    ("kind", "tensor", "message"),
    [
        (gossip.Averager, torch.ones(2, dtype=torch.int64), "0 is of torch.int64; rows hold real"),
        (gossip.Averager, torch.ones(2, device="meta"), "0 is on meta with layout torch.strided"),
        (gossip.Averager, torch.ones(2).to_sparse(), "0 is on cpu with layout torch.sparse_coo"),
        (gossip.Averager, Sharded(torch.ones(2)), "0 is a DTensor; give its local tensor"),
        (gossip.Averager, np.ones(2), "0 is of ndarray, and no torch.Tensor"),
        (gossip.Averager, torch.ones(1).expand(3), "0 has several elements in one place of memory"),
        (gossamer.Averager, np.ones(2, np.int32), "0 is of int32; rows hold real numbers"),
        (gossamer.Averager, np.broadcast_to(np.ones(1), 2), "0 is read-only"),
        (gossamer.Averager, [1.0], "0 is of list, and no numpy.ndarray"),
    ],
)
def test_a_tensor_that_cannot_be_averaged_is_named(
    configure: Configure, kind: Any, tensor: Any, message: str
) -> None:
    with pytest.raises(gossamer.Error, match=f"tensor {message}"):
        kind([tensor], configure(1), 0)


def test_a_changed_tensor_is_named(configure: Configure, tmp_path: Path) -> None:
    value, other = torch.ones(4), torch.ones(4)
    with gossip.Averager({"w": value, "v": other}, configure(1), 0, out=tmp_path / "o") as averager:
        value.data = torch.ones(5)
        with pytest.raises(gossamer.Error, match=r"tensor w has changed: .*\(4,\).*\(5,\)"):
            averager.average()
        value.data = torch.ones(4, dtype=torch.float64)
        with pytest.raises(gossamer.Error, match=r"w has changed: it was torch.float32.*float64"):
            averager.average()
        value.data = torch.tensor([1.0, float("nan"), 1.0, 1.0])
        with pytest.raises(gossamer.Error, match="tensor w has values that are not finite"):
            averager.average()
        value.data = torch.full((4,), 2.0)
        averager.average()  # the errors have done no harm
    assert torch.equal(value, torch.full((4,), 2.0))


def test_arrays_that_cannot_be_mixed_leave_the_former_ones(
    configure: Configure, tmp_path: Path
) -> None:
    value = np.ones(4)
    with gossamer.Averager([value], configure(1), 0, out=tmp_path / "o") as averager:
        for given, message in [
            (np.ones(5), r"tensor 0 has changed: .*\(4,\).*\(5,\)"),
            (np.full(4, np.nan), "tensor 0 has values that are not finite"),
            (np.full(4, 1e39), "or not as float32"),
        ]:
            with pytest.raises(gossamer.Error, match=message):
                averager.average([given])
        value.flags.writeable = False
        with pytest.raises(gossamer.Error, match="tensor 0 is read-only"):
            averager.average()
        value.flags.writeable = True
        averager.average()
    assert np.array_equal(value, np.ones(4))


def test_other_shapes_at_a_neighbour_are_refused(consensus: Consensus) -> None:
    settings = {"net.join_timeout": 1}
    found = consensus.run(gossip.Averager, lambda peer: [torch.ones(2 + (peer == 3))], settings)
    assert all(isinstance(error, gossamer.Error) for error in found)
    assert any("model" in str(error) for error in found)


def test_a_finished_or_closed_averager_mixes_no_more(configure: Configure, tmp_path: Path) -> None:
    finished = gossip.Averager([torch.ones(2)], configure(1, 1), 0, out=tmp_path / "a")
    finished.average()
    assert finished.finished
    with pytest.raises(gossamer.Error, match="the run of 1 rounds is complete"):
        finished.average()
    with gossip.Averager([torch.ones(2)], configure(1, 5), 0, out=tmp_path / "b") as closed:
        closed.average()
    closed.close()  # again
    with pytest.raises(gossamer.Error, match=r"has left the network \(close\(\)\)"):
        closed.average()


def test_a_killed_neighbour_is_left_out_and_joins_again(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    config = configure(PEERS, 10**6)
    pauses = {1: "pause=5", 2: "pause=500"}  # the values of peer 1 have spread by then
    enough = tmp_path / "enough"

    def start(peer: int, option: str) -> Program:
        return processes.start(
            "average_loop.py", config, peer, tmp_path / "out", f"until={enough}", option
        )

    loops = [start(peer, pauses.get(peer, "resume=none")) for peer in range(PEERS)]
    loops[1].wait_for("paused")
    loops[1].process.kill()
    loops[2].wait_for("paused")
    again = start(1, "resume=auto")
    loops[2].tell()
    again.wait_for("joined")
    enough.touch()
    ends = [each.result() for each in (loops[0], again, *loops[2:])]
    for end in ends:  # the values of peer 1 count as far as they had spread before its death
        assert end["values"] == pytest.approx([ends[0]["values"][0]] * 10, abs=1e-5)
        assert 0 < end["values"][0] < 3
    assert "joined [1.0," not in again.output  # it took the values of a neighbour


def test_one_call_is_a_round(configure: Configure, tmp_path: Path) -> None:
    """average() keeps the averager between calls, which may have other tensors."""
    options: dict[str, Any] = {"settings": {"topology.kind": "complete"}, "out": tmp_path / "out"}
    config = configure(PEERS, 3)

    def peer(number: int) -> list[float]:
        found, rounds_left = [], True
        while rounds_left:
            own = torch.full((2,), float(number + len(found)))
            rounds_left = gossip.average([own], config, number, **options)
            found.append(float(own[1]))
        with pytest.raises(gossamer.Error, match="already contains a run"):
            gossip.average([own], config, number, **options)
        return found

    with ThreadPoolExecutor(PEERS) as threads:
        assert list(threads.map(peer, range(PEERS))) == [[MEAN, MEAN + 1, MEAN + 2]] * PEERS


def test_one_call_takes_tensors_of_the_same_names_and_shapes(
    configure: Configure, tmp_path: Path
) -> None:
    config, out = configure(1, 5), tmp_path / "out"
    values = np.ones(3)
    assert gossamer.average({"w": values}, config, 0, out=out)
    for tensors, message in (
        ({}, "tensors: the averager began with w, and is given none"),
        ({"v": values}, "tensors: the averager began with w, and is given v"),
        ({"w": np.ones(4)}, r"tensor w has changed: it was float64 of shape \(3,\), and is"),
        ({"w": [1.0]}, "tensor w is of list"),
        ({"w": np.array([1.0, np.nan, 1.0])}, "tensor w has values that are not finite"),
    ):
        with pytest.raises(gossamer.Error, match=message):
            gossamer.average(tensors, config, 0)
    assert gossamer.average({"w": values}, config, 0)
