"""`gossamer average`: which tensors of a run are those of its models."""

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
