"""Decides from the values of each seed if the claims of a paper hold in our runs.

A series is *ahead* of another if its mean is better by more than two standard errors of the
difference per seed (equal seeds share data, shards and initial parameters). If a seed does not
reach a target, the series must be better for every seed. A claim of an order holds if each series
is ahead of the series after it. It fails if a series is ahead of one that should be better, and is
inconclusive otherwise. A claim of closeness, of a rank or of a breakdown point holds or fails.
"""

from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import isfinite, sqrt
from statistics import mean, stdev

import numpy as np

from lab.measure import NEVER
from lab.study_results import StudyResults, ResultRow, average, more_is_better
from lab.study import Claim, Column, Part, Study, axis_of, facet_at, value_label

HOLDS, INCONCLUSIVE, FAILS = "holds", "inconclusive", "fails"
_MIN_STANDARD_ERRORS = 2.0  # of a difference that counts


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    facet: str  # empty if the claim is about one facet or about several at once
    status: str  # HOLDS | INCONCLUSIVE | FAILS
    reasons: tuple[str, ...] = ()  # why the status is not HOLDS
    evidence: str = ""  # what was compared, where it is not means


def evaluate(study: Study, results: StudyResults) -> list[ClaimResult]:
    """A result for each claim and each of its facets, in the order of the study."""
    claim_results = []
    for claim in study.claims:
        column = study.column(claim.column)
        part = study.part(column.part)
        part_rows = results.rows_of(part.name)
        if claim.breakdown:
            claim_results += evaluate_breakdown(claim, part, part_rows)
            continue
        for facet, rows in rows_by_facet(claim, part_rows).items():
            claim_results.append(_evaluate_claim(claim, column, facet, rows))
    return claim_results


def rows_by_facet(claim: Claim, rows: list[ResultRow]) -> dict[str, dict[str, ResultRow]]:
    """The rows of a claim's facets, by facet and then by series.

    A claim whose series name their facets (`ring @ n = 8`) compares across facets. It has one group
    with an empty name.
    """
    if any("@" in name for name in claim.series_names()):
        return {"": {f"{row.series} @ {row.facet}": row for row in rows}}
    facets: dict[str, dict[str, ResultRow]] = {}
    for row in rows:
        if claim.facet in ("", row.facet):
            facets.setdefault(row.facet, {})[row.series] = row
    return facets


def summarise(claim_results: list[ClaimResult]) -> str:
    """The results of all claims in one phrase, which follows "The ordering"."""
    count = {
        status: sum(result.status == status for result in claim_results)
        for status in (HOLDS, INCONCLUSIVE, FAILS)
    }
    if count[HOLDS] == len(claim_results):
        return "holds"
    rest = ", ".join(
        f"{count[status]} {text}"
        for status, text in ((FAILS, "fail"), (INCONCLUSIVE, "inconclusive"))
        if count[status]
    )
    return (
        f"holds in part: {count[HOLDS]} of {len(claim_results)} claims, {rest}"
        if count[HOLDS]
        else "does not hold"
    )


def _evaluate_claim(
    claim: Claim, column: Column, facet: str, rows: dict[str, ResultRow]
) -> ClaimResult:
    if claim.rank:
        return _evaluate_rank(claim, column, facet, rows)
    groups = [group if isinstance(group, list) else [group] for group in claim.order] or [
        list(claim.close)
    ]
    missing = [name for group in groups for name in group if name not in rows]
    if missing:
        return ClaimResult(
            claim, facet, INCONCLUSIVE, tuple(f"{name} has no result" for name in missing)
        )
    values = {name: rows[name].values[column.name] for group in groups for name in group}
    if claim.close:
        return _evaluate_close(claim, facet, values)
    reasons: list[str] = []
    worst = HOLDS
    for better, worse in pairwise(groups):
        for a in better:
            for b in worse:
                status = compare(values[a], values[b], more_is_better(column), claim.factor)
                if status != HOLDS:
                    worst = FAILS if FAILS in (status, worst) else INCONCLUSIVE
                    reasons.append(_reason(a, b, status, claim.factor))
    return ClaimResult(claim, facet, worst, tuple(reasons))


