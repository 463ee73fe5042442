"""Speed-up against the number of peers: measured and predicted values, and the scaling."""

from __future__ import annotations

import html
import importlib
import json
import subprocess
from pathlib import Path

import pytest
from conftest import draw_only

pytestmark = pytest.mark.xdist_group("speedup")  # the tests share one sweep

CONFIG = """
[run]
rounds = 60
[topology]
kind = "ring"
[algorithm]
kind = "dpsgd"
[model]
kind = "mlp"
hidden = [64]
[data]
kind = "digits"
batch = 8
[sim]
latency_ms = 1
uplink_mbit_s = 20
downlink_mbit_s = 20
compute_ms = 20
[log]
every = 0
"""


@pytest.fixture(scope="module")
def points(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("speedup")
    config = folder / "speedup.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOSSAMER_BIN", str(gossamer))
        code = importlib.import_module("sweep").main(
            [
                str(config),
                "algorithm.kind=dpsgd,allreduce,server",
                "run.peers=1,2,4,8,16",
                "-j",
                "2",
                "--out",
                str(folder / "out"),
            ]
        )
        assert code == 0
        draw_only(patch, "speedup")
        assert importlib.import_module("report").main([str(folder / "out")]) == 0
        assert (folder / "out" / "figures" / "speedup.svg").stat().st_size > 2000
        page = html.unescape((folder / "out" / "report.html").read_text(encoding="utf-8"))
        assert (
            "sent per server" in page and "The bytes that a server sends are in the table" in page
        )
        conditions = importlib.import_module("lab.conditions").read_conditions(
            importlib.import_module("lab.results").read_sweep(folder / "out")
        )
        predictions = importlib.import_module("lab.predictions").Predictions(
            conditions, folder / "out"
        )
        return importlib.import_module("lab.speedup").speedup_points(conditions, predictions)


def test_the_published_configuration_is_bound_by_communication_except_for_gossip(
    gossamer: Path,
) -> None:
    config = Path(__file__).resolve().parents[3] / "experiments" / "speedup.toml"
    for kind in ("dpsgd", "allreduce", "server"):
        done = subprocess.run(
            [
                gossamer,
                "predict",
                config,
                "--json",
                "--set",
                f"algorithm.kind={kind}",
                "--set",
                "run.peers=64",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = json.loads(done.stdout)["round_seconds"]
        assert (seconds["total"] > 2 * seconds["training"]) == (kind != "dpsgd")


def test_measured_speedups_match_predictions(points: dict) -> None:
    assert set(points) == {"dpsgd", "allreduce", "server"}
    for series in points.values():
        assert [point.peers for point in series] == [1, 2, 4, 8, 16]
        for point in series:
            assert point.predicted == pytest.approx(point.measured, rel=0.06)


def test_gossip_scales_and_a_server_does_not(points: dict) -> None:
    at = {name: {point.peers: point for point in series} for name, series in points.items()}
    assert at["dpsgd"][16].measured == pytest.approx(4 * at["dpsgd"][4].measured, rel=0.02)
    assert at["server"][16].measured < 1.3 * at["server"][8].measured
    assert at["server"][16].communication_bound
    assert not at["dpsgd"][16].communication_bound
