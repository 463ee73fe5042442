"""What the numbers of the peers' samples do, which a task states."""

from pathlib import Path
from typing import Any

import digits
import gossamer
import numpy as np
import pytest
import torch
from conftest import Configure
from tasks import batch_of, loss_of, sgd, softmax


@pytest.mark.parametrize("samples", [0, -3, 2.5, True, "many", 2**63], ids=str)
def test_samples_are_a_number_of_samples(configure: Configure, samples: object) -> None:
    task = gossamer.torch.Task(softmax, sgd, batch_of, loss_of, samples=lambda peer: samples)
    with pytest.raises(gossamer.Error, match="samples: (peer 0 has|.* are more than a shard)"):
        gossamer.run(configure(), task, settings={"data.weights": "samples"})


def test_samples_weigh_nothing_where_peers_have_equal_weights(
    configure: Configure, tmp_path: Path
) -> None:
    def run(name: str, **options: Any) -> str:
        task = gossamer.torch.Task(softmax, torch.optim.Adam, batch_of, loss_of, **options)
        return str(gossamer.run(configure(4, 2), task, out=tmp_path / name)["final_hash"])

    assert run("given", samples=lambda peer: 1 + 10 * peer) == run("none")
    with pytest.raises(gossamer.Error, match="samples: peer 1 has 0"):
        run("wrong", samples=lambda peer: 1 - peer)


def test_weights_of_samples_ask_for_sgd_and_for_the_mean(configure: Configure) -> None:
    def refusal(optimizer: object, **settings: object) -> str:
        task = gossamer.torch.Task(
            softmax, optimizer, batch_of, loss_of, samples=lambda peer: peer + 1
        )
        named = {key.replace("_", "."): value for key, value in settings.items()}
        with pytest.raises(gossamer.Error) as error:
            gossamer.run(configure(), task, settings={"data.weights": "samples", **named})
        return str(error.value)

    assert "the steps of the program's optimizer do not depend on; use SGD" in refusal(
        torch.optim.Adam
    )
    assert "mixing.rule = median does not prevent" in refusal(sgd, mixing_rule="median")


def test_samples_weigh_the_peers_in_the_objective(configure: Configure, tmp_path: Path) -> None:
    class Mean:
        """f_i(x) = |x − i|²/2, with the mean over samples as the weighted minimum."""

        linear_steps = True

        def tensors(self) -> dict[str, tuple[int, ...]]:
            return {"x": (3,)}

        def initial(self, peer: int) -> np.ndarray:
            return np.zeros(3, np.float32)

        def gradient(self, peer: int, step: int, values: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.5, values - np.float32(peer)

        def update(
            self, peer: int, step: int, values: np.ndarray, gradient: np.ndarray
        ) -> np.ndarray:
            return values - np.float32(0.1) * gradient

        def samples(self, peer: int) -> np.int64:
            return np.int64(10 * (peer + 1))

    for kind in ("gradient_tracking", "allreduce", "server"):
        settings = {"algorithm.kind": kind, "data.weights": "samples"}
        gossamer.run(configure(4, 300), Mean(), settings=settings, out=tmp_path / kind)
        values = digits.read_tensors(tmp_path / kind / "final-0.safetensors").values()
        for each in values:
            assert each == pytest.approx((0 * 1 + 1 * 2 + 2 * 3 + 3 * 4) / 10, abs=1e-4)
