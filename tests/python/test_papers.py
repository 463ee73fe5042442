"""Reproductions of papers: valid study files, decisions on claims, READMEs that match the results.

The studies of the repository are not run here. A small study runs with the fake program.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paper
import pytest
from lab.axes import Axis, parse_axes, read_variants
from lab.cells import Cell, make_cells
from lab.readme_section import readme_section, index_table, results_between_markers, spread_text
from lab.curves import Curves
from lab.errors import LabError
from lab.launch import LaunchConfig, check
from lab.measure import NEVER, parse_measure
from lab.study_results import StudyResults, ResultRow, check_columns, read_results, write_results
from lab.study import Claim, Column, Study, full_size, read_study
from lab.claims import FAILS, HOLDS, INCONCLUSIVE, compare, evaluate, spearman, summarise

STUDIES = [paper.PAPERS / name for name in paper.study_names()]


def curves(**values: list[float]) -> Curves:
    length = len(next(iter(values.values())))
    names = ("test_accuracy", "test_loss", "bytes_sent", "seconds", "consensus_distance")
    arrays = {name: np.array(values.get(name, [np.nan] * length), dtype=float) for name in names}
    return Curves(
        np.arange(length) * 10,
        arrays,
        {},
        False,
        {name: np.array([array]) for name, array in arrays.items()},
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("test_accuracy", 0.8),
        ("rounds until test_accuracy 0.5", 10),
        ("bytes_sent until test_accuracy 0.6", 400),
        ("rounds until test_accuracy 0.9", NEVER),
        ("seconds until test_loss 1.5", 0.5),
        ("test_accuracy at 10", 0.6),
        ("test_accuracy at 11", 0.8),
        ("bytes_sent", 800),
        ("rounds", 20),
    ],
)
def test_measure(text: str, value: float) -> None:
    run = curves(
        test_accuracy=[0.1, 0.6, 0.8],
        test_loss=[2, 1.4, 1],
        bytes_sent=[0, 400, 800],
        seconds=[0, 0.5, 1],
    )
    assert parse_measure(text).value(run) == value


def test_a_curve_against_seconds_uses_the_times_of_each_peer() -> None:
    """One peer is ten times slower: after 2 s the fast peer has 0.6 and the slow one still 0."""
    peers = {
        "seconds": np.array([[0.0, 1, 2], [0, 10, 20]]),
        "test_accuracy": np.array([[0, 0.4, 0.6], [0, 0.8, 1.0]]),
    }
    means = {name: rows.mean(axis=0) for name, rows in peers.items()}
    run = Curves(np.arange(3), means, {}, False, peers)
    times, values = run.by_time("test_accuracy")
    assert times.tolist() == [0, 1, 2, 10, 20] and values == pytest.approx([0, 0.2, 0.3, 0.7, 0.8])
    assert parse_measure("seconds until test_accuracy 0.3").value(run) == 2
    assert parse_measure("rounds until test_accuracy 0.6").value(run) == 1


@pytest.mark.parametrize(
    "text",
    [
        "accuracy",
        "rounds until test_accuracy",
        "hours until test_loss 1",
        "test_loss 1",
        "rounds until test_loss 1 at 3",
        "rounds until bytes_sent 7",
        "",
    ],
)
def test_an_invalid_measure_is_rejected(text: str) -> None:
    with pytest.raises(LabError, match="is no measure"):
        parse_measure(text)


def test_a_measure_of_a_missing_curve_is_an_error() -> None:
    run = curves(test_accuracy=[0.1, 0.6, 0.8])
    with pytest.raises(LabError, match="no test_loss"):
        parse_measure("test_loss").value(run)
    with pytest.raises(LabError, match="20 rounds"):
        parse_measure("test_accuracy at 30").value(run)


def test_variants_are_one_more_axis(tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(
        '[variants.ring]\n"topology.kind" = "ring"\n[variants."torus, lazy"]\n'
        '"topology.kind" = "torus"\n"topology.lazy" = true\n',
        encoding="utf-8",
    )
    variants = read_variants(tmp_path / "v.toml")
    cells = make_cells(
        [Axis("variant", tuple(variants)), Axis("run.seed", ("0",))], ("0.1",), Path("x"), variants
    )
    assert cells[1] == Cell(
        "torus_lazy-seed0-rate0.1",
        Path("x/torus_lazy-seed0-rate0.1"),
        {
            "topology.kind": "torus",
            "topology.lazy": "true",
            "run.seed": "0",
            "optimizer.rate": "0.1",
        },
        {"variant": "torus, lazy", "run.seed": "0"},
    )
    with pytest.raises(
        LabError, match=r"topology\.lazy is set by the variant torus, lazy and by the grid"
    ):
        make_cells(
            [Axis("variant", tuple(variants)), Axis("topology.lazy", ("true",))],
            (),
            Path("x"),
            variants,
        )
    for bad in ("[variants]\n", "[variants.ring]\nkind = 1\n", "variants = 3\n"):
        (tmp_path / "v.toml").write_text(bad, encoding="utf-8")
        with pytest.raises(LabError, match=r"v\.toml"):
            read_variants(tmp_path / "v.toml")


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        ([1, 2, 3], [2, 3, 4], HOLDS),
        ([2, 3, 4], [1, 2, 3], FAILS),
        ([1, 2, 3], [3, 2, 1], INCONCLUSIVE),
        ([1, 1], [1, 1], INCONCLUSIVE),
        ([5, 5, 5], [5, 5, 6], INCONCLUSIVE),
        ([1, 2], [NEVER, NEVER], HOLDS),
        ([NEVER, 2], [NEVER, 3], INCONCLUSIVE),
        ([NEVER], [7], FAILS),
        ([1, NEVER], [2, 3], INCONCLUSIVE),
        ([1, 2], [1, 2, 3], INCONCLUSIVE),
    ],
)
def test_ahead_if_less_is_better(a: list[float], b: list[float], status: str) -> None:
    assert compare(a, b, more=False) == status


def test_ahead_by_a_factor_and_if_more_is_better() -> None:
    assert compare([1, 1.1], [3.6, 3.7], more=False, factor=3) == HOLDS
    assert compare([1, 1.1], [2.5, 2.6], more=False, factor=3) == FAILS
    assert compare([0.9, 0.91], [0.8, 0.82], more=True) == HOLDS
    assert compare([0.9, 0.91], [0.8, 0.82], more=True, factor=2) == FAILS


def test_rank_correlation_is_spearmans() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 2, 3], [1, 2, 2, 5]) == pytest.approx(0.8333, abs=1e-4)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0


def small_study(*claims: Claim) -> Study:
    part = paper.Part("runs", "run.toml", ("run.seed=0..1",))
    return Study(
        Path("x"),
        "Title",
        "claim",
        "Someone 2020",
        (part,),
        (
            Column("rounds", "rounds until test_loss 1"),
            Column("accuracy", "test_accuracy", percent=True),
        ),
        claims,
        (),
        (),
        ("a", "b", "c"),
    )


def small_outcome(facet: str = "", **rounds: list[float]) -> StudyResults:
    return StudyResults(
        tuple(
            ResultRow(
                "runs", name, facet, None, False, 2, {"rounds": values, "accuracy": [0.5, 0.6]}
            )
            for name, values in rounds.items()
        ),
        {"runs": ""},
    )


def statuses(study: Study, results: StudyResults) -> list[str]:
    return [claim_result.status for claim_result in evaluate(study, results)]


def test_a_claim_of_an_order_is_evaluated_in_every_facet() -> None:
    study = small_study(Claim("a, then b and c", "rounds", order=("a", ["b", "c"])))
    good = small_outcome("n = 1", a=[1, 2], b=[5, 6], c=[4, 5])
    bad = small_outcome("n = 2", a=[5, 6], b=[1, 2], c=[7, 8])
    both = evaluate(study, StudyResults(good.rows + bad.rows, good.rates))
    assert [(result.facet, result.status) for result in both] == [
        ("n = 1", HOLDS),
        ("n = 2", FAILS),
    ]
    assert (
        both[1].reasons == ("b is ahead of a",)
        and summarise(both) == "holds in part: 1 of 2 claims, 1 fail"
    )
    across = replace(
        study,
        claims=(
            Claim("n = 1 before n = 2", "rounds", order=("a @ n = 1", ["a @ n = 2", "c @ n = 2"])),
        ),
    )
    assert statuses(across, StudyResults(good.rows + bad.rows, good.rates)) == [HOLDS]
    only = replace(study, claims=(replace(study.claims[0], facet="n = 2"),))
    assert statuses(only, StudyResults(good.rows + bad.rows, good.rates)) == [FAILS]


def test_claims_of_closeness_and_rank() -> None:
    results = small_outcome(a=[10, 10], b=[12, 12], c=[30, 30])
    close = Claim("a is like b", "rounds", close=("a", "b"), times=1.3)
    assert statuses(
        small_study(close, replace(close, close=("a", "c")), replace(close, times=0, within=1)),
        results,
    ) == [HOLDS, FAILS, FAILS]
    never = small_outcome(a=[NEVER, NEVER], b=[NEVER, NEVER])
    assert statuses(small_study(close), never) == [FAILS], (
        "two series that do not reach the target are not close"
    )
    assert statuses(small_study(replace(close, close=("a", "z"))), results) == [INCONCLUSIVE], (
        "a series without results decides nothing"
    )
    ranked = StudyResults(
        tuple(
            replace(row, values={**row.values, "good": [g, g], "bad": [1, 1]})
            for row, g in zip(results.rows, (3, 2, 1), strict=True)
        ),
        results.rates,
    )
    study = small_study(Claim("good ranks", "rounds", rank=("good", "bad")))
    assert statuses(study, ranked) == [HOLDS]
    assert statuses(
        replace(study, claims=(replace(study.claims[0], rank=("bad", "good")),)), ranked
    ) == [FAILS]
    assert summarise(evaluate(study, ranked)) == "holds"


def test_values_are_written_with_their_standard_deviation() -> None:
    rounds, accuracy = small_study().columns
    assert spread_text(rounds, [10, 12]) == "11 ± 1.4"
    assert spread_text(rounds, [10, 10]) == "10"
    assert spread_text(rounds, [10, NEVER]) == "never (1 of 2 seeds reach it)"
    assert spread_text(accuracy, [0.5, 0.52]) == "51.0 ± 1.4 %"
    assert (
        spread_text(Column("sent", "bytes_sent until test_loss 1", unit="B"), [1000, 1100])
        == "1.05 kB ± 7 %"
    )


def test_results_are_read_as_written(tmp_path: Path) -> None:
    results = small_outcome("n = 1", a=[1, NEVER], b=[2, 3])
    write_results(tmp_path / "results.json", results)
    assert read_results(tmp_path / "results.json") == results
    assert json.loads((tmp_path / "results.json").read_text())["rows"][0]["values"]["rounds"] == [
        1,
        None,
    ]


SMALL = """
[study]
title = "Rings and complete graphs"
claim = "complete graphs are faster"
source = "Nobody 2020"
target = "0.7"
[[part]]
name = "graphs"
config = "run.toml"
axes = ["run.peers=4,8", "run.seed=0..1"]
rates = "0.1,0.4,0.9,2"
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
[[panel]]
title = "Scatter"
kind = "scatter"
x = "rounds"
y = "bytes"
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


