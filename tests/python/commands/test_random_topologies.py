"""EquiDyn, Epidemic Learning, MATCHA and negative weights, against what their papers define."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from random_topology_reference import (
    connectivity,
    el_local,
    el_local_factor,
    el_oracle_factor,
    equidyn,
    expected_factor,
    laplacians,
    matcha_alpha,
    matcha_factor,
    matcha_probabilities,
    od_equidyn,
)
from softmax_problem import PEERS, RATE, Problem


def run(gossamer: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def reports(gossamer: Path, kind: str, sizes: str, *arguments: str) -> list[dict]:
    done = run(gossamer, "topology", kind, "-n", sizes, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def report(gossamer: Path, kind: str, n: int, *arguments: str) -> dict:
    (only,) = reports(gossamer, kind, str(n), *arguments)
    return only


def drawn(gossamer: Path, kind: str, n: int, rounds: int, *arguments: str) -> np.ndarray:
    """W of the first rounds."""
    found = report(gossamer, kind, n, "--matrix", "--rounds", str(rounds), *arguments)
    matrices = np.array(found["matrix"])
    assert matrices.shape == (rounds, n, n)
    return matrices


def refusal(gossamer: Path, *arguments: str) -> str:
    done = run(gossamer, "topology", *arguments)
    assert done.returncode == 2, done.stdout
    return done.stderr


def gap_of(factor: float) -> float:
    return 1 - math.sqrt(max(factor, 0.0))


def is_likely(count: float, probability: float, trials: int) -> bool:
    """Within five deviations of a binomial distribution."""
    return abs(count - trials * probability) <= 5 * math.sqrt(
        trials * probability * (1 - probability) + 1
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("eta", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("lazy", [False, True])
def test_equidyn_has_the_expected_rate_of_its_paper(
    gossamer: Path, directed: bool, eta: float, lazy: bool
) -> None:
    """The rate over every outcome, and with η = 1/2 the paper's bounds, (1 + ρ)/2 and (2 + ρ)/3."""
    sets = ["--set", f"eta={eta}", "--set", f"directed={str(directed).lower()}"]
    flags = ["--lazy"] if lazy else []
    for found in reports(gossamer, "equidyn", "2..13", *sets, *flags):
        n = found["peers"]
        factor = expected_factor(equidyn(n, eta, directed), lazy)
        assert found["spectral_gap"] == pytest.approx(gap_of(factor), abs=1e-12), n
        assert found["spectral_gap_expected"] and found["period"] == 0
        assert found["doubly_stochastic"] and found["connected"]
        assert found["weights"] == ("lazy given" if lazy else "given")
        assert found["degree_max"] == 1 and found["bytes_per_round_per_peer"] <= 4_000_000
        if eta == 0.5 and not lazy:
            # All n − 1 shifts average to E A = 11ᵀ/n, so ρ = 0, as the authors' A has it.
            assert factor <= (1 / 2 if directed else 2 / 3) + 1 / n


@pytest.mark.parametrize("directed", [False, True])
def test_equidyn_draws_the_rounds_of_its_paper(gossamer: Path, directed: bool) -> None:
    n, rounds = 9, 2000
    outcomes = np.array(equidyn(n, 0.5, directed))
    matrices = drawn(gossamer, "equidyn", n, rounds, "--set", f"directed={str(directed).lower()}")
    counts = np.zeros(len(outcomes))
    for matrix in matrices:
        same = np.abs(outcomes - matrix).max(axis=(1, 2)) < 1e-14
        assert same.any()
        counts += same / same.sum()  # several starts may pair the same peers
    for shift in range(n - 1):
        share = counts.reshape(n - 1, -1)[shift].sum()
        # Shifts u and n − u pair the same peers in the undirected case, or may.
        mirror = counts.reshape(n - 1, -1)[n - 2 - shift].sum()
        expected = 1 / (n - 1) if directed else 2 / (n - 1)
        assert is_likely(share if directed else share + mirror, expected, rounds), shift


def test_equidyn_draws_from_the_shifts_of_equistatic(gossamer: Path) -> None:
    """With M shifts: those of D-EquiStatic of the same seed, and their rate."""
    n, m = 14, 3
    sets = ["--set", f"m={m}", "--set", "directed=true", "--seed", "5"]
    static = np.array(report(gossamer, "equistatic", n, "--matrix", *sets)["matrix"][0])
    shifts = [int(s) for s in np.flatnonzero(static[0])[1:]]  # peer 0 weighs peer s
    weights = [round(static[0, s] * m * n / (n - 1)) for s in shifts]
    outcomes = [
        od_equidyn(n, s, 0.5) for s, w in zip(shifts, weights, strict=True) for _ in range(w)
    ]
    assert len(outcomes) == m
    found = report(gossamer, "equidyn", n, *sets)
    assert found["spectral_gap"] == pytest.approx(gap_of(expected_factor(outcomes)), abs=1e-12)
    for matrix in drawn(gossamer, "equidyn", n, 50, *sets):
        assert any(np.allclose(matrix, w, rtol=0, atol=1e-14) for w in outcomes)


