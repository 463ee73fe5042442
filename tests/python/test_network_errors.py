"""Networks that end early or do not start: lost and stopped peers, rejections, full disks."""

import gzip
import json
import random
import resource
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from network_test_util import (
    DEADLINE,
    Network,
    NetworkFactory,
    PeerProcess,
    wait_until,
)
from test_log_schema import check_folder
from test_network import check_same_as_one_process

FOREVER = ("run.rounds=1000000000", "log.every=1", "net.on_loss=stop")


def check_survivors_end(
    net: Network, survivors: list[PeerProcess], code: int, message: str, reason: str
) -> None:
    """All survivors end with the code and the message, and their logs are complete."""
    for peer in survivors:
        assert peer.wait(25) == code, peer.stderr
        assert message in peer.last_message
        records = net.records(int(peer.ids))
        assert records[-1]["record"] == "end" and records[-1]["reason"] == reason
        assert message in records[-1]["message"]
        assert (net.out / f"final-{peer.ids}.safetensors").is_file()


@pytest.mark.parametrize(
    ("victim", "named"), [(3, "peer 3"), (1, "peer 1")], ids=["server", "worker"]
)
def test_a_lost_server_or_worker_ends_all_other_processes(
    network: NetworkFactory, victim: int, named: str
) -> None:
    net = network(3, "algorithm.kind=server", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.wait_until_training(*range(4))
    peers[victim].process.kill()
    check_survivors_end(
        net,
        [peer for peer in peers if peer is not peers[victim]],
        5,
        f"{named} (127.0.0.1:",
        "lost_peer",
    )


@pytest.mark.parametrize("topology", ["path", "complete"])
def test_a_killed_peer_ends_all_other_peers(network: NetworkFactory, topology: str) -> None:
    net = network(5, f"topology.kind={topology}", *FOREVER)
    peers = [net.start(str(k)) for k in range(5)]
    net.wait_until_training(*range(5))
    peers[4].process.kill()
    check_survivors_end(net, peers[:4], 5, "peer 4 (127.0.0.1:", "lost_peer")
    done = net.collect()
    assert done.returncode == 3 and "log-4.jsonl has no end" in done.stderr
    assert not (net.out / "summary.json").exists()


def test_a_stopped_peer_is_lost_after_the_failure_timeout_and_ends_when_it_continues(
    network: NetworkFactory,
) -> None:
    net = network(3, "net.failure_timeout=1", *FOREVER)
    peers = [net.start(str(k)) for k in range(3)]
    net.wait_until_training(0, 1, 2)
    peers[1].process.send_signal(signal.SIGSTOP)
    check_survivors_end(net, [peers[0], peers[2]], 5, "peer 1 (127.0.0.1:", "lost_peer")
    peers[1].process.send_signal(signal.SIGCONT)
    assert peers[1].wait() == 5, peers[1].stderr
    assert net.records(1)[-1]["record"] == "end"


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM], ids=lambda which: which.name)
def test_an_interrupt_of_one_peer_ends_all_with_a_message(
    network: NetworkFactory, which: signal.Signals
) -> None:
    net = network(4, "topology.kind=path", *FOREVER)
    peers = [net.start(str(k)) for k in range(4)]
    net.wait_until_training(*range(4))
    peers[2].process.send_signal(which)
    check_survivors_end(
        net, peers, 130, f"peer 2 was stopped by its operator ({which.name})", "interrupted"
    )
    assert net.summary()["reason"] == "interrupted"


def test_a_process_of_several_peers_names_them_all(network: NetworkFactory) -> None:
    net = network(5, "topology.kind=ring", *FOREVER)
    peers = [net.start(ids) for ids in ("0", "1-2", "3-4")]
    net.wait_until_training(0, 1, 3)
    peers[1].process.send_signal(signal.SIGTERM)
    assert net.wait() == [130] * 3, [each.stderr for each in peers]
    for each in peers:
        assert "peers 1, 2 were stopped by their operator (SIGTERM)" in each.last_message


