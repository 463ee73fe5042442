"""The command `gossamer topology`: files, the table of all kinds, large networks, exit codes."""

import json
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pytest


def run(gossamer: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), "topology", *arguments], capture_output=True, text=True, timeout=120
    )


def test_files(gossamer: Path, tmp_path: Path) -> None:
    """Reads GraphML and edge lists that networkx has written, with and without weights."""
    graph = nx.les_miserables_graph()
    heaviest = max(weight for _, weight in graph.degree(weight="weight"))
    for _, _, data in graph.edges(data=True):
        data["weight"] = data["weight"] / (1 + heaviest)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    numbered = nx.convert_node_labels_to_integers(graph)
    nx.write_weighted_edgelist(numbered, tmp_path / "g.edges")
    n = graph.number_of_nodes()
    expected = nx.to_numpy_array(graph)
    expected += np.diag(1 - expected.sum(axis=1))
    for name in ("g.graphml", "g.edges"):
        result = run(
            gossamer, "file", "-n", str(n), "--json", "--matrix", "--set", f"path={tmp_path / name}"
        )
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        np.testing.assert_allclose(report["matrix"][0], expected, rtol=0, atol=1e-13)
        assert report["weights"] == "given"
    (tmp_path / "bad.edges").write_text("0 1\n1 1\n", encoding="utf-8")
    rejected = run(gossamer, "file", "-n", "2", "--set", f"path={tmp_path / 'bad.edges'}")
    assert rejected.returncode == 3
    assert "bad.edges:2: peer 1 is its own neighbour" in rejected.stderr


def test_table(gossamer: Path) -> None:
    result = run(gossamer, "--all", "-n", "14", "--set", "k=2")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["topology", "n", "weights"]
    assert any(line.startswith("base ") for line in lines)
    assert any(line.startswith("left out: topology torus") for line in lines)
    assert run(gossamer, "ring", "star", "-n", "8", "--set", "k=2").returncode == 2
    assert run(gossamer, "torus", "hypercube", "-n", "14").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--parameters", "1M"), "--parameters: '1M' is not an integer of 0 or more"),
        (("--parameters", "-1"), "--parameters: '-1' is not an integer of 0 or more"),
        (("--seed", "x"), "--seed: 'x' is not an integer of 0 or more"),
        (("--seed", "1.5"), "--seed: '1.5' is not an integer of 0 or more"),
        (("--seed", "18446744073709551616"), "--seed: '18446744073709551616' is too large"),
    ],
)
def test_wrong_numbers(gossamer: Path, arguments: tuple[str, str], message: str) -> None:
    rejected = run(gossamer, "ring", *arguments)
    assert rejected.returncode == 2
    assert rejected.stdout == ""
    assert message in rejected.stderr
    assert len(rejected.stderr) < 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rng",), "gossamer: topology.kind: there is no 'rng' (did you mean 'ring'?)"),
        (("ring", "--weights", "x"), "gossamer: --weights x: topology.weights: 'x' is not one of"),
        (("ring", "--set", "k=3"), "gossamer: --set k=3: topology.k: unknown for kind ring"),
    ],
)
def test_errors_name_what_was_typed(
    gossamer: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert run(gossamer, *arguments).stderr.startswith(message)


def test_drawings_are_svg(gossamer: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rings.png"
    rejected = run(gossamer, "ring", "-n", "4", "--draw", str(picture))
    assert rejected.returncode == 2
    assert f"--draw: {picture}: drawings are SVG, and not '.png'" in rejected.stderr
    assert not picture.exists()
    for name in ("rings.svg", "rings", "rings.v1", "RINGS.SVG"):
        assert run(gossamer, "ring", "-n", "4", "--draw", str(tmp_path / name)).returncode == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg")


def test_hostile_neighbours(gossamer: Path) -> None:
    """The text and the JSON object say how much hostile weight W bears, and each rule by itself."""
    report = json.loads(run(gossamer, "complete", "-n", "16", "--json").stdout)
    assert report["hostile_weight_bound"] == pytest.approx(0.203, abs=1e-3)
    assert report["hostile_neighbours_bound"] == 3
    assert report["cs_plus_weight_bound"] == pytest.approx(0.2, abs=1e-6)
    assert report["cs_plus_neighbours_bound"] == 3
    rules = report["most_hostile_neighbours"]
    assert (rules["clipped"], rules["cs_plus"], rules["krum"]) == (14, 7, 6)
    assert "mean" not in rules
    text = run(gossamer, "complete", "-n", "16").stdout
    assert "below 0.203 in each row: any 3 neighbours of each peer" in text
    assert "; 6 by krum" in text
    assert "below 0.0277 in each row: no neighbour" in run(gossamer, "torus", "-n", "16").stdout
    for kind, n, reason in (
        ("exponential", "16", "W is not symmetric"),
        ("one_peer_exponential", "16", "W varies"),
        ("ring", "1", "a single peer has no neighbours"),
    ):
        assert f"ClippedGossip not known: {reason}\n" in run(gossamer, kind, "-n", n).stdout
    directed = run(gossamer, "exponential", "-n", "16", "--json")
    assert json.loads(directed.stdout)["hostile_weight_bound"] is None


@pytest.mark.parametrize(
    "kind",
    [
        "ring",
        "path",
        "grid",
        "star",
        "random_regular",
        "base",
        "one_peer_exponential",
        "erdos_renyi",
    ],
)
def test_large_networks_are_examined_quickly(gossamer: Path, kind: str) -> None:
    result = run(gossamer, kind, "-n", "4096", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["spectral_gap"] > 0


def test_exit_codes(gossamer: Path) -> None:
    assert run(gossamer, "torus", "-n", "16", "--json").returncode == 0
    rejected = run(gossamer, "torus", "-n", "14", "--json")
    assert rejected.returncode == 2
    assert "n = 15" in rejected.stderr
    unknown = run(gossamer, "rign", "-n", "16", "--json")
    assert unknown.returncode == 2
    assert "ring" in unknown.stderr
