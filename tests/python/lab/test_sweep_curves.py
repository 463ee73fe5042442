"""The table of a sweep's curves, and the notebook that starts from it."""

import json
from pathlib import Path
from typing import Any

import polars
import pytest
from conftest import ROOT
from lab.curves import read_curves
from lab.curves import PER_PEER
from lab.sweep_curves import COLUMNS

GRID = ("topology.kind=ring,star", "data.alpha=0.1,1", "run.seed=0,1")


def test_the_curves_have_a_row_for_each_run_and_round(lab: Any, tmp_path: Path) -> None:
    done = lab("sweep", "small.toml", *GRID, "--out", "out")
    assert done.returncode == 0, done.stderr
    table = polars.read_parquet(tmp_path / "out" / "curves.parquet")
    assert table.columns == ["run", "topology.kind", "data.alpha", "run.seed", *COLUMNS]
    assert table.height == 8 * 7
    assert table["run.seed"].dtype.is_integer() and table["data.alpha"].dtype.is_float()
    types = table.schema
    assert table.equals(
        polars.read_csv(tmp_path / "out" / "curves.csv", schema_overrides=dict(types))
    )
    run = table.filter(polars.col("run") == "star-alpha1-seed1").sort("round")
    curves = read_curves(tmp_path / "out" / "star-alpha1-seed1")
    assert run["topology.kind"].unique().to_list() == ["star"]
    assert run["round"].to_list() == curves.rounds.tolist() == list(range(7))
    accuracy = curves.peers["test_accuracy"]
    for part in ("mean", "min", "max"):
        expected = getattr(accuracy, part)(axis=0)
        assert run[f"test_accuracy_{part}"].to_list() == pytest.approx(expected.tolist())
    assert run["test_accuracy_min"][0] < run["test_accuracy_mean"][0] < run["test_accuracy_max"][0]
    assert run["consensus_distance"].to_list() == curves.values["consensus_distance"].tolist()
    assert run["train_loss_mean"][0] is None and run["epsilon_max"].null_count() == 7


def test_selecting_runs_are_marked(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "run.seed=0,1", "--rates", "0.2,0.5,2", "--out", "out")
    table = polars.read_parquet(tmp_path / "out" / "curves.parquet")
    reported = table.filter(~polars.col("selects"))
    assert sorted(reported["run"].unique()) == ["seed0-rate0.5", "seed1-rate0.5"]
    assert reported["selected_for"].unique().to_list() == ["test_loss"]
    assert table.filter(polars.col("selects"))["run"].n_unique() == 6  # diverged runs have no curve


def test_a_setting_of_one_variant_has_a_value_in_all_runs(lab: Any, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(
        '[variants.slow]\n"optimizer.rate" = 0.1\n[variants.dense]\n"topology.kind" = "complete"\n'
        '"codec.bits" = 8\n[variants.diverging]\n"optimizer.rate" = 2\n',
        encoding="utf-8",
    )
    done = lab("sweep", "small.toml", "--variants", "v.toml", "--out", "out")
    assert done.returncode == 1, done.stderr
    rows = polars.read_csv(tmp_path / "out" / "results.csv")
    assert rows["optimizer.rate"].to_list() == [0.1, 0.5, 2]
    assert rows["topology.kind"].to_list() == ["ring", "complete", "ring"]
    assert rows["codec.bits"].to_list() == [None, 8, None], "a setting that the others do not have"
    curves = polars.read_parquet(tmp_path / "out" / "curves.parquet").unique("run")
    assert dict(curves.select("run", "optimizer.rate").rows()) == {"slow": 0.1, "dense": 0.5}
    assert dict(curves.select("run", "topology.kind").rows()) == {
        "slow": "ring",
        "dense": "complete",
    }


def test_a_sweep_without_finished_runs_has_an_empty_table(lab: Any, tmp_path: Path) -> None:
    assert lab("sweep", "small.toml", "run.seed=13", "--out", "out").returncode == 1
    table = polars.read_parquet(tmp_path / "out" / "curves.parquet")
    assert table.height == 0 and table.columns == ["run", *COLUMNS]


def test_a_torn_log_is_named(lab: Any, tmp_path: Path) -> None:
    lab("sweep", "small.toml", "--out", "out")
    log = tmp_path / "out" / "run" / "log-0.jsonl"
    log.write_text(log.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    done = lab("sweep", "small.toml", "--out", "out")
    assert done.returncode == 2 and "log-0.jsonl, line" in done.stderr


@pytest.mark.usefixtures("without_drawing")
def test_the_only_model_of_a_centralized_run_has_curves(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    axes = ("algorithm.kind=dpsgd,centralized", "run.rounds=4", "log.every=1")
    done = lab("sweep", "small.toml", *axes, "--out", "out", program=gossamer)
    assert done.returncode == 0, done.stderr
    table = polars.read_parquet(tmp_path / "out" / "curves.parquet")
    only = table.filter(polars.col("algorithm.kind") == "centralized")
    assert only["round"].to_list() == [0, 1, 2, 3, 4]
    assert only["test_accuracy_min"].to_list() == only["test_accuracy_max"].to_list()
    reported = lab("report", "out", program=gossamer)
    assert reported.returncode == 0 and "centralized" in reported.stdout


def test_every_column_is_documented() -> None:
    text = (ROOT / "docs" / "LOG.md").read_text(encoding="utf-8")
    section = text.partition("## The tables of a sweep")[2]
    derived = {f"{name}_{part}" for name in PER_PEER for part in ("mean", "min", "max")}
    for name in (*PER_PEER, *(set(COLUMNS) - derived), "run", "selects", "selected_for"):
        assert f"`{name}`" in section, name


NOTEBOOK = ROOT / "experiments" / "analysis.ipynb"


def code_cells() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("axes", [(*GRID, "--rates", "0.2,0.5"), ("run.seed=0,1",), ()])
def test_the_notebook_analyses_a_sweep(
    lab: Any, capsys: pytest.CaptureFixture[str], axes: tuple[str, ...]
) -> None:
    done = lab("sweep", "small.toml", *axes, "--out", "runs/quickstart")
    assert done.returncode == 0, done.stderr
    names: dict[str, Any] = {}
    for source in code_cells():
        exec(compile(source, str(NOTEBOOK), "exec"), names)
    assert names["table"]["accuracy"].is_between(0, 1).all()
    conditions = 4 if len(axes) > 1 else 1
    runs = conditions * (2 if axes else 1)
    assert names["table"].height == conditions and names["final"].height == runs
    assert len(names["panels"][0].lines) == conditions
    assert 0 < names["reached"].height <= runs
    assert f"{runs} runs, {runs * 7} rows" in capsys.readouterr().out


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and all(not cell["outputs"] and not cell["execution_count"] for cell in code)
