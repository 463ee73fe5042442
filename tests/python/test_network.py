"""Networks of real processes over TCP: the bits of one process, and a message for each fault."""

import os
import random

import pytest
from network_test_util import Network, NetworkFactory
from test_log_schema import check_folder

FOREVER = ("run.rounds=1000000000", "log.every=1", "net.on_loss=stop")
SMALL = {"softmax": (), "linear": ("model.kind=linear", "data.kind=quadratic")}


def check_same_as_one_process(net: Network, groups: list[str]) -> None:
    random.Random(repr(net.sets)).shuffle(groups)
    for ids in groups:
        net.start(ids)
    codes = net.wait()
    assert codes == [0] * len(groups), [peer.stderr for peer in net.processes]
    here, there = net.run_in_one_process(), net.summary()
    assert there["final_hash"] == here["final_hash"]
    assert there["final"] == here["final"]
    for key in (
        "run_id",
        "reason",
        "peers",
        "rounds",
        "parameters",
        "node_steps",
        "bytes_sent",
        "topology",
    ):
        assert there[key] == here[key], key
    assert there["virtual_seconds"] is None
    check_folder(net.out, net.peers)


@pytest.mark.parametrize(
    "sets",
    [
        ("topology.kind=ring",),
        ("topology.kind=star", "algorithm.order=awc", "algorithm.local_steps=2", *SMALL["linear"]),
        (
            "topology.kind=one_peer_exponential",
            "model.kind=mlp",
            "model.hidden=[40]",
            "net.chunk_kib=4",
        ),
        ("algorithm.kind=allreduce", "topology.kind=complete", "net.chunk_kib=4", "net.window=1"),
        ("algorithm.kind=gradient_tracking", "optimizer.kind=adamw", "optimizer.schedule=cosine"),
        (
            "algorithm.kind=d2",
            "topology.lazy=true",
            "net.chunk_kib=4",
            "model.kind=mlp",
            "model.hidden=[40]",
        ),
        (
            "algorithm.kind=extra",
            "topology.kind=star",
            "net.window=1",
            "data.crop=2",
            "data.flip=true",
        ),
        (
            "algorithm.kind=qg_momentum",
            "topology.kind=exponential",
            "optimizer.schedule=step",
            "optimizer.milestones=[2]",
        ),
        (
            "algorithm.kind=consensus",
            "algorithm.length=5000",
            "net.chunk_kib=4",
            "topology.kind=path",
        ),
        ("algorithm.kind=push_sum", "topology.kind=star"),
        ("algorithm.kind=push_pull", "topology.kind=star", "net.window=1"),
        ("algorithm.kind=dmsgd", "topology.kind=exponential", "codec.kind=bf16"),
        ("algorithm.kind=decentlam", "topology.kind=star", "optimizer.schedule=cosine"),
        (
            "algorithm.kind=relay_sgd",
            "topology.kind=star",
            "net.window=1",
            "net.chunk_kib=4",
            "model.kind=mlp",
            "model.hidden=[40]",
        ),
        (
            "algorithm.kind=diloco",
            "topology.kind=complete",
            "algorithm.local_steps=3",
            "optimizer.momentum=0.9",
        ),
        (
            "algorithm.kind=diloco",
            "topology.kind=complete",
            "algorithm.local_steps=3",
            "optimizer.kind=muon",
            "model.kind=mlp",
            "model.hidden=[20, 10]",
        ),
        (
            "algorithm.kind=sparseloco",
            "topology.kind=complete",
            "algorithm.local_steps=3",
            "codec.kind=topk",
            "net.window=1",
            "net.chunk_kib=4",
            "model.kind=mlp",
            "model.hidden=[200]",
        ),
        (
            "algorithm.kind=noloco",
            "topology.kind=random_matching",
            "algorithm.local_steps=3",
            "algorithm.pull=0.9",
        ),
        ("topology.kind=epidemic", "topology.local=true", "topology.degree=2"),
        (
            "algorithm.kind=gradient_tracking",
            "topology.kind=equidyn",
            "topology.directed=true",
            "net.window=1",
        ),
        ("algorithm.kind=push_sum", "topology.kind=epidemic", "topology.local=true"),
        (
            "algorithm.kind=gradient_tracking",
            "codec.kind=int8",
            "model.kind=mlp",
            "model.hidden=[200]",
            "net.chunk_kib=4",
        ),
        (
            "algorithm.kind=choco",
            "codec.kind=topk",
            "model.kind=mlp",
            "model.hidden=[200]",
            "net.chunk_kib=4",
            "net.window=1",
        ),
        ("algorithm.kind=teleportation", "algorithm.active=2", "algorithm.graph=ring"),
        (
            "algorithm.kind=power_gossip",
            "algorithm.products=2",
            "model.kind=mlp",
            "model.hidden=[200]",
            "net.chunk_kib=4",
            "net.window=1",
        ),
        ("algorithm.kind=choco", "codec.kind=randk", "topology.kind=star", "codec.fraction=0.02"),
        ("algorithm.kind=choco", "codec.kind=sign", "topology.kind=complete", *SMALL["linear"]),
        *(
            (
                f"mixing.rule={rule}",
                "topology.kind=complete",
                "model.kind=mlp",
                "model.hidden=[200]",
                "net.chunk_kib=4",
                "net.window=1",
            )
            for rule in ("clipped", "cs_plus", "trimmed_mean", "geometric_median")
        ),
        ("mixing.rule=median", "algorithm.order=awc", "algorithm.local_steps=2"),
        ("mixing.rule=krum", "mixing.hostile=0", "algorithm.kind=qg_momentum"),
        ("mixing.rule=ubar", "topology.kind=complete", "mixing.own_weight=0.4"),
        ("mixing.rule=nearest_neighbour_mixing", "topology.kind=complete", "net.chunk_kib=4"),
        *(
            (f"attack.kind={attack}", "attack.peers=[1]", "net.chunk_kib=4")
            for attack in ("sign_flip", "noise", "different", "stale", "label_flip", "backdoor")
        ),
        ("algorithm.kind=allreduce", "algorithm.form=root", "net.chunk_kib=4", "net.window=1"),
        (
            "algorithm.kind=allreduce",
            "algorithm.form=all_to_all",
            "net.chunk_kib=4",
            "net.window=1",
        ),
    ],
    ids=lambda sets: "-".join(s.partition("=")[2] for s in sets),
)
def test_four_processes_have_the_bits_of_one_process(
    network: NetworkFactory, sets: tuple[str, ...]
) -> None:
    check_same_as_one_process(network(4, *sets), ["0", "1", "2", "3"])


