"""Claims about studies, and the text of results."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import paper
import pytest
from conftest import ROOT
from lab.axes import PATH_KEYS, Axis, read_variants
from lab.cells import Cell, make_cells
from lab.claims import FAILS, HOLDS, OPEN, ClaimResult, cases_of, evaluate, summarise
from lab.comparisons import spearman
from lab.errors import LabError
from lab.false_calls import false_call_rate, page_rate, two_standard_errors_rate
from lab.measure import NEVER
from lab.readme_section import claims_tables, spread_text
from lab.study import Claim, Column, Study
from lab.study_results import ResultRow, StudyResults, read_results, write_results


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


def test_a_file_beside_the_variants_is_meant(tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(
        '[variants."here"]\n"topology.path" = "ring.edges"\n'
        '[variants."there"]\n"topology.path" = "other.edges"\n',
        encoding="utf-8",
    )
    (tmp_path / "ring.edges").write_text("0 1\n", encoding="utf-8")
    variants = read_variants(tmp_path / "v.toml")
    assert variants["here"]["topology.path"] == str(tmp_path / "ring.edges")
    assert variants["there"]["topology.path"] == "other.edges"


def test_every_file_that_runs_read_may_lie_beside_the_variants(tmp_path: Path) -> None:
    """The program declares each key that names a file or folder with `.path = true`."""
    declared = set()
    for source in (ROOT / "src").rglob("*.cpp"):
        key = ""
        for found in re.finditer(
            r'"(?P<key>\w+)",\s*&(?P<options>\w+)Options::|\.path = true', source.read_text("utf-8")
        ):
            if found["key"]:
                key = f"{section_of(source, found['options'])}.{found['key']}"
            else:
                declared.add(key)
    written = {"local.out", "checkpoint.folder", "net.rendezvous"}
    assert declared - written == PATH_KEYS and written <= declared
    lines = [f'"{key}" = "a"' for key in sorted(PATH_KEYS)]
    (tmp_path / "v.toml").write_text(
        "\n".join(['[variants.empty]\n"data.test_path" = ""', "[variants.all]", *lines]), "utf-8"
    )
    (tmp_path / "a").touch()
    variants = read_variants(tmp_path / "v.toml")
    assert variants["all"] == dict.fromkeys(PATH_KEYS, str(tmp_path / "a"))
    assert variants["empty"] == {"data.test_path": ""}


def section_of(source: Path, options: str) -> str:
    """The section of a configuration whose keys are fields of `options`."""
    kinds = {"datasets": "data", "models": "model", "kinds": "topology"}
    return kinds.get(source.parent.name) or {"External": "model"}.get(options, options.lower())


def test_rank_correlation_is_spearmans() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 2, 3], [1, 2, 2, 5]) == pytest.approx(0.8333, abs=1e-4)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0


def small_study(*claims: Claim, axes: tuple[str, ...] = ()) -> Study:
    part = paper.Part("runs", "run.toml", (*axes, "run.seed=0..4"))
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
                "runs",
                name,
                facet,
                None,
                False,
                len(values),
                {"rounds": values, "accuracy": [value / 100 for value in values]},
            )
            for name, values in rounds.items()
        ),
        {"runs": ""},
    )


def statuses(study: Study, results: StudyResults) -> list[str]:
    return [claim_result.status for claim_result in evaluate(study, results)]


def result_of(claim: Claim, **rounds: list[float]) -> ClaimResult:
    (result,) = evaluate(small_study(claim), small_outcome(**rounds))
    return result


FIRST = Claim("a before b", "rounds", order=("a", "b"))
NOISE = [0.0, 1, -1, 2, -2]


def near(value: float, scale: float = 1) -> list[float]:
    return [value + scale * noise for noise in NOISE]


@pytest.mark.parametrize(
    ("a", "b", "status", "reason"),
    [
        (near(10), near(20, 2), HOLDS, "a is ahead of b"),
        (near(20), near(10, 2), FAILS, "b is ahead of a"),
        (near(10), near(11, 2), OPEN, "5 seeds do not decide between a and b"),
        ([1, 2], [9, 12], OPEN, "2 seeds do not decide between a and b"),
        ([7] * 6, [9] * 6, HOLDS, "because the differences of all seeds are equal"),
        ([7] * 5, [9] * 5, OPEN, "because the differences of all seeds are equal"),
        ([7] * 6, [NEVER] * 6, HOLDS, "because a seed does not reach the target"),
        ([7] * 6, [9] * 5 + [NEVER], HOLDS, "because a seed does not reach the target"),
        ([7] * 5 + [NEVER], [9] * 6, OPEN, "because a seed does not reach the target"),
        ([NEVER] * 6, [NEVER] * 6, OPEN, "because a seed does not reach the target"),
        ([7] * 6, [9] * 5, OPEN, "a has results of 6 of 7 seeds"),
    ],
)
def test_a_claim_of_an_order(a: list[float], b: list[float], status: str, reason: str) -> None:
    results = small_outcome(a=a, b=b)
    if len(a) != len(b):  # a run of each series is missing
        rows = tuple(replace(row, expected=7) for row in results.rows)
        results = replace(results, rows=rows)
    (result,) = evaluate(small_study(FIRST), results)
    assert result.status == status and reason in result.reason


def test_two_standard_errors_are_not_enough() -> None:
    """The mean difference of 1.2 is 2.4 standard errors; p = 0.074 (t-test, 4 degrees)."""
    result = result_of(FIRST, a=[0] * 5, b=[1.2 + 0.7071 * noise for noise in NOISE])
    assert result.status == OPEN and result.p == pytest.approx(0.0744, abs=1e-3)


def test_an_order_by_a_factor_and_of_a_measure_of_which_more_is_better() -> None:
    ten = replace(FIRST, factor=10)
    assert result_of(ten, a=near(10), b=near(200)).status == HOLDS
    failed = result_of(ten, a=near(10), b=near(30))
    assert (failed.status, failed.reason) == (FAILS, "a is less than 10 times better than b")
    assert result_of(ten, a=near(10), b=near(100)).status == OPEN
    accuracy = replace(FIRST, column="accuracy")
    assert result_of(accuracy, a=near(90), b=near(50, 2)).status == HOLDS
    assert result_of(accuracy, a=near(50), b=near(90, 2)).status == FAILS


@pytest.mark.parametrize(
    ("b", "status", "reason"),
    [
        (near(101, 2), HOLDS, "a and b differ by less than the margin"),
        (near(101, 20), OPEN, "5 seeds do not show if a and b differ by less than the margin"),
        (near(130, 2), FAILS, "a and b differ by more than the margin"),
        ([NEVER] * 5, OPEN, "because a seed does not reach the target"),
    ],
)
@pytest.mark.parametrize("margin", [{"within": 10}, {"times": 1.1}])
def test_a_claim_of_closeness(
    b: list[float], status: str, reason: str, margin: dict[str, float]
) -> None:
    """Equal means are not enough: their difference must be known to be below the margin."""
    result = result_of(Claim("alike", "rounds", close=("a", "b"), **margin), a=near(100), b=b)
    assert result.status == status and reason in result.reason


def test_a_claim_is_as_certain_as_its_least_certain_comparison() -> None:
    claim = Claim("a, then b and c", "rounds", order=("a", ["b", "c"]))
    result = result_of(claim, a=near(10), b=near(40, 2), c=near(20, 2))
    assert result.status == HOLDS and result.deciding and result.deciding.second == "c"
    wrong = result_of(claim, a=near(10), b=near(40, 2), c=near(2, 2))
    assert (wrong.status, wrong.reason) == (FAILS, "c is ahead of a")


def test_each_facet_is_a_claim_and_all_of_them_share_the_level() -> None:
    axes = ("data.n=1,2",)
    study = small_study(Claim("a, then b", "rounds", order=("a", "b")), axes=axes)
    good = small_outcome("n = 1", a=near(10), b=near(20, 2))
    bad = small_outcome("n = 2", a=near(20, 3), b=near(10, 2))
    both = evaluate(study, StudyResults(good.rows + bad.rows, good.rates))
    assert [(r.facet, r.status) for r in both] == [("n = 1", HOLDS), ("n = 2", FAILS)]
    assert summarise(both) == "1 of 2 claims holds, 1 does not hold"
    (alone,) = evaluate(replace(study, claims=(replace(study.claims[0], facet="n = 1"),)), good)
    assert both[0].p == pytest.approx(2 * alone.p), "Holm's correction"
    across = Claim("n = 1 before n = 2", "rounds", order=("a @ n = 1", ["a @ n = 2", "b @ n = 1"]))
    assert statuses(small_study(across), StudyResults(good.rows + bad.rows, good.rates)) == [HOLDS]
    only = replace(study, claims=(replace(study.claims[0], facet="n = 2"),))
    assert statuses(only, StudyResults(good.rows + bad.rows, good.rates)) == [FAILS]
    missing = replace(FIRST, order=("a", "z"))
    assert result_of(missing, a=near(1)).reason == "z has no result"


def test_claims_of_rank() -> None:
    results = small_outcome(a=near(10), b=near(20), c=near(30))
    ranked = StudyResults(
        tuple(
            replace(row, values={**row.values, "good": [g] * 5, "bad": bad})
            for row, g, bad in zip(
                results.rows, (3, 2, 1), ([1, 3, 2, 1, 1], [2, 1, 1, 3, 1], [3, 2, 3, 2, 1])
            )
        ),
        results.rates,
    )
    study = small_study(Claim("good ranks", "rounds", rank=("good", "bad")))
    (result,) = evaluate(study, ranked)
    assert result.status == HOLDS and summarise([result]) == "the claim holds"
    assert result.reason == "good ranks the series better than bad"
    turned = replace(study, claims=(replace(study.claims[0], rank=("bad", "good")),))
    assert statuses(turned, ranked) == [FAILS]


def test_claims_beyond_the_conditions_of_the_paper_are_told_apart() -> None:
    harder = Claim("b, then a", "rounds", order=("b", "a"), beyond=True)
    study = replace(small_study(FIRST, harder), beyond="unlike shards")
    results = small_outcome(a=near(10), b=near(20, 2))
    found = evaluate(study, results)
    assert [result.status for result in found] == [HOLDS, FAILS]
    assert summarise(found) == (
        "the claim holds; beyond the paper's conditions, the claim does not hold"
    )
    assert summarise(found[1:]) == "beyond the paper's conditions, the claim does not hold"
    own, text, table = claims_tables(study, results, found)
    assert own.startswith("| claim of the paper |") and "| b, then a" not in own
    assert text == (
        "Beyond the conditions of the paper: unlike shards. These are findings of ours."
    )
    assert table.startswith("| claim under other conditions |") and "| b, then a" in table


def test_the_table_of_claims_has_estimate_interval_margin_and_p() -> None:
    study = small_study(
        FIRST,
        Claim("alike", "rounds", close=("a", "b"), times=1.1),
        Claim("better", "accuracy", order=("b", "a")),
    )
    results = small_outcome(a=near(100), b=near(130, 2))
    (table,) = claims_tables(study, results, evaluate(study, results))
    lines = table.splitlines()
    assert lines[2].endswith(
        "| a − b = −30 [−32, −28] | below 0 | < 0.001 | holds: a is ahead of b |"
    )
    assert "| a / b = 0.769 [0.761, 0.778] | 0.909 to 1.1 | < 0.001 | **does not hold**" in lines[3]
    assert "| b − a = 30 [28, 32] points | above 0 |" in lines[4]


def test_a_ratio_of_zeros_names_its_cause() -> None:
    """An exact average has a consensus distance of exactly 0."""
    far = [0.4, 0.5, 0.45, 0.41, 0.44, 0.46, 0.47]
    ahead = replace(FIRST, factor=10)
    result = result_of(ahead, a=[0.0] * 7, b=far)
    assert result.status == HOLDS
    assert result.reason.endswith("(sign test, because a value is exactly 0)")
    never = result_of(ahead, a=[0.0] * 7, b=[*far[:6], NEVER])
    assert never.reason.endswith("(sign test, because a seed does not reach the target)")
    close = Claim("a as b", "rounds", close=("a", "b"), times=1.1)
    result = result_of(close, a=[0.0] * 7, b=[0.0] * 7)
    assert result.deciding and result.deciding.differences == (0,) * 7
    assert result.status == HOLDS and "the differences of all seeds are equal" in result.reason
    assert result_of(close, a=[0.0] * 7, b=[0.0] * 6 + [1.0]).status == OPEN


def test_a_claim_counts_in_every_facet_of_the_grid() -> None:
    """Also where no run has finished: there it is open, and Holm's correction counts it."""
    study = small_study(FIRST, axes=("data.alpha=0.1,1,10",))
    results = small_outcome("alpha = 1", a=near(1), b=near(2))
    first, second, third = evaluate(study, results)
    assert [first.facet, second.facet, third.facet] == [f"alpha = {x}" for x in ("0.1", "1", "10")]
    assert (first.status, first.reason) == (OPEN, "there is no result")
    assert first.p == third.p == 1
    (alone,) = evaluate(replace(study, claims=(replace(FIRST, facet="alpha = 1"),)), results)
    assert second.p == pytest.approx(3 * alone.p)
    (elsewhere,) = evaluate(replace(study, claims=(replace(FIRST, facet="alpha = 10"),)), results)
    assert (elsewhere.facet, elsewhere.status) == ("alpha = 10", OPEN)
    ranks = replace(FIRST, order=(), rank=("rounds", "accuracy"))
    (ranked,) = evaluate(small_study(ranks), small_outcome(a=near(1), b=near(2)))
    assert (ranked.status, ranked.reason) == (OPEN, "c has no result"), "a rank is of all series"


