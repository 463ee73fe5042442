"""Whether the order that a paper reports is the order of our runs: decided from the values per seed, by these rules alone.

A series is *ahead* of another where it is better in the mean by more than two standard errors of the difference, taken seed
by seed (equal seeds share data, shards and start); where a target is not reached by some seed, where it is better for every
seed. A claim of an order holds when each series is ahead of those after it; it fails when one of them is ahead of one that
should be better, and is open when neither can be told. A claim of closeness or of a rank holds or fails.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from statistics import mean, stdev

import numpy as np

from lab.measure import NEVER
from lab.outcome import Outcome, Row, average, more_is_better
from lab.study import Claim, Column, Study

HOLDS, OPEN, FAILS = "holds", "open", "fails"
_ERRORS = 2.0  # standard errors that a difference must exceed


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    where: str  # the facet; empty where there is one only
    outcome: str  # HOLDS | OPEN | FAILS
    because: tuple[str, ...] = ()  # of an outcome other than HOLDS: what stands against it


def judge(study: Study, outcome: Outcome) -> list[Judgement]:
    """Each claim in each facet that it is about, in the study's order."""
    judgements = []
    for claim in study.claims:
        column = study.column(claim.column)
        for facet, rows in rows_of(claim, outcome.of(study.part(column.part).name)).items():
            judgements.append(_judge(claim, column, facet, rows))
    return judgements


def rows_of(claim: Claim, rows: list[Row]) -> dict[str, dict[str, Row]]:
    """The rows by facet and then by series, of the facets that a claim is about; one that names facets itself (`ring @ n = 8`)
    is about all of them at once."""
    if any("@" in name for name in claim.names()):
        return {"": {f"{row.series} @ {row.facet}": row for row in rows}}
    facets: dict[str, dict[str, Row]] = {}
    for row in rows:
        if claim.where in ("", row.facet):
            facets.setdefault(row.facet, {})[row.series] = row
    return facets


def verdict(judgements: list[Judgement]) -> str:
    """All of them in few words."""
    count = {
        outcome: sum(j.outcome == outcome for j in judgements) for outcome in (HOLDS, OPEN, FAILS)
    }
    if count[HOLDS] == len(judgements):
        return "holds"
    rest = ", ".join(
        f"{count[outcome]} {word}"
        for outcome, word in ((FAILS, "not"), (OPEN, "open"))
        if count[outcome]
    )
    return (
        f"holds in part: {count[HOLDS]} of {len(judgements)} claims, {rest}"
        if count[HOLDS]
        else "does not hold"
    )


def _judge(claim: Claim, column: Column, facet: str, rows: dict[str, Row]) -> Judgement:
    if claim.rank:
        return _judge_rank(claim, column, facet, rows)
    groups = [group if isinstance(group, list) else [group] for group in claim.order] or [
        list(claim.close)
    ]
    missing = [name for group in groups for name in group if name not in rows]
    if missing:
        return Judgement(claim, facet, OPEN, tuple(f"{name} has no result" for name in missing))
    values = {name: rows[name].values[column.name] for group in groups for name in group}
    if claim.close:
        return _judge_close(claim, facet, values)
    against: list[str] = []
    worst = HOLDS
    for better, worse in pairwise(groups):
        for a in better:
            for b in worse:
                told = compare(values[a], values[b], more_is_better(column), claim.factor)
                if told != HOLDS:
                    worst = FAILS if FAILS in (told, worst) else OPEN
                    against.append(_objection(a, b, told, claim.factor))
    return Judgement(claim, facet, worst, tuple(against))


def compare(a: list[float], b: list[float], more: bool, factor: float = 1) -> str:
    """Whether a is ahead of b (`factor` times better at least): HOLDS, OPEN, or FAILS where it is the other way round."""
    if len(a) != len(b):
        return OPEN
    scaled = [value / factor if more else value * factor for value in a]
    leads = [0.0 if x == y else (x - y if more else y - x) for x, y in zip(scaled, b, strict=True)]
    if all(isfinite(lead) for lead in leads):
        error = stdev(leads) / sqrt(len(leads)) if len(leads) > 1 else 0.0
        middle = mean(leads)
        return HOLDS if middle > _ERRORS * error else FAILS if middle < -_ERRORS * error else OPEN
    return (
        HOLDS
        if all(lead > 0 for lead in leads)
        else FAILS
        if all(lead < 0 for lead in leads)
        else OPEN
    )


def _objection(a: str, b: str, told: str, factor: float) -> str:
    if factor != 1:
        return f"{a} against {b} is {'less than' if told == FAILS else 'not surely'} {factor:g} times better"
    return f"{b} is ahead of {a}" if told == FAILS else f"{a} and {b} cannot be told apart"


def _judge_close(claim: Claim, facet: str, values: dict[str, list[float]]) -> Judgement:
    means = {name: average(found) for name, found in values.items()}
    if NEVER in means.values():
        return Judgement(
            claim,
            facet,
            FAILS,
            tuple(f"{name} never gets there" for name in means if means[name] == NEVER),
        )
    low, high = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    apart = means[high] - means[low]
    if claim.within and apart > claim.within:
        return Judgement(claim, facet, FAILS, (f"{high} and {low} are {apart:.3g} apart",))
    if claim.times and means[high] > claim.times * means[low]:
        return Judgement(
            claim, facet, FAILS, (f"{high} is {means[high] / means[low]:.3g} times {low}",)
        )
    return Judgement(claim, facet, HOLDS)


def _judge_rank(claim: Claim, column: Column, facet: str, rows: dict[str, Row]) -> Judgement:
    """The first column of `rank` orders the series as `column` does, for every seed more nearly than the second."""
    ours, other = rank_correlations(claim, column, rows)
    told = f"rank correlation {mean(ours):.2f} with {claim.rank[0]}, {mean(other):.2f} with {claim.rank[1]}"
    good = all(mine > theirs for mine, theirs in zip(ours, other, strict=True))
    return Judgement(claim, facet, HOLDS if good else FAILS, () if good else (told,))


def rank_correlations(
    claim: Claim, column: Column, rows: dict[str, Row]
) -> tuple[list[float], list[float]]:
    """Spearman's, per seed, for both columns of `rank`; positive where the series are in the order that is expected."""
    seeds = range(min(len(row.values[column.name]) for row in rows.values()))
    goodness = [
        [
            row.values[column.name][s] * (1 if more_is_better(column) else -1)
            for row in rows.values()
        ]
        for s in seeds
    ]
    found = []
    for name in claim.rank:
        sign = -1 if name in claim.smaller else 1
        found.append(
            [
                spearman([sign * row.values[name][s] for row in rows.values()], goodness[s])
                for s in seeds
            ]
        )
    return found[0], found[1]


def spearman(x: list[float], y: list[float]) -> float:
    """Pearson's correlation of the ranks, equal values sharing their mean rank; 0 where one of them is all equal."""
    a, b = _ranks(x), _ranks(y)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: list[float]) -> np.ndarray:
    array = np.array(values)
    return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])
