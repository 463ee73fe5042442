"""What an algorithm asks of a graph and of a policy, and the bytes that it sends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from softmax_problem import PEERS, UNEVEN, Problem, edge_list


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


def test_error_messages_name_a_valid_choice(problem: Problem) -> None:
    uneven = edge_list(problem, "uneven", UNEVEN)
    assert "algorithm push_sum or push_pull" in problem.error("dpsgd", "file", *uneven)
    for kind in ("dpsgd", "gradient_tracking"):
        assert "algorithm.kind = push_sum or push_pull" in problem.error(
            kind, "file", *uneven, "topology.weights=out_degree"
        )
    one_way = edge_list(problem, "one-way", [(i, i + 1) for i in range(PEERS - 1)])
    assert "the row of peer 1 never reaches peer 0" in problem.error("push_sum", "file", *one_way)
    assert "choose path, star, binary_tree" in problem.error("relay_sgd", "ring")
    assert "choose complete" in problem.error("diloco", "ring")
    assert "choose random_matching" in problem.error("noloco", "ring")
    for algorithm, topology in (
        ("push_sum", "ring"),
        ("push_pull", "ring"),
        ("relay_sgd", "path"),
        ("diloco", "complete"),
        ("noloco", "random_matching"),
    ):
        assert "set algorithm.policy = sync" in problem.error(
            algorithm, topology, "algorithm.policy=async"
        )


def test_a_column_stochastic_matrix_is_reported_as_such(problem: Problem) -> None:
    sets = [
        argument
        for each in edge_list(problem, "uneven", UNEVEN)
        for argument in ("--set", each.removeprefix("topology."))
    ]
    command = [str(problem.program), "topology", "file", "-n", str(PEERS), *sets]
    rejected = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rejected.returncode == 2 and "out_degree" in rejected.stderr
    done = subprocess.run(
        [*command, "--weights", "out_degree", "--json", "--matrix"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (w,) = (np.array(matrix) for matrix in report["matrix"])
    np.testing.assert_allclose(w.sum(axis=0), 1, atol=1e-12)
    assert (
        report["weights"] == "out_degree"
        and report["connected"]
        and not report["doubly_stochastic"]
        and not report["symmetric"]
    )
    moduli = sorted(abs(np.linalg.eigvals(w)))
    assert moduli[-1] == pytest.approx(1) and report["spectral_gap"] == pytest.approx(
        1 - moduli[-2], abs=1e-9
    )
    assert report["effective_neighbours"] is None
    text = subprocess.run(
        [*command, "--weights", "out_degree"], capture_output=True, text=True, check=True
    ).stdout
    assert (
        "doubly stochastic             no" in text
        and "effective neighbours          not known" in text
    )


@pytest.mark.parametrize(
    ("algorithm", "topology", "messages"),
    [
        ("dpsgd", "star", 5),
        ("gradient_tracking", "ring", 4),
        ("push_sum", "exponential", 3),
        ("push_pull", "exponential", 6),
        ("relay_sgd", "path", 2),
        ("diloco", "complete", 5),
        ("noloco", "random_matching", 1),
    ],
    ids=lambda value: str(value),
)
def test_bytes_match_the_prediction(
    problem: Problem, algorithm: str, topology: str, messages: int
) -> None:
    """The busiest peer sends the bytes in the header and 72 bytes of framing per message."""
    rounds = 4
    sets = ["algorithm.local_steps=2"] if algorithm in ("diloco", "noloco") else []
    problem.run(algorithm, topology, rounds, *sets)
    lines = (problem.out / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    log = [json.loads(line) for line in lines]
    predicted = log[0]["topology"]["bytes_per_round_per_peer"]
    sent = max(
        record["bytes_sent"]
        for record in log
        if record["record"] == "round" and record["round"] == rounds
    )
    assert sent == rounds * (predicted + 72 * messages)
