"""Decides from the values of each seed if the claims of a paper hold in our runs.

A claim is a set of comparisons (lab/comparisons.py) and is true if all of them are. Its verdict is

    holds          if every comparison is shown to be true,
    does not hold  if one comparison is shown to be false,
    open           otherwise: the seeds do not decide.

The first p-value is the largest of the comparisons (an intersection-union test), the second one the
smallest times their number (Bonferroni). Both verdicts of a claim can be false calls, so its
p-value is twice the smaller of the two. Holm's correction over all claims of a page then bounds the
probability that the page has a false call; lab/false_calls.py simulates it.
"""

from dataclasses import dataclass
from math import isnan

import numpy as np

from lab.comparisons import Comparison, comparisons_of
from lab.inference import LEVEL, holm
from lab.study import Claim, Study, facet_names
from lab.study_results import ResultRow, StudyResults

HOLDS, OPEN, FAILS = "holds", "open", "does not hold"
ALPHA = 1 - LEVEL  # the largest probability of a false call on a page


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    # Of a breakdown point: the series. Empty if the claim is about several facets at once.
    facet: str
    status: str  # HOLDS | OPEN | FAILS
    p: float  # adjusted for all claims of the page
    reason: str
    # The comparison that decides: the least certain one, or the one that is shown to be false.
    # None if a series has no complete results.
    deciding: Comparison | None = None


@dataclass(frozen=True)
class Case:
    """A claim in one facet. It has no comparisons if results are missing."""

    claim: Claim
    facet: str
    comparisons: list[Comparison]
    missing: str  # why there are no comparisons


def cases_of(study: Study, results: StudyResults) -> list[Case]:
    """Each claim in each of its facets, in the order of the study: the family of Holm's method."""
    cases = []
    for claim in study.claims:
        column = study.column(claim.column)
        for facet, rows in rows_by_facet(study, claim, results).items():
            missing = _missing(study, claim, rows)
            comparisons = [] if missing else comparisons_of(claim, column, rows)
            cases.append(Case(claim, facet, comparisons, missing))
    return cases


def evaluate(study: Study, results: StudyResults) -> list[ClaimResult]:
    """A result for each claim and each of its facets, in the order of the study."""
    cases = cases_of(study, results)
    tests = [p_values(case.comparisons) for case in cases]
    adjusted = holm([float(claim_p_value(*test)) for test in tests])
    return [_result(*found) for found in zip(cases, tests, adjusted, strict=True)]


def p_values(comparisons: list[Comparison]) -> tuple[float, float]:
    """The p-values of "all comparisons are true" and of "one is false"; 1 if there are none."""
    if not comparisons:
        return 1.0, 1.0
    return (
        max(comparison.p_inside for comparison in comparisons),
        min(1.0, len(comparisons) * min(comparison.p_outside for comparison in comparisons)),
    )


def claim_p_value(p_true: np.ndarray | float, p_false: np.ndarray | float) -> np.ndarray:
    """Numbers, or arrays with a value for each simulated page."""
    return np.minimum(1.0, 2 * np.minimum(p_true, p_false))


def rows_by_facet(
    study: Study, claim: Claim, results: StudyResults
) -> dict[str, dict[str, ResultRow]]:
    """The rows of a claim's facets, by facet and then by series. A facet of the grid without any
    result has a group without rows.

    A claim whose series name their facets (`ring @ n = 8`) compares across facets. It has one group
    with an empty name. A claim of breakdown points has a group for each series, with rows by facet.
    """
    part = study.part(study.column(claim.column).part)
    rows = results.rows_of(part.name)
    if any("@" in name for name in claim.series_names()):
        return {"": {f"{row.series} @ {row.facet}": row for row in rows}}
    if claim.breakdown:
        series = {name: dict[str, ResultRow]() for name in study.series_of(part)}
        for row in rows:
            series.setdefault(row.series, {})[row.facet] = row
        return series
    names = [claim.facet] if claim.facet else facet_names(part)
    facets = {name: dict[str, ResultRow]() for name in names}
    for row in rows:
        if claim.facet in ("", row.facet):
            facets.setdefault(row.facet, {})[row.series] = row
    return facets


def by_conditions(
    claim_results: list[ClaimResult],
) -> tuple[list[ClaimResult], list[ClaimResult]]:
    """Those under the conditions of the paper, and those beyond them."""
    return (
        [result for result in claim_results if not result.claim.beyond],
        [result for result in claim_results if result.claim.beyond],
    )


