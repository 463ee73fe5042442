"""`gossamer average`: which tensors of a run are those of its models."""

import shutil
import subprocess

from network_test_util import DEADLINE, NetworkFactory
from safetensors.numpy import load_file


def test_an_operation_may_be_called_state(network: NetworkFactory) -> None:
    """Of a checkpoint, `gossamer average` leaves out the state of the algorithm alone."""
    net = network(
        2, "algorithm.kind=gradient_tracking", "optimizer.momentum=0.5", "run.rounds=4",
        "checkpoint.every=4", "model.kind=graph",
    )  # fmt: skip
    model = net.folder / "state.toml"
    net.sets.append(f"model.file={model}")
    model.write_text(
        '[[operation]]\nname = "state"\nkind = "dense"\nunits = 5\n\n'
        '[[operation]]\nkind = "dense"\nname = "last"\n',
        encoding="utf-8",
    )
    net.run_in_one_process()
    for file in ("final-0", "checkpoints/round-00000004-0"):
        source, mean = net.folder / "one" / f"{file}.safetensors", net.folder / "mean.safetensors"
        subprocess.run(
            [net.program, "average", source, "-o", mean],
            check=True, capture_output=True, timeout=DEADLINE,
        )  # fmt: skip
        assert sorted(load_file(mean)) == [
            "last.bias", "last.weights", "state.bias", "state.weights",
        ]  # fmt: skip


def test_no_file_is_overwritten_or_counted_twice(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=4", "checkpoint.every=4")
    net.run_in_one_process()
    folder = net.folder / "one"
    final, checkpoint = folder / "final-0.safetensors", folder / "checkpoints" / "round-00000004-0"
    other = net.folder / "same.safetensors"
    other.symlink_to(final)
    before = final.read_bytes()

    def averaged(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [net.program, "average", *map(str, arguments)],
            capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip

    for output in (final, other):
        done = averaged(final, "-o", output)
        assert done.returncode == 2
        assert f"{output} is one of the files to average" in done.stderr
    mean = net.folder / "mean.safetensors"
    for files in ((final, other), (f"{checkpoint}.json", f"{checkpoint}.safetensors")):
        done = averaged(*files, "-o", mean)
        assert done.returncode == 2
        assert "is given twice, and its models would count twice" in done.stderr
    assert final.read_bytes() == before
    shutil.copy(final, folder / "copy.safetensors")
    done = averaged(final, folder / "copy.safetensors", "-o", mean)
    assert done.returncode == 0, done.stderr
    assert "the mean of 4 models" in done.stdout
