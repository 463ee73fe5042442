"""Studies of hostile peers: curves of honest peers, breakdown points, tables and grids by axis."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from lab.claims import FAILS, HOLDS, OPEN, cases_of, evaluate
from lab.curves import read_curves
from lab.errors import LabError
from lab.false_calls import page_rate
from lab.measure import NEVER
from lab.panels import draw
from lab.readme_section import claims_tables, table_across
from lab.study import Study
from lab.study_file import read_study
from lab.study_results import ResultRow, StudyResults

STUDY = """
[study]
title = "Attackers"
claim = "rules withstand attackers"
source = "Nobody 2020"
[[part]]
name = "attackers"
config = "run.toml"
axes = ["attack.peers=[0],[0,1],[0,1,2],[0,1,2,3]", "run.seed=0..1"]
across = "attack.peers"
[variants.median]
"mixing.rule" = "median"
[variants.krum]
"mixing.rule" = "krum"
[[column]]
name = "accuracy"
measure = "test_accuracy"
percent = true
[[column]]
name = "predicted"
measure = "topology most_hostile_neighbours"
[[claim]]
text = "the breakdown point is predicted"
column = "accuracy"
breakdown = "predicted"
target = 0.7
within = 1.5
[[panel]]
title = "Grid"
kind = "grid"
x = "attack.peers"
y = "accuracy"
"""
FACETS = ("[0]", "[0,1]", "[0,1,2]", "[0,1,2,3]")


MEDIAN = STUDY.replace("across =", 'variants = ["median"]\nacross =')  # the part has one series


def study_of(folder: Path, text: str = STUDY) -> Study:
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return read_study(folder)


def results_of(**series: tuple[float, list[list[float]]]) -> StudyResults:
    """By series: the predicted breakdown point, and per number of attackers the accuracies."""
    rows = [
        ResultRow(
            "attackers",
            name,
            f"peers = {facet}",
            None,
            False,
            len(accuracies),
            {"accuracy": accuracies, "predicted": [predicted] * len(accuracies)},
        )
        for name, (predicted, by_attackers) in series.items()
        for facet, accuracies in zip(FACETS, by_attackers, strict=True)
    ]
    return StudyResults(tuple(rows), {"attackers": ""})


def seeds(*withstood: int) -> list[list[float]]:
    """Accuracies of a seed for each argument: it withstands that number of attackers."""
    return [[0.9 if n <= most else 0.1 for most in withstood] for n in range(1, 5)]


@pytest.mark.parametrize(
    ("predicted", "withstood", "status", "evidence", "reason"),
    [
        (2, [3] * 8, HOLDS, "withstands 3, predicted 2", "differ by less than the margin"),
        (1, [0] * 8, HOLDS, "withstands 0, predicted 1", "differ by less than the margin"),
        (2, [2, 1] * 5, HOLDS, "withstands 1 to 2, predicted 2", "differ by less"),
        (3, [1] * 8, FAILS, "withstands 1, predicted 3", "differ by more than the margin"),
        (3, [2, 1] * 5, OPEN, "withstands 1 to 2, predicted 3", "10 seeds do not show"),
        (2, [3] * 3, OPEN, "withstands 3, predicted 2", "3 seeds do not show"),
        # The breakdown point lies beyond the largest number of attackers.
        (6, [4] * 8, OPEN, "withstands at least 4, predicted 6", "the grid ends before"),
        (4, [4] * 8, OPEN, "withstands at least 4, predicted 4", "in 8 of 8 seeds"),
        (3, [3, 4] * 4, OPEN, "withstands 3 to at least 4, predicted 3", "in 4 of 8 seeds"),
        (2, [4] * 8, FAILS, "withstands at least 4, predicted 2", "more than the margin"),
    ],
)
def test_the_measured_breakdown_point_is_compared_with_the_prediction(
    tmp_path: Path, predicted: int, withstood: list[int], status: str, evidence: str, reason: str
) -> None:
    study = study_of(tmp_path, MEDIAN)
    results = results_of(median=(predicted, seeds(*withstood)))
    (result,) = evaluate(study, results)
    assert (result.facet, result.status) == ("median", status)
    assert reason in result.reason
    (table,) = claims_tables(study, results, [result])
    assert f"(median) | {evidence} | measured − predicted" in table


def test_a_seed_that_recovers_has_broken_down(tmp_path: Path) -> None:
    results = results_of(median=(3, [[0.9] * 8, [0.2] * 8, [0.9] * 8, [0.9] * 8]))
    (result,) = evaluate(study_of(tmp_path, MEDIAN), results)
    assert result.deciding and result.deciding.differences == (-2,) * 8


def test_breakdown_points_share_the_level_of_the_page(tmp_path: Path) -> None:
    alone = evaluate(study_of(tmp_path, MEDIAN), results_of(median=(2, seeds(*[2] * 6))))
    study = study_of(tmp_path)
    both = results_of(median=(2, seeds(*[2] * 6)), krum=(2, seeds(*[2] * 6)))
    assert [result.status for result in alone] == [HOLDS]
    assert [result.status for result in evaluate(study, both)] == [OPEN, OPEN]
    assert 0 < page_rate([case.comparisons for case in cases_of(study, both)]) < 0.055


def test_a_breakdown_point_needs_every_seed_and_number_of_attackers(tmp_path: Path) -> None:
    results = results_of(median=(2, seeds(*[2] * 8)))
    both = evaluate(study_of(tmp_path), results)
    assert [(each.facet, each.reason) for each in both[1:]] == [("krum", "there is no result")]
    study = study_of(tmp_path, MEDIAN)
    for rows, reason in (
        (results.rows[:3], "peers = [0,1,2,3] has no result"),
        (tuple(replace(row, expected=9) for row in results.rows), "results of 8 of 9 seeds"),
    ):
        partial = StudyResults(rows, results.rates)
        (result,) = evaluate(study, partial)
        assert result.status == OPEN and reason in result.reason
        (table,) = claims_tables(study, partial, [result])
        assert "(median) | – | – | – |" in table


def test_a_table_across_an_axis_and_its_grid(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    median = [[mean - 0.01, mean + 0.01] for mean in (0.9, 0.8, 0.7, 0.1)]
    results = results_of(median=(2, median), krum=(3, [[0.9], [0.2], [NEVER], [0.9]]))
    part, column = study.parts[0], study.columns[0]
    lines = table_across(part, column, results).splitlines()
    assert lines[0] == "| accuracy | 1 | 2 | 3 | 4 |"  # a list is named by its length
    assert lines[2].startswith("| median | 90.0 ± 12.7 % | 80.0 ± 12.7 % |")
    (axes,) = draw(study, results, {"attackers": []}).axes
    assert [text.get_text() for text in axes.texts] == "90 80 70 10 90 20 – 90".split()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["median", "krum"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('across = "attack.peers"', 'across = "run.peers"', "across is the only axis that varies"),
        ('across = "attack.peers"', "", "its part is not across attack.peers"),
        ('breakdown = "predicted"', 'breakdown = "guess"', "no column 'guess'"),
        ('kind = "grid"', 'kind = "mesh"', "scatter or grid"),
    ],
)
def test_an_invalid_study_is_rejected(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        study_of(tmp_path, STUDY.replace(old, new))


def test_curves_are_those_of_the_honest_peers(tmp_path: Path) -> None:
    common = {"round": 0, "train_loss": None, "test_loss": 1, "seconds": 0}
    records = [
        {
            "record": "header",
            "peers": 3,
            "hosted": [0, 1, 2],
            "topology": {},
            "config": {"attack": {"peers": [1]}},
        },
        *(
            {"record": "round", "peer": peer, "test_accuracy": accuracy, "bytes_sent": 8, **common}
            for peer, accuracy in enumerate((0.4, 0.9, 0.6))
        ),
        {"record": "network", "round": 0, "consensus_distance": 1, "backdoor_success": 0.3},
    ]
    (tmp_path / "log-0.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    curves = read_curves(tmp_path)
    assert curves.values["test_accuracy"].tolist() == [0.5]
    assert curves.values["backdoor_success"].tolist() == [0.3]
    assert curves.peers["test_accuracy"].tolist() == [[0.4], [0.6]]
