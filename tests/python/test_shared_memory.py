"""Processes of one machine that read each other's rows in shared memory."""

import signal
from pathlib import Path

import pytest
from network_test_util import Network, NetworkFactory, wait_until
from test_keys import Keys

# Rows of 102 KB and more; smaller ones are sent all the same.
MLP = ("model.kind=mlp", "model.hidden=[400]")
RING = [[0, 1], [0, 3]], [[1, 0], [1, 2]], [[2, 1], [2, 3]], [[3, 0], [3, 2]]


def run(net: Network, *processes: tuple[str, ...]) -> str:
    """Starts peers 0, 1, … with their settings; returns the hash of the final parameters."""
    for peer, sets in enumerate(processes):
        net.start(str(peer), *sets)
    assert net.wait() == [0] * len(processes), [peer.stderr for peer in net.processes]
    final_hash: str = net.summary()["final_hash"]
    return final_hash


def lending_links(net: Network) -> tuple[list[list[int]], ...]:
    return tuple(net.records(peer)[-1]["lending_links"] for peer in range(net.peers))


@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=ring", "algorithm.order=awc", "algorithm.local_steps=2"),
        ("topology.kind=one_peer_exponential",),
        ("algorithm.kind=gradient_tracking", "net.chunk_kib=16"),
        ("algorithm.kind=push_sum", "topology.kind=exponential"),
        ("algorithm.kind=diloco", "topology.kind=complete", "algorithm.local_steps=3"),
        ("algorithm.kind=allreduce", "topology.kind=complete", "net.chunk_kib=16"),
        ("algorithm.kind=relay_sgd", "topology.kind=star"),
        ("mixing.rule=trimmed_mean", "topology.kind=complete"),
        ("codec.kind=bf16", "algorithm.kind=choco", "model.hidden=[1000]"),
        ("attack.kind=stale", "attack.peers=[1]"),
    ],
    ids=lambda sets: "-".join(s.partition("=")[2] for s in sets),
)
def test_rows_in_shared_memory_have_the_bits_of_one_process(
    network: NetworkFactory, sets: tuple[str, ...]
) -> None:
    net = network(4, *MLP, *sets)
    final_hash, one = run(net, (), (), (), ()), net.run_in_one_process()
    assert final_hash == one["final_hash"]
    assert net.summary()["bytes_sent"] == one["bytes_sent"]
    assert all(lending_links(net)), lending_links(net)


def test_each_process_decides_and_the_log_says_which_links_lend(network: NetworkFactory) -> None:
    net = network(4, *MLP, "topology.kind=ring")
    one = net.run_in_one_process()["final_hash"]
    assert run(net, (), (), (), ()) == one
    assert lending_links(net) == RING
    off = ("net.shared_memory=off",)
    mixed = network(4, *MLP, "topology.kind=ring")
    assert run(mixed, (), (), off, ()) == one
    assert lending_links(mixed) == ([[0, 1], [0, 3]], [[1, 0]], [], [[3, 0]])
    sent = network(4, *MLP, "topology.kind=ring")
    assert run(sent, off, off, off, off) == one
    assert lending_links(sent) == ([], [], [], [])


def test_rows_are_lent_beside_encrypted_links(network: NetworkFactory) -> None:
    net = network(4, *MLP, "topology.kind=ring")
    keys = Keys(net)
    keyed = [(keys.file(peer),) for peer in range(4)]
    assert run(net, *keyed) == net.run_in_one_process()["final_hash"]
    assert lending_links(net) == RING


@pytest.mark.parametrize("policy", ["deadline", "stale", "async"])
def test_no_policy_but_sync_lends(network: NetworkFactory, policy: str) -> None:
    net = network(2, *MLP, f"algorithm.policy={policy}")
    run(net, (), ())
    assert lending_links(net) == ([], [])


def mappings(pid: int) -> int:
    """Of how many processes a process has shared memory mapped, its own included."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    return len({line.split()[4] for line in lines if "memfd:gossamer rows" in line})


def test_a_killed_process_leaves_no_mapping_behind(network: NetworkFactory) -> None:
    net = network(4, *MLP, "topology.kind=ring", "run.rounds=1000000000", "log.every=1")
    peers = [net.start(str(peer)) for peer in range(4)]
    # Its own memory, and that of two neighbours.
    for peer in peers:
        wait_until("neighbours map", lambda peer=peer: mappings(peer.process.pid) == 3)
    net.wait_until_training(0, 1, 2, 3)  # the start does not tolerate a loss
    peers[1].process.send_signal(signal.SIGKILL)
    for peer in (peers[0], peers[2]):
        peer.wait_for_message("peer 1")
        wait_until("the mapping is gone", lambda peer=peer: mappings(peer.process.pid) == 2)
    again = net.start("1", out=net.folder / "again")
    for peer in (peers[0], peers[2], again):
        wait_until("the new one is mapped", lambda peer=peer: mappings(peer.process.pid) == 3)
    for peer in (peers[0], peers[2], peers[3], again):
        peer.process.send_signal(signal.SIGINT)
    for peer in (peers[0], peers[2], peers[3], again):
        assert peer.wait() in {5, 6, 130}, peer.stderr
