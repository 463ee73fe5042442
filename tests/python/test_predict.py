"""`gossamer predict` and `gossamer gap` as programs: what they print for people and for scripts, and how they refuse."""

import json
import subprocess
from pathlib import Path

import pytest

CONFIG = """[run]
peers = 16
rounds = 60
[topology]
kind = "exponential"
[model]
kind = "linear"
[data]
kind = "quadratic"
batch = 0
dimension = 5
[optimizer]
rate = 0.2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def call(gossamer: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), *map(str, words)], capture_output=True, text=True, timeout=60
    )


def test_the_object_and_the_text_say_the_same(gossamer: Path, config: Path) -> None:
    done = call(gossamer, "predict", config, "--set", "algorithm.order=awc", "--json")
    assert done.returncode == 0 and not done.stderr
    said = json.loads(done.stdout)
    assert said["rounds"] == [0, 10, 20, 30, 40, 50, 60]
    assert len(said["consensus_distance"]) == len(said["distance_to_optimum"]) == 7
    assert said["stable"] is True and 0.9 < said["rate"] < 1 and said["not_known"] == []
    assert said["distance_to_optimum"][0] > said["limit"]["distance_to_optimum"] > 0
    assert said["limit"] == said["limit_without_noise"]
    assert said["bytes_sent"] == 60 * 16 * 4 * (5 * 4 + 72)
    text = call(gossamer, "predict", config, "--set", "algorithm.order=awc").stdout
    assert f"{said['limit']['distance_to_optimum']:.4g} from the optimum" in text
    assert f"multiplied by {said['rate']:.6g} a round" in text


def test_no_curve_is_said_and_no_error(gossamer: Path) -> None:
    done = call(gossamer, "predict", "--set", "run.peers=8")  # softmax on digits
    assert done.returncode == 0
    assert "not predicted: curve: the theory has no curve for this loss" in done.stdout
    assert "effective neighbours" in done.stdout
    said = json.loads(call(gossamer, "predict", "--set", "run.peers=8", "--json").stdout)
    assert said["rounds"] is None and said["consensus_distance"] is None and said["limit"] is None


def test_what_cannot_run_is_refused_as_run_refuses_it(gossamer: Path, config: Path) -> None:
    for words in (["algorithm.kind=d2"], ["topology.kind=tours"], ["run.peers=0"]):
        refused = call(gossamer, "predict", config, *(w for word in words for w in ("--set", word)))
        ran = call(
            gossamer, "run", config, "--check", *(w for word in words for w in ("--set", word))
        )
        assert refused.returncode == ran.returncode == 2 and refused.stderr == ran.stderr


def test_a_network_as_large_as_there_are(gossamer: Path) -> None:
    words = (
        "algorithm.kind=consensus",
        "topology.kind=torus",
        "run.peers=65025",
        "run.rounds=1000",
        "algorithm.length=4",
    )
    done = call(gossamer, "predict", "--json", *(w for word in words for w in ("--set", word)))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["sampled"] is False
    assert said["consensus_distance"][0] == pytest.approx(2, rel=1e-4)
    assert all(
        a > b
        for a, b in zip(said["consensus_distance"], said["consensus_distance"][1:], strict=False)
    )


def test_gap_of_a_run(gossamer: Path, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert (
        call(gossamer, "run", config, "--quiet", "--out", out, "--set", "run.rounds=200").returncode
        == 0
    )
    said = json.loads(call(gossamer, "gap", out, "--json").stdout)
    assert said["gap_realised"] == pytest.approx(said["gap_planned"], rel=0.01)
    assert said["rounds"] == 200 and said["rows"] == 200 * 16 * 4 and said["deviations"] == 0
    assert "none: every row was mixed as planned" in call(gossamer, "gap", out).stdout
    assert call(gossamer, "gap", tmp_path / "nowhere").returncode == 3
