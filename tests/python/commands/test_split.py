"""Models cut over workers: the bits of the whole model, what the workers cost, and refusals."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from network_test_util import NetworkFactory

ROOT = Path(__file__).resolve().parents[3]
RESIDUAL = ROOT / "experiments" / "models" / "residual.toml"
TRANSFORMER = ROOT / "experiments" / "models" / "transformer.toml"
MLP = ("model.kind=mlp", "model.hidden=[64,64,64]", "data.batch=32")


def call(gossamer: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([gossamer, *arguments], capture_output=True, text=True, check=False)


def overrides(*sets: str) -> list[str]:
    return [argument for each in sets for argument in ("--set", each)]


def run(gossamer: Path, out: Path, *sets: str) -> dict[str, Any]:
    result = call(gossamer, "run", "--quiet", "--out", out, *overrides("run.peers=4", *sets))
    assert result.returncode == 0, result.stderr
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def predict(gossamer: Path, *sets: str) -> dict[str, Any]:
    result = call(gossamer, "predict", "--json", *overrides("run.peers=4", *sets))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "sets",
    [
        (*MLP, "optimizer.momentum=0.9", "algorithm.local_steps=3"),
        (*MLP, "optimizer.kind=muon", "algorithm.kind=gradient_tracking"),
        (*MLP, "data.batch=0", "data.partition=dirichlet", "data.weights=samples"),
        (*MLP, "algorithm.kind=choco", "codec.kind=int8", "optimizer.kind=adamw"),
        (*MLP, "algorithm.kind=fedavg", "algorithm.local_epochs=1"),
        ("model.kind=cnn", "model.channels=[8,32]", "model.groups=2"),
        ("model.kind=graph", f"model.file={RESIDUAL}"),
        ("model.kind=graph", f"model.file={TRANSFORMER}"),
    ],
    ids=lambda sets: " ".join(each.rpartition("/")[2] for each in sets),
)
def test_a_cut_model_has_the_bits_of_the_whole_one(
    gossamer: Path, tmp_path: Path, sets: tuple[str, ...]
) -> None:
    sets = ("run.rounds=4", "log.every=2", *sets)
    whole = run(gossamer, tmp_path / "whole", *sets)
    for layers, parameters, microbatches in ((2, 1, 0), (3, 1, 5), (1, 2, 0), (2, 3, 3)):
        if parameters == 3 and ("residual" in sets[-1] or "model.kind=cnn" in sets):
            continue  # their convolutions have one or two blocks of 16 channels
        split = (
            f"split.layers={layers}",
            f"split.parameters={parameters}",
            f"split.microbatches={microbatches}",
        )
        cut = run(gossamer, tmp_path / f"cut-{layers}-{parameters}", *sets, *split)
        assert cut["final_hash"] == whole["final_hash"]
        assert cut["final"] == whole["final"]
        assert cut["run_id"] != whole["run_id"]


def test_a_network_of_replicas_has_the_bits_of_whole_models(
    gossamer: Path, tmp_path: Path, network: NetworkFactory
) -> None:
    net = network(4, *MLP, "run.rounds=20", "split.layers=3")
    whole = run(gossamer, tmp_path / "whole", *net.sets, "split.layers=1")
    for peer in range(4):
        net.start(str(peer))
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == whole["final_hash"]


def test_virtual_time_has_the_bubble_of_the_formula(gossamer: Path, tmp_path: Path) -> None:
    """Equal parts and links without latency: a step takes (m + s − 1) / (m s) of a whole one."""
    layer = '[[operation]]\nkind = "dense"\nunits = 64\nactivation = "relu"\n'
    file = tmp_path / "equal.toml"  # with a first operation that has every layer pass gradients on
    file.write_text(
        '[[operation]]\nkind = "position_embedding"\n'
        + 64 * layer
        + '[[operation]]\nkind = "dense"\n',
        encoding="utf-8",
    )
    equal = ("model.kind=graph", f"model.file={file}", "run.rounds=3", "data.batch=32")
    equal += ("sim.compute_ms=100", "log.every=0")
    # Else a stage sends gradients before those of its first layer's parameters are made.
    equal += ("split.overlap=false",)
    whole = run(gossamer, tmp_path / "whole", *equal)["virtual_seconds"]
    assert whole == pytest.approx(0.3)
    for layers, microbatches in ((2, 1), (2, 8), (4, 8), (4, 32)):
        split = (f"split.layers={layers}", f"split.microbatches={microbatches}")
        cut = run(gossamer, tmp_path / f"{layers}-{microbatches}", *equal, *split)
        seconds = cut["virtual_seconds"]
        formula = (microbatches + layers - 1) / (microbatches * layers)
        assert seconds / whole == pytest.approx(formula, rel=0.02)
        predicted = predict(gossamer, *equal, *split)
        assert predicted["round_seconds"]["total"] == pytest.approx(seconds / 3, rel=1e-6)
        bubble = (layers - 1) / (microbatches + layers - 1)
        assert predicted["split"]["bubble"] == pytest.approx(bubble)
        assert predicted["split"]["idle"] == pytest.approx(bubble, abs=0.02)
    # The slices of a layer wait for each other: about (1 / s + 1) / 3 of the time of a whole step.
    for slices in (2, 4):
        predicted = predict(gossamer, *equal, f"split.parameters={slices}")["split"]
        assert predicted["bubble"] == 0
        assert predicted["fast_links_idle"] == pytest.approx(predicted["idle"])
        expected = 1 - 3 / (1 + slices)
        assert predicted["fast_links_idle"] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("links", [("sim.latency_ms=20",), ("sim.bandwidth_mbit_s=40",)])
def test_the_time_of_a_round_on_slow_links_is_predicted(
    gossamer: Path, tmp_path: Path, links: tuple[str, ...]
) -> None:
    sets = (*MLP, "run.rounds=5", "sim.compute_ms=40", "log.every=0", *links)
    times = []
    for layers, schedule in ((1, "1f1b"), (2, "1f1b"), (4, "1f1b"), (4, "eager_1f1b")):
        split = (*sets, f"split.layers={layers}", f"split.schedule={schedule}")
        seconds = run(gossamer, tmp_path / f"{layers}-{schedule}", *split)["virtual_seconds"]
        assert predict(gossamer, *split)["round_seconds"]["total"] == pytest.approx(
            seconds / 5, rel=0.02
        )
        times.append(seconds)
    # Latency is paid for every message of a pipeline; parts of rows travel side by side.
    assert times[0] < times[1] < times[2] if "latency" in links[0] else times[1] < times[0]
    # Messages travel while stages compute; the links that are slow here are never waited for.
    assert times[3] < 0.75 * times[2] if "latency" in links[0] else times[3] <= times[2]


def test_the_workers_costs_add_up(gossamer: Path) -> None:
    sets = (*MLP, "optimizer.momentum=0.9")
    whole, cut = predict(gossamer, *sets), predict(gossamer, *sets, "split.layers=4")
    assert "split" not in whole
    workers = cut["split"]["workers"]
    assert [worker["first_operation"] for worker in workers] == [
        "0.dense",
        "1.dense",
        "2.dense",
        "3.dense",
    ]
    assert sum(worker["parameters"] for worker in workers) == whole["parameters"]
    assert workers[0]["bytes_sent_per_step"] == workers[3]["bytes_sent_per_step"] == 4 * 64 * 32
    assert workers[1]["bytes_sent_per_step"] == 2 * 4 * 64 * 32
    assert max(worker["memory_bytes"] for worker in workers) < cut["split"]["whole_memory_bytes"]
    assert all(isinstance(worker["memory_bytes"], int) for worker in workers)
    assert predict(gossamer, *sets, "split.layers=4", "split.cuts=auto")["split"] == cut["split"]
    text = call(gossamer, "predict", *overrides("run.peers=4", *sets, "split.layers=4")).stdout
    assert "worker 3 of a replica" in text and "16 microbatches" in text


def test_workers_that_share_layers_share_parameters_and_time(
    gossamer: Path, tmp_path: Path
) -> None:
    sets = (*MLP, "optimizer.momentum=0.9", "sim.compute_ms=30", "sim.bandwidth_mbit_s=0")
    sets = (*sets, "sim.latency_ms=0")
    whole, cut = predict(gossamer, *sets), predict(gossamer, *sets, "split.parameters=2")
    workers = cut["split"]["workers"]
    assert sum(worker["parameters"] for worker in workers) == whole["parameters"]
    for worker in workers:
        assert worker["parameters"] == pytest.approx(whole["parameters"] / 2, rel=0.02)
        assert worker["memory_bytes"] < 0.6 * cut["split"]["whole_memory_bytes"]
    # Slice 1 sends half of each output, and slice 0 the whole of what each layer takes; gradients
    # in these go back, and come by halves.
    outputs, gradients = 4 * 32, 4 * 32
    assert workers[1]["bytes_sent_per_step"] == outputs * (3 * 32 + 5) + gradients * 3 * 64
    assert workers[0]["bytes_sent_per_step"] == outputs * 3 * 64 + gradients * (4 * 64 + 5 + 32)
    assert cut["split"]["microbatches"] == 4
    # Two slices compute all the time; with more, gradients of inputs follow each other.
    assert cut["split"]["step_seconds"] == pytest.approx(0.03 / 2, rel=0.02)
    four = predict(gossamer, *sets, "split.parameters=4")["split"]
    first, products = 64 * 64, 3 * 64 * 64 + 64 * 10  # of the first layer, and of all
    alone = products - first  # the first layer's input has no gradient
    apart = (products + first) / 4
    whole_step = 2 * products + alone
    assert four["step_seconds"] == pytest.approx(0.03 * (alone + apart) / whole_step, rel=0.02)
    out = tmp_path / "run"
    virtual = run(gossamer, out, *sets, "split.parameters=4", "run.rounds=3", "log.every=0")
    assert virtual["virtual_seconds"] == pytest.approx(3 * four["step_seconds"], rel=1e-6)


def test_a_model_file_is_shown_cut(gossamer: Path) -> None:
    options = ("--layers", "3", "--microbatches", "8")
    result = call(gossamer, "model", RESIDUAL, *options, "--json")
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    workers = shown["split"]["workers"]
    assert sum(worker["parameters"] for worker in workers) == shown["parameters"]
    assert [worker["workspaces"] for worker in workers] == [3, 2, 1]
    assert shown["split"]["bubble"] == 0.2
    text = call(gossamer, "model", RESIDUAL, *options).stdout
    assert text[text.index("Cut over") :] in (ROOT / "docs" / "MODELS.md").read_text("utf-8")
    named = call(gossamer, "model", RESIDUAL, "--layers", "2", "--cuts", "second.a")
    assert "second.a to classes" in named.stdout
    assert call(gossamer, "model", RESIDUAL, *options, "--cuts", "auto").stdout == text
    run_file = call(gossamer, "model", RESIDUAL, "--microbatches", "8")
    assert (
        run_file.returncode == 2
        and "of a model that --layers or --parameters cuts" in run_file.stderr
    )
    many = call(gossamer, "model", RESIDUAL, "--layers", "60")
    assert many.stderr.startswith(f"gossamer: {RESIDUAL}: split.layers: 60 stages cannot share")


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("split.layers=5",), "split.layers: 5 stages cannot share a model of which 4 operations"),
        (("split.layers=0",), "split.layers"),
        (("split.layers=65",), "split.layers"),
        (("split.layers=2", 'split.cuts=["4.dense"]'), "the model has no operation '4.dense'"),
        (("split.layers=2", 'split.cuts=["0.dense"]'), "the first stage would be empty"),
        (("split.layers=2", 'split.cuts=["1.dense","2.dense"]'), "2 names cut a model into 3"),
        (("split.layers=2", "privacy.clip=1", "privacy.noise_multiplier=1"), "private gradients"),
        (("split.layers=2", "algorithm.kind=consensus"), "'consensus' trains no model"),
        (("split.parameters=2", "algorithm.kind=power_gossip"), "multiplies the matrices of whole"),
        (
            ("split.layers=2", "sim.latency_file=/none.txt"),
            "sim.latency_file: a table has no links",
        ),
        (("split.layers=2", "sim.probe=/none"), "sim.probe: a probe has no links"),
        (("split.layer=2",), "'layers'"),
        (("split.layers=4", "split.parameters=11"), "11 workers cannot share '3.dense'"),
        (("split.parameters=65",), "split.parameters"),
        (("split.parameters=2", "privacy.clip=1", "privacy.noise_multiplier=1"), "private"),
        (('split.cuts=["1.dense"]',), "split.cuts: it cuts a model into 2 stages"),
    ],
)
def test_splits_that_cannot_be_are_refused(
    gossamer: Path, sets: tuple[str, ...], message: str
) -> None:
    result = call(gossamer, "run", "--check", *overrides(*MLP, *sets))
    assert result.returncode == 2
    assert message in result.stderr, result.stderr