def test_peers_that_finish_are_named(network: NetworkFactory) -> None:
    net = network(3, "topology.kind=ring", "run.rounds=20")
    peers = [net.start(ids) for ids in ("0", "1-2")]
    assert net.wait() == [0, 0], [each.stderr for each in peers]
    assert peers[0].stdout.startswith("peer 0 finished 20 rounds; ")
    assert peers[1].stdout.startswith("peers 1, 2 finished 20 rounds; ")


def test_an_interrupted_run_writes_its_summary(network: NetworkFactory) -> None:
    net = network(4, *FOREVER)
    run = PeerProcess("all", net.command("run", "--out", str(net.out)), net.folder)
    net.processes.append(run)
    net.wait_until_training(0)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.stderr
    assert "interrupted after round" in run.last_message
    summary = json.loads((net.out / "summary.json").read_text(encoding="utf-8"))
    assert summary["reason"] == "interrupted" and net.records(0)[-1]["rounds"] == summary["rounds"]
    check_folder(net.out, 4)


def test_a_missing_peer_is_named_and_the_others_end_at_the_join_timeout(
    network: NetworkFactory,
) -> None:
    net = network(4, "topology.kind=ring")
    peers = [net.start("0", "net.join_timeout=8")]
    net.address(0)  # peer 0 must report the missing peer before another peer gives up
    peers += [net.start(k, "net.join_timeout=8") for k in "12"]
    peers[0].wait_for_message("waiting for peer 3")
    assert [peer.wait() for peer in peers] == [4, 4, 4], [peer.stderr for peer in peers]
    assert all(
        "peer 3" in peer.last_message and "net.join_timeout" in peer.last_message for peer in peers
    )
    assert not net.out.exists(), "a run that has not started must not leave files"
    net.processes.clear()
    check_same_as_one_process(net, ["0", "1", "2", "3"])


def test_the_setting_that_differs_from_a_run_in_the_same_rendezvous_folder_is_named(
    network: NetworkFactory,
) -> None:
    net = network(2, "net.join_timeout=30")
    peers = [net.start("0"), net.start("1", "optimizer.rate=0.5")]
    peers[0].wait_for_message("optimizer.rate is 0.5 there and 0.1 here")
    peers[1].wait_for_message("optimizer.rate is 0.1 there and 0.5 here")


