"""Open runs (run.open): peers that no configuration announces join a network and leave it."""

import json
import signal
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from network_test_util import (
    Network,
    NetworkFactory,
    PeerProcess,
    ReservedPort,
    records_of_rounds,
    wait_until,
)
from reference_run import QUADRATICS, TOLERANCE, ReferenceRun, read_records
from test_log_schema import validate

FOREVER = ("run.open=true", "run.rounds=1000000000", "log.every=1000", "log.sketch=off")


def opened(network: NetworkFactory, peers: int, first: str, *sets: str) -> Network:
    """A network of those that begin, without end."""
    return network(peers, *FOREVER, f'run.participants=["{first}"]', *sets)


def events(net: Network, peer: int, kind: str) -> list[dict[str, Any]]:
    """Those of a log that may be written to."""
    log = net.out / f"log-{peer}.jsonl"
    lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.is_file() else []
    return [event for line in lines if (event := json.loads(line)).get("event") == kind]


def participants(net: Network, peer: int) -> str | None:
    """As the log of a peer has them now."""
    changes = events(net, peer, "participants")
    return changes[-1]["participants"] if changes else None


def wait_for_participants(net: Network, ids: str, *peers: int) -> None:
    for peer in peers:
        wait_until(
            lambda peer=peer: (
                f"{ids} take part; log of peer {peer}: {events(net, peer, 'participants')}; "
                f"{[each.stderr for each in net.processes]}"
            ),
            lambda peer=peer: participants(net, peer) == ids,
        )


def leave(process: PeerProcess) -> None:
    process.process.send_signal(signal.SIGUSR1)
    assert process.wait() == 0, process.stderr


def end(*processes: PeerProcess) -> None:
    """All but the last leave, and that is interrupted."""
    for process in processes[:-1]:
        leave(process)
    processes[-1].process.send_signal(signal.SIGINT)
    assert processes[-1].wait() == 130, processes[-1].stderr


@pytest.mark.parametrize("topology", ["base", "ring"])
def test_peers_join_and_leave(network: NetworkFactory, topology: str) -> None:
    net = opened(network, 6, "0-2", f"topology.kind={topology}", "algorithm.kind=gradient_tracking")
    for peer in "012":
        net.start(peer)
    net.wait_until_training(0, 1, 2)
    newcomers = [net.start(peer) for peer in "35"]
    wait_for_participants(net, "0-3,5", 0, 1, 2, 3, 5)
    leave(net.processes[1])
    wait_for_participants(net, "0,2,3,5", 0, 2, 3, 5)
    back = net.start("1", out=net.folder / "again")  # the same peer, which knows nothing
    wait_for_participants(net, "0-3,5", 0, 2, 3, 5)
    leave(back)
    wait_for_participants(net, "0,2,3,5", 0, 2, 3, 5)
    log = net.out / "log-0.jsonl"
    before = records_of_rounds(log)
    wait_until("a round without peer 1 is done", lambda: records_of_rounds(log) > before)
    # The others end in the same round.
    for process in (net.processes[0], net.processes[2], *newcomers):
        process.process.send_signal(signal.SIGINT)
    assert {net.processes[k].wait() for k in (0, 2, 3, 4)} == {130}

    for peer in (0, 3):
        records = net.records(peer)
        for record in records:
            validate(record, record["record"])
        changes = [record for record in records if record.get("event") == "participants"]
        rounds = [change["round"] for change in changes]
        assert rounds == sorted(set(rounds))
        for change in changes:
            ids = {int(each) for edge in change["topology"]["edge_list"] for each in edge}
            assert change["topology"]["peers"] == len(ids)
    joined = events(net, 3, "joined")
    assert [event["round"] for event in joined] == [events(net, 3, "participants")[0]["round"]]

    summary = net.summary()
    assert summary["absent_peers"] == [1, 4]
    assert summary["lost_peers"] == []
    texts = [change["participants"] for change in summary["topology"]["changes"]]
    assert (texts[0], texts[-1]) == ("0-2", "0,2,3,5")
    assert summary["config"]["run"]["open"] is True