@pytest.mark.parametrize(
    ("groups", "sets"),
    [
        (
            ["0", "1", "2", "3", "4"],
            ("algorithm.kind=server", "net.chunk_kib=4", "net.window=1", "optimizer.momentum=0.9"),
        ),
        (["0,4", "1-3", "5"], ("algorithm.kind=server", "algorithm.servers=2", "model.kind=mlp")),
        (
            ["0", "1", "2", "3", "4"],
            (
                "algorithm.kind=fedavg",
                "algorithm.fraction=0.5",
                "algorithm.dropout=0.3",
                "algorithm.prox=0.1",
                "optimizer.schedule=cosine",
                "run.rounds=12",
            ),
        ),
        (
            ["0,1", "2,3", "4"],
            ("algorithm.kind=fedavg", "algorithm.local_steps=2", "optimizer.momentum=0.9"),
        ),
    ],
    ids=["server", "two-servers", "fedavg", "fedavg-in-groups"],
)
def test_servers_have_the_bits_of_one_process(
    network: NetworkFactory, groups: list[str], sets: tuple[str, ...]
) -> None:
    check_same_as_one_process(network(4, *sets), groups)


def test_bytes_at_the_socket_match_the_prediction(network: NetworkFactory) -> None:
    net = network(4, "algorithm.kind=server")
    for ids in "01234":
        net.start(ids)
    assert net.wait() == [0] * 5, [peer.stderr for peer in net.processes]
    row = 650 * 4 + 72  # softmax on 8 × 8 digits, one frame
    assert net.summary()["bytes_sent"] == 5 * 2 * 4 * row
    assert [record["bytes_sent"] for record in net.records(4) if record["record"] == "server"] == [
        t * 4 * row for t in (0, 2, 4, 5)
    ]