def compare(a: list[float], b: list[float], more: bool, factor: float = 1) -> str:
    """If series a is ahead of series b, given one value per seed of each.

    HOLDS if a is ahead (by at least `factor`), FAILS if b is ahead, else INCONCLUSIVE. `more`: a
    larger value is better.
    """
    if len(a) != len(b):
        return INCONCLUSIVE
    scaled = [value / factor if more else value * factor for value in a]
    leads = [0.0 if x == y else (x - y if more else y - x) for x, y in zip(scaled, b, strict=True)]
    if all(isfinite(lead) for lead in leads):
        error = stdev(leads) / sqrt(len(leads)) if len(leads) > 1 else 0.0
        ahead = mean(leads) > _MIN_STANDARD_ERRORS * error
        behind = mean(leads) < -_MIN_STANDARD_ERRORS * error
    else:
        ahead = all(lead > 0 for lead in leads)
        behind = all(lead < 0 for lead in leads)
    return HOLDS if ahead else FAILS if behind else INCONCLUSIVE


def _reason(a: str, b: str, status: str, factor: float) -> str:
    if factor != 1:
        by = "less than" if status == FAILS else "not significantly more than"
        return f"{a} is {by} {factor:g} times better than {b}"
    return f"{b} is ahead of {a}" if status == FAILS else f"{a} and {b} do not differ significantly"


def _evaluate_close(claim: Claim, facet: str, values: dict[str, list[float]]) -> ClaimResult:
    means = {name: average(per_seed) for name, per_seed in values.items()}
    if NEVER in means.values():
        return ClaimResult(
            claim,
            facet,
            FAILS,
            tuple(f"{name} does not reach the target" for name in means if means[name] == NEVER),
        )
    low, high = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    difference = means[high] - means[low]
    if claim.within and difference > claim.within:
        reason = f"{high} and {low} differ by {difference:.3g}"
        return ClaimResult(claim, facet, FAILS, (reason,))
    if claim.times and means[high] > claim.times * means[low]:
        return ClaimResult(
            claim, facet, FAILS, (f"{high} is {means[high] / means[low]:.3g} times {low}",)
        )
    return ClaimResult(claim, facet, HOLDS)


def evaluate_breakdown(claim: Claim, part: Part, rows: list[ResultRow]) -> list[ClaimResult]:
    """A result for each series, which stands in the place of the facet.

    The measured breakdown point is the largest number of attackers up to which the mean of the
    column reaches the claim's target.
    """
    results = []
    axis = axis_of(part, part.across)
    for series in dict.fromkeys(row.series for row in rows):
        by_facet = {row.facet: row for row in rows if row.series == series}
        points = [
            (int(value_label(value)), by_facet[facet])
            for value in axis.values
            if (facet := facet_at(part, {axis.key: value})) in by_facet
        ]
        withstood = [
            number
            for number, _ in takewhile(
                lambda point: average(point[1].values[claim.column]) >= claim.target, points
            )
        ]
        measured = withstood[-1] if withstood else 0
        predicted = average(points[0][1].values[claim.breakdown])
        every = len(withstood) == len(points)  # the breakdown point lies beyond
        evidence = f"withstands {'at least ' * every}{measured}, predicted {predicted:.0f}"
        holds = abs(measured - predicted) <= claim.within
        unknown = every and measured < predicted
        status = HOLDS if holds else INCONCLUSIVE if unknown else FAILS
        results.append(ClaimResult(claim, series, status, (), evidence))
    return results


def _evaluate_rank(
    claim: Claim, column: Column, facet: str, rows: dict[str, ResultRow]
) -> ClaimResult:
    """For every seed, the first column of `rank` must order the series better than the second."""
    first, second = rank_correlations(claim, column, rows)
    reason = (
        f"rank correlation {mean(first):.2f} with {claim.rank[0]}, "
        f"{mean(second):.2f} with {claim.rank[1]}"
    )
    holds = all(a > b for a, b in zip(first, second, strict=True))
    return ClaimResult(claim, facet, HOLDS if holds else FAILS, () if holds else (reason,))


def rank_correlations(
    claim: Claim, column: Column, rows: dict[str, ResultRow]
) -> tuple[list[float], list[float]]:
    """Spearman's correlation per seed of each column of `rank` with how good the series are.

    It is positive if the column has the expected order.
    """
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
    """Pearson's correlation of the ranks; 0 if all values of x or of y are equal.

    Equal values have their mean rank.
    """
    a, b = _ranks(x), _ranks(y)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: list[float]) -> np.ndarray:
    array = np.array(values)
    return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])
