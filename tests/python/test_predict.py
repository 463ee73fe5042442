"""`gossamer predict` and `gossamer gap`: text, JSON and error messages."""

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


def call(gossamer: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(gossamer), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def test_json_and_text_agree(gossamer: Path, config: Path) -> None:
    done = call(gossamer, "predict", config, "--set", "algorithm.order=awc", "--json")
    assert done.returncode == 0 and not done.stderr
    prediction = json.loads(done.stdout)
    assert prediction["rounds"] == [0, 10, 20, 30, 40, 50, 60]
    assert len(prediction["consensus_distance"]) == len(prediction["distance_to_optimum"]) == 7
    assert (
        prediction["stable"] is True
        and 0.9 < prediction["rate"] < 1
        and prediction["not_known"] == []
    )
    assert prediction["distance_to_optimum"][0] > prediction["limit"]["distance_to_optimum"] > 0
    assert prediction["limit"] == prediction["limit_without_noise"]
    assert prediction["bytes_sent"] == 60 * 16 * 4 * (5 * 4 + 72)
    text = call(gossamer, "predict", config, "--set", "algorithm.order=awc").stdout
    assert f"{prediction['limit']['distance_to_optimum']:.4g} from the optimum" in text
    assert f"multiplied by {prediction['rate']:.6g} per round" in text


def test_a_missing_curve_is_reported_without_an_error(gossamer: Path) -> None:
    done = call(gossamer, "predict", "--set", "run.peers=8")  # softmax on digits
    assert done.returncode == 0
    assert "not predicted: curve: the theory has no curve for this loss" in done.stdout
    assert "effective neighbours" in done.stdout
    prediction = json.loads(call(gossamer, "predict", "--set", "run.peers=8", "--json").stdout)
    assert (
        prediction["rounds"] is None
        and prediction["consensus_distance"] is None
        and prediction["limit"] is None
    )


def test_predict_and_run_reject_a_configuration_with_the_same_message(
    gossamer: Path, config: Path
) -> None:
    for override in ("algorithm.kind=d2", "topology.kind=tours", "run.peers=0"):
        predicted = call(gossamer, "predict", config, "--set", override)
        ran = call(gossamer, "run", config, "--check", "--set", override)
        assert predicted.returncode == ran.returncode == 2 and predicted.stderr == ran.stderr


def test_the_largest_network_is_predicted(gossamer: Path) -> None:
    overrides = (
        "algorithm.kind=consensus",
        "topology.kind=torus",
        "run.peers=65025",
        "run.rounds=1000",
        "algorithm.length=4",
    )
    done = call(gossamer, "predict", "--json", *(w for each in overrides for w in ("--set", each)))
    assert done.returncode == 0, done.stderr
    prediction = json.loads(done.stdout)
    assert prediction["sampled"] is False
    assert prediction["consensus_distance"][0] == pytest.approx(2, rel=1e-4)
    assert all(
        a > b
        for a, b in zip(
            prediction["consensus_distance"], prediction["consensus_distance"][1:], strict=False
        )
    )


def test_gap_of_a_run(gossamer: Path, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert (
        call(gossamer, "run", config, "--quiet", "--out", out, "--set", "run.rounds=200").returncode
        == 0
    )
    gap = json.loads(call(gossamer, "gap", out, "--json").stdout)
    assert gap["gap_realised"] == pytest.approx(gap["gap_planned"], rel=0.01)
    assert gap["rounds"] == 200 and gap["rows"] == 200 * 16 * 4 and gap["deviations"] == 0
    assert "none: every row was mixed as planned" in call(gossamer, "gap", out).stdout
    assert call(gossamer, "gap", tmp_path / "nowhere").returncode == 3
