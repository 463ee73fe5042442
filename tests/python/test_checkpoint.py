"""Checkpoints of real processes: killed, started again, and the same bits as of a run that nobody disturbed."""

import json
import random
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
from network_test_util import DEADLINE, Make, Network, Peer, eventually
from safetensors.numpy import load_file, save_file
from standing import NEAR, QUADRATICS, Undisturbed, standing
from test_log_schema import check_folder


def run(net: Network, *words: str, out: Path | None = None) -> dict[str, Any]:
    command = net.command("run", "--quiet", "--json", "--out", str(out or net.out), *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def records(log: Path) -> list[dict[str, Any]]:
    """What a log tells but for what a real clock measured, in an order of its own."""
    told = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    for record in told:
        for measured in (
            "seconds",
            "mix_seconds",
            "wait_seconds",
            "train_seconds",
            "wall_seconds",
            "bytes_received",
        ):
            record.pop(measured, None)
    return sorted(told, key=lambda record: json.dumps(record, sort_keys=True))


def kept(net: Network, process: int = 0) -> list[int]:
    return sorted(
        int(path.name.split("-")[1])
        for path in (net.out / "checkpoints").glob(f"round-*-{process}.json")
    )


def killed_at(byte: int) -> dict[str, Any]:
    """Options of a process that the system kills when one of its files, which is its log, grows beyond that byte."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (byte, byte))}


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_was_killed_goes_on_to_the_same_end(network: Make, seed: int) -> None:
    net = network(
        4, "run.rounds=3000", "log.every=10", "checkpoint.every=250", "optimizer.momentum=0.5"
    )
    whole = run(net, out=net.folder / "whole")
    size = (net.folder / "whole" / "log-0.jsonl").stat().st_size
    when = random.Random(seed)
    for part in (0.3, 0.7):  # killed, and killed again later
        limit = killed_at(int(size * (part + when.random() / 5)))
        process = Peer(
            "all",
            net.command("run", "--out", str(net.out), "--resume", "auto"),
            net.folder,
            **limit,
        )
        net.started.append(process)
        assert process.wait() == -signal.SIGXFSZ, process.said
        assert len(kept(net)) == 2
    resumed = run(net, "--resume", "auto")
    assert resumed["final_hash"] == whole["final_hash"]
    assert {**resumed, "wall_seconds": 0, "node_steps_per_second": 0, "config": 0} == {
        **whole,
        "wall_seconds": 0,
        "node_steps_per_second": 0,
        "config": 0,
    }
    assert records(net.out / "log-0.jsonl") == records(net.folder / "whole" / "log-0.jsonl")
    check_folder(net.out, 4)


def test_a_run_that_was_killed_by_sigkill_goes_on_to_the_same_end(network: Make) -> None:
    net = network(
        4, "run.rounds=20000", "log.every=500", "checkpoint.every=500", "optimizer.kind=adam"
    )
    process = Peer("all", net.command("run", "--out", str(net.out)), net.folder)
    net.started.append(process)
    eventually("two checkpoints", lambda: len(kept(net)) > 1)
    process.process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    assert (
        run(net, "--resume", "auto")["final_hash"]
        == run(net, out=net.folder / "whole")["final_hash"]
    )


# on_loss: those who die a little later than others do not go on without them.
LONG = ("run.rounds=3000", "log.every=100", "checkpoint.every=100", "net.on_loss=stop")
GROUPS = ["0", "1-2", "3"]
LOWEST = (0, 1, 3)


def kill_all(net: Network, resume: str = "none") -> None:
    """The network for a while, until each process has written two checkpoints more; then the power is cut."""
    before = {k: max(kept(net, k), default=0) for k in LOWEST}
    peers = [net.start(ids, resume=resume) for ids in GROUPS]
    for k in LOWEST:
        eventually(
            f"process {k} writes checkpoints",
            lambda k=k: max(kept(net, k), default=0) >= before[k] + 200,
        )
    for number in (
        signal.SIGSTOP,
        signal.SIGKILL,
    ):  # all of them at once: none sees another one go, and ends by itself
        for peer in peers:
            peer.process.send_signal(number)
    assert [peer.wait() for peer in peers] == [-signal.SIGKILL] * len(peers), [
        peer.said for peer in peers
    ]
    net.started.clear()


def go_on(net: Network, groups: list[str], *sets: str, out: Path | None = None) -> int:
    """The round at which all processes of the network said that they go on (or begin, 0); the run is at its end."""
    peers = [net.start(ids, *sets, out=out, resume="auto") for ids in groups]
    assert net.wait() == [0] * len(groups), [peer.said for peer in peers]
    said = {
        line.rpartition(" round ")[2]
        for peer in peers
        for line in peer.said.splitlines()
        if "checkpoint" in line
    }
    assert len(said) == 1, [peer.said for peer in peers]
    return int(said.pop())


def check_same_as_undisturbed(net: Network) -> None:
    here, there = net.run_here(), net.summary()
    for key in ("final_hash", "final", "run_id", "reason", "rounds", "node_steps", "bytes_sent"):
        assert there[key] == here[key], key
    check_folder(net.out, net.peers)


@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=ring", "optimizer.momentum=0.5"),
        (
            "topology.kind=star",
            "algorithm.kind=gradient_tracking",
            "codec.kind=int8",
            "optimizer.kind=adam",
        ),
        ("topology.kind=complete", "algorithm.kind=choco", "codec.kind=topk"),
        ("algorithm.kind=allreduce", "net.chunk_kib=4"),
    ],
    ids=lambda sets: "-".join(s.partition("=")[2] for s in sets),
)
def test_a_network_whose_processes_all_died_goes_on_to_the_same_end(
    network: Make, sets: tuple[str, ...]
) -> None:
    net = network(4, *LONG, *sets)
    kill_all(net)
    kill_all(net, resume="auto")
    assert go_on(net, GROUPS) >= 200
    check_same_as_undisturbed(net)


def test_a_network_goes_on_in_other_processes_than_those_that_wrote_its_checkpoints(
    network: Make,
) -> None:
    net = network(4, *LONG, "topology.kind=ring")
    kill_all(net)
    whole = net.run_here()
    store = net.out / "checkpoints"
    assert (
        run(net, "--resume", str(store), out=net.folder / "joined")["final_hash"]
        == whole["final_hash"]
    )
    net.out = net.folder / "apart"
    go_on(net, ["0-1", "2", "3"], f"checkpoint.folder={store}", out=net.out)
    assert net.summary()["final_hash"] == whole["final_hash"]
    net.started.clear()
    net.out = store.parent  # a log of other peers is not gone on with
    peer = net.start("0-1", resume="auto")
    assert peer.wait() == 3 and "its hosted is [0], and here it is [0,1]" in peer.last_line, (
        peer.said
    )


def test_processes_agree_on_the_newest_round_that_all_have_or_say_who_has_which(
    network: Make,
) -> None:
    net = network(4, *LONG, "topology.kind=ring", "checkpoint.every=25")
    kill_all(net)  # at the eighth checkpoint of each, or later
    agreed = min(kept(net, k)[-1] for k in LOWEST)
    assert all(agreed in kept(net, k) for k in LOWEST), (
        "twenty-five rounds are more than the ring is wide"
    )
    store, away = net.out / "checkpoints", net.folder / "away"
    shutil.copytree(net.out, away)
    logs = {k: (net.out / f"log-{k}.jsonl").read_bytes() for k in LOWEST}
    assert all(kept(net, k)[0] > 25 for k in LOWEST), "some were dropped, so nobody can begin anew"
    for path in store.glob("round-*-3.json"):
        path.unlink()
    peers = [net.start(ids, resume="auto") for ids in GROUPS]
    assert net.wait() == [2, 2, 2], [peer.said for peer in peers]
    for peer in peers:
        assert (
            "there is no checkpoint of one round that all processes can go on from: peer 3 has none, peer "
            in peer.last_line
        )
    assert {k: (net.out / f"log-{k}.jsonl").read_bytes() for k in LOWEST} == logs, (
        "nothing was lost by trying"
    )
    net.started.clear()
    shutil.rmtree(net.out)
    shutil.copytree(away, net.out)
    assert go_on(net, GROUPS) == agreed
    check_same_as_undisturbed(net)


@pytest.mark.parametrize("ahead", [False, True])
def test_who_has_no_checkpoint_of_the_round_that_the_others_have_joins_them(
    network: Make, ahead: bool
) -> None:
    """The power is cut when one had died long before, or had run ahead on its own."""
    net = network(
        4,
        "run.rounds=3000",
        "log.every=100",
        "checkpoint.every=100",
        "checkpoint.keep=99",
        "topology.kind=ring",
        "algorithm.kind=gradient_tracking",
        "log.sketch=on",
        *QUADRATICS,
    )
    net.run_here()
    undisturbed = Undisturbed(
        standing([(net.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])
    )
    kill_all(net)
    apart = max(kept(net, 3)) if ahead else 100
    for path in (net.out / "checkpoints").glob("*.json"):
        round_, process = (int(number) for number in path.name.partition(".")[0].split("-")[1:])
        if (round_ == apart) != (process == 3) or (ahead and round_ > apart):
            path.unlink()
    newest = max(set(kept(net, 0)) & set(kept(net, 1)))
    assert kept(net, 3) == [apart] and (newest < apart) == ahead
    peers = [net.start(ids, resume="auto") for ids in GROUPS]
    assert net.wait() == [0, 0, 0], [peer.said for peer in peers]
    assert (
        f"3 of 4 nodes go on from their checkpoints of round {newest}; this process has none of that round, and joins"
        in peers[2].said
    )
    for peer in peers[:2]:
        assert f"going on from the checkpoint of round {newest}" in peer.said
        assert (
            f"peer 3 has no checkpoint of round {newest}; peer " in peer.said
            and "peer 3 is back: from round " in peer.said
        )
    ended = standing((net.out / f"log-{k}.jsonl").read_text(encoding="utf-8") for k in LOWEST)
    difference = undisturbed.difference({k: records[3000] for k, records in ended.items()})
    assert difference.distance <= NEAR and difference.loss <= NEAR, difference
    assert net.summary()["rounds"] == 3000
    check_folder(net.out, 4)


def test_killed_before_all_had_their_first_checkpoint_a_network_begins_again(network: Make) -> None:
    net = network(4, *LONG, "topology.kind=ring", "checkpoint.keep=99")
    kill_all(net)
    for path in (net.out / "checkpoints").iterdir():
        round_, process = (int(number) for number in path.name.partition(".")[0].split("-")[1:])
        if process == 3 or round_ > 100:  # as if peer 3 had been about to write its first
            path.unlink()
    assert go_on(net, GROUPS) == 0
    check_same_as_undisturbed(net)


def test_one_that_dies_takes_all_with_it_and_all_go_on(network: Make) -> None:
    net = network(4, *LONG, "topology.kind=path", "algorithm.kind=server")
    peers = [net.start(str(k)) for k in range(5)]
    eventually("checkpoints", lambda: all(kept(net, k) for k in range(5)))
    peers[1].process.kill()
    assert [peer.wait() for peer in peers if peer is not peers[1]] == [5] * 4, [
        peer.said for peer in peers
    ]
    peers[1].wait()
    net.started.clear()
    go_on(net, [str(k) for k in range(5)])
    check_same_as_undisturbed(net)


def test_a_check_says_where_checkpoints_may_have_no_round_in_common(network: Make) -> None:
    net = network(8, "topology.kind=path")
    for sets, words in (
        (("checkpoint.every=6",), "checkpoint.every = 7 or more makes it certain"),
        (
            ("checkpoint.every=6", "checkpoint.keep=1"),
            "checkpoint.keep = 2 and checkpoint.every = 7",
        ),
        (("checkpoint.every=9", "topology.kind=random_matching"), "any number of rounds ahead"),
        (("checkpoint.every=4", "checkpoint.keep=3"), None),
        (("checkpoint.every=7",), None),
        ((), None),
    ):
        done = subprocess.run(
            net.command("run", "--check", "--quiet", sets=sets),
            capture_output=True,
            text=True,
            check=True,
        )
        assert words in done.stderr if words else done.stderr == "", (sets, done.stderr)


def test_checkpoints_are_read_by_the_format_s_own_library_and_averaged(
    network: Make, gossamer: Path
) -> None:
    net = network(
        3,
        "run.rounds=20",
        "checkpoint.every=10",
        "algorithm.kind=gradient_tracking",
        "optimizer.kind=adam",
    )
    run(net)
    checkpoint = load_file(net.out / "checkpoints" / "round-00000020-0.safetensors")
    final = load_file(net.out / "final-0.safetensors")
    rows = ("tracker", "gradient", "optimizer.first_moment", "optimizer.second_moment")
    assert checkpoint.keys() == final.keys() | {
        f"peer{i}.state.{row}" for i in range(3) for row in rows
    }
    for name, values in final.items():
        assert numpy.array_equal(checkpoint[name], values) and values.dtype == numpy.float32

    def average(*files: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                str(gossamer),
                "average",
                *map(str, files),
                "-o",
                str(net.folder / "mean.safetensors"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    expected = {}
    for name in ("0.dense.weights", "0.dense.bias"):
        peers = [final[f"peer{i}.{name}"].astype(numpy.float64) for i in range(3)]
        expected[name] = ((peers[0] + peers[1] + peers[2]) / 3).astype(numpy.float32)
    for source in (
        net.out / "final-0.safetensors",
        net.out / "checkpoints" / "round-00000020-0.safetensors",
    ):
        done = average(source)
        assert (
            done.returncode == 0
            and "the mean of 3 models, 2 tensors, 650 parameters" in done.stdout
        ), done.stderr
        mean = load_file(net.folder / "mean.safetensors")
        assert mean.keys() == expected.keys()
        assert all(numpy.array_equal(mean[name], values) for name, values in expected.items())

    files = {
        "a": {"w": numpy.float32([1, 3]), "b": numpy.float32([[2]])},
        "b": {"w": numpy.float32([2, 5]), "b": numpy.float32([[4]])},
        "shorter": {"w": numpy.float32([2]), "b": numpy.float32([[4]])},
        "less": {"w": numpy.float32([2, 5])},
    }
    for name, tensors in files.items():
        save_file(tensors, net.folder / name)
    assert average(net.folder / "a", net.folder / "b").returncode == 0
    mean = load_file(net.folder / "mean.safetensors")
    assert mean["w"].tolist() == [1.5, 4] and mean["b"].tolist() == [[3]]
    for other, words in (
        ("shorter", "tensor w has the shape [1], and [2] in"),
        ("less", "has no tensor b, as"),
        ("none", "No such file"),
    ):
        done = average(net.folder / "a", net.folder / other)
        assert (
            done.returncode == 3 and words in done.stderr and str(net.folder / other) in done.stderr
        ), done.stderr