def test_a_study_is_run_evaluated_and_written(small: Any, lab: Any, tmp_path: Path) -> None:
    done = small("-j", "2")
    assert done.returncode == 0, done.stderr
    assert "holds in part: 2 of 3 claims, 1 fail" in done.stdout
    home = tmp_path / "papers" / "small"
    text = (home / "README.md").read_text(encoding="utf-8")
    assert (
        "**does not hold**: complete is ahead of ring" in text
        and "| ring | peers = 8 | 0.9 |" in text
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
    assert again.returncode == 0 and "32 of them complete" in again.stderr
    assert before == {name: (home / name).read_bytes() for name in before}, (
        "the same runs give the same files"
    )
    (home / "README.md").write_text(
        "Ours.\n\n" + text.replace("77", "78") + "\nMore.\n", encoding="utf-8"
    )
    assert small("--render").returncode == 0
    reported = lab("report", "runs/papers/small/graphs")
    assert reported.returncode == 0 and "ring, complete; 2 seeds each" in reported.stdout, (
        "report.py reads the sweeps of a study"
    )
    assert (home / "README.md").read_text(encoding="utf-8") == "Ours.\n\n" + text + "\nMore.\n"


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


def test_the_full_size_writes_its_own_results(small: Any, tmp_path: Path) -> None:
    done = small("--full")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "papers" / "small" / "results.json").exists()
    rows = read_results(tmp_path / "runs" / "papers" / "small-full" / "results.json").rows
    assert [(row.series, row.facet, row.rate) for row in rows] == [
        ("ring", "", "0.9"),
        ("complete", "", "0.9"),
    ]
    assert small("--set", "run.rounds=40").returncode == 2, "--set needs --out"
    assert small("--set", "run.rounds=40", "--out", "other").returncode == 0
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


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_every_variant_of_a_study_is_a_valid_run(folder: Path, gossamer: Path) -> None:
    study = read_study(folder)
    check_columns(study)
    variants = read_variants(folder / "study.toml")
    for part in study.parts:
        chosen = {name: variants[name] for name in part.variants or variants}
        first = [Axis(axis.key, axis.values[:1]) for axis in parse_axes(list(part.axes))]
        for cell in make_cells([Axis("variant", tuple(chosen)), *first], (), folder, chosen):
            assert check(LaunchConfig(gossamer, folder / part.config), cell) == "", cell.name


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_every_full_size_is_a_valid_run(folder: Path, gossamer: Path, tmp_path: Path) -> None:
    """Uses synthetic images in CIFAR-10's format, so few of them that a batch has one image."""
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        (tmp_path / name).write_bytes(b"".join(bytes([label]) * 3073 for label in range(10)) * 20)
    study = full_size(read_study(folder))
    variants = read_variants(folder / study.variants_file)
    for part in study.parts:
        chosen = {
            name: {**variants[name], "data.path": str(tmp_path), "data.batch": "1"}
            for name in part.variants or variants
        }
        first = [
            Axis(axis.key, axis.values[:1])
            for axis in parse_axes(list(part.axes))
            if axis.key != "data.batch"
        ]
        for cell in make_cells([Axis("variant", tuple(chosen)), *first], (), folder, chosen):
            assert check(LaunchConfig(gossamer, folder / part.config), cell) == "", cell.name


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
    assert results_between_markers(paper.PAPERS / "README.md") == index_table(
        [read_study(folder) for folder in STUDIES]
    )
