"""Workers of cut models in processes of their own: the bits of whole models, faults, refusals."""

import json
import subprocess
from pathlib import Path

import pytest
from network_test_util import Keys, Network, NetworkFactory, wait_until

ROOT = Path(__file__).resolve().parents[3]
RESIDUAL = ROOT / "experiments" / "models" / "residual.toml"
TRANSFORMER = ROOT / "experiments" / "models" / "transformer.toml"
MLP = ("model.kind=mlp", "model.hidden=[32,32,32]", "data.batch=16")


SLICED = "split.parameters=2"
EAGER = "split.schedule=eager_1f1b"


def start(net: Network, replicas: int, parts: int, *sets: str) -> None:
    for replica in range(replicas):
        for part in range(parts):
            net.start(f"{replica}.{part}", *sets)


def part_log(net: Network, replica: int, part: int, parts: int) -> Path:
    return net.out / f"part{part}of{parts}" / f"log-{replica}.jsonl"


@pytest.mark.parametrize(
    ("replicas", "parts", "sets"),
    [
        (2, 2, (*MLP, "optimizer.momentum=0.9", "algorithm.local_steps=3")),
        (2, 3, (*MLP, EAGER, "algorithm.kind=gradient_tracking", "optimizer.kind=adamw")),
        (2, 2, (*MLP, "algorithm.order=awc", "codec.kind=bf16", "run.init=different")),
        (4, 2, (*MLP, "algorithm.kind=allreduce", "data.partition=dirichlet")),
        (3, 1, (*MLP, SLICED, "algorithm.kind=allreduce")),
        (2, 3, ("model.kind=graph", f"model.file={RESIDUAL}", "data.batch=8")),
        (2, 2, ("model.kind=graph", f"model.file={TRANSFORMER}", "data.batch=8")),
        (2, 1, (*MLP, SLICED, "optimizer.momentum=0.9", "codec.kind=bf16")),
        (2, 2, ("model.kind=graph", f"model.file={TRANSFORMER}", "data.batch=8", SLICED)),
    ],
    ids=lambda value: (
        str(value)
        if isinstance(value, int)
        else " ".join(each.rpartition("/")[2] for each in value)
    ),
)
def test_workers_apart_have_the_bits_of_whole_models(
    network: NetworkFactory, replicas: int, parts: int, sets: tuple[str, ...]
) -> None:
    net = network(replicas, *sets, "topology.kind=complete", "run.rounds=4", "split.microbatches=3")
    whole = net.run_in_one_process()
    workers = parts * (2 if SLICED in sets else 1)
    start(net, replicas, workers, f"split.layers={parts}")
    assert net.wait() == [0] * replicas * workers, [peer.stderr for peer in net.processes]
    summary = net.summary()
    assert summary["final_hash"] == whole["final_hash"]
    assert summary["final"] == whole["final"]
    assert summary["parameters"] == whole["parameters"]
    # The files of whole models, and their mean, are those of the run in one process.
    means = [net.folder / "cut.safetensors", net.folder / "whole.safetensors"]
    for mean, folder in zip(means, (net.out, net.folder / "one"), strict=True):
        files = sorted(map(str, folder.glob("final-*.safetensors")))
        average = [str(net.program), "average", *files, "--output", str(mean)]
        done = subprocess.run(average, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    tensors = [mean.read_bytes().partition(b"}}")[2] for mean in means]
    assert tensors[0] == tensors[1]
    assert tensors[0]


def test_each_worker_logs_the_loss_and_accuracy_of_its_replica(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2")
    start(net, 2, 2)
    assert net.wait() == [0] * 4
    for replica in range(2):
        first, second = (
            [
                {key: record[key] for key in ("round", "train_loss", "test_loss", "test_accuracy")}
                for record in map(
                    json.loads, part_log(net, replica, part, 2).read_text().splitlines()
                )
                if record["record"] == "round"
            ]
            for part in range(2)
        )
        assert first == second
        assert [record["round"] for record in first] == [0, 2, 4, 5]


def test_a_worker_that_dies_takes_its_replica_out(network: NetworkFactory) -> None:
    net = network(4, *MLP, "split.layers=2", "run.rounds=100000", "log.every=1")
    start(net, 4, 2)
    for part in range(2):
        log = part_log(net, 2, part, 2)
        wait_until("replica 2 trains", lambda log=log: log.is_file() and log.stat().st_size > 20000)
    killed = next(peer for peer in net.processes if peer.ids == "2.1")
    mate = next(peer for peer in net.processes if peer.ids == "2.0")
    killed.kill()
    assert mate.wait() == 5, mate.stderr
    assert mate.last_message.startswith("worker 2.0: replica 2 is no longer whole: ")
    others = [peer for peer in net.processes if peer.ids[0] != "2"]
    for peer in others:
        peer.wait_for_message("3 of 4 peers continue")
    sizes = [part_log(net, 0, part, 2).stat().st_size for part in range(2)]
    wait_until(
        "the others go on",
        lambda: all(
            part_log(net, 0, part, 2).stat().st_size > sizes[part] + 5000 for part in range(2)
        ),
    )
    assert [peer.process.poll() for peer in others] == [None] * 6
    # One that is started again finds replicas that train.
    again = net.start("2.1", "net.join_timeout=1")
    assert again.wait() != 0
    assert "replica 2 is not whole" in again.stderr


def test_survivors_are_collected_without_the_replica_that_lost_a_worker(
    network: NetworkFactory,
) -> None:
    net = network(3, *MLP, "topology.kind=complete", "split.layers=2", "run.rounds=1500")
    start(net, 3, 2)
    log = part_log(net, 1, 1, 2)
    wait_until("replica 1 trains", lambda: log.is_file() and log.stat().st_size > 10000)
    next(peer for peer in net.processes if peer.ids == "1.1").kill()
    codes = {peer.ids: peer.wait() for peer in net.processes}
    assert codes == {"0.0": 0, "0.1": 0, "1.0": 5, "1.1": -9, "2.0": 0, "2.1": 0}
    refused = net.collect()
    assert refused.returncode != 0
    assert "no end record" in refused.stderr
    survivors = net.collect("--survivors")
    assert survivors.returncode == 0, survivors.stderr
    summary = json.loads(survivors.stdout)
    assert summary["lost_peers"] == [1]
    assert summary["rounds"] == 1500


@pytest.mark.parametrize(
    ("replicas", "workers", "rounds", "sets"),
    [
        (3, 2, 1000, ("split.layers=2", "optimizer.momentum=0.9")),
        (2, 4, 400, ("split.layers=2", SLICED, "algorithm.kind=gradient_tracking")),
    ],
    ids=["layers", "both"],
)
def test_a_replica_whose_workers_are_started_again_joins(
    network: NetworkFactory, replicas: int, workers: int, rounds: int, sets: tuple[str, ...]
) -> None:
    steps = ("log.every=1", "checkpoint.every=50", f"run.rounds={rounds}")
    net = network(replicas, *MLP, *sets, *steps, "topology.kind=complete")
    start(net, replicas, workers)
    log = part_log(net, 1, 1, workers)
    wait_until("replica 1 trains", lambda: log.is_file() and log.stat().st_size > 20000)
    mates = [peer for peer in net.processes if peer.ids[0] == "1"]
    mates[1].kill()
    assert [peer.wait() for peer in mates if peer is not mates[1]] == [5] * (workers - 1)
    net.processes = [peer for peer in net.processes if peer.ids[0] != "1"]
    for part in range(workers):
        net.start(f"1.{part}", resume="auto")
    assert net.wait() == [0] * replicas * workers, [peer.stderr for peer in net.processes]
    logs = [
        [json.loads(line) for line in part_log(net, 1, part, workers).read_text().splitlines()]
        for part in range(workers)
    ]
    joined = [
        max(record["round"] for record in log if record.get("event") == "joined") for log in logs
    ]
    assert min(joined) > 0
    # All of its workers train again, from the same round on, and evaluate the same model.
    after = [
        {
            record["round"]: (record["train_loss"], record["test_loss"])
            for record in log
            if record["record"] == "round" and record["round"] > max(joined)
        }
        for log in logs
    ]
    assert all(records == after[0] for records in after)
    losses = [loss for loss, _ in after[0].values()]
    again = next(k for k, loss in enumerate(losses) if loss is not None)
    assert None not in losses[again:]
    assert again < 200
    collected = net.collect()
    assert collected.returncode == 0, collected.stderr
    assert json.loads(collected.stdout)["rounds"] == rounds


KEPT = ("run.rounds=600", "log.every=100", "checkpoint.every=20", "net.on_loss=stop")


def kept_rounds(net: Network, replica: int, part: int, parts: int) -> list[int]:
    return net.kept_rounds(replica, f"part{part}of{parts}")


def kill_after_checkpoints(net: Network, workers: int, resume: str = "none") -> None:
    """Kills all workers of two replicas at once, when each has written two more checkpoints."""
    places = [(replica, part) for replica in range(2) for part in range(workers)]
    before = {place: max(kept_rounds(net, *place, workers), default=0) for place in places}
    for replica, part in places:
        net.start(f"{replica}.{part}", resume=resume)
    for place in places:
        wait_until(
            f"worker {place} writes checkpoints",
            lambda place=place: (
                max(kept_rounds(net, *place, workers), default=0) >= before[place] + 40
            ),
        )
    assert net.kill_at_once() == [-9] * 2 * workers
    net.processes.clear()


@pytest.mark.parametrize(
    ("workers", "sets"),
    [
        (2, ("split.layers=2", "optimizer.momentum=0.9")),
        (2, (SLICED, "algorithm.kind=gradient_tracking", "optimizer.kind=adam")),
    ],
    ids=["layers", "parameters"],
)
def test_killed_workers_resume_to_the_same_end(
    network: NetworkFactory, workers: int, sets: tuple[str, ...]
) -> None:
    net = network(2, *MLP, *KEPT, *sets, "topology.kind=complete")
    kill_after_checkpoints(net, workers)
    kill_after_checkpoints(net, workers, resume="auto")
    # One worker has lost its newest checkpoint: all resume from one that all have.
    newest = max(kept_rounds(net, 1, 0, workers))
    checkpoints = net.out / f"part0of{workers}" / "checkpoints"
    for path in checkpoints.glob(f"round-{newest:08}-1.*"):
        path.unlink()
    for replica in range(2):
        for part in range(workers):
            net.start(f"{replica}.{part}", resume="auto")
    assert net.wait() == [0] * 2 * workers, [peer.stderr for peer in net.processes]
    rounds = {
        int(line.rpartition(" round ")[2])
        for peer in net.processes
        for line in peer.stderr.splitlines()
        if "resuming from the checkpoint" in line
    }
    assert len(rounds) == 1, [peer.stderr for peer in net.processes]
    assert rounds.pop() < newest
    whole, summary = net.run_in_one_process(), net.summary()
    assert summary["final_hash"] == whole["final_hash"]
    assert summary["final"] == whole["final"]


def test_workers_without_a_common_checkpoint_say_so(network: NetworkFactory) -> None:
    net = network(2, *MLP, *KEPT, "topology.kind=complete", "split.layers=2")
    kill_after_checkpoints(net, 2)
    kill_after_checkpoints(net, 2, resume="auto")  # the first checkpoints are deleted
    for path in (net.out / "part1of2" / "checkpoints").glob("round-*-0.*"):
        path.unlink()
    for replica in range(2):
        for part in range(2):
            net.start(f"{replica}.{part}", "net.join_timeout=5", resume="auto")
    assert 0 not in net.wait()
    for worker in net.processes[:2]:  # its own sentence, or that of the one that ended first
        assert "no round from which all workers of replica 0 can start" in worker.stderr


def test_logs_that_exchanged_their_parts_are_refused(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "run.rounds=2")
    start(net, 2, 2)
    assert net.wait() == [0] * 4
    for replica in range(2):
        for part in range(2):
            log = part_log(net, replica, part, 2)
            header, _, rest = log.read_text().partition("\n")
            log.write_text(json.dumps(json.loads(header) | {"part": 1 - part}) + "\n" + rest)
    refused = net.collect()
    assert refused.returncode != 0
    assert "the model is cut in another way" in refused.stderr


def test_a_part_without_files_is_named(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "run.rounds=2")
    start(net, 2, 2)
    assert net.wait() == [0] * 4
    for file in (net.out / "part1of2").iterdir():
        file.unlink()
    refused = net.collect()
    assert refused.returncode != 0
    assert "the files of the workers with part 1 of 2 are missing" in refused.stderr


def test_a_replica_with_a_worker_missing_does_not_start(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "net.join_timeout=2")
    for worker in ("0.0", "0.1", "1.0"):
        net.start(worker)
    assert all(code == 4 for code in net.wait())
    alone = net.processes[2]
    assert alone.last_message.startswith(
        "worker 1.0: replica 1 is not whole: after 2 s (net.join_timeout) worker 1.0 misses worker "
        "1.1: "
    )
    # The first worker of replica 0 to give up ends the other one.
    assert any("misses worker 1." in whole.last_message for whole in net.processes[:2])


def test_workers_that_log_other_rounds_are_told_so(network: NetworkFactory) -> None:
    net = network(1, *MLP, "topology.kind=complete", "split.layers=2")
    net.start("0.0", "log.every=2")
    net.start("0.1", "log.every=1")
    assert net.wait() == [5, 5]
    assert "part 0 begins local step 1, and that of part 1 evaluates; either they log other" in (
        net.processes[1].stderr
    )


def test_workers_that_cut_in_other_ways_refuse_each_other(network: NetworkFactory) -> None:
    net = network(
        1, *MLP, "topology.kind=complete", "split.layers=2", "run.id=cuts", "net.join_timeout=5"
    )
    net.start("0.0", "split.microbatches=2")
    net.start("0.1", "split.microbatches=4")
    assert all(code != 0 for code in net.wait())
    assert any("split.microbatches" in peer.stderr for peer in net.processes)


def test_workers_of_a_replica_have_its_key(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "run.rounds=3")
    keys = Keys(net)
    for replica in range(2):
        for part in range(2):
            net.start(f"{replica}.{part}", keys.file(replica))
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]


def test_a_member_with_the_key_of_another_replica_is_no_worker(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "net.join_timeout=3")
    keys = Keys(net)
    own = net.start("0.0", keys.file(0))
    stranger = net.start("0.1", keys.file(1))
    assert stranger.wait() != 0
    assert "net.key" in stranger.stderr
    assert own.wait() == 4


@pytest.mark.parametrize(
    ("worker", "sets", "message"),
    [
        (
            "0.2",
            (),
            "worker 0.2: with split.layers = 2 and split.parameters = 1 the workers of replica 0",
        ),
        ("2.0", (), "worker 2.0: with run.peers = 2 the replicas are 0 to 1"),
        ("0.", (), "--id: '0.' names no worker; 2.1 is the worker with part 1 of replica 2"),
        ("a.1", (), "--id: 'a.1' names no worker"),
        ("0.1.1", (), "--id: '0.1.1' names no worker"),
        ("0.0", ("split.layers=1",), "worker 0.0: split.layers and split.parameters are 1"),
        ("0.0", ("net.rendezvous=",), "set net.rendezvous"),
        ("0.0", ('net.peers=["127.0.0.1:7001", "127.0.0.1:7002"]',), "2 addresses for 4 workers"),
        ("0.0", ('net.seeds=["127.0.0.1:7001"]',), "net.seeds: workers find each other by"),
        ("0.0", ("optimizer.kind=muon",), "a worker does not know which one that is"),
        ("0.0", ("mixing.rule=median",), "set mixing.rule = mean"),
        ("0.0", ("algorithm.policy=deadline",), "leaves out rounds of its own"),
        ("0.0", ("algorithm.kind=fedavg",), "the servers of 'fedavg' hold whole models"),
    ],
)
def test_what_workers_apart_cannot_do_is_refused(
    network: NetworkFactory, worker: str, sets: tuple[str, ...], message: str
) -> None:
    net = network(2, *MLP, "split.layers=2", *sets)
    refused = net.start(worker)
    assert refused.wait() == 2
    assert message in refused.stderr
