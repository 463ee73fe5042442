"""Checkpoints of real processes: killed and restarted runs have the bits of an undisturbed run."""

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
from network_test_util import DEADLINE, NetworkFactory, Network, PeerProcess, wait_until
from safetensors.numpy import load_file, save_file
from reference_run import TOLERANCE, QUADRATICS, ReferenceRun, read_records
from test_log_schema import check_folder


def run(net: Network, *options: str, out: Path | None = None) -> dict[str, Any]:
    command = net.command("run", "--quiet", "--json", "--out", str(out or net.out), *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def records(log: Path) -> list[dict[str, Any]]:
    """The records of a log without header and without measured times, in a canonical order."""
    found = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    for record in found:
        for measured in (
            "seconds",
            "mix_seconds",
            "wait_seconds",
            "train_seconds",
            "wall_seconds",
            "bytes_received",
        ):
            record.pop(measured, None)
    return sorted(found, key=lambda record: json.dumps(record, sort_keys=True))


def killed_at(byte: int) -> dict[str, Any]:
    """Options of a process that is killed by the system when its log grows beyond `byte`."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (byte, byte))}


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_resumes_to_the_same_end(network: NetworkFactory, seed: int) -> None:
    net = network(
        4, "run.rounds=3000", "log.every=10", "checkpoint.every=250", "optimizer.momentum=0.5"
    )
    undisturbed = run(net, out=net.folder / "undisturbed")
    size = (net.folder / "undisturbed" / "log-0.jsonl").stat().st_size
    when = random.Random(seed)
    for part in (0.3, 0.7):  # killed twice
        limit = killed_at(int(size * (part + when.random() / 5)))
        process = PeerProcess(
            "all",
            net.command("run", "--out", str(net.out), "--resume", "auto"),
            net.folder,
            **limit,
        )
        net.processes.append(process)
        assert process.wait() == -signal.SIGXFSZ, process.stderr
        assert len(net.kept_rounds()) == 2
    resumed = run(net, "--resume", "auto")
    assert resumed["final_hash"] == undisturbed["final_hash"]
    assert {**resumed, "wall_seconds": 0, "node_steps_per_second": 0, "config": 0} == {
        **undisturbed,
        "wall_seconds": 0,
        "node_steps_per_second": 0,
        "config": 0,
    }
    assert records(net.out / "log-0.jsonl") == records(net.folder / "undisturbed" / "log-0.jsonl")
    check_folder(net.out, 4)


def test_a_run_killed_by_sigkill_resumes_to_the_same_end(network: NetworkFactory) -> None:
    net = network(
        4, "run.rounds=20000", "log.every=500", "checkpoint.every=500", "optimizer.kind=adam"
    )
    process = PeerProcess("all", net.command("run", "--out", str(net.out)), net.folder)
    net.processes.append(process)
    wait_until("two checkpoints", lambda: len(net.kept_rounds()) > 1)
    process.process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    assert (
        run(net, "--resume", "auto")["final_hash"]
        == run(net, out=net.folder / "undisturbed")["final_hash"]
    )


# With net.on_loss=stop, peers that are killed a moment later do not continue without the others.
LONG = ("run.rounds=3000", "log.every=100", "checkpoint.every=100", "net.on_loss=stop")
GROUPS = ["0", "1-2", "3"]
LOWEST = (0, 1, 3)


def kill_all(net: Network, resume: str = "none") -> None:
    """Kills all processes at once after each has written two more checkpoints."""
    before = {k: max(net.kept_rounds(k), default=0) for k in LOWEST}
    peers = [net.start(ids, resume=resume) for ids in GROUPS]
    for k in LOWEST:
        wait_until(
            f"process {k} writes checkpoints",
            lambda k=k: max(net.kept_rounds(k), default=0) >= before[k] + 200,
        )
    assert net.kill_at_once() == [-signal.SIGKILL] * len(peers), [peer.stderr for peer in peers]
    net.processes.clear()


def resume(net: Network, groups: list[str], *sets: str, out: Path | None = None) -> int:
    """Runs the network to its end. Returns the round from which all processes resumed; 0: none."""
    peers = [net.start(ids, *sets, out=out, resume="auto") for ids in groups]
    assert net.wait() == [0] * len(groups), [peer.stderr for peer in peers]
    rounds = {
        line.rpartition(" round ")[2]
        for peer in peers
        for line in peer.stderr.splitlines()
        if "resuming from the checkpoint" in line or "no checkpoint to resume from" in line
    }
    assert len(rounds) == 1, [peer.stderr for peer in peers]
    return int(rounds.pop())


def check_same_as_undisturbed(net: Network) -> None:
    here, there = net.run_in_one_process(), net.summary()
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
def test_a_network_whose_processes_are_all_killed_resumes_to_the_same_end(
    network: NetworkFactory, sets: tuple[str, ...]
) -> None:
    net = network(4, *LONG, *sets)
    kill_all(net)
    kill_all(net, resume="auto")
    assert resume(net, GROUPS) >= 200
    check_same_as_undisturbed(net)


def test_a_network_resumes_with_another_assignment_of_peers_to_processes(
    network: NetworkFactory,
) -> None:
    net = network(4, *LONG, "topology.kind=ring")
    kill_all(net)
    undisturbed = net.run_in_one_process()
    store = net.out / "checkpoints"
    assert (
        run(net, "--resume", str(store), out=net.folder / "joined")["final_hash"]
        == undisturbed["final_hash"]
    )
    net.out = net.folder / "apart"
    resume(net, ["0-1", "2", "3"], f"checkpoint.folder={store}", out=net.out)
    assert net.summary()["final_hash"] == undisturbed["final_hash"]
    net.processes.clear()
    net.out = store.parent  # a process does not append to the log of other peers
    peer = net.start("0-1", resume="auto")
    assert peer.wait() == 3 and "its hosted is [0], and here it is [0,1]" in peer.last_message, (
        peer.stderr
    )


def test_processes_resume_from_the_newest_common_round_or_report_their_rounds(
    network: NetworkFactory,
) -> None:
    net = network(4, *LONG, "topology.kind=ring", "checkpoint.every=25")
    kill_all(net)  # at the eighth checkpoint of each, or later
    agreed = min(net.kept_rounds(k)[-1] for k in LOWEST)
    assert all(agreed in net.kept_rounds(k) for k in LOWEST), (
        "25 rounds exceed the distance between any two peers"
    )
    store, away = net.out / "checkpoints", net.folder / "away"
    shutil.copytree(net.out, away)
    logs = {k: (net.out / f"log-{k}.jsonl").read_bytes() for k in LOWEST}
    assert all(net.kept_rounds(k)[0] > 25 for k in LOWEST), (
        "the first checkpoints are deleted, so no process can start from round 0"
    )
    for path in store.glob("round-*-3.json"):
        path.unlink()
    peers = [net.start(ids, resume="auto") for ids in GROUPS]
    assert net.wait() == [2, 2, 2], [peer.stderr for peer in peers]
    for peer in peers:
        assert (
            "there is no checkpoint of one round that all processes can resume from: "
            "peer 3 has none, peer "
        ) in peer.last_message
    assert {k: (net.out / f"log-{k}.jsonl").read_bytes() for k in LOWEST} == logs, (
        "a failed attempt must not change the logs"
    )
    net.processes.clear()
    shutil.rmtree(net.out)
    shutil.copytree(away, net.out)
    assert resume(net, GROUPS) == agreed
    check_same_as_undisturbed(net)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_process_without_a_checkpoint_of_the_common_round_joins(
    network: NetworkFactory, ahead: bool
) -> None:
    """One process had been killed long before the others, or had run ahead."""
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
    net.run_in_one_process()
    reference = ReferenceRun(
        read_records([(net.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8")])
    )
    kill_all(net)
    own_round = max(net.kept_rounds(3)) if ahead else 100
    for path in (net.out / "checkpoints").glob("*.json"):
        round_, process = (int(number) for number in path.name.partition(".")[0].split("-")[1:])
        if (round_ == own_round) != (process == 3) or (ahead and round_ > own_round):
            path.unlink()
    newest = max(set(net.kept_rounds(0)) & set(net.kept_rounds(1)))
    assert net.kept_rounds(3) == [own_round] and (newest < own_round) == ahead
    peers = [net.start(ids, resume="auto") for ids in GROUPS]
    assert net.wait() == [0, 0, 0], [peer.stderr for peer in peers]
    assert (
        f"3 of 4 nodes resume from their checkpoints of round {newest}; "
        "this process has none of that round, and joins"
    ) in peers[2].stderr
    for peer in peers[:2]:
        assert f"resuming from the checkpoint of round {newest}" in peer.stderr
        assert (
            f"peer 3 has no checkpoint of round {newest}; peer " in peer.stderr
            and "peer 3 is back: from round " in peer.stderr
        )
    ended = read_records((net.out / f"log-{k}.jsonl").read_text(encoding="utf-8") for k in LOWEST)
    deviation = reference.deviation({k: records[3000] for k, records in ended.items()})
    assert deviation.distance <= TOLERANCE and deviation.loss <= TOLERANCE, deviation
    assert net.summary()["rounds"] == 3000
    check_folder(net.out, 4)


def test_a_network_killed_before_the_first_common_checkpoint_starts_again(
    network: NetworkFactory,
) -> None:
    net = network(4, *LONG, "topology.kind=ring", "checkpoint.keep=99")
    kill_all(net)
    for path in (net.out / "checkpoints").iterdir():
        round_, process = (int(number) for number in path.name.partition(".")[0].split("-")[1:])
        if process == 3 or round_ > 100:  # as if peer 3 had not yet written its first
            path.unlink()
    assert resume(net, GROUPS) == 0
    check_same_as_undisturbed(net)


def test_one_killed_process_ends_all_and_all_resume(network: NetworkFactory) -> None:
    net = network(4, *LONG, "topology.kind=path", "algorithm.kind=server")
    peers = [net.start(str(k)) for k in range(5)]
    wait_until("checkpoints", lambda: all(net.kept_rounds(k) for k in range(5)))
    peers[1].process.kill()
    assert [peer.wait() for peer in peers if peer is not peers[1]] == [5] * 4, [
        peer.stderr for peer in peers
    ]
    peers[1].wait()
    net.processes.clear()
    resume(net, [str(k) for k in range(5)])
    check_same_as_undisturbed(net)


def test_check_warns_if_checkpoints_may_have_no_common_round(
    network: NetworkFactory,
) -> None:
    net = network(8, "topology.kind=path")
    for sets, warning in (
        (("checkpoint.every=6",), "checkpoint.every = 7 or more guarantees one"),
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
        assert warning in done.stderr if warning else done.stderr == "", (sets, done.stderr)


def test_checkpoints_are_valid_safetensors_and_can_be_averaged(
    network: NetworkFactory, gossamer: Path
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
    for other, message in (
        ("shorter", "tensor w has the shape [1], but [2] in"),
        ("less", "has no tensor b, but"),
        ("none", "No such file"),
    ):
        done = average(net.folder / "a", net.folder / other)
        assert (
            done.returncode == 3
            and message in done.stderr
            and str(net.folder / other) in done.stderr
        ), done.stderr
