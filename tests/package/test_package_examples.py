"""The examples of experiments/: each simulated and as processes, very small."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import digits
import numpy as np
import pytest
import torch
from conftest import ROOT, Configure
from gossamer.messages import with_arguments
from gossamer.task_file import load_module
from process_test_util import PROGRAMS, Processes

EXAMPLES = ROOT / "experiments"
PEERS, ROUNDS = 4, 100
TOLERANCE = 1e-5  # of parameters after 100 rounds; the sums have another order


def example(path: str) -> ModuleType:
    """An example as a module."""
    return load_module(EXAMPLES / path)


Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """run("python/numpy_peer.py", "--rounds", 3) runs an example here, and returns its output."""

    def main(script: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        example(script).main()
        return capsys.readouterr().out

    return main


def run_network(script: str, peers: int, folder: Path, *arguments: object) -> list[str]:
    """The outputs of the processes of a network."""
    processes = Processes(folder)
    common = ("--peers", peers, "--meet", folder / "meet", "--out", folder / "network", *arguments)
    try:
        started = [
            processes.start(EXAMPLES / script, "--peer", peer, *common) for peer in range(peers)
        ]
        codes = [program.wait(300) for program in started]
    finally:
        processes.kill()
    outputs = [program.output for program in started]
    assert codes == [0] * peers, outputs
    return outputs


def final_tensors(folder: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for path in folder.glob("final-*.safetensors"):
        found |= digits.read_tensors(path)
    return found


def assert_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert np.abs(found[name] - values).max() <= TOLERANCE, name


def check_jax(name: str) -> None:
    """JAX has threads, and is not imported here, where tests fork."""
    if name == "jax_peer" and find_spec("jax") is None:
        pytest.skip("JAX is not in this environment: .venv-torch has it")


def run_alone(script: Path, *arguments: object) -> str:
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("name", ["numpy_peer", "jax_peer"])
def test_softmax_ends_with_the_parameters_of_the_native_model(
    configure: Configure, program: Path, tmp_path: Path, name: str
) -> None:
    check_jax(name)
    both = [f"run.peers={PEERS}", "local.threads=1", "data.batch=16", "optimizer.rate=0.1"]
    overrides = [text for each in both for text in ("--set", each)]

    def native(rounds: int) -> Path:
        out = tmp_path / f"native-{rounds}"
        command = [str(program), "run", "--quiet", "--out", str(out), *overrides]
        subprocess.run([*command, "--set", f"run.rounds={rounds}"], check=True)
        return out

    own = PROGRAMS / "as_native.py"
    run_alone(own, name, configure(PEERS, ROUNDS), native(0), tmp_path / "own")
    expected = final_tensors(native(ROUNDS))
    assert_close(
        final_tensors(tmp_path / "own"),
        {name.replace("0.dense.", ""): values for name, values in expected.items()},
    )


@pytest.mark.parametrize("name", ["numpy_peer", "jax_peer"])
def test_softmax_as_processes_ends_as_the_simulation(tmp_path: Path, name: str) -> None:
    check_jax(name)
    script = f"python/{name}.py"
    output = run_alone(EXAMPLES / script, "--rounds", 40, "--out", tmp_path / "simulated")
    assert "4 peers, 40 rounds: test loss" in output
    outputs = run_network(script, PEERS, tmp_path, "--rounds", 40)
    assert all("finished after 40 rounds" in each for each in outputs)
    assert_close(final_tensors(tmp_path / "network"), final_tensors(tmp_path / "simulated"))


def test_the_digits_are_those_of_native_runs() -> None:
    example("python/numpy_peer.py")
    data: Any = sys.modules["idx_data"].load()
    features, labels, train = digits.digits()
    assert np.array_equal(data.images.reshape(-1, 64), features[:train])
    assert np.array_equal(data.test_images.reshape(-1, 64), features[train:])
    assert np.array_equal(data.test_labels, labels[train:])


def test_a_file_that_is_no_idx_file_is_named(tmp_path: Path) -> None:
    idx_data = example("python/idx_data.py")
    with pytest.raises(SystemExit, match="there is no file images-idx3-ubyte"):
        idx_data.load(tmp_path)
    (tmp_path / "images-idx3-ubyte").write_bytes(b"PNG....")
    with pytest.raises(SystemExit, match="not a file of bytes in IDX format"):
        idx_data.load(tmp_path)
    (tmp_path / "images-idx3-ubyte").write_bytes(b"\0\0\x08\1\0\0\0\5abc")
    with pytest.raises(SystemExit, match=r"3 values, and the header says \(5,\)"):
        idx_data.load(tmp_path)


SMALL_GPT = ["--text", EXAMPLES / "report.py", "--size", "0.1M", "--block", 8, "--batch", 2]


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("pytorch/vision.py", ["--channels", 4, "--batch", 8]),
        ("pytorch/gpt.py", [*SMALL_GPT, "--sample", 5]),
    ],
    ids=["vision", "gpt"],
)
def test_a_model_of_pytorch_as_processes_ends_as_the_simulation(
    run: Run, tmp_path: Path, script: str, options: list[object]
) -> None:
    more = ["--rounds", 4, *options]
    output = run(script, "--peers", 2, *more, "--out", tmp_path / "simulated")
    assert "2 peers, 4 rounds: test loss" in output
    assert all(
        "finished after 4 rounds" in each for each in run_network(script, 2, tmp_path, *more)
    )
    found = final_tensors(tmp_path / "network")
    for name, values in final_tensors(tmp_path / "simulated").items():
        assert np.array_equal(found[name], values), name


def test_other_options_are_another_run(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Their folders, runs/<run id>, differ; the same run again is refused in one line."""
    monkeypatch.chdir(tmp_path)
    few = tmp_path / "few"
    few.mkdir()
    for part in ("images-idx3", "labels-idx1"):
        name = f"{part}-ubyte.gz"
        (few / name).symlink_to(ROOT / "data" / "digits" / name)
    vision = ("pytorch/vision.py", "--peers", 2, "--rounds", 1)
    for more in ([], ["--classes", 2], ["--rate", 0.1], ["--channels", 4], ["--vmap"]):
        run(*vision, *more)
    gpt = ("pytorch/gpt.py", "--peers", 2, "--rounds", 1, *SMALL_GPT, "--sample", 1)
    for more in ([], ["--alike"], ["--text", EXAMPLES / "sweep.py"]):
        run(*gpt, *more)
    assert len(list((tmp_path / "runs").iterdir())) == 8
    for again in (vision, (*vision, "--data", few)):
        with pytest.raises(SystemExit) as end:
            run(*again)
        assert end.value.code == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("vision.py: runs/") and "already contains a run" in line
        assert line.endswith("--resume auto, choose another folder with --out, or remove it")


