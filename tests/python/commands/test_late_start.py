"""A process that is started again when the network has finished: nobody will answer it."""

import json
from pathlib import Path

import pytest
from network_test_util import Network, NetworkFactory


@pytest.fixture
def finished(network: NetworkFactory) -> Network:
    """A network of three processes that has finished."""
    net = network(3, "checkpoint.every=2")
    for peer in range(3):
        net.start(str(peer))
    assert net.wait() == [0, 0, 0]
    net.processes.clear()
    return net


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forget_the_end(net: Network, peer: int) -> None:
    """As if the process had been killed before its last record."""
    log = net.out / f"log-{peer}.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    assert json.loads(lines[-1])["record"] == "end"
    log.write_text("".join(lines[:-1]), encoding="utf-8")


def test_a_process_that_has_finished_has_nothing_to_do(finished: Network) -> None:
    before = files(finished.out)
    again = finished.start("1", "net.failure_timeout=0.1", resume="auto")
    assert again.wait() == 0, again.stderr
    assert files(finished.out) == before


def test_all_processes_that_have_finished_without_checkpoints_end_again(
    network: NetworkFactory,
) -> None:
    net = network(3, "run.rounds=4")
    for peer in range(3):
        net.start(str(peer))
    assert net.wait() == [0, 0, 0]
    net.processes.clear()
    before = files(net.out)
    for peer in range(3):
        net.start(str(peer), resume="auto")
    assert net.wait() == [0, 0, 0], [process.stderr for process in net.processes]
    assert files(net.out) == before


def test_a_process_that_left_rounds_out_says_so_again(finished: Network) -> None:
    end_with(finished, 1, "lost_peer")
    before = files(finished.out)
    again = finished.start("1", "net.failure_timeout=0.1", resume="auto")
    assert again.wait() == 5
    assert again.last_message == (
        "peer 1 did the last round and had left earlier ones out; no other process was started "
        "again"
    )
    assert files(finished.out) == before


def end_with(net: Network, peer: int, reason: str, left_out: int = 1) -> None:
    """As if the process had ended with this reason, and had left rounds out."""
    log = net.out / f"log-{peer}.jsonl"
    *before, last = log.read_text(encoding="utf-8").splitlines()
    end = json.loads(last)
    assert end["record"] == "end"
    end.update(reason=reason, message="peer left a round out", rounds=end["rounds"] - left_out)
    log.write_text("".join(line + "\n" for line in [*before, json.dumps(end)]), encoding="utf-8")


def forget_the_last_round(net: Network, peer: int) -> None:
    log = net.out / f"log-{peer}.jsonl"
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    last = max(record["round"] for record in records if record["record"] == "round")
    kept = [record for record in records if record.get("round") != last]
    log.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")


def test_processes_that_have_finished_help_one_that_has_not(finished: Network) -> None:
    """They wait for as long as a peer may be silent, which is long in this network."""
    whole = finished.summary()["final_hash"]
    forget_the_end(finished, 1)
    for peer in (0, 2, 1):
        finished.start(str(peer), resume="auto")
    assert finished.wait() == [0, 0, 0]
    assert finished.summary()["final_hash"] == whole


def test_a_process_is_told_that_all_others_have_finished(finished: Network) -> None:
    forget_the_end(finished, 1)
    before = files(finished.out)
    late = finished.start("1", "net.failure_timeout=0.1", resume="auto")
    assert late.wait() == 4
    assert late.last_message == (
        f"peer 1 came too late: by their logs in {finished.out}, all other peers have finished "
        "the run, and none was started again"
    )
    assert files(finished.out) == before


def test_a_process_that_left_rounds_out_has_finished(finished: Network) -> None:
    forget_the_end(finished, 1)
    for peer in (0, 2):
        end_with(finished, peer, "lost_peer")
    late = finished.start("1", "net.failure_timeout=0.1", resume="auto")
    assert late.wait() == 4
    assert late.last_message.startswith("peer 1 came too late: by their logs in ")


@pytest.mark.parametrize("reason", ["lost_peer", "interrupted", "failed"])
def test_a_process_that_ended_early_may_be_resumed(finished: Network, reason: str) -> None:
    """So others wait for it."""
    forget_the_end(finished, 1)
    end_with(finished, 2, reason)
    if reason == "lost_peer":
        forget_the_last_round(finished, 2)
    late = finished.start("1", "net.join_timeout=0.2", resume="auto")
    assert late.wait() == 4
    assert "after 0.2 s (net.join_timeout) peer 1 misses" in late.last_message


def test_a_process_that_lost_a_partner_after_its_last_round_may_be_resumed(
    finished: Network,
) -> None:
    """To give it what it misses."""
    forget_the_end(finished, 1)
    end_with(finished, 2, "lost_peer", left_out=0)
    late = finished.start("1", "net.join_timeout=0.2", resume="auto")
    assert late.wait() == 4
    assert "after 0.2 s (net.join_timeout) peer 1 misses" in late.last_message


@pytest.mark.parametrize("damage", ["of another run", "not whole", "no log", "huge"])
def test_only_a_whole_log_of_this_run_says_that_a_process_has_finished(
    finished: Network, damage: str
) -> None:
    forget_the_end(finished, 1)
    other = finished.out / "log-2.jsonl"
    text = other.read_text(encoding="utf-8")
    other.write_text(
        {
            "of another run": text.replace('"run_id":"', '"run_id":"0', 1),
            "not whole": text[:-3],
            "no log": "\n\n{}\n[]\n",
            "huge": '{"record":' * 300_000 + "\n",
        }[damage],
        encoding="utf-8",
    )
    late = finished.start("1", "net.join_timeout=0.2", resume="auto")
    assert late.wait() == 4
    assert "after 0.2 s (net.join_timeout) peer 1 misses" in late.last_message
