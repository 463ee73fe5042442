"""The examples of experiments/: each simulated and as processes, very small."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import digits
import gossamer
import numpy as np
import pytest
from conftest import ROOT, Configure

EXAMPLES = ROOT / "experiments"
PEERS, ROUNDS = 4, 100
TOLERANCE = 1e-5  # of parameters after 100 rounds; the sums have another order


def example(path: str) -> ModuleType:
    """An example as a module."""
    file = EXAMPLES / path
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def run(script: str, *arguments: object) -> str:
    """The output of an example that succeeds."""
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_network(script: str, peers: int, folder: Path, *arguments: object) -> list[str]:
    """The outputs of the processes of a network."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(EXAMPLES / script), "--peer", str(peer), "--peers", str(peers)]
            + ["--meet", str(folder / "meet"), "--out", str(folder / "network")]
            + [str(argument) for argument in arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for peer in range(peers)
    ]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * peers, outputs
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


@pytest.mark.parametrize("name", ["numpy_peer", "jax_peer"])
def test_softmax_ends_with_the_parameters_of_the_native_model(
    configure: Configure, program: Path, tmp_path: Path, name: str
) -> None:
    if name == "jax_peer":
        pytest.importorskip("jax", reason="jax is not installed: tests/python_versions.sh jax")
    module = example(f"python/{name}.py")
    both = [f"run.peers={PEERS}", "local.threads=1", "data.batch=16", "optimizer.rate=0.1"]
    overrides = [text for each in both for text in ("--set", each)]

    def native(rounds: int) -> dict[str, np.ndarray]:
        out = tmp_path / f"native-{rounds}"
        command = [str(program), "run", "--quiet", "--out", str(out), *overrides]
        subprocess.run([*command, "--set", f"run.rounds={rounds}"], check=True)
        return digits.read_tensors(out / "final-0.safetensors")

    start = native(0)

    class Trainer(module.Softmax):  # type: ignore[name-defined]
        """The example's, with the initial parameters and the batches of the native run."""

        def initial(self, peer: int) -> np.ndarray:
            blocks = {
                "weights": start["peer0.0.dense.weights"],
                "bias": start["peer0.0.dense.bias"],
            }
            return np.concatenate([blocks[name].ravel() for name in self.tensors()])

        def batch(self, peer: int, step: int) -> tuple[np.ndarray, np.ndarray]:
            features, labels = digits.batch(PEERS, peer, step)
            return features, labels.astype(np.int64)

    trainer = Trainer(PEERS, sys.modules["idx_data"].load())
    gossamer.run(configure(PEERS, ROUNDS), trainer, out=tmp_path / "own")
    expected = {name.replace("0.dense.", ""): values for name, values in native(ROUNDS).items()}
    assert_close(final_tensors(tmp_path / "own"), expected)


@pytest.mark.parametrize("name", ["numpy_peer", "jax_peer"])
def test_softmax_as_processes_ends_as_the_simulation(tmp_path: Path, name: str) -> None:
    if name == "jax_peer":
        pytest.importorskip("jax", reason="jax is not installed: tests/python_versions.sh jax")
    script = f"python/{name}.py"
    output = run(script, "--rounds", 40, "--out", tmp_path / "simulated")
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
