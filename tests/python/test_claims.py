"""Measures of curves, claims about studies, and the text of results."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import paper
import pytest
from lab.axes import Axis, read_variants
from lab.cells import Cell, make_cells
from lab.claims import FAILS, HOLDS, INCONCLUSIVE, compare, evaluate, spearman, summarise
from lab.curves import Curves
from lab.errors import LabError
from lab.measure import NEVER, parse_measure
from lab.readme_section import spread_text
from lab.study import Claim, Column, Study
from lab.study_results import ResultRow, StudyResults, read_results, write_results


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
