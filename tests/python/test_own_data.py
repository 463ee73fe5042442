"""Own data of each peer: one network of processes that share no sample."""

import json
import random
import re
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from network_test_util import Network, NetworkFactory, PeerProcess, wait_until
from test_log_schema import check_folder
from test_network import check_same_as_one_process

PEERS = 4


def write_samples(path: Path, samples: int, seed: int, header: str = "a,b,c,kind") -> None:
    """Samples of two classes; the scales of the features differ from file to file."""
    draw = random.Random(seed)
    lines = [header]
    for _ in range(samples):
        a, b = draw.gauss(10 * seed, 1 + seed), draw.gauss(1000, 1 + seed)
        lines.append(f"{a!r},{b!r},7,{'high' if a / (1 + seed) > b - 1000 else 'low'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def own(network: NetworkFactory, tmp_path: Path) -> Callable[..., Network]:
    """A network whose peers have 40, 50, 60 and 70 samples of their own, and common tests."""
    for peer in range(PEERS):
        write_samples(tmp_path / f"site-{peer}.csv", 40 + 10 * peer, peer)
    write_samples(tmp_path / "test.csv", 30, 9)
    return lambda *sets: network(
        PEERS,
        "data.kind=csv",
        "data.partition=own",
        'data.class_names=["low","high"]',
        f"data.path={tmp_path}/site-{{peer}}.csv",
        f"data.test_path={tmp_path}/test.csv",
        *sets,
    )


def test_a_newcomer_brings_its_own_data(own: Callable[..., Network]) -> None:
    net = own(
        "run.open=true",
        'run.participants=["0-2"]',
        "run.rounds=1000000000",
        "log.every=1000",
        "data.standardise=false",
        "optimizer.rate=1e-7",
    )
    for peer in range(3):
        net.start(str(peer))
    net.wait_until_training(0, 1, 2)
    net.start("3").wait_for_message("joins in round ")
    net.wait_until_training(3)
    for process in net.processes:
        process.process.send_signal(signal.SIGINT)
    assert [process.wait() for process in net.processes] == [130] * 4
    assert not list(net.out.glob("shards-*.json"))
    summary = net.summary()
    assert (summary["lost_peers"], "absent_peers" in summary) == ([], False)
    assert summary["final"]["test_accuracy"]["mean"] > 0


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ((), "run.open: own data are scaled by the values of all peers"),
        (
            ("data.standardise=false", "data.weights=samples"),
            "run.open: own data are weighed by the sizes of all shards",
        ),
    ],
)
def test_own_data_that_no_newcomer_can_have(
    own: Callable[..., Network], sets: tuple[str, ...], message: str
) -> None:
    process = own("run.open=true", *sets).start("0")
    assert process.wait() == 2
    assert process.last_message.startswith(message), process.stderr


def check_no_sample_left(net: Network) -> None:
    """The network's files have the sizes and moments of all shards, the same in each process."""
    shards = [json.loads(path.read_text()) for path in sorted(net.out.glob("shards-*.json"))]
    assert all(each == shards[0] for each in shards)
    assert [each["samples"] for each in shards[0]["peers"]] == [40, 50, 60, 70]


@pytest.mark.parametrize(
    "sets",
    [
        (),
        ("data.batch=0", "algorithm.kind=gradient_tracking", "topology.kind=exponential"),
        ("algorithm.kind=fedavg", "algorithm.local_epochs=2"),
        ("model.kind=mlp", "model.hidden=[8]", "data.standardise=false", "optimizer.rate=1e-5"),
    ],
    ids=lambda sets: " ".join(sets),
)
def test_processes_with_their_own_files_have_the_bits_of_one_process(
    own: Callable[..., Network], sets: tuple[str, ...]
) -> None:
    net = own(*sets)
    server = ["4"] if "algorithm.kind=fedavg" in sets else []
    check_same_as_one_process(net, ["0", "1-2", "3", *server])
    check_no_sample_left(net)


def write_images(folder: Path, samples: int, seed: int) -> None:
    """IDX files of images of 3 by 4 pixels and two classes."""
    draw = random.Random(seed)
    folder.mkdir()
    for name, count in (("train", samples), ("t10k", 5)):
        pixels, labels = draw.randbytes(12 * count), bytes(draw.choices((0, 1), k=count))
        header = struct.pack(">4i", 0x803, count, 3, 4)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + pixels)
        header = struct.pack(">2i", 0x801, count)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(header + labels)


def test_processes_with_their_own_images_have_the_bits_of_one_process(
    network: NetworkFactory, tmp_path: Path
) -> None:
    for peer in range(3):
        write_images(tmp_path / f"site-{peer}", 40 + 10 * peer, peer)
    net = network(3, "data.kind=idx", "data.partition=own", f"data.path={tmp_path}/site-{{peer}}")
    for peer in range(3):
        net.start(str(peer))
    assert net.wait() == [0] * 3, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_a_cut_model_is_known_where_only_logs_are(own: Callable[..., Network]) -> None:
    """Every peer tests on its own samples, so that a summary is made from the logs alone."""
    net = own("model.kind=mlp", "model.hidden=[8]", "split.layers=2", "data.test_path=")
    for peer in range(PEERS):
        net.start(str(peer))
    assert net.wait() == [0] * PEERS, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_a_server_learns_the_scales_from_a_process_of_all_peers(
    own: Callable[..., Network],
) -> None:
    check_same_as_one_process(own("algorithm.kind=fedavg", "run.rounds=3"), ["0-3", "4"])