@pytest.mark.parametrize(
    "text",
    [
        "--set run.rounds=x: run.rounds: 'x' is not an integer",
        "--resume a folder: there is no such folder or checkpoint",
        "stop them, and start again, with --resume auto",
        "the checkpoints are of whole models: resume from them with --resume",
        "another folder (checkpoint.folder, --out)",
        "runs/my--out already contains a run: resume it with --resume auto",
    ],
)
def test_a_message_names_the_options_of_an_example_again(text: str) -> None:
    """The package names arguments in their place; examples and program have the same options."""
    example("python/numpy_peer.py")
    with_options: Any = sys.modules["example"].with_options
    assert with_arguments(text) != text and with_options(with_arguments(text)) == text
    assert with_options(with_arguments("give it one with --id")) == "give it one with --peer"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--set", "run.rounds=x"), "--set run.rounds=x: run.rounds: 'x' is not an integer"),
        (("--resume", "none here"), "--resume {cwd}/none here: there is no such folder"),
        (("--peer", 7), "peer id 7 is not one of run.peers = 4"),
        (("--peer", -1), "--peer: '-1' is not a peer id"),
    ],
)
def test_an_error_of_an_example_names_its_option(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        run("python/numpy_peer.py", *more)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"numpy_peer.py: {message.format(cwd=tmp_path)}")


def test_peers_of_the_vision_example_in_one_call(run: Run, tmp_path: Path) -> None:
    more = ["--peers", 3, "--rounds", 4, "--channels", 4, "--batch", 8]
    for vmap, folder in (([], "loop"), (["--vmap"], "vmap")):
        run("pytorch/vision.py", *more, *vmap, "--out", tmp_path / folder)
    found, expected = final_tensors(tmp_path / "vmap"), final_tensors(tmp_path / "loop")
    assert any(not np.array_equal(found[name], values) for name, values in expected.items())
    assert_close(found, expected)