def test_epidemic_oracle_is_a_random_regular_graph_in_each_round(gossamer: Path) -> None:
    n, s, rounds = 10, 3, 1500
    matrices = drawn(gossamer, "epidemic", n, rounds, "--set", f"degree={s}")
    edges = (matrices > 0) & ~np.eye(n, dtype=bool)
    assert (edges.sum(axis=2) == s).all()
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    np.testing.assert_allclose(matrices[matrices > 0], 1 / (s + 1), rtol=0, atol=1e-15)
    for i in range(n):
        for j in range(i):
            assert is_likely(edges[:, i, j].sum(), s / (n - 1), rounds), (i, j)
    for found in reports(gossamer, "epidemic", "4,6,10,64", "--set", f"degree={s}"):
        factor = el_oracle_factor(found["peers"], s)
        assert found["spectral_gap"] == pytest.approx(gap_of(factor), abs=1e-12)
        assert found["symmetric"] and found["doubly_stochastic"]
        assert found["bytes_per_round_per_peer"] == 4_000_000 * s
    for found in reports(gossamer, "epidemic", "2..40"):
        n = found["peers"]
        s = math.ceil(math.log2(n))
        assert found["degree_min"] == found["degree_max"] == s + n % 2 * (s % 2), n


@pytest.mark.parametrize("lazy", [False, True])
def test_epidemic_local_averages_what_was_received(gossamer: Path, lazy: bool) -> None:
    n, s, rounds = 10, 3, 1500
    flags = ["--lazy"] if lazy else []
    sets = ["--set", f"degree={s}", "--set", "local=true", *flags]
    matrices = drawn(gossamer, "epidemic", n, rounds, *sets)
    if lazy:
        matrices = 2 * matrices - np.eye(n)
    edges = (np.abs(matrices) > 1e-9) & ~np.eye(n, dtype=bool)
    assert (edges.sum(axis=1) == s).all()  # a column is a sender
    received = edges.sum(axis=2)
    assert received.min() == 0 < s < received.max()
    expected = (edges + np.eye(n)) / (1 + received[:, :, None])
    np.testing.assert_allclose(matrices, expected, rtol=0, atol=1e-14)
    for i in range(n):
        for j in range(n):
            if i != j:
                assert is_likely(edges[:, i, j].sum(), s / (n - 1), rounds), (i, j)
    for size, degree in ((3, 1), (4, 1), (4, 2), (5, 1)):
        sets = ["--set", f"degree={degree}", "--set", "local=true", *flags]
        found = report(gossamer, "epidemic", size, *sets)
        factor = expected_factor(el_local(size, degree), lazy)
        assert found["spectral_gap"] == pytest.approx(gap_of(factor), abs=1e-12), (size, degree)
        if not lazy:
            assert factor == pytest.approx(el_local_factor(size, degree), abs=1e-12)
        assert not found["doubly_stochastic"] and found["weights"].endswith("in_degree")
        assert found["effective_neighbours"] is None


def test_epidemic_local_is_for_algorithms_that_conserve_no_sum(
    gossamer: Path, tmp_path: Path
) -> None:
    base = ["topology.kind=epidemic", "topology.local=true", "run.peers=8", "run.rounds=30"]
    base += ["data.kind=quadratic", "model.kind=linear"]

    def train(*sets: str) -> subprocess.CompletedProcess[str]:
        arguments = [word for each in (*base, *sets) for word in ("--set", each)]
        return run(gossamer, "run", "--quiet", "--out", str(tmp_path / "out"), *arguments)

    for algorithm in ("gradient_tracking", "consensus"):
        refused = train(f"algorithm.kind={algorithm}")
        assert refused.returncode == 2
        assert "with in_degree only the rows of W sum to 1" in refused.stderr
        assert "algorithm.kind = dpsgd" in refused.stderr