def test_a_leave_has_the_bits_of_a_run_that_knew_of_it(network: NetworkFactory) -> None:
    """On a ring, whose W is the same in all rounds."""
    net = network(4, "run.open=true", "topology.kind=ring", "run.rounds=20000", "log.every=100")
    for peer in range(4):
        net.start(str(peer))
    net.wait_until_training(0, 1, 2, 3)
    leave(net.processes[2])
    assert net.wait() == [0] * 4
    summary = net.summary()
    changes = summary["topology"]["changes"]
    assert [change["participants"] for change in changes] == ["0-3", "0,1,3"]
    planned = ["0-3", f"{changes[1]['round']}: 0,1,3"]
    net.sets += ["run.open=false", f"run.participants={json.dumps(planned)}"]
    assert summary["final_hash"] == net.run_in_one_process()["final_hash"]


def test_processes_without_ids_are_the_first_participants(network: NetworkFactory) -> None:
    with ReservedPort() as seed:
        net = opened(network, 6, "0,4", "net.rendezvous=", "net.listen=", f'net.seeds=["{seed}"]')

        def start() -> PeerProcess:
            process = PeerProcess("?", net.command("peer", "--out", str(net.out)), net.folder)
            net.processes.append(process)
            return process

        first = [start(), start()]
        net.wait_until_training(0, 4)
        third = start()
        wait_until(lambda: third.stderr, lambda: "joins in round" in third.stderr)
        ids = [
            int(each.stderr.split("this process is peer ")[1].split()[0])
            for each in (*first, third)
        ]
        assert set(ids[:2]) == {0, 4}
        assert ids[2] not in {0, 4}
        end(*first, third)


def test_a_peer_that_left_resumes_nothing(network: NetworkFactory) -> None:
    net = opened(network, 3, "0-1", "net.failure_timeout=1")
    others = [net.start("0"), net.start("1")]
    newcomer = net.start("2")
    wait_for_participants(net, "0-2", 0, 1, 2)
    leave(newcomer)
    last = net.records(2)[-1]
    assert (last["reason"], last["message"]) == ("left", "")
    wait_for_participants(net, "0,1", 0, 1)
    assert last["rounds"] == events(net, 0, "participants")[-1]["round"]
    refused = net.start("2")
    assert refused.wait() == 3 and "resume it with --resume auto" in refused.stderr
    for other in others:  # no peer answers for longer than the failure timeout
        other.process.send_signal(signal.SIGSTOP)
    again = net.start("2", resume="auto")
    again.wait_for_message("waiting for peer 0")
    for other in others:
        other.process.send_signal(signal.SIGCONT)
    again.wait_for_message("joins in round")
    leave(again)


def test_a_peer_that_was_cut_off_leaves_without_an_error(network: NetworkFactory) -> None:
    """The rounds that it left out to catch up are missing in a run that it does not complete."""
    net = opened(network, 3, "0-2", "net.failure_timeout=0.5", "log.every=100")
    processes = [net.start(peer) for peer in "012"]
    net.wait_until_training(0, 1, 2)
    processes[2].process.send_signal(signal.SIGSTOP)
    for other in processes[:2]:
        other.wait_for_message("peer 2 is unreachable")
    log = net.out / "log-0.jsonl"
    ahead = records_of_rounds(log)
    wait_until("the others are ahead", lambda: records_of_rounds(log) > ahead + 20)
    processes[2].process.send_signal(signal.SIGCONT)
    processes[2].wait_for_message("3 peers are reachable")
    leave(processes[2])
    assert "the run is not complete" not in processes[2].stderr
    last = net.records(2)[-1]
    assert (last["reason"], last["message"]) == ("left", "")
    end(*processes[:2])


