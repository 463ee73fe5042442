"""Which cells of a grid a sweep runs: constants, impossible cells, and shards."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from lab.axes import Axis
from lab.captions import warnings
from lab.cells import make_cells
from lab.errors import LabError
from lab.grid_check import MOST_REASONS, fault_lines
from lab.results import Sweep
from lab.shards import Shard, parse_shard


def sweep_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "sweep.json").read_text(encoding="utf-8"))


def names(folder: Path) -> list[str]:
    return [cell["name"] for cell in sweep_json(folder)["cells"]]


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_a_constant_is_in_all_runs_and_in_no_name(lab: Any, tmp_path: Path) -> None:
    command = ("sweep", "small.toml", "run.seed=0,1", "--set", "run.rounds=9", "--out", "out")
    done = lab(*command, "--set", "data.kind=digits")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "out") == ["seed0", "seed1"]
    assert [summary(tmp_path / "out" / name)["rounds"] for name in ("seed0", "seed1")] == [9, 9]
    assert sweep_json(tmp_path / "out")["set"] == {"run.rounds": "9", "data.kind": "digits"}
    assert "2 of them complete" in lab(*command).stderr
    assert "0 of them complete" in lab(*command[:-4], "run.rounds=8", "--out", "out").stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("rounds=9",), "--set rounds=9: write section.key=value"),
        (("run.rounds",), "--set run.rounds: write section.key=value"),
        (("run.rounds=9", "run.rounds=9"), "--set run.rounds is given twice"),
        (("run.seed=9",), "--set run.seed: the grid has values for this key"),
        (("run.unknown=9",), "run.unknown"),
    ],
)
def test_an_invalid_constant_is_rejected(
    lab: Any, tmp_path: Path, settings: tuple[str, ...], message: str
) -> None:
    options = [part for setting in settings for part in ("--set", setting)]
    done = lab("sweep", "small.toml", "run.seed=0,1", *options, "--out", "out")
    assert done.returncode == 2 and message in done.stderr
    assert not (tmp_path / "out").exists()


IMPOSSIBLE = ("topology.kind=ring,hypercube", "run.peers=4,6", "--set", "log.every=1")


@pytest.mark.usefixtures("without_drawing")
def test_impossible_cells_end_a_sweep_unless_they_are_skipped(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    command = ("sweep", "small.toml", *IMPOSSIBLE, "run.seed=0,1", "--out", "out")
    done = lab(*command, program=gossamer)
    assert done.returncode == 2 and "cannot be built for 6 peers" in done.stderr
    assert not (tmp_path / "out").exists()
    done = lab(*command, "--skip-impossible", program=gossamer)
    assert done.returncode == 0, done.stderr
    assert "2 impossible cell(s) left out" in done.stderr
    assert "topology hypercube cannot be built for 6 peers" in done.stderr
    assert "(cell hypercube-peers6-seed0 and 1 more)" in done.stderr
    assert {name.rpartition("-")[0] for name in names(tmp_path / "out")} == {
        "ring-peers4",
        "ring-peers6",
        "hypercube-peers4",
    }
    ((reason, cells),) = sweep_json(tmp_path / "out")["impossible"].items()
    assert "hypercube" in reason and cells == ["hypercube-peers6-seed0", "hypercube-peers6-seed1"]
    reported = lab("report", "out", program=gossamer)
    assert "2 impossible cells were left out" in reported.stdout
    assert "cannot be built for 6 peers" in reported.stdout


def test_many_reasons_are_counted() -> None:
    """The texts of 100 reasons stay short; sweep.json has them all."""
    faults = {f"reason {i} {'long ' * 200}": [f"cell{i}-{j}" for j in range(3)] for i in range(100)}
    lines = fault_lines(faults)
    assert len(lines) == MOST_REASONS + 1
    assert lines[-1] == "… and 96 other reasons for 288 cells"
    assert fault_lines({"one": ["a"]}) == ["one\n  (cell a)"]
    metadata = {"shard": None, "impossible": faults}
    (note,) = warnings(Sweep(Path(), metadata, [], []), [], [])
    assert note.startswith("300 impossible cells were left out. reason 0 long long")
    assert note.endswith("There are 96 other reasons for 288 cells; sweep.json has all of them.")
    assert "(cell3-0, cell3-1 and 1 more)." in note and len(note) < 1400


def test_an_impossible_condition_selects_no_step_size(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    done = lab(
        *("sweep", "small.toml", *IMPOSSIBLE, "--skip-impossible", "--out", "out"),
        *("--rates", "0.2,0.5", "--selection-seeds", "7", "--set", "run.rounds=2"),
        program=gossamer,
    )
    assert done.returncode == 0, done.stderr
    assert len(sweep_json(tmp_path / "out")["choices"]) == 3
    assert not any("hypercube-peers6" in name for name in names(tmp_path / "out"))


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("topology.kind=ring,rong", "there is no 'rong'"),  # a mistake: no cell can have this value
        ("run.peers=4 run.rounds=1,x", "run.rounds"),
        ("topology.kind=hypercube run.peers=6,7", "cannot be built for 6 peers"),  # nothing is left
        ("data.kind=digits,csv data.path=nowhere.csv", "nowhere.csv"),
        ("topology.kind=ring,one_peer_exponential log.every=2", "log.every = 2"),
    ],
)
def test_other_faults_than_impossible_cells_end_a_sweep(
    lab: Any, gossamer: Path, tmp_path: Path, axis: str, message: str
) -> None:
    command = ("sweep", "small.toml", *axis.split(), "--skip-impossible", "--out", "out")
    done = lab(*command, program=gossamer)
    assert done.returncode == 2 and message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_setting_that_only_some_kinds_have_is_impossible_for_the_others(
    lab: Any, gossamer: Path, tmp_path: Path
) -> None:
    axes = ("topology.kind=ring,random_regular", "topology.degree=3,4", "run.peers=8")
    done = lab("sweep", "small.toml", *axes, "--skip-impossible", "--out", "out", program=gossamer)
    assert done.returncode == 0 and "unknown for kind ring" in done.stderr
    assert names(tmp_path / "out") == [
        "random_regular-degree3-peers8",
        "random_regular-degree4-peers8",
    ]


@pytest.mark.parametrize(("rates", "units"), [((), 30), (("0.1", "0.2"), 6)])
@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_every_cell_is_in_one_of_balanced_shards(
    rates: tuple[str, ...], units: int, count: int
) -> None:
    def grid(seeds: tuple[str, ...], selects: bool) -> list[Any]:
        kinds = Axis("topology.kind", ("ring", "torus", "complete"))
        axes = [kinds, Axis("run.peers", ("4", "16")), Axis("run.seed", seeds)]
        return make_cells(axes, rates, Path("x"), selects=selects)

    cells = grid(("0", "1", "2", "3", "4"), False)
    selecting = grid(("5", "6"), True) if rates else []
    parts = [Shard(index, count).part(cells, selecting) for index in range(1, count + 1)]
    for whole, which in ((cells, 0), (selecting, 1)):
        assert sorted(cell.name for part in parts for cell in part[which]) == sorted(
            cell.name for cell in whole
        )
    sizes = [len(part[0]) * units // len(cells) for part in parts]
    assert max(sizes) - min(sizes) <= 1 and sum(sizes) == units
    if rates:
        for own, selects in parts:
            assert {cell.condition() for cell in own} == {cell.condition() for cell in selects}


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "a/b", "1/2/3", "-1/2"])
def test_an_invalid_shard_is_rejected(text: str) -> None:
    with pytest.raises(LabError, match="--shard"):
        parse_shard(text)


def test_more_shards_than_cells_are_rejected(lab: Any, tmp_path: Path) -> None:
    done = lab("sweep", "small.toml", "run.seed=0,1", "--shard", "1/3", "--out", "out")
    assert done.returncode == 2 and "into at most 2 shards" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_drawing")
def test_joined_shards_are_the_whole_sweep(lab: Any, tmp_path: Path) -> None:
    command = ("sweep", "small.toml", "topology.kind=ring,star,complete", "run.seed=0,1")
    command += ("--rates", "0.2,0.5,2", "--selection-seeds", "7")
    for shard in ("1/2", "2/2"):
        done = lab(*command, "--shard", shard)
        assert done.returncode == 0, done.stderr
    runs = tmp_path / "runs"
    parts = [runs / "small-1-of-2", runs / "small-2-of-2"]
    for part in parts:
        shutil.copytree(part, runs / "small", dirs_exist_ok=True)
    assert "This is part 2/2 of a sweep" in lab("report", parts[1]).stdout
    joined = lab(*command)
    assert joined.returncode == 0 and "9 of them complete" in joined.stderr
    assert "6 run(s) in runs/small, 6 of them complete" in joined.stderr
    assert lab(*command, "--out", "runs/whole").returncode == 0
    results = [(runs / name / "results.csv").read_text("utf-8") for name in ("small", "whole")]
    assert results[0].count("\n") == 16
    assert len(names(parts[0])) + len(names(parts[1])) == len(names(runs / "small")) == 15
    assert names(runs / "small") == names(runs / "whole")
    assert "6 of 6 runs are compared" in page(lab, runs / "small")


def page(lab: Any, folder: Path) -> str:
    reported = lab("report", folder)
    assert reported.returncode == 0 and "This is part" not in reported.stdout
    return (folder / "report.html").read_text(encoding="utf-8")
