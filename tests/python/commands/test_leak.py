"""gossamer leak against a computation from W and the messages' definition in NumPy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

ROUNDS = 5
CONFIG = """
[run]
peers = {peers}
rounds = 20
[topology]
kind = "{topology}"
[algorithm]
kind = "dpsgd"
[model]
kind = "mlp"
hidden = [16]
[data]
kind = "digits"
batch = 1
[optimizer]
rate = 0.1
"""


def leak(gossamer: Path, config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), "leak", str(config), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def matrices(gossamer: Path, topology: str, peers: int) -> np.ndarray:
    done = subprocess.run(
        [str(gossamer), "topology", topology, "-n", str(peers), "--json", "--matrix"]
        + ["--rounds", str(ROUNDS)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return np.array(json.loads(done.stdout)["matrix"])


def expected_shares(
    w: np.ndarray, observers: list[int], similarity: float, consensus_rate: float
) -> np.ndarray:
    """[peer, round]: the share of an update's variance that the known rows explain."""
    period, n, _ = w.shape
    # rows[t] maps all updates, by round and then by peer, to the rows of round t.
    rows, x = [], np.zeros((n, ROUNDS * n))
    for t in range(ROUNDS):
        sent = x + np.kron(np.eye(ROUNDS)[t : t + 1], np.eye(n))
        rows.append(sent)
        x = sent + consensus_rate * (w[t % period] - np.eye(n)) @ sent
    known = []
    for t in range(ROUNDS):
        heard = set(observers)
        for observer in observers:
            heard |= set(np.flatnonzero(w[t % period][observer]))
        known += [rows[t][peer] for peer in sorted(heard)]
    known = np.array(known)
    prior = np.kron(
        (1 - similarity) * np.eye(ROUNDS) + similarity * np.ones((ROUNDS, ROUNDS)), np.eye(n)
    )
    joint = known @ prior
    covariance = joint @ known.T + 1e-8 * np.eye(len(known))
    explained = np.einsum("ka,ka->a", joint, np.linalg.solve(covariance, joint))
    return explained.reshape(ROUNDS, n).T


@pytest.mark.parametrize(
    ("topology", "peers", "observers", "similarity", "choco"),
    [
        ("ring", 7, [0], 0.0, None),
        ("path", 6, [2], 0.6, None),
        ("one_peer_exponential", 8, [1, 5], 0.3, None),
        ("star", 5, [4], 0.9, None),
        ("ring", 7, [0], 0.2, 0.3),
        ("path", 6, [2], 0.6, 0.8),
    ],
)
def test_shares_of_the_graph(
    gossamer: Path,
    tmp_path: Path,
    topology: str,
    peers: int,
    observers: list[int],
    similarity: float,
    choco: float | None,
) -> None:
    config = tmp_path / "leak.toml"
    config.write_text(CONFIG.format(peers=peers, topology=topology))
    sets = ["algorithm.kind=choco", f"algorithm.consensus_rate={choco}"] if choco else []
    done = leak(
        gossamer,
        config,
        "--predict",
        "--json",
        *("--rounds", str(ROUNDS), "--similarity", str(similarity)),
        *("--observers", ",".join(map(str, observers))),
        *(text for each in sets for text in ("--set", each)),
    )
    assert done.returncode == 0, done.stderr
    (group,) = json.loads(done.stdout)["groups"]
    shares = expected_shares(
        matrices(gossamer, topology, peers), observers, similarity, choco or 1.0
    )
    assert [update["peer"] for update in group["peers"]] == [
        peer for peer in range(peers) if peer not in observers
    ]
    for update in group["peers"]:
        of_peer = shares[update["peer"]]
        assert update["share"] == pytest.approx(of_peer.max(), abs=1e-6)
        assert of_peer[update["round"]] == pytest.approx(of_peer.max(), abs=1e-6)


def test_files_hold_what_the_neighbour_read(gossamer: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "leak.toml", tmp_path / "out"
    config.write_text(CONFIG.format(peers=6, topology="ring"))
    done = leak(gossamer, config, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "recognised" in done.stdout
    assert str(out / "leak") in done.stdout
    assert sorted(path.name for path in (out / "leak").iterdir()) == [
        "leak.json",
        "resolved.toml",
        "samples.safetensors",
    ]
    found = json.loads((out / "leak/leak.json").read_text())
    tensors = load_file(out / "leak/samples.safetensors")
    assert tensors["original"].shape == (len(found["shown"]), 1, 8, 8)
    neighbours = [
        k
        for k, shown in enumerate(found["shown"])
        if (shown["peer"] - shown["observers"][0]) % 6 in (1, 5)
    ]
    assert len(neighbours) == 12
    for k in neighbours:
        np.testing.assert_allclose(tensors["original"][k], tensors["recovered"][k], atol=1e-3)


def test_a_gradient_of_convolutions_is_inverted(gossamer: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "leak.toml", tmp_path / "out"
    text = CONFIG.format(peers=6, topology="ring").replace('"mlp"', '"cnn"')
    config.write_text(text.replace("hidden = [16]", "channels = [8]"))
    done = leak(gossamer, config, "--invert", "300", "--observers", "0", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "by inverting" in done.stdout
    found = json.loads((out / "leak/leak.json").read_text())
    tensors = load_file(out / "leak/samples.safetensors")
    inverted = {peer["peer"]: peer["inverted"] for peer in found["groups"][0]["peers"]}
    assert max(inverted[1], inverted[5]) > 20, "a neighbour's image"
    assert max(inverted[2], inverted[3], inverted[4]) < 15, "rows of others hide these"
    for k, shown in enumerate(found["shown"]):
        error = np.mean((tensors["original"][k] - tensors["recovered"][k]) ** 2)
        assert 10 * np.log10(1 / error) == pytest.approx(inverted[shown["peer"]], abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--invert", "-1"), "--invert -1"),
        (("--invert", "10", "--predict"), "--invert: with --predict nothing is run"),
        (("--invert", "10", "--set", "data.batch=0"), "data.batch = 0"),
        (("--set", "algorithm.kind=extra"), "algorithm.kind = 'extra'"),
        (("--observers", "0,9"), "there is no peer 9; ids are 0 to 5"),
        (("--observers", "x"), "--observers"),
        (("--similarity", "1"), "--similarity"),
        (("--similarity", "nan"), "--similarity"),
        (("--rounds", "21"), "run.rounds = 20"),
        (("--observers", "0-5"), "no peer is left"),
        (("--rounds", "0"), "--rounds"),
    ],
)
def test_refusals(gossamer: Path, tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    config = tmp_path / "leak.toml"
    config.write_text(CONFIG.format(peers=6, topology="ring"))
    done = leak(gossamer, config, "--out", str(tmp_path / "out"), *arguments)
    assert done.returncode == 2, done.stdout
    assert part in done.stderr
    assert not (tmp_path / "out").exists()
