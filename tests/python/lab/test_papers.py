"""Reproductions of papers: valid study files, decisions on claims, READMEs that match the results.

The studies of the repository are not run here. A small study runs with the fake program.
"""

import gzip
import json
import shutil
import struct
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import mnist
import paper
import pytest
from conftest import draw_only
from lab.axes import Axis, parse_axes, parse_axis, read_variants
from lab.binary import program_command
from lab.cells import Cell, make_cells, trains_task
from lab.errors import LabError
from lab.launch import LaunchConfig, check
from lab.readme_section import index_section, readme_section, results_between_markers
from lab.selection import selecting_axes
from lab.study import Part, full_size
from lab.study_file import read_study
from lab.study_results import check_columns, read_results

STUDIES = [paper.PAPERS / name for name in paper.study_names()]

SMALL = """
[study]
title = "Rings and complete graphs"
claim = "complete graphs are faster"
source = "Nobody 2020"
target = "0.7"
[[part]]
name = "graphs"
config = "run.toml"
axes = ["run.peers=4,8", "run.seed=0..5"]
rates = "0.1,0.4,0.9,2"
selection_seeds = "7"
select = "rounds until test_accuracy {target}"
[variants.ring]
"topology.kind" = "ring"
[variants.complete]
"topology.kind" = "complete"
[[column]]
name = "rounds"
measure = "rounds until test_accuracy {target}"
[[column]]
name = "bytes"
measure = "bytes_sent until test_accuracy {target}"
unit = "B"
[[column]]
name = "averaged model"
measure = "rounds until averaged_accuracy {target}"
select = "averaged_accuracy at 3"
[[claim]]
text = "complete before ring"
column = "rounds"
order = ["complete", "ring"]
[[claim]]
text = "ring before complete"
column = "rounds"
facet = "peers = 8"
order = ["ring", "complete"]
[[published]]
name = "published"
source = "Table 1"
beside = "rounds"
[published.values]
ring = { "peers = 8" = 77 }
[[panel]]
title = "Scatter"
kind = "scatter"
x = "rounds"
y = "bytes"
[[panel]]
title = "Curve"
kind = "curve"
y = "test_accuracy"
x = "bytes_sent"
log = "x"
[[panel]]
title = "Dots"
kind = "dots"
y = "bytes"
[[panel]]
title = "Lines"
kind = "lines"
x = "run.peers"
y = "rounds"
[full]
axes = ["run.peers=16"]
rates = "0.5,0.9"
target = 0.75
"""


