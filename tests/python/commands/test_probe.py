"""`gossamer probe`: the tables that a network writes of itself, and what it does without a peer."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from network_test_util import DEADLINE, Network, NetworkFactory, PeerProcess
from test_keys import Keys
from test_own_data import write_samples

TABLES = ("latency.txt", "jitter.txt", "bandwidth.txt", "nodes.txt")
Table = list[list[float]]


def start(net: Network, ids: str, *sets: str, folder: str = "probe") -> PeerProcess:
    command = net.command("probe", "--id", ids, "--out", str(net.folder / folder), sets=sets)
    process = PeerProcess(ids, command, net.folder)
    net.processes.append(process)
    return process


def table(net: Network, name: str) -> Table:
    lines = (net.folder / "probe" / name).read_text(encoding="utf-8").splitlines()
    return [[float(word) for word in line.split()] for line in lines if not line.startswith("#")]


def tables(net: Network) -> tuple[Table, ...]:
    return tuple(table(net, name) for name in TABLES)


def predict(net: Network) -> dict[str, Any]:
    command = net.command(
        "run", "--quiet", "--json", "--out", str(net.folder / "one"),
        sets=(f"sim.probe={net.folder / 'probe'}",),
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_three_processes_write_tables_that_a_run_reads(network: NetworkFactory) -> None:
    net = network(3)
    for peer in range(3):
        start(net, str(peer))
    assert net.wait() == [0, 0, 0], [each.stderr for each in net.processes]
    latency, jitter, bandwidth, nodes = tables(net)
    for i in range(3):
        assert len(nodes[i]) == 4 and all(value > 0 for value in nodes[i])
        assert latency[i][i] == jitter[i][i] == bandwidth[i][i] == 0
        for j in range(3):
            assert latency[i][j] == latency[j][i] and jitter[i][j] == jitter[j][i]
            if i != j:
                assert 0 <= latency[i][j] < 1000 and bandwidth[i][j] > 1
    assert sorted(path.name for path in (net.folder / "probe").iterdir()) == sorted(TABLES)
    # The processes met in a folder of their own, and left nothing there.
    assert not [path for path in (net.folder / "meet").rglob("*") if path.is_file()]
    assert predict(net)["virtual_seconds"] > 0


def test_the_peers_of_a_process_and_a_server_have_their_lines(network: NetworkFactory) -> None:
    net = network(3, "algorithm.kind=server")
    for ids in ("0", "1-2", "3"):
        start(net, ids)
    assert net.wait() == [0, 0, 0], [each.stderr for each in net.processes]
    latency, _, bandwidth, nodes = tables(net)
    assert len(latency) == len(nodes) == 4
    assert latency[1][2] == bandwidth[1][2] == 0
    assert bandwidth[0][1] == bandwidth[0][2] > 0
    assert nodes[1] == nodes[2]
    assert nodes[3][0] == 0 and nodes[3][2] > 0  # a server trains nothing
    assert predict(net)["virtual_seconds"] > 0


def test_a_probe_is_encrypted_where_the_network_is(network: NetworkFactory) -> None:
    net = network(2)
    keys = Keys(net)
    for peer in range(2):
        start(net, str(peer), keys.file(peer))
    assert net.wait() == [0, 0], [each.stderr for each in net.processes]
    assert table(net, "bandwidth.txt")[0][1] > 1


def test_peers_with_their_own_data_measure_their_steps(
    network: NetworkFactory, tmp_path: Path
) -> None:
    for peer in range(2):
        write_samples(tmp_path / f"site-{peer}.csv", 40, peer)
    write_samples(tmp_path / "test.csv", 30, 9)
    net = network(
        2,
        "data.kind=csv",
        "data.partition=own",
        'data.class_names=["low","high"]',
        f"data.path={tmp_path}/site-{{peer}}.csv",
        f"data.test_path={tmp_path}/test.csv",
    )
    for peer in range(2):
        start(net, str(peer))
    assert net.wait() == [0, 0], [each.stderr for each in net.processes]
    assert all(node[0] > 0 for node in table(net, "nodes.txt"))


def test_a_probe_does_not_disturb_the_network_that_trains(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=1000000000")
    training = [net.start(str(peer)) for peer in range(2)]
    net.wait_until_training(0, 1)
    probing = [start(net, str(peer)) for peer in range(2)]
    assert [each.wait() for each in probing] == [0, 0], [each.stderr for each in probing]
    assert all(each.process.poll() is None for each in training)
    for peer in range(2):
        lines = (net.out / f"log-{peer}.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line)["record"] for line in lines[:-1]]
        assert set(records) == {"header", "round"}
    assert not any("probe" in each.stderr for each in training)


def test_a_missing_peer_is_named(network: NetworkFactory) -> None:
    net = network(3, "net.join_timeout=1")
    probing = [start(net, str(peer)) for peer in range(2)]
    for each in probing:
        assert each.wait() == 4
        assert "peer 2" in each.stderr
    assert not (net.folder / "probe").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_peer_that_ends_or_hangs_is_named(network: NetworkFactory, how: signal.Signals) -> None:
    # The local steps of four seconds leave time to stop a process among them.
    slow = ("model.kind=mlp", "model.hidden=[512]", "data.batch=256")
    net = network(3, *slow, "net.failure_timeout=1" if how == signal.SIGSTOP else "net.window=2")
    probing = [start(net, str(peer)) for peer in range(3)]
    for each in probing:
        each.wait_for_message("measure their local steps")
    probing[2].process.send_signal(how)
    for each in probing[:2]:
        assert each.wait() == 5, each.stderr
        assert "peer 2" in each.last_message or "peer 2" in each.stderr
    if how == signal.SIGTERM:
        assert probing[2].wait() == 130
    assert not (net.folder / "probe").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--id", "0-2"), "this process hosts all peers"),
        ((), "--id"),
        (("--id", "7"), "7"),
        (("--id", "0", "--set", "topology.kind=ring", "--set", "net.rendezvous="), "net."),
        (
            (
                "--id",
                "0",
                "--set",
                "run.open=true",
                "--set",
                'run.participants=["0,1"]',
                "--set",
                "topology.kind=ring",
            ),
            "run.open: a probe waits for all of its peers",
        ),
    ],
)
def test_what_cannot_be_probed_is_refused(
    network: NetworkFactory, options: tuple[str, ...], message: str
) -> None:
    net = network(3)
    done = subprocess.run(
        net.command("probe", *options),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        cwd=net.folder,
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_tables_that_cannot_be_written_are_an_error_of_their_process(
    network: NetworkFactory,
) -> None:
    net = network(2)
    (net.folder / "probe").write_text("a file\n", encoding="utf-8")
    first, second = (start(net, str(peer)) for peer in range(2))
    assert first.wait() == 3 and "probe" in first.stderr
    assert second.wait() == 0
