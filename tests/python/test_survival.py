"""Networks of real processes that lose peers and continue."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from network_test_util import NetworkFactory, Network, PeerProcess, wait_until
from reference_run import TOLERANCE, QUADRATICS, ReferenceRun, read_records

FOREVER = ("run.rounds=1000000000", "log.every=1")


def last_round(net: Network, peer: int) -> int:
    """The last round in a peer's log. The last line of the log may be incomplete."""
    text = (net.out / f"log-{peer}.jsonl").read_text(encoding="utf-8")
    return text.count('"record":"round"') - 1


def wait_for_rounds(net: Network, survivors: list[PeerProcess], rounds: int = 50) -> None:
    """Waits until each survivor has logged `rounds` more rounds."""
    for peer in survivors:
        begin = last_round(net, int(peer.ids))
        wait_until(
            lambda p=peer: f"peer {p.ids} trains; it printed: {p.stderr}",
            lambda p=peer, b=begin: last_round(net, int(p.ids)) >= b + rounds,
        )


def events(net: Network, peer: int) -> list[tuple[str, int | None, int | None]]:
    """The membership events of a peer's log: event, other peer, number of reachable peers."""
    return [
        (r["event"], r["neighbour"], r["reachable_peers"])
        for r in net.records(peer)
        if r["record"] == "membership"
    ]


def causes(net: Network, peer: int) -> list[str]:
    """Why links of a peer were lost, by its log."""
    return [r["cause"] for r in net.records(peer) if r.get("event") == "link_lost"]


def stop(peers: list[PeerProcess]) -> None:
    for peer in peers:
        peer.process.send_signal(signal.SIGINT)
    assert [peer.wait() for peer in peers] == [130] * len(peers), [peer.stderr for peer in peers]


def missed(net: Network, peer: int, victim: int) -> list[dict[str, Any]]:
    """The deviations of a peer's mixes by missing rows of the victim.

    Peers that the test stops later miss rows of the peers that it stops first.
    """
    return [
        each
        for record in net.records(peer)
        for each in record.get("deviations", [])
        if each["from"] == victim
    ]


@pytest.mark.parametrize("victim", range(8))
def test_any_one_of_eight_may_be_killed(network: NetworkFactory, victim: int) -> None:
    net = network(8, "topology.kind=ring", *FOREVER)
    peers = [net.start(str(k)) for k in range(8)]
    net.wait_until_training(*range(8))
    peers[victim].process.kill()
    survivors = [peer for peer in peers if peer is not peers[victim]]
    for k in ((victim - 1) % 8, (victim + 1) % 8):
        peers[k].wait_for_message(f"peer {victim} (127.0.0.1:")
    for peer in survivors:
        peer.wait_for_message(f"peer {victim} is unreachable; 7 of 8 peers continue")
    wait_for_rounds(net, survivors)
    stop(survivors)
    assert "(--survivors leaves it out)" in net.collect().stderr
    done = net.collect("--survivors")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["lost_peers"] == [victim]
    neighbours = [(victim - 1) % 8, (victim + 1) % 8]
    rows = sum(len(missed(net, k, victim)) for k in neighbours)
    # The survivors did not stop in the same round, so they may lack rows of each other too.
    assert summary["deviations"]["by_sender"][str(victim)] == rows > 0
    assert summary["deviations"]["rows"] == sum(summary["deviations"]["by_sender"].values())
    # Both neighbours lack its rows from some round on; all others mix with W as planned.
    for k in range(8):
        if k in neighbours:
            assert all(each["used_round"] is None for each in missed(net, k, victim))
            rounds = [each["round"] for each in missed(net, k, victim)]
            assert rounds == list(range(rounds[0], rounds[0] + len(rounds)))
        elif k != victim:
            assert missed(net, k, victim) == []


