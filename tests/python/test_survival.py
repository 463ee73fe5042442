"""Networks of real processes that lose peers and go on."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from network_test_util import Make, Network, Peer, eventually
from standing import NEAR, QUADRATICS, Undisturbed, standing

FOREVER = ("run.rounds=1000000000", "log.every=1")


def last_round(net: Network, peer: int) -> int:
    """That the peer's log has come to: of so many mixes it tells. Its last line may be half written."""
    text = (net.out / f"log-{peer}.jsonl").read_text(encoding="utf-8")
    return text.count('"record":"round"') - 1


def go_on(net: Network, survivors: list[Peer], rounds: int = 50) -> None:
    """Each of them does so many rounds more."""
    for peer in survivors:
        begin = last_round(net, int(peer.ids))
        eventually(
            lambda p=peer: f"peer {p.ids} goes on, but: {p.said}",
            lambda p=peer, b=begin: last_round(net, int(p.ids)) >= b + rounds,
        )


def events(net: Network, peer: int) -> list[tuple[str, int | None, int | None]]:
    """What the peer's log says of who is there: event, other end, peers within reach."""
    return [
        (r["event"], r["of"], r["within_reach"])
        for r in net.log(peer)
        if r["record"] == "membership"
    ]


def stop(peers: list[Peer]) -> None:
    for peer in peers:
        peer.process.send_signal(signal.SIGINT)
    assert [peer.wait() for peer in peers] == [130] * len(peers), [peer.said for peer in peers]


def missed(net: Network, peer: int, victim: int) -> list[dict[str, Any]]:
    """The deviations that are the victim's doing: those who are stopped at the end are missed too, by who is stopped later."""
    return [
        each
        for record in net.log(peer)
        for each in record.get("deviations", [])
        if each["from"] == victim
    ]


@pytest.mark.parametrize("victim", range(8))
def test_any_one_of_eight_may_be_killed(network: Make, victim: int) -> None:
    net = network(8, "topology.kind=ring", *FOREVER)
    peers = [net.start(str(k)) for k in range(8)]
    net.running(*range(8))
    peers[victim].process.kill()
    survivors = [peer for peer in peers if peer is not peers[victim]]
    for k in ((victim - 1) % 8, (victim + 1) % 8):
        peers[k].hears(f"peer {victim} (127.0.0.1:")
    for peer in survivors:
        peer.hears(f"peer {victim} is out of reach; 7 of 8 peers go on")
    go_on(net, survivors)
    stop(survivors)
    assert "(--survivors: sum up the others)" in net.collect().stderr
    done = net.collect("--survivors")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lost"] == [victim]
    # Both neighbours are without it from some round on, and everybody else realises W as planned.
    for k in range(8):
        if k in ((victim - 1) % 8, (victim + 1) % 8):
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
def test_under_every_policy(network: Make, sets: tuple[str, ...]) -> None:
    net = network(5, "topology.kind=complete", *sets, *FOREVER)
    peers = [net.start(str(k)) for k in range(5)]
    net.running(*range(5))
    peers[0].process.kill()
    go_on(net, peers[1:])
    peers[3].process.kill()
    left = [peers[k] for k in (1, 2, 4)]
    go_on(net, left)
    stop(left)


