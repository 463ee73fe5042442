"""Runs whose participants change (run.participants): results, logs, policies and
errors, and consensus against an independent reference."""

import json
import subprocess
import time
from pathlib import Path

import numpy
import pytest
from network_test_util import NetworkFactory
from safetensors.numpy import load_file

CHANGES = 'run.participants=["0-3", "4: 0-7", "8: 2-6"]'
RUN = ("run.peers=8", "run.rounds=12", "data.batch=8", "log.every=2", "local.threads=1")


def run(program: Path, out: Path, *sets: str) -> subprocess.CompletedProcess[str]:
    overrides = [argument for each in (*RUN, *sets) for argument in ("--set", each)]
    command = [str(program), "run", "--out", str(out), *overrides]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def summary(program: Path, out: Path, *sets: str) -> dict:
    done = run(program, out, *sets)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("algorithm", ["dpsgd", "gradient_tracking", "push_sum"])
@pytest.mark.parametrize("topology", ["base", "ring"])
def test_processes_compute_what_one_computes(
    gossamer: Path, network: NetworkFactory, tmp_path: Path, algorithm: str, topology: str
) -> None:
    sets = (CHANGES, f"algorithm.kind={algorithm}", f"topology.kind={topology}", "run.rounds=12")
    whole = summary(gossamer, tmp_path / "whole", *sets)
    net = network(8, *sets)
    for ids in ("0-1", "2-6", "7"):  # the first only leaves; the last joins and leaves
        net.start(ids)
    assert net.wait() == [0, 0, 0]
    assert net.summary()["final_hash"] == whole["final_hash"]


@pytest.mark.parametrize("participants", ['["1-2", "4: 1-4"]', '["1-7"]'])
def test_peers_that_never_take_part_are_hosted_beside_others(
    gossamer: Path, network: NetworkFactory, tmp_path: Path, participants: str
) -> None:
    sets = (f"run.participants={participants}", "topology.kind=path", "run.rounds=12")
    whole = summary(gossamer, tmp_path / "whole", *sets)
    net = network(8, *sets)
    for ids in ("0-1", "2,5-7", "3-4"):
        net.start(ids)
    assert net.wait() == [0, 0, 0], [process.stderr for process in net.processes]
    assert net.summary()["final_hash"] == whole["final_hash"]


def test_a_process_whose_peers_never_take_part_is_refused(network: NetworkFactory) -> None:
    net = network(8, 'run.participants=["1-7"]', "run.rounds=12")
    process = net.start("0")
    assert process.wait() == 2
    assert "run.participants: peer 0 takes part in no round" in process.stderr