@pytest.mark.parametrize("early", ["0", "2"], ids=["participant", "newcomer"])
def test_a_process_that_waits_for_others_leaves_once_it_has_begun(
    network: NetworkFactory, early: str
) -> None:
    net = opened(network, 3, "0-1", "net.join_timeout=60")
    waiting = net.start(early)
    waiting.wait_for_message("waiting for peer ")
    waiting.process.send_signal(signal.SIGUSR1)
    waiting.wait_for_message(f"peer {early} leaves once it has begun")
    others = [net.start(peer) for peer in "01" if peer != early]
    assert waiting.wait() == 0, waiting.stderr
    assert net.records(int(early))[-1]["reason"] == "left"
    end(*others)


def test_the_last_participant_stays(network: NetworkFactory) -> None:
    net = opened(network, 3, "0")
    alone, other = net.start("0"), net.start("1")
    wait_for_participants(net, "0,1", 0, 1)
    leave(other)
    wait_for_participants(net, "0", 0)
    alone.process.send_signal(signal.SIGUSR1)
    alone.wait_for_message("peer 0 does not leave: ")
    end(alone)


def test_a_newcomer_waits_for_a_network(network: NetworkFactory) -> None:
    net = opened(network, 4, "0-1", "net.join_timeout=60")
    early = [net.start("3"), net.start("2")]
    for process in early:
        process.wait_for_message("waiting for peer 0")
    first = [net.start("0"), net.start("1")]
    wait_for_participants(net, "0-3", 0, 1, 2, 3)
    end(*first, *early)


def test_each_process_is_killed_while_others_join(network: NetworkFactory) -> None:
    """Also the one that gives a newcomer its rows."""
    net = opened(network, 5, "0-2", "topology.kind=base", "net.failure_timeout=10")
    running = {peer: net.start(str(peer)) for peer in range(3)}
    net.wait_until_training(0, 1, 2)
    for victim, newcomer in ((0, 3), (1, 4), (2, 0), (3, 1), (4, 2)):
        joining = net.start(str(newcomer), resume="auto")
        running[victim].kill()
        joining.wait_for_message("joins in round ")
        running[newcomer] = joining
        del running[victim]
    # The killed ones take part, and come back.
    running |= {peer: net.start(str(peer), resume="auto") for peer in (3, 4)}
    for peer, other in combinations(running, 2):
        running[max(peer, other)].wait_for_message(f" mixes with peer {min(peer, other)}")
    end(*running.values())


def kill_all(net: Network) -> None:
    assert set(net.kill_at_once()) == {-signal.SIGKILL}
    net.processes.clear()


def wait_for_checkpoint(net: Network, least: int, *peers: int) -> None:
    wait_until(
        f"checkpoints of round {least}, or of later ones, of peers {peers}",
        lambda: all(max(net.kept_rounds(peer), default=0) >= least for peer in peers),
    )


def test_an_open_run_that_is_killed_resumes(network: NetworkFactory) -> None:
    """With the bits of a run that was never stopped, where all that took part come back."""
    net = network(
        4,
        "run.open=true",
        "topology.kind=ring",
        "algorithm.kind=gradient_tracking",
        "run.rounds=16000",
        "log.every=500",
        "checkpoint.every=100",
        "checkpoint.keep=3",
    )
    for peer in "0123":
        net.start(peer)
    wait_for_checkpoint(net, 300, 0, 1, 2, 3)
    kill_all(net)
    for peer in "0123":
        net.start(peer, resume="auto")
    assert net.wait() == [0] * 4
    for process in net.processes:
        assert "resuming from the checkpoint of round " in process.stderr
    assert events(net, 0, "participants") == []
    summary = net.summary()
    net.sets.append("run.open=false")
    assert summary["final_hash"] == net.run_in_one_process()["final_hash"]