def test_a_process_needs_no_file_of_another_peer(
    own: Callable[..., Network], tmp_path: Path
) -> None:
    net = own()
    here = net.run_in_one_process()
    for peer in range(PEERS):
        (tmp_path / f"machine-{peer}").mkdir()
        (tmp_path / f"site-{peer}.csv").rename(tmp_path / f"machine-{peer}" / "mine.csv")
        net.start(str(peer), f"data.path={tmp_path}/machine-{peer}/mine.csv")
    assert net.wait() == [0] * PEERS, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == here["final_hash"]
    check_folder(net.out, PEERS)


def test_columns_and_classes_that_differ_are_refused_by_name(
    own: Callable[..., Network], tmp_path: Path
) -> None:
    net = own("net.join_timeout=20")
    write_samples(tmp_path / "site-3.csv", 50, 3, header="b,a,c,kind")
    (tmp_path / "test-3.csv").write_text("b,a,c,kind\n1,2,7,low\n", encoding="utf-8")
    for peer in range(PEERS):
        tests = (f"data.test_path={tmp_path}/test-3.csv",) if peer == 3 else ()
        net.start(str(peer), *tests)
    codes = net.wait()
    assert all(codes), codes
    said = " ".join(peer.stderr for peer in net.processes)
    assert "columns a, b, c, kind" in said and "columns b, a, c, kind" in said


def wait_until_reached(peers: list[PeerProcess], text: str) -> None:
    """Waits until the newest message of each peer on the reachable ones is `text`.

    On a busy machine a peer may also lose others for a while, for a short failure timeout.
    """
    for peer in peers:
        wait_until(
            lambda p=peer: f"peer {p.ids} says last '{text}'; it printed: {p.stderr}",
            lambda p=peer: (
                re.findall(r"peers? .* unreachable; .*|all \d+ peers are reachable", p.stderr)[-1:]
                == [text]
            ),
        )


@pytest.mark.parametrize("sets", [(), ("net.failure_timeout=0.8",)])
def test_a_restarted_process_reads_what_was_agreed(
    own: Callable[..., Network], tmp_path: Path, sets: tuple[str, ...]
) -> None:
    net = own("run.rounds=1000000000", "log.every=100", "topology.kind=complete", *sets)
    peers = [net.start(str(peer)) for peer in range(PEERS)]
    net.wait_until_training(*range(PEERS))
    peers[2].kill()
    survivors = [peers[0], peers[1], peers[3]]
    wait_until_reached(survivors, "peer 2 is unreachable; 3 of 4 peers continue")
    elsewhere = net.start("2", out=tmp_path / "elsewhere")
    assert elsewhere.wait() == 3
    assert "copy a shards-*.json of another run folder there" in elsewhere.last_message
    changed = net.start("2", f"data.path={tmp_path}/site-1.csv", resume="auto")
    assert changed.wait() == 3
    assert "the samples of peer 2 are not those with which the run began" in changed.last_message
    again = net.start("2", resume="auto")
    again.wait_for_message("peer 2 joins in round")
    wait_until_reached(survivors, "all 4 peers are reachable")
    for peer in (*peers, again):
        assert "broke the protocol" not in peer.stderr


@pytest.mark.parametrize("sets", [(), ("data.validation=0.2", "data.evaluate=validation")])
def test_without_common_tests_the_summary_has_what_the_peers_logged(
    own: Callable[..., Network], tmp_path: Path, sets: tuple[str, ...]
) -> None:
    net = own(*sets)
    if not sets:  # each peer has test samples of its own
        for peer in range(PEERS):
            write_samples(tmp_path / f"test-{peer}.csv", 20, peer)
        net.sets.append(f"data.test_path={tmp_path}/test-{{peer}}.csv")
    for peer in range(PEERS):
        net.start(str(peer))
    assert net.wait() == [0] * PEERS, [peer.stderr for peer in net.processes]
    summary = net.summary()
    assert summary["final_hash"] == net.run_in_one_process()["final_hash"]
    logged = [net.records(peer)[-2]["test_loss"] for peer in range(PEERS)]
    assert summary["final"]["test_loss"]["mean"] == pytest.approx(sum(logged) / PEERS)
    assert summary["final"]["averaged_loss"] is None


def test_a_resumed_run_refuses_samples_that_changed(
    own: Callable[..., Network], tmp_path: Path
) -> None:
    net = own("checkpoint.every=2")
    first = net.run_in_one_process()
    command = net.command("run", "--resume", "auto", "--json", "--out", str(tmp_path / "one"))
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["final_hash"] == first["final_hash"]
    write_samples(tmp_path / "site-1.csv", 51, 1)
    changed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert changed.returncode == 3
    assert "the samples of peer 1 are not those" in changed.stderr
    assert "40 samples then" not in changed.stderr and "50 samples then, 51 now" in changed.stderr