def test_a_silent_peer_is_gone_after_the_silence(network: Make) -> None:
    net = network(4, "topology.kind=ring", "net.failure_timeout=1", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.running(*range(4))
    peers[1].process.send_signal(signal.SIGSTOP)
    survivors = [peers[k] for k in (0, 2, 3)]
    for peer in survivors:
        peer.hears("peer 1 is out of reach; 3 of 4 peers go on")
    go_on(net, survivors)
    peers[1].process.send_signal(signal.SIGCONT)
    for other in (0, 2):  # it was only held up: it comes back by itself
        peers[1].hears(f"peer {other} is back: from round")
    for peer in survivors:
        peer.hears("all 4 peers are within reach")
    go_on(net, peers)
    stop(peers)


def test_a_peer_that_diverges_leaves(network: Make, tmp_path: Path) -> None:
    rows = [f"{(k * 37 % 100) / 50 - 1},{(k * 61 % 100) / 50 - 1},{k % 4}" for k in range(400)]
    (tmp_path / "test.csv").write_text("\n".join(rows[:40]), encoding="utf-8")
    rows[123] = "1e30,-1e30,2"  # in one peer's shard: the gradient at it is as large
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
    gone = eventually(
        "one of them ends",
        lambda: next((peer for peer in peers if peer.process.poll() is not None), None),
    )
    assert gone.wait() == 8
    assert gone.last_line.startswith(f"peer {gone.ids} diverged: in round ")
    assert "and it was not sent; a smaller optimizer.rate" in gone.last_line
    survivors = [peer for peer in peers if peer is not gone]
    for peer in survivors:
        peer.hears(f"has ended: peer {gone.ids} diverged: in round ")
        peer.hears(f"peer {gone.ids} is out of reach; 4 of 5 peers go on")
    go_on(net, survivors)
    stop(survivors)
    for peer in survivors:  # nothing of it came to them
        records = [record for record in net.log(int(peer.ids)) if record["record"] == "round"]
        assert all(record["test_loss"] is not None for record in records)


def come_back(net: Network, victim: int, *sets: str) -> Peer:
    """The process started again, once it takes part again."""
    peer = net.start(str(victim), *sets, resume="auto")
    peer.hears(f"peer {victim} joins in round")
    peer.hears(f"all {net.peers} peers are within reach")
    return peer


@pytest.mark.parametrize("victim", [0, 3, 7])
def test_a_process_started_again_joins_the_network_that_went_on(network: Make, victim: int) -> None:
    net = network(8, "topology.kind=ring", *FOREVER)
    peers = [net.start(str(k)) for k in range(8)]
    net.running(*range(8))
    peers[victim].process.kill()
    survivors = [peer for peer in peers if peer is not peers[victim]]
    for peer in survivors:
        peer.hears(f"peer {victim} is out of reach; 7 of 8 peers go on")
    go_on(net, survivors, 20)
    peers[victim] = come_back(net, victim)
    for peer in survivors:
        peer.hears("all 8 peers are within reach")
    go_on(net, survivors)
    neighbours = ((victim - 1) % 8, (victim + 1) % 8)
    before_the_end = {
        k: last_round(net, k) for k in neighbours
    }  # mixes on record; later ones miss whoever is stopped first
    stop(peers)
    for k in neighbours:
        rounds = [
            each["round"] for each in missed(net, k, victim) if each["round"] < before_the_end[k]
        ]
        assert rounds == list(range(rounds[0], rounds[0] + len(rounds))), (
            "without it for a while, and then with it"
        )
        assert rounds[-1] < before_the_end[k] - 40
        heard = events(net, k)
        assert heard[:2] == [("lost", victim, None), ("reach", None, 7)]
        # Its other neighbour's word that it is there may come before its own.
        assert sorted(heard[2:4], key=str) == [("back", victim, None), ("reach", None, 8)]
    assert ("joined", None) in [event[:2] for event in events(net, victim)]
    records = [record["round"] for record in net.log(victim) if record["record"] == "round"]
    assert records == sorted(set(records)) and len(records) < records[-1], "its log has a gap"


@pytest.mark.parametrize("algorithm", ["dpsgd", "gradient_tracking"])
def test_values_do_not_suffer(network: Make, algorithm: str) -> None:
    """One of six is killed and comes back, and then another: all end where they would have ended."""
    sets = (
        "topology.kind=ring",
        "log.every=10",
        "log.sketch=on",
        f"algorithm.kind={algorithm}",
        *QUADRATICS,
    )
    alone = network(6, *sets, "run.rounds=1000")
    alone.run_here()
    undisturbed = Undisturbed(
        standing([(alone.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])
    )
    net = network(6, *sets, "run.rounds=1000000000")
    peers = [net.start(str(k)) for k in range(6)]
    for victim in (0, 4):
        net.running(*range(6))
        peers[victim].process.kill()
        peers[(victim + 1) % 6].hears(f"peer {victim} is out of reach")
        peers[victim] = come_back(net, victim)
    # As many rounds as nearness takes from the very beginning, those until rows begin again, and two records' more; each is of ten.
    go_on(net, peers, (undisturbed.rounds_needed() + 2 * 6) // 10 + 2)
    ended = standing((net.out / f"log-{k}.jsonl").read_text(encoding="utf-8") for k in range(6))
    stop(peers)  # whoever is stopped last does rounds without the others
    assert {4} <= {peer for record in ended[5].values() for peer in record.missed}, (
        "a neighbour of who was killed went without it"
    )
    difference = undisturbed.difference({k: records[max(records)] for k, records in ended.items()})
    assert difference.distance <= NEAR and difference.loss <= NEAR, difference


def test_an_operator_takes_a_peer_away(network: Make) -> None:
    net = network(4, "topology.kind=path", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.running(*range(4))
    peers[3].process.send_signal(signal.SIGTERM)
    assert peers[3].wait() == 130
    peers[2].hears(
        "has ended: peer 3 was stopped by its operator (SIGTERM); peer 2 goes on without it"
    )
    go_on(net, peers[:3])
    stop(peers[:3])


def test_an_algorithm_that_needs_everybody_ends_with_the_reason(network: Make) -> None:
    net = network(3, "algorithm.kind=allreduce", *FOREVER)
    peers = [net.start(str(k)) for k in range(3)]
    net.running(0, 1, 2)
    peers[1].process.kill()
    assert [peers[0].wait(), peers[2].wait()] == [5, 5]
    assert "peer 1 (127.0.0.1:" in peers[0].last_line


def test_who_comes_back_in_the_last_round_joins_or_says_that_it_came_too_late(
    network: Make,
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
    eventually(
        "two rounds are done",
        lambda: (net.out / "log-0.jsonl").is_file() and last_round(net, 0) >= 2,
    )
    peers[2].process.kill()
    peers[2].wait()
    eventually("the last round has begun", lambda: last_round(net, 0) >= 3)
    late = net.start("2", resume="auto")
    assert [peer.wait() for peer in peers[:2]] == [0, 0], [peer.said for peer in peers]
    assert late.wait() in (0, 4), (
        late.said
    )  # 4: whoever it could ask was done, or gone before it had called
