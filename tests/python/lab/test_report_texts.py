"""The texts of a report say what its runs were: their step sizes, samples, servers and graphs."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from lab.conditions import read_conditions
from lab.metric import choose_metric, make_target
from lab.predictions import Predictions
from lab.results import read_sweep
from lab.topology import WITHOUT_GRAPH
from report import make_figures

pytestmark = pytest.mark.usefixtures("without_drawing")


def report(lab: Any, folder: Path, *axes: str, **options: Any) -> str:
    """Runs a sweep and its report. Returns the page, without the commands."""
    swept = lab("sweep", "small.toml", *axes, "--out", "out", **options)
    assert swept.returncode == 0, swept.stderr
    reported = lab("report", "out", **options)
    assert reported.returncode == 0, reported.stderr
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    return page.partition("<h2>Commands")[0]


def cells(page: str) -> list[dict[str, str]]:
    """The rows of the page's table."""
    header = re.findall(r'<th scope="col">(.*?)</th>', page)
    rows = [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(<td>.*?)</tr>", page)]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_different_step_sizes_are_not_called_the_same(lab: Any, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(
        '[variants.slow]\n"optimizer.rate" = 0.05\n[variants.fast]\n"optimizer.rate" = 0.5\n',
        encoding="utf-8",
    )
    page = report(lab, tmp_path, "--variants", "v.toml")
    assert "not tuned: 0.05 in slow, and 0.5 in fast." in page and "the same step" not in page
    page = report(lab, tmp_path, "topology.kind=ring,star")
    assert "Every condition has the same step size (0.5), which is not tuned." in page


def test_metrics_on_validation_samples_are_named_so(lab: Any, tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    held_out = small.read_text("utf-8").replace("[data]", "[data]\nvalidation = 0.2")
    small.write_text(held_out.replace("[data]", '[data]\nevaluate = "validation"'), "utf-8")
    page = report(lab, tmp_path, "topology.kind=ring,star")
    assert "Validation accuracy and loss are those" in page and "the whole validation set" in page
    assert "validation accuracy" in cells(page)[0] and "Target: validation accuracy" in page
    assert not re.search(r"\btest\b", page, re.IGNORECASE)
    page = report(lab, tmp_path, "--rates", "0.1,0.2")
    assert "the figures show the validation set" in page
    small.write_text(held_out, "utf-8")
    page = report(lab, tmp_path, "data.evaluate=test,validation")
    assert "Test or validation accuracy and loss are those" in page


def test_a_condition_without_accuracy_has_a_dash(lab: Any, gossamer: Path, tmp_path: Path) -> None:
    axes = ("algorithm.kind=consensus,dpsgd", "run.seed=0,1")
    consensus, dpsgd = cells(report(lab, tmp_path, *axes, program=gossamer))
    assert consensus["worst peer"] == consensus["test accuracy"] == "–"
    assert 0 < float(dpsgd["worst peer"]) < 1


def test_servers_are_not_denied_and_have_no_graph(lab: Any, gossamer: Path, tmp_path: Path) -> None:
    page = report(lab, tmp_path, "algorithm.kind=dpsgd,server,fedavg", program=gossamer)
    assert "4 peers, softmax on digits by dpsgd, server and fedavg" in page
    assert "without a server" not in page
    rows = {row["condition"]: (row["gap"], row["degree"]) for row in cells(page)}
    assert rows == {"dpsgd": ("0.667", "2"), "server": ("–", "–"), "fedavg": ("–", "–")}
    assert "a dash where the algorithm does not use the graph" in page
    figures = figures_of(tmp_path / "out")
    assert {line.get_label() for line in figures["gap"].axes[0].lines} & set(rows) == {"dpsgd"}
    assert len(figures["graphs"].axes) == 1
    page = report(lab, tmp_path, "algorithm.kind=server,allreduce", program=gossamer)
    figures = figures_of(tmp_path / "out")
    assert "graphs" not in figures
    for panel in figures["gap"].axes:
        assert [text.get_text() for text in panel.texts] == ["the algorithms do not use the graph"]


def figures_of(folder: Path) -> dict[str, Any]:
    conditions = read_conditions(read_sweep(folder))
    metric = choose_metric(conditions)
    targets = {"": make_target(metric, conditions, None)}
    figures = make_figures(conditions, metric, targets, Predictions(conditions, folder))
    return {figure.stem: figure.figure for figure in figures}


def test_the_algorithms_that_use_no_graph_are_those_of_the_program() -> None:
    """The others take the partners of a peer from the graph."""
    sources = list((ROOT / "src" / "gossip" / "algorithms").glob("*.cpp"))
    assert WITHOUT_GRAPH == {
        source.stem
        for source in sources
        if "return mixing_partners(" not in source.read_text(encoding="utf-8")
    }


def test_a_graph_that_differs_from_seed_to_seed_is_named_so(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    note = "A graph that differs from seed to seed is drawn for the first seed."
    axes = ("--set", "run.peers=8", "run.seed=0,1", "run.rounds=2")
    assert note in report(lab, tmp_path, "topology.kind=erdos_renyi", *axes, program=gossamer)
    assert note not in report(lab, tmp_path, "topology.kind=ring", *axes, program=gossamer)
