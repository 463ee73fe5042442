"""Workers as replicas and as parts of a model: time to a target, measured and predicted."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest
from conftest import draw_only

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"
CONFIG = """
[run]
rounds = 12
[topology]
kind = "ring"
[model]
kind = "mlp"
hidden = [24, 24, 24]
[data]
kind = "digits"
[optimizer]
rate = 0.1
momentum = 0.9
[sim]
latency_ms = 1
sample_ms = 1
[log]
every = 1
"""
VARIANTS = """
[variants."4 × 1"]
"run.peers" = 4
"data.batch" = 32
[variants."2 × 2"]
"run.peers" = 2
"split.layers" = 2
"data.batch" = 64
[variants."2 × 1 × 2"]
"run.peers" = 2
"split.parameters" = 2
"data.batch" = 64
[variants."1 × 4"]
"run.peers" = 1
"split.layers" = 4
"data.batch" = 128
"""


def test_the_figure_has_the_time_to_a_target_as_predicted(
    gossamer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOSSAMER_BIN", str(gossamer))
    (tmp_path / "split.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "variants.toml").write_text(VARIANTS, encoding="utf-8")
    out = tmp_path / "out"
    command = [str(tmp_path / "split.toml"), "--variants", str(tmp_path / "variants.toml")]
    command += ["sim.bandwidth_mbit_s=2,1000", "-j", "2", "--out", str(out)]
    assert importlib.import_module("sweep").main(command) == 0
    draw_only(monkeypatch, "split")
    assert importlib.import_module("report").main([str(out), "--target", "0.5"]) == 0
    assert (out / "figures" / "split.svg").stat().st_size > 2000

    conditions = importlib.import_module("lab.conditions").read_conditions(
        importlib.import_module("lab.results").read_sweep(out)
    )
    metric = importlib.import_module("lab.metric").choose_metric(conditions)
    target = importlib.import_module("lab.metric").Target(0.5, "")
    predictions = importlib.import_module("lab.predictions").Predictions(conditions, out)
    points = importlib.import_module("lab.split").split_points(
        conditions, metric, {condition.facet: target for condition in conditions}, predictions
    )
    assert len(points) == 2
    for facet in points.values():
        shapes = [point.shape.label for point in facet]
        assert shapes == ["4 × 1", "2 × 2", "1 × 4", "2 × 1 × 2"]
        for point in facet:
            assert point.predicted == pytest.approx(point.measured, rel=0.1)
    slow, fast = points.values()
    assert slow[0].measured > 2 * fast[0].measured


def test_the_published_configurations_are_valid(gossamer: Path) -> None:
    for sets in (
        ("run.peers=8", "data.batch=32"),
        ("run.peers=4", "split.layers=2", "data.batch=64"),
        ("run.peers=2", "split.layers=4", "data.batch=128"),
        ("run.peers=1", "split.layers=8", "data.batch=256"),
        ("run.peers=4", "split.parameters=2", "data.batch=64"),
        ("run.peers=2", "split.layers=2", "split.parameters=2", "data.batch=128"),
        ("run.peers=1", "split.layers=4", "split.parameters=2", "data.batch=256"),
    ):
        overrides = [argument for each in sets for argument in ("--set", each)]
        command = [gossamer, "run", EXPERIMENTS / "split.toml", "--check", *overrides]
        assert subprocess.run(command, check=False).returncode == 0