@pytest.mark.parametrize(
    ("kind", "sets", "flags"),
    [
        ("equidyn", ["eta=0.5"], []),
        ("equidyn", ["directed=true", "m=2"], []),
        ("epidemic", ["degree=3"], []),
        ("epidemic", ["degree=2", "local=true"], []),
        ("matcha", ["base=star", "budget=0.6"], ["--allow-negative"]),
        ("star", [], ["--weights", "best_constant", "--allow-negative"]),
    ],
)
def test_dpsgd_mixes_with_the_matrices_that_are_printed(
    gossamer: Path, tmp_path: Path, kind: str, sets: list[str], flags: list[str]
) -> None:
    """x⁺ = W_t (x − γ ∇f(x)), in double, from the W_t of `gossamer topology`."""
    rounds = 15
    problem = Problem(gossamer, tmp_path)
    arguments = [word for each in sets for word in ("--set", each)]
    found = report(
        gossamer,
        kind,
        PEERS,
        "--matrix",
        "--rounds",
        str(rounds),
        "--seed",
        "3",
        *arguments,
        *flags,
    )
    matrices = np.array(found["matrix"])
    overrides = [f"topology.{each}" for each in sets]
    if "--allow-negative" in flags:
        assert matrices[:, range(PEERS), range(PEERS)].min() < 0
        overrides.append("topology.allow_negative=true")
    if "--weights" in flags:
        overrides.append("topology.weights=best_constant")
    x = problem.start
    for t in range(rounds):
        x = matrices[t % len(matrices)] @ (x - RATE * problem.gradients(x))
    models = problem.run("dpsgd", kind, rounds, *overrides)
    np.testing.assert_allclose(models, x, rtol=0, atol=2e-5)
    assert np.abs(models - models.mean(axis=0)).max() > 1e-3  # unlike peers, so W matters


def test_refusals_of_epidemic(gossamer: Path) -> None:
    odd = refusal(gossamer, "epidemic", "-n", "9", "--set", "degree=3")
    assert "one end of an edge is left over; n = 8 or n = 10 works" in odd
    few = refusal(gossamer, "epidemic", "-n", "3", "--set", "degree=3", "--set", "local=true")
    assert "3 receivers are more than there are other peers; n = 4 works" in few
    assert "give at most 256" in refusal(gossamer, "epidemic", "-n", "9", "--set", "degree=257")


def base_graph(gossamer: Path, kind: str, n: int, *arguments: str) -> nx.Graph:
    (matrix,) = np.array(report(gossamer, kind, n, "--matrix", *arguments)["matrix"])
    return nx.from_numpy_array((matrix > 0) & ~np.eye(n, dtype=bool))


MATCHA = [
    ("ring", 8, 0.5, 0),
    ("ring", 7, 0.4, 0),
    ("star", 6, 0.5, 0),
    ("erdos_renyi", 10, 0.5, 2),
    ("erdos_renyi", 12, 0.3, 4),
    ("dumbbell", 8, 0.4, 0),
    ("torus", 9, 0.6, 0),
    ("complete", 6, 1.0, 0),
]


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize(("kind", "n", "budget", "seed"), MATCHA)
def test_matcha_is_the_published_one(
    gossamer: Path, kind: str, n: int, budget: float, seed: int, negative: bool
) -> None:
    """Matchings are read from 2,000 rounds; p and α are compared with the optimum over them."""
    rounds = 2000
    arguments = ["--seed", str(seed), "--set", f"base={kind}", "--set", f"budget={budget}"]
    arguments += ["--allow-negative"] if negative else []
    matrices = drawn(gossamer, "matcha", n, rounds, *arguments)
    graph = base_graph(gossamer, kind, n, "--seed", str(seed))
    activity: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in graph.edges:
        pattern = matrices[:, a, b] > 0
        if pattern.any():  # the optimum may never use a matching
            activity.setdefault(pattern.tobytes(), []).append((a, b))
    edges = (matrices != 0) & ~np.eye(n, dtype=bool)
    assert set(zip(*np.nonzero(np.triu(edges.any(axis=0))), strict=True)) <= set(graph.edges)
    (alpha,) = set(matrices[edges])
    # W = I − α Σ B_j L_j.
    degrees = edges.sum(axis=2)
    np.testing.assert_allclose(
        matrices[:, range(n), range(n)], 1 - alpha * degrees, rtol=0, atol=1e-12
    )
    largest = max(degree for _, degree in graph.degree)
    if not negative:
        assert alpha <= 1 / largest
    found = report(gossamer, "matcha", n, *arguments)
    assert found["spectral_gap_expected"]
    if budget == 1:  # every matching in every round: best constant weights
        values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
        best = 2 / (values[1] + values[-1])
        assert alpha == pytest.approx(best if negative else min(best, 1 / largest), abs=2e-6)
        return
    matchings = list(activity.values())
    for matching in matchings:
        assert nx.is_matching(graph, set(matching))
    parts = laplacians(n, matchings)
    seen = np.array([(matrices[:, a, b] > 0).mean() for (a, b), *_ in matchings])
    # The optimum uses up the budget C_b M, which tells M, with the matchings that are never used.
    count = round(seen.sum() / budget)
    assert len(matchings) <= count <= largest + 1
    assert abs(seen.sum() - budget * count) <= 5 * math.sqrt(count / 4 / rounds)
    optimum = matcha_probabilities(parts, budget * count)
    assert connectivity(parts, seen) >= 0.93 * connectivity(parts, optimum)
    best = matcha_alpha(parts, optimum, 1e9 if negative else 1 / largest)
    assert alpha == pytest.approx(best, abs=2e-3)
    factor = matcha_factor(parts, optimum, best)
    assert found["spectral_gap"] == pytest.approx(gap_of(factor), abs=1e-3)
    lazy = report(gossamer, "matcha", n, "--lazy", *arguments)
    halved = matcha_factor(parts, optimum, best / 2)
    assert lazy["spectral_gap"] == pytest.approx(gap_of(halved), abs=1e-3)


