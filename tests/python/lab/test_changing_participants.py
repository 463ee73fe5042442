"""Sweeps and reports of runs whose participants change (run.participants)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from lab.conditions import read_conditions
from lab.curves import read_curves
from lab.gap import gap_figure
from lab.metric import Metric, Target
from lab.participants import (
    Change,
    counted_after,
    parse_ids,
    peer_rounds,
    peers_drawn,
    planned_changes,
)
from lab.results import read_sweep
from lab.tables import make_table

METRIC = Metric("test_accuracy", "accuracy", True, False)
PLAN = 'run.participants=["0-2", "4: 0-7", "8: 2-4"]'
SETTINGS = ("run.peers=8", "run.rounds=13", "data.batch=4", "log.every=1")


def test_participants_are_read_as_the_program_writes_them() -> None:
    assert parse_ids("0-2,7") == {0, 1, 2, 7} and parse_ids("5") == {5}
    changes = planned_changes(["0-2", "4: 0-7", "8: 2-4"])
    assert changes[1:] == [Change(4, parse_ids("0-7")), Change(8, parse_ids("2-4"))]
    sizes = [len(counted_after(changes, t)) for t in (0, 1, 4, 5, 8, 9, 13)]
    assert sizes == [3, 3, 3, 8, 8, 3, 3]
    assert [peer_rounds(changes, t, ()) for t in (0, 1, 4, 6, 8, 13)] == [0, 3, 12, 28, 44, 59]
    assert peer_rounds(changes, 6, (1, 7)) == 2 * 4 + 6 * 2
    topology = {"peers": 3, "changes": [{"round": 0, "participants": "0-2,6"}]}
    assert peers_drawn(topology) == 7 and peers_drawn({"peers": 3}) == 3


def test_a_curve_is_that_of_the_peers_that_took_part(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    axes = ("topology.kind=ring,base", "run.seed=0..1", "--set", PLAN)
    done = lab("sweep", "small.toml", *axes, *SETTINGS, "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    table = polars.read_parquet(tmp_path / "out" / "curves.parquet")
    assert table.height == 2 * 2 * 14
    assert table["test_loss_min"].is_not_null().all()
    (run,) = (tmp_path / "out").glob("ring-*seed0*")
    curves = read_curves(run)
    assert curves.rounds.tolist() == list(range(14)) and curves.period == 1
    log = (run / "log-0.jsonl").read_text(encoding="utf-8")
    records = [r for r in map(json.loads, log.splitlines()) if r["record"] == "round"]
    for t, value in enumerate(curves.values["test_loss"]):
        losses = [record["test_loss"] for record in records if record["round"] == t]
        assert len(losses) == (8 if 4 < t <= 8 else 3)
        assert value == pytest.approx(np.mean(losses))
    # A mean over the peers that are there would fall in round 5, when five join.
    sent = curves.values["bytes_sent"]
    assert sent[0] == 0 and (np.diff(sent) > 0).all()
    total = {record["peer"]: record["bytes_sent"] for record in records}
    assert sent[-1] == pytest.approx(sum(total.values()) / (59 / 13))
    reported = lab("report", "out", program=gossamer)
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "3, 8, 3 peers take part in turn" in page.replace("\n", " ")


@pytest.mark.usefixtures("without_drawing")
def test_gap_and_degree_are_those_of_the_last_graph(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    """A ring of three peers is complete, and one of eight is not."""
    plan = 'run.participants=["0-2", "4: 0-7"]'
    axes = ("topology.kind=ring,complete", "--set", plan, *SETTINGS)
    done = lab("sweep", "small.toml", *axes, "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    gap = 2 / 3 * (1 - np.cos(2 * np.pi / 8))
    table = polars.read_csv(tmp_path / "out" / "results.csv")
    assert table["spectral_gap"].to_list() == pytest.approx([gap, 1])
    reported = lab("report", "out", program=gossamer)
    assert reported.returncode == 0, reported.stderr
    assert reported.stdout.startswith("3 to 8 peers without a server")
    assert "of the last graph, where the participants change" in reported.stdout
    ring, complete = read_conditions(read_sweep(tmp_path / "out"))
    assert make_table([ring], METRIC, {"": Target(0.5, "")}, []).rows[0][1:3] == ["0.195", "2"]
    assert make_table([complete], METRIC, {"": Target(0.5, "")}, []).rows[0][1:3] == ["1", "7"]
    (panel, _) = gap_figure([ring, complete], METRIC, {"": Target(0.5, "")}, "").figure.axes
    assert sorted({float(line.get_xdata()[0]) for line in panel.lines}) == pytest.approx([gap, 1])


@pytest.mark.usefixtures("without_drawing")
def test_the_last_graph_decides_which_rounds_a_log_must_show(lab: Any, gossamer: Path) -> None:
    """Base-2 of three peers repeats after 3 rounds, from round 8 on."""
    base = ("topology.kind=base", "--set", PLAN, *SETTINGS[:3])
    done = lab("sweep", "small.toml", *base, "log.every=3", "--out", "out", program=gossamer)
    assert done.returncode == 2
    assert "shows 2 of the 3 rounds after which the graph base repeats" in done.stderr
    assert "choose log.every = 1, or log.last = 3" in done.stderr
    done = lab(
        "sweep", "small.toml", *base, "log.every=3", "log.last=3", "--out", "out", program=gossamer
    )
    assert done.returncode == 0, done.stderr
    reported = lab("report", "out", program=gossamer)  # of which no target has a date
    assert reported.returncode == 0, reported.stderr
    assert "never" not in reported.stdout