@pytest.fixture
def small(lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """small("--full"): runs paper.py with one small study in its own folder."""
    home = tmp_path / "papers" / "small"
    home.mkdir(parents=True)
    (home / "study.toml").write_text(SMALL, encoding="utf-8")
    shutil.copy(tmp_path / "small.toml", home / "run.toml")
    run = (home / "run.toml").read_text(encoding="utf-8").replace("rounds = 6", "rounds = 60")
    (home / "run.toml").write_text(run, encoding="utf-8")
    monkeypatch.setattr(paper, "PAPERS", tmp_path / "papers")
    return lambda *arguments: lab("paper", "small", *arguments)


@pytest.fixture
def smaller(small: Any, tmp_path: Path) -> Any:
    """The small study with one number of peers, two seeds and two step sizes."""
    path = tmp_path / "papers" / "small" / "study.toml"
    text = SMALL.replace("=4,8", "=8").replace("=0..5", "=0..1").replace("0.1,0.4,0.9,2", "0.4,0.9")
    text = text.replace('facet = "peers = 8"\n', "").replace('"peers = 8" = 77', '"" = 77')
    path.write_text(text, encoding="utf-8")
    return small


def test_a_study_is_run_evaluated_and_written(
    small: Any, lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = small("-j", "2")
    assert done.returncode == 0, done.stderr
    assert "2 of 3 claims hold, 1 does not hold" in done.stdout
    home = tmp_path / "papers" / "small"
    text = (home / "README.md").read_text(encoding="utf-8")
    assert (
        "**does not hold**: complete is ahead of ring" in text
        and "| ring | peers = 8 | 0.9 |" in text
        and "step size | averaged model |" in text
        and "with the seeds 7, of which no value is shown" in " ".join(text.split())
        and "| 77 |" in text
    )
    assert (home / "figure.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert "small](small/README.md) | Nobody 2020" in (tmp_path / "papers" / "README.md").read_text(
        encoding="utf-8"
    )
    before = {
        name: (home / name).read_bytes() for name in ("results.json", "README.md", "figure.svg")
    }
    again = small()
    assert again.returncode == 0 and "16 of them complete" in again.stderr
    assert before == {name: (home / name).read_bytes() for name in before}, (
        "the same runs give the same files"
    )
    (home / "README.md").write_text(
        "Ours.\n\n" + text.replace("77", "78") + "\nMore.\n", encoding="utf-8"
    )
    assert small("--render").returncode == 0
    draw_only(monkeypatch)
    reported = lab("report", "runs/papers/small/graphs")
    assert reported.returncode == 0 and "ring, complete; 6 seeds each" in reported.stdout, (
        "report.py reads the sweeps of a study"
    )
    assert (home / "README.md").read_text(encoding="utf-8") == "Ours.\n\n" + text + "\nMore.\n"


def test_a_column_can_have_a_step_size_of_its_own(small: Any, tmp_path: Path) -> None:
    home = tmp_path / "papers" / "small"
    study = (home / "study.toml").read_text(encoding="utf-8").replace("=4,8", "=8")
    study = study.replace('facet = "peers = 8"\n', "")
    close = study.replace('"averaged_accuracy at 3"', '"consensus_distance at 1"')
    (home / "study.toml").write_text(close, encoding="utf-8")
    refused = small()
    assert refused.returncode == 2 and "give the column select = " in refused.stderr, (
        "the averaged model has a step size that is selected for it"
    )
    other = close.replace('"rounds until averaged_accuracy {target}"', '"consensus_distance"')
    (home / "study.toml").write_text(other, encoding="utf-8")
    assert small().returncode == 0
    results = read_results(home / "results.json")
    assert results.selection_seeds == {"graphs": "7"}
    ring = next(row for row in results.rows if row.series == "ring")
    assert (ring.rate, ring.own_rates) == ("0.9", {"averaged model": "0.1 (edge)"})
    folders = (tmp_path / "runs/papers/small/graphs").glob("ring-*-rate0.1")
    assert len(list(folders)) == 7, "six seeds are run with this step size too"


def test_a_page_names_the_split_that_selected(smaller: Any, tmp_path: Path) -> None:
    home = tmp_path / "papers" / "small"

    def page() -> str:
        assert smaller().returncode == 0
        return " ".join((home / "README.md").read_text(encoding="utf-8").split())

    assert "on the test set, with the seeds 7" in page()
    run = (home / "run.toml").read_text(encoding="utf-8")
    held_out = run.replace("[data]", "[data]\nvalidation = 0.1")
    (home / "run.toml").write_text(held_out, encoding="utf-8")
    text = page()
    assert "until validation accuracy 0.7, on the validation set, with the seeds 7" in text
    assert read_results(home / "results.json").selection_split == {"graphs": "validation"}


def test_step_sizes_are_selected_by_the_cost_of_a_target(lab: Any, tmp_path: Path) -> None:
    """The fake program is fastest with the largest step 0.9, and misses the target with 0.1."""
    command = (
        "sweep",
        "small.toml",
        "run.rounds=60",
        "run.seed=0..1",
        "--rates",
        "0.1,0.5,0.9",
        "--out",
        "out",
    )
    assert lab(*command, "--select", "rounds until test_accuracy 0.8").returncode == 0
    (choice,) = json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8"))["choices"]
    assert (choice["rate"], choice["at_edge"], choice["scores"]["0.1"]) == ("0.9", True, None)
    assert choice["scores"]["0.9"] < choice["scores"]["0.5"]
    for select in ("rounds", "test_acuracy", "hours until test_loss 1"):
        assert lab(*command, "--select", select).returncode == 2
    assert lab(*command, "--only", "ring").returncode == 2, "there are no variants"


def test_only_selects_a_variant(lab: Any, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(
        '[variants.a]\n"topology.kind" = "ring"\n[variants.b]\n"topology.kind" = "star"\n',
        encoding="utf-8",
    )
    assert (
        lab("sweep", "small.toml", "--variants", "v.toml", "--only", "b", "--out", "out").returncode
        == 0
    )
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == ["b"]
    assert (
        lab("sweep", "small.toml", "--variants", "v.toml", "--only", "c", "--out", "out").returncode
        == 2
    )


def test_the_full_size_writes_its_own_results(smaller: Any, tmp_path: Path) -> None:
    done = smaller("--full")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "papers" / "small" / "results.json").exists()
    rows = read_results(tmp_path / "runs" / "papers" / "small-full" / "results.json").rows
    assert [(row.series, row.facet, row.rate) for row in rows] == [
        ("ring", "", "0.9"),
        ("complete", "", "0.9"),
    ]
    assert smaller("--set", "run.rounds=40").returncode == 2, "--set needs --out"
    assert smaller("--set", "run.rounds=40", "--out", "other").returncode == 0
    assert (tmp_path / "other" / "small" / "figure.svg").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('column = "rounds"', 'column = "round"', "no column 'round'"),
        ('"ring"]\n', '"rang"]\n', "no variant 'rang'"),
        ('kind = "dots"', 'sort = "dots"', "'sort' is not one of"),
        ("[study]", "[study", "not valid TOML"),
        ('facet = "peers = 8"', 'facet = "peers = 7"', "no facet 'peers = 7'"),
        ('order = ["ring", "complete"]', "factor = 2", "one of order, close"),
        ("[full]", "[empty]", "not a table of a study"),
    ],
)
def test_an_invalid_study_is_rejected(
    small: Any, tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "papers" / "small" / "study.toml"
    path.write_text(SMALL.replace(old, new), encoding="utf-8")
    done = small()
    assert done.returncode == 2 and message in done.stderr and "study.toml" in done.stderr


def test_there_are_studies() -> None:
    assert len(STUDIES) >= 3


def check_part(folder: Path, part: Part, cells: list[Cell]) -> None:
    """Each cell is a valid run. Skips where the package is missing that a study's task needs."""
    config = tomllib.loads((folder / part.config).read_text(encoding="utf-8"))
    try:
        command = program_command(config)
    except LabError as error:
        pytest.skip(str(error))
    if trains_task(config):  # a check starts a Python with PyTorch
        cells = cells[-1:]
    for cell in cells:
        assert check(LaunchConfig(command, folder / part.config), cell) == (0, ""), cell.name


@pytest.fixture(scope="session")
def blank_mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with blank images in the format, number and size of MNIST's test set."""
    folder = tmp_path_factory.mktemp("mnist")
    header = struct.pack(">IIII", 0x803, 10000, 28, 28)
    labels = struct.pack(">II", 0x801, 10000) + bytes(range(10)) * 1000
    for file, content in zip(mnist.FILES, (header + bytes(7_840_000), labels), strict=True):
        (folder / file.name).write_bytes(gzip.compress(content, 1))
    return folder


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
@pytest.mark.usefixtures("gossamer")
def test_every_variant_of_a_study_is_a_valid_run(folder: Path, blank_mnist: Path) -> None:
    study = read_study(folder)
    check_columns(study)
    variants = read_variants(folder / "study.toml")
    for part in study.parts:
        config = tomllib.loads((folder / part.config).read_text(encoding="utf-8"))
        quick = {"data.path": str(blank_mnist)} if "path" in config.get("data", {}) else {}
        # A check makes the model with which peers begin.
        if "pretrained" in config.get("model", {}):
            quick["model.pretrained"] = "1"
        chosen = {name: {**variants[name], **quick} for name in part.variants or variants}
        first = [Axis(axis.key, axis.values[:1]) for axis in parse_axes(list(part.axes))]
        check_part(
            folder, part, make_cells([Axis("variant", tuple(chosen)), *first], (), folder, chosen)
        )


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
@pytest.mark.usefixtures("gossamer")
def test_every_full_size_is_a_valid_run(folder: Path, tmp_path: Path) -> None:
    """Uses synthetic images in CIFAR-10's format, so few of them that a batch has one image."""
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        (tmp_path / name).write_bytes(b"".join(bytes([label]) * 3073 for label in range(10)) * 20)
    images = {"data.path": str(tmp_path), "data.batch": "1"}
    study = full_size(read_study(folder))
    variants = read_variants(folder / study.variants_file)
    for part in study.parts:
        config = tomllib.loads((folder / part.config).read_text(encoding="utf-8"))
        averages = config.get("algorithm", {}).get("kind") == "consensus"
        data = {} if trains_task(config) or averages else images
        chosen = {name: {**variants[name], **data} for name in part.variants or variants}
        first = [
            Axis(axis.key, axis.values[:1])
            for axis in parse_axes(list(part.axes))
            if axis.key != "data.batch"
        ]
        cells = make_cells([Axis("variant", tuple(chosen)), *first], (), folder, chosen)
        if not trains_task(config):  # one cell seeks the study's device: that takes most of a check
            cells[1:] = [
                replace(cell, overrides={**cell.overrides, "local.device": "cpu"})
                for cell in cells[1:]
            ]
        check_part(folder, part, cells)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_no_reported_seed_selects_a_step_size(folder: Path) -> None:
    study = read_study(folder)
    for part in [*study.parts, *(full_size(study).parts if study.full else ())]:
        config = tomllib.loads((folder / part.config).read_text(encoding="utf-8"))
        seeds = parse_axis(f"run.seed={part.selection_seeds}").values
        selecting_axes(parse_axes(list(part.axes)), seeds, config)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_a_readme_matches_its_results(folder: Path) -> None:
    study = read_study(folder)
    results = read_results(folder / "results.json")
    assert results_between_markers(folder / "README.md") == readme_section(study, results)
    assert {row.part for row in results.rows} == {part.name for part in study.parts}
    for row in results.rows:
        assert set(row.values) == {column.name for column in study.columns_of(study.part(row.part))}
    assert (folder / "figure.svg").stat().st_size < 200_000


def test_the_index_has_every_study() -> None:
    assert results_between_markers(paper.PAPERS / "README.md") == index_section(
        [read_study(folder) for folder in STUDIES]
    )