def test_refusals_of_matcha(gossamer: Path, tmp_path: Path) -> None:
    for base, reason in (
        ("exponential", "directed"),
        ("one_peer_exponential", "changes from round to round"),
        ("matcha", "changes from round to round"),
        ("rign", "is not one of"),
        ("torus", "n = 12 or n = 15 works"),
        ("file", "needs the path"),
    ):
        assert reason in refusal(gossamer, "matcha", "-n", "14", "--set", f"base={base}"), base
    assert "give at least 0.05" in refusal(gossamer, "matcha", "-n", "8", "--set", "budget=0")
    assert "n = 256 works" in refusal(gossamer, "matcha", "-n", "257")
    assert "up to 4096 edges" in refusal(gossamer, "matcha", "-n", "128", "--set", "base=complete")
    (tmp_path / "parts.txt").write_text("0 1\n2 3\n", encoding="utf-8")
    sets = ["--set", "base=file", "--set", f"path={tmp_path / 'parts.txt'}"]
    assert "no path leads from peer 0" in refusal(gossamer, "matcha", "-n", "4", *sets)
    (tmp_path / "path.txt").write_text("0 1\n1 2\n2 3\n", encoding="utf-8")
    sets[-1] = f"path={tmp_path / 'path.txt'}"
    assert report(gossamer, "matcha", 4, *sets)["edges"] == 3


@pytest.mark.parametrize("kind", ["star", "grid", "binary_tree", "dumbbell"])
def test_best_constant_weights_are_the_published_ones(gossamer: Path, kind: str) -> None:
    """Xiao and Boyd 2004, eq. 21, where they leave a peer a negative weight of its own row."""
    n = 15
    weights = ["--weights", "best_constant"]
    refused = refusal(gossamer, kind, "-n", str(n), *weights)
    assert "topology.allow_negative = true" in refused
    found = report(gossamer, kind, n, *weights, "--allow-negative", "--matrix")
    graph = base_graph(gossamer, kind, n)
    laplacian = nx.laplacian_matrix(graph, nodelist=range(n)).toarray().astype(float)
    values = np.linalg.eigvalsh(laplacian)
    alpha = 2 / (values[1] + values[-1])
    w = np.eye(n) - alpha * laplacian
    assert np.diag(w).min() < 0
    np.testing.assert_allclose(found["matrix"][0], w, rtol=0, atol=1e-9)
    gap = 1 - (values[-1] - values[1]) / (values[-1] + values[1])
    assert found["spectral_gap"] == pytest.approx(gap, abs=1e-9)
    assert found["spectral_gap"] > report(gossamer, kind, n)["spectral_gap"]
    assert found["doubly_stochastic"] and found["hostile_weight_bound"] is None


def test_negative_weights_off_the_diagonal_stay_refused(gossamer: Path, tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1 0.8\n1 2 0.7\n", encoding="utf-8")
    path = ["--set", f"path={tmp_path / 'g.txt'}"]
    refused = refusal(gossamer, "file", "-n", "3", *path)
    assert "W[1][1]" in refused and "topology.allow_negative" in refused
    assert report(gossamer, "file", 3, *path, "--allow-negative")["doubly_stochastic"]
    (tmp_path / "g.txt").write_text("0 1 0.8\n1 2 -0.1\n0 2 0.3\n", encoding="utf-8")
    done = run(gossamer, "topology", "file", "-n", "3", *path, "--allow-negative")
    assert done.returncode != 0 and done.stderr


def test_rules_that_choose_neighbours_refuse_negative_weights(
    gossamer: Path, tmp_path: Path
) -> None:
    sets = ["topology.kind=star", "topology.weights=best_constant", "topology.allow_negative=true"]
    sets += ["mixing.rule=median", "run.rounds=2", "run.peers=6"]
    arguments = [word for each in sets for word in ("--set", each)]
    done = run(gossamer, "run", "--quiet", "--out", str(tmp_path / "out"), *arguments)
    assert done.returncode == 2
    assert "topology.allow_negative: 'median' is defined for weights ≥ 0" in done.stderr
