"""Networks whose connections are reset again and again: nobody is lost, and synchronous runs have the same bits."""

from random import Random

import pytest
from network_test_util import Make, Network
from relay import Relays

RING = ("topology.kind=ring", "run.rounds=40", "net.chunk_kib=8", "net.failure_timeout=20")


def life(draw: Random, connection: int) -> int:
    """The first ends within the first rows, which everybody sends: so however many rounds later ones leave out, three are cut."""
    return draw.randrange(1_000, 4_000) if connection == 0 else draw.randrange(10_000, 60_000)


def run_through_resets(net: Network, seed: int) -> None:
    """Connections are cut; all ends well, and nobody has missed anybody."""
    with Relays(net, seed, life) as relays:
        peers = [net.start(str(k), relays.settings(k)) for k in range(net.peers)]
        relays.connect()
        assert net.wait() == [0] * net.peers, [peer.said for peer in peers]
        assert all(
            "was lost" not in peer.said and "out of reach" not in peer.said for peer in peers
        ), [peer.said for peer in peers]
        assert relays.cuts >= 3


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
def test_the_same_bits_through_resets(network: Make, sets: tuple[str, ...]) -> None:
    net = network(4, *RING, *sets)
    run_through_resets(net, seed=1)
    assert net.summary()["final_hash"] == net.run_here()["final_hash"]
    assert all(record.get("deviations", []) == [] for peer in range(4) for record in net.log(peer))


@pytest.mark.parametrize("policy", ["deadline", "stale", "async"])
def test_every_policy_goes_through_resets(network: Make, policy: str) -> None:
    run_through_resets(network(4, *RING, f"algorithm.policy={policy}"), seed=2)
