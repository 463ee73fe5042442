"""What paper.py does about runs that diverge, and about data that are not there."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mnist
import paper
import pytest
from lab.study_results import read_results

STUDY = """
[study]
title = "Rules"
claim = "rules withstand attackers"
source = "Nobody 2020"
[[part]]
name = "attack"
config = "run.toml"
axes = ["run.seed=0..5"]
diverged = 0
[variants.mean]
"optimizer.rate" = 2
[variants.robust]
"optimizer.rate" = 0.5
[[column]]
name = "accuracy"
measure = "test_accuracy"
percent = true
[[claim]]
text = "robust before mean"
column = "accuracy"
order = ["robust", "mean"]
[[panel]]
title = "Dots"
kind = "dots"
y = "accuracy"
"""


@pytest.fixture
def study(lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """study(old, new): runs the study after a replacement in study.toml or run.toml."""
    home = tmp_path / "papers" / "rules"
    home.mkdir(parents=True)
    shutil.copy(tmp_path / "small.toml", home / "run.toml")
    monkeypatch.setattr(paper, "PAPERS", tmp_path / "papers")

    def run(old: str = "", new: str = "") -> Any:
        (home / "study.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
        config = home / "run.toml"
        config.write_text(config.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return lab("paper", "rules")

    return run


def rendered(folder: Path) -> str:
    """The page of the study, written again from its results."""
    assert paper.main(["rules", "--render"]) == 0
    return (folder / "papers/rules/README.md").read_text(encoding="utf-8")


def test_a_diverged_run_has_the_value_that_the_study_states(
    study: Callable[..., Any], tmp_path: Path
) -> None:
    """In the fake program a step size above 1 diverges."""
    done = study()
    assert done.returncode == 0, done.stderr
    assert "paper: rules: the claim holds" in done.stdout
    rows = {row.series: row for row in read_results(tmp_path / "papers/rules/results.json").rows}
    assert rows["mean"].values["accuracy"] == [0] * 6 and rows["mean"].expected == 6
    assert all(value > 0 for value in rows["robust"].values["accuracy"])
    page = (tmp_path / "papers/rules/README.md").read_text(encoding="utf-8")
    assert "A run whose parameters diverged counts as 0.0 %." in " ".join(page.split())


def test_a_diverged_run_is_a_failure_where_the_study_states_no_value(
    study: Callable[..., Any], tmp_path: Path
) -> None:
    assert study("diverged = 0\n").returncode == 1
    results = read_results(tmp_path / "papers/rules/results.json")
    assert [row.series for row in results.rows] == ["robust"]
    assert results.unfinished == {"attack": {"diverged": 6}}
    page = (tmp_path / "papers/rules/README.md").read_text(encoding="utf-8")
    assert "**The claim is open.**" in page
    assert "Runs without a result: 6 diverged." in " ".join(page.split())


def test_a_claim_is_open_where_a_facet_has_no_finished_run(
    study: Callable[..., Any], tmp_path: Path
) -> None:
    """A step size of 2 diverges in the fake program, and complete learns faster than a ring."""
    text = STUDY.replace('axes = ["', 'axes = ["optimizer.rate=0.5,2", "')
    text = text.replace("diverged = 0\n", "").replace("robust before mean", "is faster")
    text = text.replace('"optimizer.rate" = 2', '"topology.kind" = "ring"')
    text = text.replace('"optimizer.rate" = 0.5', '"topology.kind" = "complete"')
    done = study(STUDY, text)
    assert done.returncode == 1 and "1 of 2 claims holds, 1 is open" in done.stdout, done.stderr
    page = (tmp_path / "papers/rules/README.md").read_text(encoding="utf-8")
    assert "| is faster (rate = 2) | – | – | – | 1 | **open**: there is no result |" in page
    assert "Runs without a result: 12 diverged." in " ".join(page.split())
    assert rendered(tmp_path) == page


def test_a_step_size_that_diverges_is_not_selected(study: Callable[..., Any]) -> None:
    done = study("diverged = 0", 'diverged = 0\nrates = "0.1,0.2"')
    assert done.returncode == 2 and "remove diverged or rates" in done.stderr


def test_mnist_is_fetched_for_a_study_that_trains_on_it(
    study: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = mnist.RemoteFile("images", "remote", 3, "")
    monkeypatch.setattr(mnist, "FOLDER", tmp_path / "mnist")
    monkeypatch.setattr(mnist, "FILES", (file,))
    monkeypatch.setattr(mnist, "MIRRORS", ((tmp_path / "mirror").as_uri(),))
    monkeypatch.setattr(mnist, "is_right", lambda data, _: data == b"abc")
    done = study("[data]", '[data]\npath = "../../mnist"')
    assert done.returncode == 2
    assert "rules trains on MNIST: no mirror has remote" in done.stderr
    assert f"copy the files of the same names from another machine to {tmp_path}" in done.stderr
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "remote").write_bytes(b"abc")
    done = study()
    assert done.returncode == 0 and "fetched MNIST" in done.stderr
    assert (tmp_path / "mnist" / "images").read_bytes() == b"abc"