def test_a_different_configuration_is_rejected_and_does_not_disturb_the_network(
    network: NetworkFactory,
) -> None:
    net = network(3, "run.id=one", "topology.kind=ring")
    second = net.start("2")
    net.address(2)
    first = net.start("1")
    net.address(1)  # peer 1 connects before its twin starts
    wrong = {
        "topology.kind=path": ("topology", "topology.kind is path there and ring here"),
        "run.peers=4": ("peers", "run.peers is 4 there and 3 here"),
        "model.kind=mlp": ("model", "model.kind is mlp there and softmax here, and "),
        "run.seed=1": ("configuration", "run.seed is 1 there and 0 here"),
        "split.microbatches=5": ("configuration", "split.microbatches is 5 there and 0 here"),
    }
    for k, (override, (differs, named)) in enumerate(wrong.items()):
        intruder = net.start("0", override, out=net.folder / f"wrong-{k}")
        assert intruder.wait() == 6, intruder.stderr
        assert "rejected this peer" in intruder.last_message and differs in intruder.last_message, (
            intruder.stderr
        )
        wait_until(
            "the rejection is reported",
            lambda k=k: (first.stderr + second.stderr).count("rejected peer 0") > k,
        )
        assert named in first.stderr + second.stderr
    twin = net.start("1", out=net.folder / "twin")
    assert twin.wait() == 6, twin.stderr
    assert "the id is taken: a peer 1 is connected already" in twin.last_message
    assert "rejected peer 1" in second.stderr
    right = net.start("0")
    assert [peer.wait() for peer in (first, second, right)] == [0, 0, 0], [
        peer.stderr for peer in net.processes
    ]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_foreign_connections_do_not_disturb_the_network(network: NetworkFactory) -> None:
    net = network(3, "topology.kind=ring")
    last = net.start("2")
    silent, garbage, torn = (socket.create_connection(net.address(2)) for _ in range(3))
    with silent, garbage, torn:
        garbage.sendall(b"GET / HTTP/1.1\r\nHost: gossamer\r\n\r\n" + b"\xff" * 4096)
        torn.sendall(b"\x00")
        torn.close()
        last.wait_for_message("closed a connection from")
        net.start("0"), net.start("1")
        assert net.wait() == [0, 0, 0], [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def check_rejected(
    net: Network,
    code: int,
    *texts: str,
    verb: str = "peer",
    sets: tuple[str, ...] = (),
    ids: str = "0",
) -> None:
    extra = ("--id", ids) if verb == "peer" else ()
    done = subprocess.run(
        net.command(verb, *extra, "--out", str(net.out), sets=sets),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == code, done.stderr
    assert all(text in done.stderr for text in texts), done.stderr
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, "one line"
    assert not net.out.exists(), "no file is left"


def test_a_port_in_use_is_named(network: NetworkFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        check_rejected(network(2), 7, address, sets=(f"net.listen={address}",))


def test_an_invalid_network_configuration_is_rejected(network: NetworkFactory) -> None:
    net = network(4)
    check_rejected(net, 2, "0.0.0.0:0", "net.insecure", sets=("net.listen=0.0.0.0:0",))
    check_rejected(net, 2, "centralized", "gossamer run", sets=("algorithm.kind=centralized",))
    check_rejected(net, 2, "peer id 4", "0 to 3", ids="4")
    check_rejected(
        net,
        2,
        "peer id 6",
        "0 to 3, and 4 to 5 for the servers of 'server'",
        sets=("algorithm.kind=server", "algorithm.servers=2"),
        ids="6",
    )
    check_rejected(
        net,
        2,
        "net.peers: 4 addresses for 4 peers and, after them, 1 servers of 'fedavg'",
        sets=("algorithm.kind=fedavg", "net.rendezvous=", "net.peers=[a:1, a:2, a:3, a:4]"),
    )
    check_rejected(net, 2, "--id", "'x'", ids="x")
    check_rejected(net, 2, "--id", "names peer 0 twice", ids="0,0")
    check_rejected(net, 2, "net.peers", sets=("net.rendezvous=",))


@pytest.mark.parametrize(
    ("toml", "texts"),
    [
        ("[run]\npeer = 4\n", ["run.toml:2: run.peer: unknown", "peers"]),
        ("[run]\npeers = \n", ["run.toml:2", "not TOML"]),
        ('[topology]\nkind = "hypercube"\n[run]\npeers = 12\n', ["hypercube", "12", "16"]),
        ("[data]\nbatch = 100000\n", ["100000", "data.batch"]),
    ],
    ids=["unknown-key", "bad-toml", "impossible-topology", "batch-too-large"],
)
def test_an_invalid_configuration_is_rejected_with_a_message(
    network: NetworkFactory, toml: str, texts: list[str]
) -> None:
    net = network(4)
    net.config.write_text(toml, encoding="utf-8")
    net.sets = []
    check_rejected(net, 2, *texts, verb="run")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_truncated_data_file_is_named(network: NetworkFactory, packed: bool) -> None:
    net = network(2, "data.kind=idx", "data.train_count=24", "data.batch=4")
    names = [
        f"{what}-{rank}-ubyte{'.gz' if packed else ''}"
        for what, rank in (("images", "idx3"), ("labels", "idx1"))
    ]
    noise = random.Random(1)
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, 32, 5, 5) + noise.randbytes(32 * 25)
    labels = struct.pack(">BBBBI", 0, 0, 8, 1, 32) + bytes(k % 10 for k in range(32))
    complete = [gzip.compress(content) if packed else content for content in (images, labels)]
    (net.folder / "data").mkdir()
    net.config.write_text(
        net.config.read_text(encoding="utf-8") + '[data]\npath = "data"\n', encoding="utf-8"
    )

    def write(contents: list[bytes]) -> None:
        for name, content in zip(names, contents, strict=True):
            (net.folder / "data" / name).write_bytes(content)

    for cut in (0, 1):
        write(
            [
                content[: len(content) * 2 // 3] if k == cut else content
                for k, content in enumerate(complete)
            ]
        )
        check_rejected(net, 3, names[cut], verb="run")
        check_rejected(net, 3, names[cut])
    write(complete)
    check_same_as_one_process(net, ["0", "1"])


def test_collect_takes_another_path_of_the_data(network: NetworkFactory) -> None:
    net = network(2, "data.kind=idx", "data.train_count=24", "data.batch=4")
    data = net.folder / "data"
    data.mkdir()
    (data / "images-idx3-ubyte").write_bytes(
        struct.pack(">BBBBIII", 0, 0, 8, 3, 32, 2, 2) + bytes(range(128))
    )
    (data / "labels-idx1-ubyte").write_bytes(
        struct.pack(">BBBBI", 0, 0, 8, 1, 32) + bytes(k % 10 for k in range(32))
    )
    net.sets.append(f"data.path={data}")
    net.start("0"), net.start("1")
    assert net.wait() == [0, 0], [peer.stderr for peer in net.processes]
    data.rename(net.folder / "moved")
    assert net.collect().returncode == 3
    assert net.collect("--set", f"data.path={net.folder / 'moved'}").returncode == 0
    other = net.collect("--set", "run.seed=5", "--set", f"data.path={net.folder / 'moved'}")
    assert other.returncode == 2 and "another run" in other.stderr


def small_files() -> None:
    """Runs in the child process: limits files to 32 KiB, which has the effect of a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "full"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def check_full_log(log: Path, message: str) -> None:
    assert f"cannot write {log}" in message
    assert "remove the folder" in message and "or choose another with --out" in message
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert records[-1]["record"] != "end", "the log must not look complete"


def test_a_log_that_cannot_grow_ends_the_network(network: NetworkFactory) -> None:
    # Without sketches, the log reaches the limit after some rounds.
    net = network(3, "topology.kind=path", *FOREVER, "log.sketch=off")
    peers = [
        net.start("0"),
        net.start("1"),
        net.start("2", preexec_fn=small_files, restore_signals=False),
    ]
    assert [peer.wait() for peer in peers] == [3, 3, 3], [peer.stderr for peer in peers]
    check_full_log(net.out / "log-2.jsonl", peers[2].last_message)
    for peer in peers[:2]:
        assert "peer 2 failed: cannot write" in peer.last_message
        assert net.records(int(peer.ids))[-1]["reason"] == "failed"
    assert net.collect().returncode == 3


@pytest.mark.parametrize("verb", ["run", "peer"])
def test_a_full_disk_ends_the_run_and_is_named(
    network: NetworkFactory, full_disk: Path, verb: str
) -> None:
    net = network(2, *FOREVER, "log.sketch=off")
    if verb == "run":
        peers = [
            PeerProcess(
                "all", net.command("run", "--quiet", "--out", str(full_disk / "run")), net.folder
            )
        ]
        net.processes += peers
    else:
        peers = [net.start("0", out=full_disk / "run"), net.start("1")]
    assert [peer.wait() for peer in peers] == [3] * len(peers), [peer.stderr for peer in peers]
    check_full_log(full_disk / "run" / "log-0.jsonl", peers[0].last_message)
    assert "No space left on device" in peers[-1].last_message
    assert not (full_disk / "run" / "summary.json").exists()