@pytest.mark.parametrize(
    "sets",
    [
        ("algorithm.policy=deadline",),
        ("algorithm.policy=stale",),
        ("algorithm.policy=async",),
        ("algorithm.kind=gradient_tracking",),
        ("codec.kind=int8",),
    ],
    ids=lambda sets: sets[0],
)
def test_every_policy_survives_two_losses(network: NetworkFactory, sets: tuple[str, ...]) -> None:
    net = network(5, "topology.kind=complete", *sets, *FOREVER)
    peers = [net.start(str(k)) for k in range(5)]
    net.wait_until_training(*range(5))
    peers[0].process.kill()
    wait_for_rounds(net, peers[1:])
    peers[3].process.kill()
    left = [peers[k] for k in (1, 2, 4)]
    wait_for_rounds(net, left)
    stop(left)


def test_a_silent_peer_is_lost_after_the_failure_timeout(network: NetworkFactory) -> None:
    net = network(4, "topology.kind=ring", "net.failure_timeout=1", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.wait_until_training(*range(4))
    peers[1].process.send_signal(signal.SIGSTOP)
    survivors = [peers[k] for k in (0, 2, 3)]
    for peer in survivors:
        peer.wait_for_message("peer 1 is unreachable; 3 of 4 peers continue")
    wait_for_rounds(net, survivors)
    peers[1].process.send_signal(signal.SIGCONT)
    for other in (0, 2):  # it was only stopped: it reconnects by itself
        peers[1].wait_for_message(f"peer {other} is back: from round")
    for peer in survivors:
        peer.wait_for_message("all 4 peers are reachable")
    wait_for_rounds(net, peers)
    stop(peers)
    for other in (0, 2):
        assert re.search(r"^peer 1 .* was lost .* it sent nothing for 1", causes(net, other)[0])
        assert net.records(other)[-1]["refused_connections"]["keys"] == 0


def test_a_resumed_peer_still_counts_the_rounds_that_it_left_out(network: NetworkFactory) -> None:
    net = network(3, "net.failure_timeout=0.5", "checkpoint.every=20", *FOREVER)
    peers = [net.start(str(k)) for k in range(3)]
    net.wait_until_training(*range(3))
    peers[1].process.send_signal(signal.SIGSTOP)
    for peer in (peers[0], peers[2]):
        peer.wait_for_message("peer 1 is unreachable; 2 of 3 peers continue")
    wait_for_rounds(net, [peers[0], peers[2]])
    peers[1].process.send_signal(signal.SIGCONT)
    peers[0].wait_for_message("all 3 peers are reachable")
    wait_for_rounds(net, peers, 60)
    stop(peers)

    def left_out() -> int:
        """As the newest checkpoint of peer 1 says and its log confirms."""
        newest = max((net.out / "checkpoints").glob("round-*-1.json"))
        [node] = json.loads(newest.read_text(encoding="utf-8"))["nodes"]
        rounds = node["rounds_left_out"]
        *_, last, end = (r for r in net.records(1) if r["record"] in ("round", "end"))
        # An interrupt may find the last round in the log and not yet counted, or the reverse.
        assert abs(last["round"] - end["rounds"] - rounds) <= 1
        return rounds

    before = left_out()
    assert before > 40
    again = [net.start(str(k), resume="auto") for k in range(3)]
    for peer in again:
        peer.wait_for_message("resuming from the checkpoint of round")
    wait_for_rounds(net, again)
    stop(again)
    assert left_out() == before


def test_a_diverging_peer_ends_and_the_others_continue(
    network: NetworkFactory, tmp_path: Path
) -> None:
    rows = [f"{(k * 37 % 100) / 50 - 1},{(k * 61 % 100) / 50 - 1},{k % 4}" for k in range(400)]
    (tmp_path / "test.csv").write_text("\n".join(rows[:40]), encoding="utf-8")
    rows[123] = "1e30,-1e30,2"  # makes the gradient of one peer very large
    (tmp_path / "train.csv").write_text("\n".join(rows), encoding="utf-8")
    net = network(
        5,
        "topology.kind=complete",
        "data.kind=csv",
        f"data.path={tmp_path / 'train.csv'}",
        "data.standardise=false",
        f"data.test_path={tmp_path / 'test.csv'}",
        "model.kind=softmax",
        *FOREVER,
    )
    peers = [net.start(str(k)) for k in range(5)]
    diverged = wait_until(
        "one peer ends",
        lambda: next((peer for peer in peers if peer.process.poll() is not None), None),
    )
    assert diverged.wait() == 8
    assert diverged.last_message.startswith(f"peer {diverged.ids} diverged: in round ")
    assert "and it was not sent; a smaller optimizer.rate" in diverged.last_message
    survivors = [peer for peer in peers if peer is not diverged]
    for peer in survivors:
        peer.wait_for_message(f"has ended: peer {diverged.ids} diverged: in round ")
        peer.wait_for_message(f"peer {diverged.ids} is unreachable; 4 of 5 peers continue")
    wait_for_rounds(net, survivors)
    stop(survivors)
    for peer in survivors:  # the diverged row did not reach the survivors
        records = [record for record in net.records(int(peer.ids)) if record["record"] == "round"]
        assert all(record["test_loss"] is not None for record in records)


def restart(net: Network, victim: int, *sets: str) -> PeerProcess:
    """Restarts a process and waits until it has joined."""
    peer = net.start(str(victim), *sets, resume="auto")
    peer.wait_for_message(f"peer {victim} joins in round")
    peer.wait_for_message(f"all {net.peers} peers are reachable")
    return peer


@pytest.mark.parametrize("victim", [0, 3, 7])
def test_a_restarted_process_joins_the_network(network: NetworkFactory, victim: int) -> None:
    net = network(8, "topology.kind=ring", *FOREVER)
    peers = [net.start(str(k)) for k in range(8)]
    net.wait_until_training(*range(8))
    peers[victim].process.kill()
    survivors = [peer for peer in peers if peer is not peers[victim]]
    for peer in survivors:
        peer.wait_for_message(f"peer {victim} is unreachable; 7 of 8 peers continue")
    wait_for_rounds(net, survivors, 20)
    peers[victim] = restart(net, victim)
    for peer in survivors:
        peer.wait_for_message("all 8 peers are reachable")
    wait_for_rounds(net, survivors)
    neighbours = ((victim - 1) % 8, (victim + 1) % 8)
    # Later mixes also miss rows of the peers that stop() stops first.
    before_the_end = {k: last_round(net, k) for k in neighbours}
    stop(peers)
    for k in neighbours:
        rounds = [
            each["round"] for each in missed(net, k, victim) if each["round"] < before_the_end[k]
        ]
        assert rounds == list(range(rounds[0], rounds[0] + len(rounds))), (
            "its rows are missing in one interval of rounds"
        )
        assert rounds[-1] < before_the_end[k] - 40
        logged = events(net, k)
        assert logged[:2] == [("link_lost", victim, None), ("reachable", None, 7)]
        # The message of its other neighbour may arrive before its own.
        assert sorted(logged[2:4], key=str) == [
            ("link_restored", victim, None),
            ("reachable", None, 8),
        ]
    assert ("joined", None) in [event[:2] for event in events(net, victim)]
    records = [record["round"] for record in net.records(victim) if record["record"] == "round"]
    assert records == sorted(set(records)) and len(records) < records[-1], "its log has a gap"


@pytest.mark.parametrize("algorithm", ["dpsgd", "gradient_tracking"])
def test_losses_and_returns_do_not_change_the_optimum(
    network: NetworkFactory, algorithm: str
) -> None:
    """Two of six peers are killed and restarted in turn: all rows converge as without faults."""
    sets = (
        "topology.kind=ring",
        "log.every=10",
        "log.sketch=on",
        f"algorithm.kind={algorithm}",
        *QUADRATICS,
    )
    alone = network(6, *sets, "run.rounds=1000")
    alone.run_in_one_process()
    reference = ReferenceRun(
        read_records([(alone.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])
    )
    net = network(6, *sets, "run.rounds=1000000000")
    peers = [net.start(str(k)) for k in range(6)]
    for victim in (0, 4):
        net.wait_until_training(*range(6))
        peers[victim].process.kill()
        peers[(victim + 1) % 6].wait_for_message(f"peer {victim} is unreachable")
        peers[victim] = restart(net, victim)
    # The rounds that the reference needs from its start, those until rows are reinitialised, and
    # two records more; a record is written every ten rounds.
    wait_for_rounds(net, peers, (reference.rounds_to_converge() + 2 * 6) // 10 + 2)
    ended = read_records((net.out / f"log-{k}.jsonl").read_text(encoding="utf-8") for k in range(6))
    stop(peers)  # the peer that is stopped last trains without the others
    assert {4} <= {peer for record in ended[5].values() for peer in record.missed}, (
        "a neighbour of the killed peer must have missed its rows"
    )
    deviation = reference.deviation({k: records[max(records)] for k, records in ended.items()})
    assert deviation.distance <= TOLERANCE and deviation.loss <= TOLERANCE, deviation


def test_a_peer_that_is_terminated_leaves(network: NetworkFactory) -> None:
    net = network(4, "topology.kind=path", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.wait_until_training(*range(4))
    peers[3].process.send_signal(signal.SIGTERM)
    assert peers[3].wait() == 130
    peers[2].wait_for_message(
        "has ended: peer 3 was stopped by its operator (SIGTERM); peer 2 continues without it"
    )
    wait_for_rounds(net, peers[:3])
    stop(peers[:3])


def test_an_algorithm_that_needs_all_peers_ends_with_the_reason(network: NetworkFactory) -> None:
    net = network(3, "algorithm.kind=allreduce", *FOREVER)
    peers = [net.start(str(k)) for k in range(3)]
    net.wait_until_training(0, 1, 2)
    peers[1].process.kill()
    assert [peers[0].wait(), peers[2].wait()] == [5, 5]
    assert "peer 1 (127.0.0.1:" in peers[0].last_message


def test_a_peer_restarted_in_the_last_round_joins_or_reports_that_it_is_too_late(
    network: NetworkFactory,
) -> None:
    net = network(
        3,
        "topology.kind=complete",
        "algorithm.local_steps=8000",
        "run.rounds=4",
        "log.every=1",
        "net.join_timeout=15",
    )
    peers = [net.start(str(k)) for k in range(3)]
    wait_until(
        "two rounds are done",
        lambda: (net.out / "log-0.jsonl").is_file() and last_round(net, 0) >= 2,
    )
    peers[2].process.kill()
    peers[2].wait()
    wait_until("the last round has begun", lambda: last_round(net, 0) >= 3)
    late = net.start("2", resume="auto")
    assert [peer.wait() for peer in peers[:2]] == [0, 0], [peer.stderr for peer in peers]
    # Exit code 4: the other peers had finished, or ended before it connected.
    assert late.wait() in (0, 4), late.stderr


def test_a_peer_that_was_stopped_is_no_survivor(network: NetworkFactory) -> None:
    """Its row is of an earlier round than those of the others, which finish the run."""
    net = network(4, "topology.kind=ring", "run.rounds=8000")
    peers = [net.start(str(k)) for k in range(4)]
    net.wait_until_training(*range(4))
    stop([peers[2]])
    assert net.wait() == [0, 0, 130, 0]
    done = net.collect()
    assert done.returncode == 3
    assert "log-2.jsonl: its process ended in round " in done.stderr
    assert "(interrupted), while others have finished the run (--survivors" in done.stderr
    done = net.collect("--survivors")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["lost_peers"], summary["rounds"]) == ([2], 8000)
    assert summary["reason"] == "finished"