def summarise(claim_results: list[ClaimResult]) -> str:
    """The verdicts of a study: of the paper's claims, and then of those under other conditions."""
    own, beyond = by_conditions(claim_results)
    texts = [summary_of(own)] if own else []
    texts += [f"beyond the paper's conditions, {summary_of(beyond)}"] if beyond else []
    return "; ".join(texts)


def summary_of(claim_results: list[ClaimResult]) -> str:
    """The verdicts of claims in one phrase: `4 of 7 claims hold, 2 do not hold, 1 is open`."""
    count = {
        status: sum(result.status == status for result in claim_results)
        for status in (HOLDS, OPEN, FAILS)
    }
    if len(claim_results) == 1:
        return f"the claim {claim_results[0].status.replace(OPEN, 'is open')}"
    if count[HOLDS] == len(claim_results):
        return f"all {len(claim_results)} claims hold"
    rest = ", ".join(
        f"{count[status]} {one if count[status] == 1 else more}"
        for status, one, more in (
            (FAILS, "does not hold", "do not hold"),
            (OPEN, "is open", "are open"),
        )
        if count[status]
    )
    hold = "holds" if count[HOLDS] == 1 else "hold"
    return f"{count[HOLDS] or 'none'} of {len(claim_results)} claims {hold}, {rest}"


def _missing(study: Study, claim: Claim, rows: dict[str, ResultRow]) -> str:
    """Why the rows of a claim cannot be paired by seed; empty if they can."""
    part = study.part(study.column(claim.column).part)
    if not rows:
        return "there is no result"
    series = claim.series_names() or study.series_of(part)
    for name in facet_names(part) if claim.breakdown else series:
        if name not in rows:
            return f"{name} has no result"
        seeds = len(rows[name].values[claim.column])
        if seeds < rows[name].expected:
            return f"{name} has results of {seeds} of {rows[name].expected} seeds"
    return ""


def _result(case: Case, test: tuple[float, float], p: float) -> ClaimResult:
    if case.missing:
        return ClaimResult(case.claim, case.facet, OPEN, p, case.missing)
    is_false = test[1] < test[0]
    status = OPEN if p > ALPHA else FAILS if is_false else HOLDS
    deciding = (
        min(case.comparisons, key=lambda comparison: comparison.p_outside)
        if status == FAILS
        else max(case.comparisons, key=lambda comparison: comparison.p_inside)
    )
    reason = _reason(status, case.claim, deciding)
    return ClaimResult(case.claim, case.facet, status, p, reason, deciding)


def _reason(status: str, claim: Claim, deciding: Comparison) -> str:
    """A sentence on the deciding comparison, without its full stop."""
    a, b, seeds = deciding.first, deciding.second, len(deciding.differences)
    if status == OPEN:
        reason = f"{seeds} seeds do not decide between {a} and {b}"
        if claim.breakdown and isnan(sum(deciding.differences)):
            beyond = sum(map(isnan, deciding.differences))
            return f"the grid ends before the breakdown point in {beyond} of {seeds} seeds"
        if deciding.is_closeness:
            reason = f"{seeds} seeds do not show if {a} and {b} differ by less than the margin"
    elif deciding.is_closeness:
        reason = f"{a} and {b} differ by {'less' if status == HOLDS else 'more'} than the margin"
    elif claim.rank:
        better, other = (a, b) if status == HOLDS else (b, a)
        reason = f"{better} ranks the series better than {other}"
    elif claim.factor != 1:
        amount = "at least" if status == HOLDS else "less than"
        reason = f"{a} is {amount} {claim.factor:g} times better than {b}"
    else:
        reason = f"{a} is ahead of {b}" if status == HOLDS else f"{b} is ahead of {a}"
    return reason + _sign_note(claim, deciding)


def _sign_note(claim: Claim, deciding: Comparison) -> str:
    if not deciding.uses_signs:
        return ""
    cause = (
        "the differences of all seeds are equal"
        if deciding.has_mean
        else "a seed withstands the largest number of attackers"
        if claim.breakdown
        else "a value is exactly 0"
        if deciding.has_zero
        else "a seed does not reach the target"
    )
    return f" (sign test, because {cause})"
