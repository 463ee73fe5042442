"""Private gradients in whole programs: the bits of a network, epsilon in every output, restarts."""

import json
import subprocess

import numpy as np
import pytest
from network_test_util import NetworkFactory
from test_log_schema import check_folder
from test_network import check_same_as_one_process

PRIVATE = ("privacy.clip=1", "privacy.epsilon=5", "data.batch=8")
REPEATED = (*PRIVATE, "privacy.noise=reproducible")


@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=ring",),
        ("algorithm.kind=gradient_tracking", "optimizer.kind=adamw"),
        ("algorithm.kind=fedavg", "algorithm.local_epochs=1", "topology.kind=star"),
        ("topology.kind=ring", "privacy.pair_noise=2"),
    ],
)
def test_noise_of_the_seed_has_the_bits_of_one_process(
    network: NetworkFactory, sets: tuple[str, ...]
) -> None:
    net = network(4, *REPEATED, *sets)
    servers = ["4"] if "algorithm.kind=fedavg" in sets else []
    check_same_as_one_process(net, ["0", "1-2", "3", *servers])


def test_secret_noise_differs_and_every_output_states_the_same_epsilon(
    network: NetworkFactory,
) -> None:
    net = network(3, *PRIVATE, "run.rounds=12", "log.every=4")
    for ids in ("0", "1", "2"):
        net.start(ids)
    assert net.wait() == [0, 0, 0]
    here, there = net.run_in_one_process(), net.summary()
    assert there["final_hash"] != here["final_hash"]
    assert there["final"]["epsilon"] == here["final"]["epsilon"]
    check_folder(net.out, net.peers)
    predicted = subprocess.run(
        net.command("predict", "--json"),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    privacy = json.loads(predicted.stdout)["privacy"]
    assert privacy["epsilon"] == here["final"]["epsilon"]["max"]
    assert 4.99 < privacy["epsilon"] <= 5
    last = [record for record in net.records(1) if record["record"] == "round"][-1]
    assert last["private_steps"] == 12
    assert last["epsilon"] <= privacy["epsilon"]


PAIRS = ("privacy.clip=1", "privacy.noise_multiplier=0.5", "privacy.pair_noise=1000")
GENTLE = ("data.batch=8", "optimizer.rate=0.05", "run.rounds=6")


def test_processes_agree_on_secret_noise_that_cancels(network: NetworkFactory) -> None:
    """Noise of 1,000 times the clip that did not cancel would leave nothing of the model."""
    net = network(4, *PAIRS, *GENTLE, "topology.kind=complete")
    for ids in ("0", "1-2", "3"):
        net.start(ids)
    assert net.wait() == [0, 0, 0]
    final = net.summary()["final"]
    assert final["averaged_loss"] < 2.4
    assert final["consensus_distance"] < 1e-3
    check_folder(net.out, net.peers)


def test_what_noise_of_pairs_hides_is_that_of_the_covariance(network: NetworkFactory) -> None:
    peers, own, shared = 9, 0.4, 2.5
    net = network(
        peers,
        "data.batch=8",
        "topology.kind=exponential",
        "privacy.clip=1",
        f"privacy.noise_multiplier={own}",
        f"privacy.pair_noise={shared}",
    )
    predicted = subprocess.run(
        net.command("predict", "--json"), capture_output=True, text=True, check=True, timeout=60
    )
    privacy = json.loads(predicted.stdout)["privacy"]
    assert privacy["colluding"] == 1
    neighbours = np.zeros((peers, peers))
    for i in range(peers):
        for hop in (1, 2, 4, 8):
            neighbours[i, (i + hop) % peers] = neighbours[(i + hop) % peers, i] = 1
    np.fill_diagonal(neighbours, 0)
    hidden = np.full(peers, np.inf)
    for colluding in range(peers):
        rest = [i for i in range(peers) if i != colluding]
        among = neighbours[np.ix_(rest, rest)]
        laplacian = np.diag(among.sum(axis=1)) - among
        covariance = own**2 * np.eye(peers - 1) + shared**2 * laplacian
        deviations = 1 / np.sqrt(np.diag(np.linalg.inv(covariance)))
        hidden[rest] = np.minimum(hidden[rest], deviations)
    assert privacy["effective_noise"] == pytest.approx(hidden[privacy["peer"]], rel=1e-9)
    assert privacy["effective_noise"] == pytest.approx(hidden.min(), rel=1e-9)
