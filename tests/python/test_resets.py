"""Networks whose connections are reset repeatedly: no peer is lost, and results keep their bits."""

from random import Random

import pytest
from network_test_util import NetworkFactory, Network
from reset_proxy import ResetProxies

RING = ("topology.kind=ring", "run.rounds=40", "net.chunk_kib=8", "net.failure_timeout=20")


def byte_limit(draw: Random, connection: int) -> int:
    """The first connection is reset within its first rows, so a run has at least three resets."""
    return draw.randrange(1_000, 4_000) if connection == 0 else draw.randrange(10_000, 60_000)


def run_through_resets(net: Network, seed: int) -> None:
    """Runs the network through proxies. No peer may be lost, and every process must succeed."""
    with ResetProxies(net, seed, byte_limit) as proxies:
        peers = [net.start(str(k), proxies.settings(k)) for k in range(net.peers)]
        proxies.connect()
        assert net.wait() == [0] * net.peers, [peer.stderr for peer in peers]
        assert all(
            "was lost" not in peer.stderr and "unreachable" not in peer.stderr for peer in peers
        ), [peer.stderr for peer in peers]
        assert proxies.cuts >= 3


@pytest.mark.parametrize(
    "sets",
    [
        ("algorithm.kind=dpsgd",),
        ("algorithm.kind=gradient_tracking",),
        ("codec.kind=int8",),
        ("algorithm.kind=allreduce",),
        ("algorithm.kind=dpsgd", "model.kind=mlp"),
    ],
    ids=lambda sets: sets[-1],
)
def test_resets_do_not_change_the_bits(network: NetworkFactory, sets: tuple[str, ...]) -> None:
    net = network(4, *RING, *sets)
    run_through_resets(net, seed=1)
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
    assert all(
        record.get("deviations", []) == [] for peer in range(4) for record in net.records(peer)
    )


@pytest.mark.parametrize("policy", ["deadline", "stale", "async"])
def test_every_policy_survives_resets(network: NetworkFactory, policy: str) -> None:
    run_through_resets(network(4, *RING, f"algorithm.policy={policy}"), seed=2)
