"""Trainers of other libraries as peers: the bits of a loop with gossamer.torch.Optimizer.

tests/python_versions.sh trainers installs the libraries; without them, the tests are skipped.
"""

import importlib.util
import json
from pathlib import Path

import digits
import gossamer
import numpy as np
import pytest
from conftest import Configure
from process_test_util import Processes
from tasks import torch_task

PEERS, ROUNDS = 2, 12


@pytest.mark.parametrize("library", ["transformers", "lightning"])
def test_a_trainer_as_peers_ends_with_the_parameters_of_the_simulation(
    configure: Configure, processes: Processes, tmp_path: Path, library: str
) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed: tests/python_versions.sh trainers")
    config = configure(PEERS, ROUNDS)
    trainers = [
        processes.start("adapter_peer.py", library, config, peer, tmp_path / "out")
        for peer in range(PEERS)
    ]
    for trainer in trainers:
        assert trainer.result()["steps"] == ROUNDS  # the last round ended the training
    gossamer.run(config, torch_task(), out=tmp_path / "simulated")
    simulated = digits.read_tensors(tmp_path / "simulated" / "final-0.safetensors")
    for peer in range(PEERS):
        found = digits.read_tensors(tmp_path / "out" / f"final-{peer}.safetensors")
        for name in ("weight", "bias"):
            expected = simulated[f"peer{peer}.{name}"]
            assert np.array_equal(found[f"peer{peer}.layer.{name}"], expected)
        log = (tmp_path / "out" / f"log-{peer}.jsonl").read_text().splitlines()
        assert json.loads(log[-1])["reason"] == "finished"
