"""Networks of real processes that find each other from the address of one, and claim their ids."""

import json
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from network_test_util import (
    DEADLINE,
    Network,
    NetworkFactory,
    PeerProcess,
    ReservedPort,
    wait_until,
)
from test_keys import Keys

FOREVER = ("run.rounds=1000000000", "log.every=1", "topology.kind=complete")


@pytest.fixture
def seed() -> Iterator[str]:
    """The address of a seed, which no other program can have during the test."""
    with ReservedPort() as address:
        yield address


def seeded(net: Network, *seeds: str) -> Network:
    """The network without its folder: processes listen at a seed, or where they like."""
    net.sets += ["net.rendezvous=", "net.listen=", f"net.seeds={json.dumps(seeds)}"]
    return net


def start_unnamed(
    net: Network, *sets: str, resume: str = "none", out: Path | None = None
) -> PeerProcess:
    command = net.command("peer", "--out", str(out or net.out), "--resume", resume, sets=sets)
    process = PeerProcess("?", command, net.folder)
    net.processes.append(process)
    return process


def claimed_id(process: PeerProcess) -> int:
    process.wait_for_message("this process is peer ")
    return int(process.stderr.split("this process is peer ")[1].split()[0])


def test_processes_without_ids_run_the_same_bits_from_one_address(
    network: NetworkFactory, seed: str
) -> None:
    net = seeded(network(4, "topology.kind=ring"), seed)
    for _ in range(4):
        start_unnamed(net)
    assert net.wait() == [0] * 4, [each.stderr for each in net.processes]
    assert sorted(claimed_id(each) for each in net.processes) == [0, 1, 2, 3]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_given_ids_need_no_more_than_one_address(network: NetworkFactory, seed: str) -> None:
    net = seeded(network(5, "topology.kind=ring"), seed)
    for ids in ("4", "1-3", "0"):
        net.start(ids)
    assert net.wait() == [0] * 3, [each.stderr for each in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_keys_give_the_ids(network: NetworkFactory, seed: str) -> None:
    net = seeded(network(3, "topology.kind=complete"), seed)
    keys = Keys(net)
    for peer in (2, 0, 1):
        start_unnamed(net, keys.file(peer))
    assert net.wait() == [0] * 3, [each.stderr for each in net.processes]
    for peer, process in zip((2, 0, 1), net.processes, strict=True):
        done = net.records(peer)[-1]
        assert done["reason"] == "finished", process.stderr
    stranger = keys.make("stranger.key")
    process = start_unnamed(net, f"net.key={net.folder / 'stranger.key'}")
    assert process.wait() == 2
    assert f"is {stranger}, which {keys.members} gives to no peer" in process.last_message


def test_the_first_seed_may_end_and_a_restarted_process_gets_its_id_back(
    network: NetworkFactory, seed: str
) -> None:
    """The seed's process is killed, and restarted twice: at its address, and elsewhere."""
    with ReservedPort() as other_seed:
        net = seeded(network(3, *FOREVER, "net.failure_timeout=1"), seed, other_seed)
        processes = []
        for address in (seed, other_seed, seed):
            processes.append(start_unnamed(net))
            wait_until(f"a process listens at {address}", partial(connects, address))
        ids = [claimed_id(each) for each in processes]
        net.wait_until_training(0, 1, 2)
        for place in ([], [f"net.seeds=[{json.dumps(other_seed)}]", "net.listen=127.0.0.1:0"]):
            processes[0].kill()
            log = net.out / f"log-{ids[0]}.jsonl"
            size = log.stat().st_size
            again = start_unnamed(net, *place, resume="auto")
            assert claimed_id(again) == ids[0]
            wait_until(
                lambda again=again: f"it joins: {again.stderr}",
                lambda again=again, log=log, size=size: (
                    again.process.poll() is None
                    and log.read_bytes() != b""
                    and b'"round"' in log.read_bytes()
                    and log.stat().st_size != size
                ),
            )
            processes[0] = again


def test_after_a_full_stop_processes_get_their_ids_back(network: NetworkFactory, seed: str) -> None:
    """Each has a folder of its own, and they come back in another order."""
    net = seeded(network(4, *FOREVER, "checkpoint.every=200"), seed)
    folders = [net.folder / f"machine-{k}" for k in range(4)]

    def start(order: list[int], resume: str) -> dict[int, int]:
        started: dict[int, PeerProcess] = {}
        for k in order:
            started[k] = start_unnamed(net, resume=resume, out=folders[k])
            if len(started) == 1:
                wait_until("the seed listens", partial(connects, seed))
        return {k: claimed_id(process) for k, process in started.items()}

    before = start([0, 1, 2, 3], "none")
    for k, peer in before.items():
        manifests = folders[k] / "checkpoints"
        wait_until(
            f"machine {k} has checkpoints",
            lambda manifests=manifests, peer=peer: list(manifests.glob(f"round-*-{peer}.json")),
        )
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        net.kill_at_once()
        net.processes.clear()
        assert start(order, "auto") == before
        for process in net.processes:
            process.wait_for_message("resuming from the checkpoint of round")


def test_one_process_too_many_is_told_so(network: NetworkFactory, seed: str) -> None:
    net = seeded(network(2, *FOREVER), seed)
    for _ in range(2):
        start_unnamed(net)
    net.wait_until_training(0, 1)
    third = start_unnamed(net, "net.join_timeout=1")
    assert third.wait() == 4, third.stderr
    assert "after 1 s (net.join_timeout) all 2 ids have a process" in third.last_message
    assert all(each.process.poll() is None for each in net.processes[:2])


def test_an_interrupt_ends_the_wait_for_an_id(network: NetworkFactory, seed: str) -> None:
    net = seeded(network(2), seed)
    waiting = start_unnamed(net, "net.join_timeout=60")
    wait_until("it listens", lambda: connects(seed))
    waiting.process.terminate()
    waiting.wait()
    assert waiting.process.returncode != 0


def connects(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (['net.seeds=["10.0.0.5"]'], "net.seeds[0]: '10.0.0.5' is no address"),
        (['net.seeds=["127.0.0.1:0"]'], "net.seeds[0]: port 0 cannot be called"),
        (['net.seeds=["10.0.0.5:7000"]'], "net.seeds[0]: 10.0.0.5:7000 can be reached from other"),
        (["net.seeds=[]"], "the id of this peer is missing: give --id"),
    ],
)
def test_a_wrong_seed_is_named(network: NetworkFactory, sets: list[str], words: str) -> None:
    net = network(2, "net.rendezvous=", "net.listen=")
    process = start_unnamed(net, *sets)
    assert process.wait() == 2
    assert words in process.last_message


def test_a_configuration_that_differs_is_rejected_by_the_seed(
    network: NetworkFactory, seed: str
) -> None:
    net = seeded(network(2), seed)
    first = start_unnamed(net)
    wait_until("it listens", lambda: connects(seed))
    wrong = start_unnamed(net, "run.seed=7")
    assert wrong.wait() == 6, wrong.stderr
    assert f"the process at the seed {seed} rejected this one: its run, or its " in (
        wrong.last_message
    )
    first.wait_for_message("; run.seed is 7 there and 0 here")
    start_unnamed(net)
    assert [net.processes[0].wait(), net.processes[2].wait()] == [0, 0], first.stderr


def test_launch_leaves_the_seeds_alone(network: NetworkFactory, seed: str, gossamer: Path) -> None:
    net = seeded(network(3), seed)
    hosts = net.folder / "hosts.txt"
    hosts.write_text("localhost slots=3\n", encoding="utf-8")
    command = [str(gossamer), "launch", str(hosts), str(net.config), "--out", str(net.out)]
    for each in net.sets:
        command += ["--set", each]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
