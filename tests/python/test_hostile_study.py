"""Studies of hostile peers: curves of honest peers, breakdown points, tables and grids by axis."""

import json
from pathlib import Path

import pytest
from lab.claims import FAILS, HOLDS, INCONCLUSIVE, evaluate
from lab.curves import read_curves
from lab.errors import LabError
from lab.measure import NEVER
from lab.panels import draw
from lab.readme_section import claims_table, table_across
from lab.study import Study, read_study
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
within = 1
[[panel]]
title = "Grid"
kind = "grid"
x = "attack.peers"
y = "accuracy"
"""
FACETS = ("[0]", "[0,1]", "[0,1,2]", "[0,1,2,3]")


def study_of(folder: Path, text: str = STUDY) -> Study:
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return read_study(folder)


def results_of(series: dict[str, tuple[float, list[float]]]) -> StudyResults:
    """By series: the predicted breakdown point, and the mean accuracy by number of attackers."""
    rows = [
        ResultRow(
            "attackers",
            name,
            f"peers = {facet}",
            None,
            False,
            2,
            {"accuracy": [mean - 0.01, mean + 0.01], "predicted": [predicted] * 2},
        )
        for name, (predicted, means) in series.items()
        for facet, mean in zip(FACETS, means, strict=True)
    ]
    return StudyResults(tuple(rows), {"attackers": ""})


def test_the_measured_breakdown_point_is_compared_with_the_prediction(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    # A series that fails with 2 attackers and recovers with 3 withstands 1.
    results = results_of({"median": (2, [0.9, 0.8, 0.75, 0.1]), "krum": (3, [0.9, 0.2, 0.9, 0.9])})
    median, krum = evaluate(study, results)
    assert (median.facet, median.status) == ("median", HOLDS)
    assert median.evidence == "withstands 3, predicted 2"
    assert (krum.facet, krum.status) == ("krum", FAILS)
    assert krum.evidence == "withstands 1, predicted 3"
    assert "(krum) | withstands 1, predicted 3 | **does not hold** |" in claims_table(
        study, results, [median, krum]
    )
    broken, whole = evaluate(study, results_of({"median": (1, [0.1] * 4), "krum": (6, [0.9] * 4)}))
    assert (broken.evidence, broken.status) == ("withstands 0, predicted 1", HOLDS)
    assert whole.evidence == "withstands at least 4, predicted 6"
    assert whole.status == INCONCLUSIVE, "the breakdown point is beyond the largest number"
    _, later = evaluate(study, results_of({"median": (1, [0.1] * 4), "krum": (2, [0.9] * 4)}))
    assert later.status == FAILS


def test_a_table_across_an_axis_and_its_grid(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    results = results_of({"median": (2, [0.9, 0.8, 0.7, 0.1]), "krum": (3, [0.9, 0.2, NEVER, 0.9])})
    part, column = study.parts[0], study.columns[0]
    lines = table_across(part, column, results).splitlines()
    assert lines[0] == "| accuracy | 1 | 2 | 3 | 4 |"  # a list is named by its length
    assert lines[2].startswith("| median | 90.0 ± 1.4 % | 80.0 ± 1.4 % |")
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
        {"record": "header", "peers": 3, "topology": {}, "config": {"attack": {"peers": [1]}}},
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
