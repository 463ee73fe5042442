"""Own data of programs: moments that are exchanged in place of samples, and the scales of all."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import digits
import gossamer
import gossamer.torch as gossip
import numpy as np
import pytest
import torch
from conftest import Configure
from process_test_util import Processes
from tasks import NumpySoftmax, batch_of, loss_of, moments_of, scaled_task, sgd, softmax
from test_package_network import final_hash

Array = Callable[[np.ndarray], Any]


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(1).normal(3, 2, (50, 3, 4, 5))


def all_inputs(peers: int) -> np.ndarray:
    """The samples of which moments_of() gives the moments."""
    shards = digits.shards(4)
    return np.concatenate([digits.digits()[0][shards[peer]] * (peer + 1) for peer in range(peers)])


class ScaledSoftmax(NumpySoftmax):
    scales: gossamer.Scales

    def moments(self, peer: int) -> gossamer.Moments:
        return moments_of(peer)

    def agree(self, scales: gossamer.Scales) -> None:
        self.scales = scales


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, np.ndarray.tolist])
@pytest.mark.parametrize("axis", [None, 1, 2, -1])
def test_moments_are_those_of_the_values(images: np.ndarray, kind: Array, axis: int | None) -> None:
    found = gossamer.moments(kind(images), axis)
    others = (0,) if axis is None else tuple(k for k in range(4) if k != axis % 4)
    assert found.samples == 50
    assert found.shape == images.mean(others, keepdims=axis is not None).shape[-3:]
    assert np.allclose(found.means, images.mean(others).ravel(), rtol=1e-12)
    assert np.allclose(found.variances, images.var(others).ravel(), rtol=1e-12)


def test_the_order_in_memory_does_not_matter(images: np.ndarray) -> None:
    rows = images.reshape(50, -1)
    for values in (rows, np.asfortranarray(rows), torch.from_numpy(rows.T.copy()).T):
        assert gossamer.moments(values) == gossamer.moments(rows)


def test_parts_add_up_to_the_whole(images: np.ndarray) -> None:
    images[:, 0, 0, 0] = 0.1  # a constant, which has no variance in the sum either
    whole = gossamer.moments(images)
    parts = gossamer.moments(images[:20]) + gossamer.moments(images[20:])
    assert (parts.samples, parts.shape) == (50, (3, 4, 5))
    assert np.allclose(parts.means, whole.means, rtol=1e-12)
    assert np.allclose(parts.variances, whole.variances, rtol=1e-12)
    assert parts.variances[0] == 0
    assert sum([gossamer.moments(images[:20]), gossamer.moments(images[20:])]) == parts
    rows = torch.from_numpy(images.reshape(50, -1))
    made = gossamer.Moments(50, rows.mean(0), rows.var(0, unbiased=False), (3, 4, 5))
    assert np.allclose(made.means, whole.means) and hash(made) == hash(made)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_scales_make_the_mean_zero_and_the_deviation_one(images: np.ndarray, kind: Array) -> None:
    images[:, 2] = 7  # a channel with one value
    found = gossamer.moments(images, axis=1)
    deviations = np.sqrt(found.variances)
    deviations[2] = np.inf
    scales = gossamer.Scales(found.means, list(deviations), found.shape)
    scaled = np.asarray(scales(kind(images.astype(np.float32))))
    assert scaled.dtype == np.float32
    assert np.allclose(scaled.mean((0, 2, 3)), 0, atol=1e-5)
    assert np.allclose(scaled.std((0, 2, 3)), [1, 1, 0], atol=1e-5)
    assert np.asarray(scales(kind(images.astype(np.int64)))).dtype == np.float32
    half = gossamer.Scales([70000.0], [np.inf], (1,))
    assert np.asarray(half(kind(np.ones((1, 1), np.float16))))[0, 0] == 0  # no float16 in between
    large = gossamer.Scales([0.0, 1.7e9], [np.inf, 1000.0], (2,))
    assert np.asarray(large(kind(np.array([[1, 1700000123]]))))[0, 1] == np.float32(0.123)
    assert np.asarray(scales(kind(images))).dtype == np.float64
    tiny = gossamer.Scales([0.0], [1e-46], (1,))  # 0 as float32
    assert np.asarray(tiny(kind(np.zeros((1, 1), np.float32))))[0, 0] == 0


@pytest.mark.parametrize(
    ("samples", "axis", "message"),
    [
        (3.5, None, "this is one number"),
        (np.ones((0, 4)), None, r"samples of shape \(0, 4\) have no value"),
        (np.ones((4, 0)), None, r"samples of shape \(4, 0\) have no value"),
        (np.ones((4, 3)), 2, "have no features along axis 2"),
        (np.ones((4, 3)), 0, "have no features along axis 0"),
        (np.ones((4, 3)), -2, "have no features along axis -2"),
    ],
)
def test_samples_without_features_are_refused(samples: Any, axis: int | None, message: str) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossamer.moments(samples, axis)


def test_the_scales_of_a_task_are_those_of_all_samples(
    configure: Configure, tmp_path: Path
) -> None:
    task = scaled_task()
    with pytest.raises(gossamer.Error, match="scales: the peers agree on them when the run begins"):
        _ = task.scales
    gossamer.run(configure(3, 1), task, out=tmp_path / "torch")
    inputs = all_inputs(3).astype(np.float64)
    constant = inputs.std(0) == 0
    assert np.allclose(task.scales.means, inputs.mean(0), rtol=1e-12)
    assert np.allclose(np.array(task.scales.deviations)[~constant], inputs.std(0)[~constant])
    assert constant.any() and np.isinf(np.array(task.scales.deviations)[constant]).all()
    other = ScaledSoftmax()
    gossamer.run(configure(3, 1), other, out=tmp_path / "numpy")
    assert other.scales.means == task.scales.means


def test_processes_agree_on_the_scales_of_the_simulation(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    """Each process sees its own samples, and the run ends with the bits of one that sees all."""
    config = configure(3, 20)
    settings = {"data.weights": "samples"}
    simulated = gossamer.run(config, scaled_task(), settings=settings, out=tmp_path / "simulated")
    started = [
        processes.start(
            "loop.py", config, peer, tmp_path / "tcp", "moments=64", "data.weights=samples"
        )
        for peer in range(3)
    ]
    for each in started:
        assert each.result()
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]
    without = gossamer.run(config, scaled_task(), out=tmp_path / "without")
    assert without["final_hash"] != simulated["final_hash"]  # equal weights, the same scales
    agreed = json.loads((tmp_path / "tcp" / "shards-1.json").read_text())["peers"]
    assert [each["samples"] for each in agreed] == [len(each) for each in digits.shards(4)[:3]]
    assert agreed[1]["means"] == list(moments_of(1).means)


def test_peers_with_other_features_refuse_each_other(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    config = configure(2, 5)
    settings = ("net.join_timeout=3",)
    started = [
        processes.start("loop.py", config, 0, tmp_path / "out", "moments=64", *settings),
        processes.start("loop.py", config, 1, tmp_path / "out", "moments=1", *settings),
    ]
    assert all(each.wait() != 0 for each in started)
    found = [
        re.search(r"the moments of (\w+) features here and of (\w+) there", each.output)
        or re.search("or give the moments of different features", each.output)
        for each in started
    ]
    assert all(found), [each.output for each in started]


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        (lambda peer: 3, "moments: peer 0 has int, which is no gossamer.Moments"),
        (lambda peer: gossamer.Moments(0, [0.0], [1.0]), "moments: of 0 samples; a peer has one"),
        (lambda peer: gossamer.Moments(2.5, [0.0], [1.0]), "moments: 2.5 is no number of samples"),
        (
            lambda peer: gossamer.Moments(5, [None], [1.0]),
            "means and variances are numbers, one by",
        ),
        (
            lambda peer: gossamer.Moments(5, [0.0] * 10**7, [1.0] * 10**7),
            "moments: 10000000 features are too many; at most 9999999",
        ),
        (
            lambda peer: gossamer.Moments(5, [0.0] * (peer + 1), [1.0] * (peer + 1)),
            r"features of peer 1 have the shape \(2,\), and those of another peer \(1,\)",
        ),
        (
            lambda peer: gossamer.Moments(5, [0.0, float("nan")], [1.0, 1.0]),
            "moments: feature 1 of peer 0 has the mean nan and the variance 1,",
        ),
        (
            lambda peer: gossamer.Moments(5, [0.0], [-1.0]),
            "moments: feature 0 of peer 0 has the mean 0 and the variance -1,",
        ),
        (lambda peer: gossamer.Moments(5, [0.0], []), "there are 1 means, 0 variances"),
        (lambda peer: gossamer.Moments(2**40, [0.0], [1.0]), "are more than a shard can have"),
    ],
)
def test_moments_that_no_samples_have_are_refused(
    configure: Configure, moments: Callable[[int], Any], message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        gossamer.run(configure(2), scaled_task(moments))


def test_refusals_of_own_data(configure: Configure, tmp_path: Path) -> None:
    with pytest.raises(gossamer.Error, match="samples: give samples or moments"):
        gossip.Task(softmax, sgd, batch_of, loss_of, samples=len, moments=moments_of)
    deaf = ScaledSoftmax()
    deaf.__class__ = type("Deaf", (NumpySoftmax,), {"moments": ScaledSoftmax.moments})
    with pytest.raises(gossamer.Error, match="task: Deaf has moments.. and no agree"):
        gossamer.run(configure(2), deaf)
    with pytest.raises(gossamer.Error, match="run.open: own data are scaled.*without moments"):
        gossamer.run(configure(2), scaled_task(), settings={"run.open": True})
    gossamer.run(configure(2, 4, "[checkpoint]", "every = 2"), scaled_task(), out=tmp_path / "out")
    moved = scaled_task(lambda peer: moments_of(peer + 1))
    with pytest.raises(gossamer.Error, match="own data: the samples of peer 0 are not those"):
        gossamer.run(tmp_path / "run.toml", moved, out=tmp_path / "out", resume="auto")


def test_a_server_knows_the_scales_of_the_peers(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    config, kind = configure(2, 6), "algorithm.kind=server"
    simulated = gossamer.run(config, scaled_task(), settings=[kind], out=tmp_path / "simulated")
    started = [
        processes.start("loop.py", config, peer, tmp_path / "out", "moments=64", kind)
        for peer in range(2)
    ]
    started.append(processes.start("task_peer.py", config, 2, tmp_path / "out", "scaled", kind))
    for each in started:
        assert each.result()
    assert final_hash(program, tmp_path / "out") == simulated["final_hash"]