def test_the_rule_calls_falsely_on_at_most_five_percent_of_pages() -> None:
    """Through the whole evaluation: three claims about series that do not differ."""
    random = np.random.default_rng(1)
    study = small_study(
        FIRST,
        replace(FIRST, order=("b", "c")),
        replace(FIRST, column="accuracy", order=("a", ["b", "c"])),
    )
    false = 0
    for _ in range(1000):
        drawn = {name: random.normal(50, 5, 4).tolist() for name in "abc"}
        results = small_outcome(**drawn)
        false += any(result.status != OPEN for result in evaluate(study, results))
    assert 10 <= false <= 60


def test_simulated_pages_have_few_false_calls() -> None:
    one = ((5, 1, False),)
    for shapes in (one, one * 8, ((3, 4, False), (5, 1, True), (10, 2, True))):
        assert 0.02 < false_call_rate(shapes, len(shapes), "normal") < 0.055
    assert two_standard_errors_rate(5, 1, "normal") == pytest.approx(0.116, abs=0.02)
    assert two_standard_errors_rate(3, 1, "normal") == pytest.approx(0.184, abs=0.02)
    study, results = small_study(FIRST), small_outcome(a=near(1), b=near(2))
    page = [case.comparisons for case in cases_of(study, results)]
    assert page_rate(page) == false_call_rate(one, 1, "normal")


def test_values_are_written_with_half_their_interval() -> None:
    rounds, accuracy = small_study().columns
    assert spread_text(rounds, [10, 12]) == "11 ± 13"
    assert spread_text(rounds, [10, 10]) == "10"
    assert spread_text(rounds, [10, NEVER]) == "never (1 of 2 seeds reach it)"
    assert spread_text(accuracy, [0.5, 0.52]) == "51.0 ± 12.7 %"
    assert (
        spread_text(Column("sent", "bytes_sent until test_loss 1", unit="B"), [1000, 1100])
        == "1.05 kB ± 61 %"
    )


def test_results_are_read_as_written(tmp_path: Path) -> None:
    results = small_outcome("n = 1", a=[1, NEVER], b=[2, 3])
    write_results(tmp_path / "results.json", results)
    assert read_results(tmp_path / "results.json") == results
    assert json.loads((tmp_path / "results.json").read_text())["rows"][0]["values"]["rounds"] == [
        1,
        None,
    ]