def test_only_participants_have_records(gossamer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert summary(gossamer, out, CHANGES)["absent_peers"] == [0, 1, 7]
    lines = (out / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    changes = records[0]["topology"]["changes"]
    assert [change["round"] for change in changes] == [0, 4, 8]
    last = {r["peer"] for r in records if r["record"] == "round" and r["round"] == 12}
    assert last == {2, 3, 4, 5, 6}
    distances = [r for r in records if r["record"] == "network"][-1]["distances_from_mean"]
    assert [d is None for d in distances] == [peer in (0, 1, 7) for peer in range(8)]


@pytest.mark.parametrize(
    ("participants", "other"),
    [
        ('["100: x"]', ""),
        ('["0-99"]', ""),
        ('["0-3", "5: 0-7", "3: 0-3"]', ""),
        ('["3: 0-3"]', ""),
        ('["0-3", "4: 0-3"]', ""),
        ('["0-3", "4: 4-7"]', ""),
        ('["0-3", "12: 0-7"]', ""),
        ('["0-3", "99999999999999999999999: 0-7"]', ""),
        ('["0-3", "4: 0-7"]', "algorithm.kind=d2"),
        ('["0-3", "4: 0-7"]', "algorithm.kind=allreduce"),
        ('["0-3", "4: 0-7"]', "algorithm.kind=choco"),
        ('["0-3", "4: 0-2"]', "topology.kind=hypercube"),
    ],
)
def test_wrong_participants(gossamer: Path, tmp_path: Path, participants: str, other: str) -> None:
    sets = (f"run.participants={participants}", *([other] if other else []))
    done = run(gossamer, tmp_path / "out", *sets)
    assert done.returncode == 2, done.stderr
    assert "run.participants: " in done.stderr


def test_deadline_needs_a_symmetric_matrix_of_all_participants(
    gossamer: Path, tmp_path: Path
) -> None:
    """An exponential graph is symmetric with 3 peers, and not with 8."""
    sets = ('run.participants=["0-2", "4: 0-7"]', "topology.kind=exponential")
    done = run(gossamer, tmp_path / "out", *sets, "algorithm.policy=deadline")
    assert done.returncode == 2, done.stderr
    assert "the W of 'exponential' with 8 peers is not symmetric" in done.stderr


LONGER = ("run.rounds=60", "log.every=20")
GROWN_AND_SHRUNK = 'run.participants=["0-3", "20: 0-7", "40: 2-6"]'


def call(program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def rows_after(program: Path, out: Path, *sets: str) -> dict[int, numpy.ndarray]:
    done = run(program, out, "algorithm.kind=consensus", "algorithm.length=50", *sets)
    assert done.returncode == 0, done.stderr
    rows = load_file(out / "final-0.safetensors")
    return {int(name[4:-2]): row.astype(numpy.float64) for name, row in rows.items()}


def matrices(program: Path, kind: str, peers: int) -> numpy.ndarray:
    """W of each round of the period."""
    if peers == 1:
        return numpy.ones((1, 1, 1))
    done = call(program, "topology", kind, "--peers", peers, "--json", "--matrix")
    assert done.returncode == 0, done.stderr
    return numpy.array(json.loads(done.stdout)["matrix"])


def donors(peers: list[int], staying: set[int], w: numpy.ndarray) -> list[tuple[int, int]]:
    """Pairs of a joining peer and its donor, those with the shortest ways to staying peers first.

    By docs/MEMBERSHIP.md, "Who gives rows to whom".
    """
    linked = (w != 0).any(axis=0)
    linked |= linked.T
    pairs, given = [], dict.fromkeys(peers, 0)
    near, waiting = set(staying), [peer for peer in peers if peer not in staying]
    while waiting:
        level = []
        for peer in waiting:
            row = linked[peers.index(peer)]
            able = [other for k, other in enumerate(peers) if row[k] and other in near]
            if able:
                donor = min(able, key=lambda other: (given[other], other))
                given[donor] += 1
                level.append((peer, donor))
        assert level, "the graph of the period connects all peers"
        pairs += level
        near |= {peer for peer, _ in level}
        waiting = [peer for peer in waiting if peer not in near]
    return pairs


def reference(
    rows: dict[int, numpy.ndarray],
    parts: list[tuple[int, list[int]]],
    rounds: int,
    w_of: dict[int, numpy.ndarray],
) -> tuple[dict[int, numpy.ndarray], list[tuple[int, int]]]:
    """The rows of those that take part in the last round, and all pairs of receiver and donor."""
    everything = []
    for index, (first, peers) in enumerate(parts):
        w = w_of[len(peers)]
        if index > 0:
            pairs = donors(peers, set(parts[index - 1][1]) & set(peers), w)
            for peer, donor in pairs:
                rows[peer] = rows[donor]
            everything += pairs
        end = parts[index + 1][0] if index + 1 < len(parts) else rounds
        for t in range(end - first):
            mixed = w[t % len(w)] @ numpy.stack([rows[peer] for peer in peers])
            rows.update(zip(peers, mixed, strict=True))
    return {peer: rows[peer] for peer in parts[-1][1]}, everything


def as_texts(parts: list[tuple[int, list[int]]]) -> str:
    texts = []
    for first, peers in parts:
        assert peers == list(range(peers[0], peers[-1] + 1))
        ids = f"{peers[0]}-{peers[-1]}" if len(peers) > 1 else str(peers[0])
        texts.append(f'"{first}: {ids}"' if first else f'"{ids}"')
    return f"run.participants=[{', '.join(texts)}]"


def ids(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


# Few rounds in each part: once rows have become equal, any donor would do.
GROWN = [(0, ids(0, 3)), (1, ids(0, 15)), (3, ids(0, 6))]
CHAIN = [(0, ids(5, 7)), (1, ids(1, 15)), (2, ids(9, 15))]  # most donors join themselves
BACK = [(0, ids(0, 7)), (1, ids(2, 9)), (2, ids(0, 9)), (3, ids(0, 15))]  # 0 and 1 come back
TWICE = [(0, ids(0, 3)), (1, ids(0, 1)), (3, ids(0, 3)), (4, ids(0, 1)), (6, ids(0, 3))]


def check_against_reference(
    gossamer: Path, tmp_path: Path, kind: str, parts: list[tuple[int, list[int]]]
) -> None:
    rounds = parts[-1][0] + 1
    peers = 1 + max(peer for _, part in parts for peer in part)
    sets = (f"run.peers={peers}", f"topology.kind={kind}", "run.seed=7", "local.threads=1")
    start = rows_after(gossamer, tmp_path / "start", "run.rounds=0", *sets)
    assert len(start) == peers
    w_of = {len(peers): matrices(gossamer, kind, len(peers)) for _, peers in parts}
    expected, pairs = reference(start, parts, rounds, w_of)
    assert pairs
    rows = rows_after(gossamer, tmp_path / "end", f"run.rounds={rounds}", as_texts(parts), *sets)
    log = (tmp_path / "end" / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, log) if record["record"] == "round"]
    assert sorted(r["peer"] for r in records if r["round"] == rounds) == parts[-1][1]
    for peer, row in expected.items():
        numpy.testing.assert_allclose(rows[peer], row, rtol=0, atol=1e-5, err_msg=f"peer {peer}")


@pytest.mark.parametrize("parts", [GROWN, CHAIN, BACK], ids=["grown", "chain", "back"])
@pytest.mark.parametrize(
    "kind", ["ring", "path", "star", "complete", "base", "exponential", "one_peer_exponential"]
)
def test_consensus_has_the_rows_of_a_reference(
    gossamer: Path, tmp_path: Path, kind: str, parts: list[tuple[int, list[int]]]
) -> None:
    check_against_reference(gossamer, tmp_path, kind, parts)


def test_a_peer_that_joins_twice_has_the_rows_of_a_reference(
    gossamer: Path, tmp_path: Path
) -> None:
    check_against_reference(gossamer, tmp_path, "base", TWICE)


@pytest.mark.parametrize("policy", ["sync", "stale", "async", "deadline"])
def test_every_policy_trains(gossamer: Path, tmp_path: Path, policy: str) -> None:
    sets = (GROWN_AND_SHRUNK, f"algorithm.policy={policy}", "sim.latency_ms=3", "sim.compute_ms=10")
    done = run(gossamer, tmp_path / "out", *LONGER, *sets, "optimizer.rate=0.5")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["reason"] == "finished" and summary["rounds"] == 60
    assert summary["absent_peers"] == [0, 1, 7]
    log = (tmp_path / "out" / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, log) if record["record"] == "round"]
    last = {r["peer"]: r["test_accuracy"] for r in records if r["round"] == 60}
    assert sorted(last) == [2, 3, 4, 5, 6]
    assert min(last.values()) > 0.5, last  # chance: 0.1


def test_collect_says_what_run_says(gossamer: Path, network: NetworkFactory) -> None:
    net = network(8, GROWN_AND_SHRUNK, "run.rounds=60")
    for each in ("0-1", "2-6", "7"):
        net.start(each)
    assert net.wait() == [0, 0, 0], [process.stderr for process in net.processes]
    here, there = net.run_in_one_process(), net.summary()
    assert there["absent_peers"] == [0, 1, 7]
    keys = ("final_hash", "absent_peers", "final", "run_id", "reason", "rounds", "node_steps")
    assert {key: there[key] for key in keys} == {key: here[key] for key in keys}


@pytest.mark.parametrize("kind", ["relay_sgd", "centralized", "fedavg"])
def test_algorithms_with_fixed_peers_are_refused(gossamer: Path, tmp_path: Path, kind: str) -> None:
    done = run(gossamer, tmp_path / "out", *LONGER, GROWN_AND_SHRUNK, f"algorithm.kind={kind}")
    assert done.returncode == 2
    assert f"run.participants: '{kind}' needs the same peers in all rounds" in done.stderr


def test_theory_refuses_changes(gossamer: Path, tmp_path: Path) -> None:
    assert run(gossamer, tmp_path / "out", *LONGER, GROWN_AND_SHRUNK).returncode == 0
    for done in (
        call(gossamer, "gap", tmp_path / "out"),
        call(gossamer, "predict", tmp_path / "out" / "resolved-0.toml"),
    ):
        assert done.returncode == 2
        assert "run.participants: theory describes runs with the same peers" in done.stderr


HUGE = 2**64 - 1
HOSTILE = {
    "long": ["0-3", "4: " + "0," * 100_000 + "7"],
    "long_id": ["1" * 200_000],
    "long_round": ["0-3", "9" * 200_000 + ": 0-7"],
    "many": ["0-3", *(f"{k}: 0-{3 + k % 2}" for k in range(1, 20_000))],
    "last_round": ["0-3", f"{HUGE}: 0-7"],
    "beyond_64_bits": ["0-3", f"{HUGE + 1}: 0-7"],
    "last_id": ["0-3", f"4: 0-{HUGE}"],
    "ids": [f"0-{2**31 - 1}"],
    "negative": ["0-3", "-4: 0-7"],
    "control": ["0-3", "4: 0-7\\u0000\\u001b[31m"],
    "empty": ["0-3", ""],
}


@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_end_in_time_with_an_error(
    gossamer: Path, tmp_path: Path, texts: list[str]
) -> None:
    config = tmp_path / "run.toml"  # an argument of 200 kB would be refused by the system
    lines = ",\n".join(f'  "{text}"' for text in texts)
    config.write_text(
        f"[run]\npeers = 8\nrounds = 60\nparticipants = [\n{lines}\n]\n", encoding="utf-8"
    )
    begin = time.monotonic()
    done = call(gossamer, "run", config, "--out", tmp_path / "out")
    assert time.monotonic() - begin < 5
    assert done.returncode == 2, (done.returncode, done.stderr[:1000])
    assert "run.participants: " in done.stderr and "\x1b" not in done.stderr
    assert not (tmp_path / "out").exists()
