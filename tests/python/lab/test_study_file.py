"""Claims that no results could decide, or that say the reverse, are refused by their study."""

from pathlib import Path

import pytest
from lab.claims import HOLDS, evaluate
from lab.errors import LabError
from lab.study_file import read_study
from lab.study_results import ResultRow, StudyResults

STUDY = """
[study]
title = "Title"
claim = "claim"
source = "Author 2020"
[[part]]
name = "runs"
config = "run.toml"
axes = ["run.seed=0..9"]
variants = ["a", "b"]
[[part]]
name = "grid"
config = "run.toml"
axes = ["data.alpha=0.1,1", "run.seed=0..4"]
[variants.a]
"topology.kind" = "ring"
[variants.b]
"topology.kind" = "torus"
[variants.c]
"topology.kind" = "star"
[[column]]
name = "accuracy"
measure = "test_accuracy"
[[column]]
name = "loss"
measure = "test_loss"
[[column]]
name = "by alpha"
measure = "test_loss"
part = "grid"
"""


def claim(text: str) -> str:
    return f'{STUDY}[[claim]]\ntext = "T"\ncolumn = "accuracy"\n{text}\n'


def read(folder: Path, text: str) -> str:
    """The message of the study's fault; empty if there is none."""
    (folder / "study.toml").write_text(text, encoding="utf-8")
    try:
        read_study(folder)
    except LabError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('close = ["a", "b"]', "close: give either within or times"),
        ('close = ["a", "b"]\nwithin = 0.5\ntimes = 1.1', "close: give either within or times"),
        ('close = ["a", "b"]\ntimes = 0.9', "times = 0.9: a ratio above 1"),
        ('close = ["a", "b"]\ntimes = 1', "times = 1: a ratio above 1"),
        ('close = ["a", "b"]\ntimes = inf', "times = inf: a ratio above 1"),
        ('close = ["a", "b"]\nwithin = -0.01', "within = -0.01: a difference above 0"),
        ('close = ["a", "b"]\nwithin = nan', "within = nan: a difference above 0"),
        ('close = ["a"]\nwithin = 0.1', "close: give two or more series"),
        ('order = ["a", "b"]\nfactor = 0', "factor = 0: a ratio above 0"),
        ('order = ["a", "b"]\nfactor = -2', "factor = -2: a ratio above 0"),
        ('order = ["a", "b"]\nwithin = 0.1', "within and times are of close and breakdown"),
        ('close = ["a", "b"]\nwithin = 0.1\nfactor = 2', "factor is of order alone"),
        ('order = ["a"]', "order: give two or more groups"),
        ('order = [["a", "b"]]', "order: give two or more groups"),
        ('order = [["a"], [], ["b"]]', "order: give two or more groups"),
        ('order = ["a", ["b", "a"]]', "the series 'a' is named twice"),
        ('order = ["a", "c"]', "part 'runs' has no series 'c'"),
        ('rank = ["accuracy"]', "rank: give two columns"),
        ('rank = ["loss", "loss"]', "rank: give two columns"),
        ('order = ["a", "b"]\nrank = ["accuracy", "loss"]', "give one of order, close"),
        ("", "give one of order, close"),
    ],
)
def test_an_impossible_claim_is_refused(tmp_path: Path, text: str, message: str) -> None:
    fault = read(tmp_path, claim(text))
    assert fault.startswith(f"{tmp_path / 'study.toml'}: claim 'T': {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('order = ["a @ alpha = 7", "b @ alpha = 1"]', "part 'grid' has no facet 'alpha = 7'"),
        ('order = ["a @ ", "b @ "]', "part 'grid' has no facet ''; it has alpha = 0.1, alpha = 1"),
        ('order = ["a @ alpha = 1", "b"]', "'b' has no facet (SERIES @ FACET)"),
        ('facet = "alpha = 1"\norder = ["a @ alpha = 1", "b @ alpha = 1"]', "remove facet"),
    ],
)
def test_series_in_facets_are_those_of_the_grid(tmp_path: Path, text: str, message: str) -> None:
    by_alpha = claim(text).replace('column = "accuracy"', 'column = "by alpha"')
    assert message in read(tmp_path, by_alpha)


@pytest.mark.parametrize(
    "text",
    [
        'close = ["a", "b"]\ntimes = 1.1',
        'close = ["a", "b"]\nwithin = 0.1',
        'order = ["a", "b"]\nfactor = 0.5',
        'order = [["a"], "b"]',
        'rank = ["accuracy", "loss"]',
    ],
)
def test_possible_claims_are_read(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, claim(text)) == ""


HOSTILE = STUDY.replace('"run.seed=0..9"', '"attack.peers=[0],[0,1],[0,1,2]", "run.seed=0..9"')
HOSTILE = HOSTILE.replace('variants = ["a", "b"]', 'variants = ["a"]\nacross = "attack.peers"')
BREAKDOWN = '[[claim]]\ntext = "T"\ncolumn = "loss"\nbreakdown = "accuracy"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target = 0.5", "breakdown: give within"),
        ("target = 0.5\nwithin = 1\ntimes = 2", "breakdown: give within"),
        ("target = 0.5\nwithin = -1", "within = -1: a difference above 0"),
        ("within = 0.5", "breakdown: give the target"),
    ],
)
def test_an_impossible_breakdown_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert f"claim 'T': {message}" in read(tmp_path, HOSTILE + BREAKDOWN + text)


def test_a_loss_withstands_below_its_target(tmp_path: Path) -> None:
    assert read(tmp_path, f"{HOSTILE}{BREAKDOWN}target = 0.5\nwithin = 0.5\n") == ""
    facets = ("[0]", "[0,1]", "[0,1,2]")
    rows = tuple(
        ResultRow(
            "runs",
            "a",
            f"peers = {facet}",
            None,
            False,
            10,
            {"loss": [loss] * 10, "accuracy": [2.0] * 10},
        )
        for facet, loss in zip(facets, (0.1, 0.5, 3.0), strict=True)
    )
    (result,) = evaluate(read_study(tmp_path), StudyResults(rows, {}))
    assert result.status == HOLDS and result.deciding is not None
    assert result.deciding.differences == (0,) * 10, "it withstands 2 attackers, as predicted"