def test_an_asynchronous_server_logs_every_push_and_trains(
    network: NetworkFactory,
) -> None:
    net = network(
        3, "algorithm.kind=async_server", "run.rounds=40", "log.every=10", "optimizer.rate=0.2"
    )
    for ids in ("0", "1", "2", "3"):
        net.start(ids)
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    server_records = [record for record in net.records(3) if record["record"] == "server"]
    assert sum(record["staleness"]["pushes"] for record in server_records[1:]) == 3 * 40
    assert server_records[-1]["test_loss"] < 0.7 * server_records[0]["test_loss"]
    assert net.summary()["final"]["test_loss"]["max"] < 0.7 * server_records[0]["test_loss"]


@pytest.mark.parametrize(
    "settings",
    [
        ("ad_psgd", "ring", "sync"),
        ("ad_psgd", "complete", "sync"),
        ("async_push_sum", "exponential", "async"),
        ("async_push_sum", "ring", "stale"),
    ],
    ids=" ".join,
)
def test_asynchronous_peers_all_finish(
    network: NetworkFactory, settings: tuple[str, str, str]
) -> None:
    kind, topology, policy = settings
    net = network(
        5,
        f"algorithm.kind={kind}",
        f"topology.kind={topology}",
        f"algorithm.policy={policy}",
        "run.rounds=300",
        "log.every=100",
        "optimizer.rate=0.1",
    )
    for ids in ("0", "1,2", "3", "4"):
        net.start(ids)
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    first = next(record for record in net.records(0) if record["record"] == "round")
    loss = net.summary()["final"]["test_loss"]["mean"]
    assert loss < 0.8 * first["test_loss"]


def test_collect_names_a_server_whose_files_are_missing(network: NetworkFactory) -> None:
    net = network(2, "algorithm.kind=server")
    net.start("0,1"), net.start("2", out=net.folder / "elsewhere")
    assert net.wait() == [0, 0], [peer.stderr for peer in net.processes]
    done = net.collect()
    assert done.returncode == 3 and "the files of server 2 are missing" in done.stderr


@pytest.mark.parametrize(
    "groups",
    [[f"{k}-{k + 3}" for k in range(0, 16, 4)], [str(k) for k in range(16)]],
    ids=["4x4", "16x1"],
)
def test_sixteen_peers_have_the_bits_of_one_process(
    network: NetworkFactory, groups: list[str]
) -> None:
    check_same_as_one_process(
        network(16, "topology.kind=torus", "data.partition=dirichlet"), groups
    )


def test_processes_host_any_peers_and_folders_of_their_own_are_collected(
    network: NetworkFactory,
) -> None:
    net = network(5, "topology.kind=ring")
    for ids in ("1,4", "0,2", "3"):
        net.start(ids, out=net.out / f"machine-{ids[0]}")
    assert net.wait() == [0, 0, 0], [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
    (net.out / "machine-3" / "log-3.jsonl").rename(net.folder / "away")
    done = net.collect()
    assert done.returncode == 3 and "1 of 5 peers are missing: 3" in done.stderr


@pytest.mark.parametrize(
    "variable", ["GOSSAMER_ID", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"]
)
def test_ids_come_from_launchers(network: NetworkFactory, variable: str) -> None:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("GOSSAMER_ID", "RANK")
    }
    net = network(2, "run.rounds=1")
    for rank in (0, 1):
        net.start_by_rank(variable, rank, environment)
    assert net.wait() == [0, 0], [peer.stderr for peer in net.processes]
    assert (net.out / "log-1.jsonl").is_file()


def test_virtual_times_do_not_slow_a_network_down(network: NetworkFactory) -> None:
    hour = "3600000"
    net = network(2, f"sim.compute_ms={hour}", f"sim.latency_ms={hour}", f"sim.sample_ms={hour}")
    check_same_as_one_process(net, ["0", "1"])
