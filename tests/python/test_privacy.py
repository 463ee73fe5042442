"""Private gradients in whole programs: the bits of a network, epsilon in every output, restarts."""

import json
import subprocess

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