def test_the_images_of_a_peer_are_of_few_classes() -> None:
    vision = example("pytorch/vision.py")
    labels = np.repeat(np.arange(10), 40)
    mixed, few = vision.shards(labels, 4, 0), vision.shards(labels, 4, 2)
    for shards in (mixed, few):
        assert sorted(np.concatenate(shards)) == list(range(400))
    assert all(len(np.unique(labels[own])) == 10 for own in mixed)
    assert all(len(np.unique(labels[own])) <= 5 for own in few)  # two pieces, cut anywhere


def test_a_gpt_sees_no_later_symbol_and_has_the_size_of_its_class() -> None:
    model = example("pytorch/gpt_model.py")
    torch.manual_seed(0)
    gpt = model.GPT(model.SIZES["0.8M"], vocabulary=65, block=16)
    count = sum(parameter.numel() for parameter in gpt.parameters())
    assert 0.79e6 < count < 0.82e6
    first = torch.randint(65, (1, 16))
    other = first.clone()
    other[0, 8:] = 0
    assert torch.equal(gpt(first)[0, :8], gpt(other)[0, :8])
    assert len(model.generate(gpt, [1, 2], 3)) == 5
    assert model.generate(gpt, [1], 3) == model.generate(gpt, [1], 3)


@pytest.mark.parametrize("level", ["char", "byte"])
def test_a_text_is_numbers_and_back(tmp_path: Path, level: str) -> None:
    gpt = example("pytorch/gpt.py")
    (tmp_path / "text").write_text("Größe → x\n", encoding="utf-8")
    text = gpt.Text([tmp_path / "text"], level)
    assert text.decode(text.values.tolist()) == "Größe → x\n"
    blocks = gpt.Blocks(text.values, 4, "cpu")
    inputs, targets = blocks.random(3, seed=7)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(inputs, blocks.random(3, seed=7)[0])
    with pytest.raises(SystemExit, match="a block 64: use a longer text"):
        gpt.Blocks(text.values, 64, "cpu")


def test_the_text_of_the_repository_is_complete_and_each_seed_draws_other_batches() -> None:
    gpt = example("pytorch/gpt.py")
    text = gpt.Text([gpt.TEXT], "char")
    assert len(text.values) == 366_194 and len(text.symbols) == 62
    assert text.decode(text.values[:54].tolist()) == (
        "In the beginning God created the heaven and the earth."
    )
    config = {"run": {"peers": 2, "seed": 0}, "data": {"validation": 0.0}}
    first, again = (gpt.task(config, block=8, batch=2) for _ in range(2))
    other = gpt.task({**config, "run": {"peers": 2, "seed": 1}}, block=8, batch=2)
    for peer in range(2):
        inputs = first._batch(peer, 5)[0]
        assert torch.equal(inputs, again._batch(peer, 5)[0])
        assert not torch.equal(inputs, other._batch(peer, 5)[0])
    weights = [next(task._model(0).parameters()) for task in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert set(first._evaluations) == {"test"}


def test_a_pretrained_model_is_the_same_for_every_peer_and_better_than_its_start() -> None:
    gpt = example("pytorch/gpt.py")
    config = {"run": {"peers": 2, "seed": 0}, "data": {"validation": 0.0}}
    losses = []
    for steps in (0, 20):
        task = gpt.task(config, block=8, batch=2, pretrained=steps)
        models = [task._model(peer) for peer in range(2)]
        for first, second in zip(*(model.parameters() for model in models), strict=True):
            assert torch.equal(first, second)
            assert first.data_ptr() != second.data_ptr(), "each peer has its own"
        losses.append(task._evaluations["test"](models[0])[0])
    assert losses[1] < losses[0] - 0.5


def test_held_out_text_validates_and_a_cosine_schedule_ends_at_0() -> None:
    gpt = example("pytorch/gpt.py")
    config = {"run": {"peers": 2, "seed": 0}, "data": {"validation": 0.5}}
    task = gpt.task(config, block=8, batch=2, steps=40, alike=True, rate=0.01)
    assert set(task._evaluations) == {"test", "validation"}
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = task._optimizer([parameter])
    rates = []
    for _ in range(40):
        parameter.grad = torch.ones(1)
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates[:3] == pytest.approx([0.005, 0.01, 0.01]), "it grows in a twentieth of the steps"
    assert rates[2:] == sorted(rates[2:], reverse=True) and rates[-1] < 1e-4
    restored = task._optimizer([parameter])
    restored.load_state_dict(optimizer.state_dict())
    restored.step()
    assert restored.param_groups[0]["lr"] == 0, "a restored optimizer is where it was"