def test_peers_that_joined_come_back_to_a_run_that_resumes(network: NetworkFactory) -> None:
    """Their share of a conserved sum is lost with them, so it is made anew."""
    net = opened(
        network,
        5,
        "0-2",
        "topology.kind=base",
        "algorithm.kind=gradient_tracking",
        "log.every=50",
        "log.sketch=on",
        "checkpoint.every=50",
        "checkpoint.keep=3",
        *QUADRATICS,
    )
    for peer in "012":
        net.start(peer)
    net.wait_until_training(0, 1, 2)
    for peer in "34":
        net.start(peer)
    wait_for_participants(net, "0-4", 0, 1, 2, 3, 4)
    joined = events(net, 0, "participants")[-1]["round"]
    wait_for_checkpoint(net, joined + 200, 0, 1, 2, 3, 4)
    kill_all(net)

    # Those that begin are at their own optimum, as if they had always been alone.
    for peer in "012":
        net.start(peer, resume="auto")
    log = net.out / "log-0.jsonl"
    before = records_of_rounds(log)
    wait_until("rounds of the first peers alone", lambda: records_of_rounds(log) > before + 40)
    kill_all(net)
    alone = read_records([log.read_text(encoding="utf-8")])[0]
    kept = list(net.sets)
    net.sets += ["run.open=false", "run.rounds=2000"]
    net.run_in_one_process()
    net.sets[:] = kept
    reference = ReferenceRun(
        read_records([(net.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])
    )
    assert reference.distance(0, alone[max(alone)]) < TOLERANCE

    early = net.start("4", resume="auto")
    early.wait_for_message("waiting for peer 0")
    first = [net.start(peer, resume="auto") for peer in "012"]
    for process in first:
        process.wait_for_message("resuming from the checkpoint of round ")
    late = net.start("3", resume="auto")
    wait_until(
        lambda: f"peers 3 and 4 take part: {events(net, 0, 'participants')}",
        lambda: (
            [event["participants"] for event in events(net, 0, "participants")][-1:] == ["0-4"]
            and len(events(net, 0, "participants")) > 2
        ),
    )
    changes = events(net, 0, "participants")
    resumed = next(k for k, event in enumerate(changes) if event["participants"] == "0-2")
    assert changes[resumed - 1]["participants"] == "0-4"
    assert changes[resumed]["round"] % 50 == 0
    since = records_of_rounds(net.out / "log-0.jsonl")
    wait_until("rounds after it", lambda: records_of_rounds(net.out / "log-0.jsonl") > since + 40)
    for process in (*first, early, late):
        process.process.send_signal(signal.SIGINT)
    assert {process.wait() for process in net.processes} == {130}
    summary = net.summary()
    assert summary["final"]["distance_to_optimum"] < TOLERANCE
    texts = [change["participants"] for change in summary["topology"]["changes"]]
    assert texts == ["0-2", *(event["participants"] for event in changes)]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["algorithm.policy=async"], "run.open: under 'async' "),
        (["algorithm.policy=deadline", "algorithm.slack=0.1"], "run.open: under 'deadline' "),
        (["topology.kind=random_matching"], "run.open: neighbours on 'random_matching'"),
        (["net.on_loss=stop"], "run.open: needs net.on_loss = continue"),
        (["mixing.rule=median"], "run.open: goes with mixing.rule = mean only"),
        (["algorithm.kind=d2"], "run.participants: 'd2' needs the same peers in all rounds"),
        (['run.participants=["0-1", "4: 0-3"]'], "run.participants: peers of an open run "),
        (["run.peers=300"], "run.open: an open run has 256 peers at most"),
    ],
)
def test_what_open_runs_refuse(
    gossamer: Path, network: NetworkFactory, sets: list[str], message: str
) -> None:
    process = opened(network, 4, "0-1", *sets).start("0")
    assert process.wait() == 2, process.stderr
    assert process.last_message.startswith(message)


def test_an_open_run_is_a_network(gossamer: Path, tmp_path: Path) -> None:
    command = [str(gossamer), "run", "--out", str(tmp_path / "out"), "--set", "run.open=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "run.open: peers join and leave a network" in done.stderr
    command = [str(gossamer), "peer", "--id", "0-1", "--out", str(tmp_path / "out")]
    command += ["--set", "run.open=true", "--set", "net.rendezvous=meet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "run.open: each process has one peer" in done.stderr
