"""The comparisons of two series that a claim consists of, each with one difference per seed."""

from dataclasses import dataclass
from itertools import combinations, pairwise, takewhile
from math import inf, log, nan

import numpy as np

from lab.inference import has_t_test, p_inside, p_outside
from lab.measure import NEVER
from lab.study import Claim, Column, value_label
from lab.study_results import ResultRow, more_is_better


@dataclass(frozen=True)
class Comparison:
    """States that the mean of `differences` over the seeds is between `low` and `high`.

    A difference is first − second, or log(first / second) if the bounds are ratios. Equal seeds
    share data, shards and initial parameters, so that a difference per seed has less noise than
    either value. It is infinite if one of the two does not reach a target, and NaN if both do not;
    of breakdown points, see breakdown_differences(). A ratio is infinite if one of the two is 0,
    and 1 if both are.
    """

    first: str
    second: str
    differences: tuple[float, ...]
    low: float
    high: float
    is_ratio: bool
    has_zero: bool = False  # a ratio has no finite logarithm because a value is exactly 0

    @property
    def is_closeness(self) -> bool:
        return self.low > -inf and self.high < inf

    @property
    def has_mean(self) -> bool:
        return bool(np.isfinite(self.differences).all())

    @property
    def uses_signs(self) -> bool:
        return not bool(has_t_test(self.differences))

    @property
    def p_inside(self) -> float:
        return float(p_inside(self.differences, self.low, self.high))

    @property
    def p_outside(self) -> float:
        return float(p_outside(self.differences, self.low, self.high))


def comparisons_of(claim: Claim, column: Column, rows: dict[str, ResultRow]) -> list[Comparison]:
    """The comparisons of a claim in one group of rows_by_facet(), which has all of its rows."""
    if claim.breakdown:
        differences = breakdown_differences(claim, column, rows)
        return [
            Comparison("measured", "predicted", differences, -claim.within, claim.within, False)
        ]
    if claim.rank:
        first, second = rank_correlations(claim, column, rows)
        return [Comparison(*claim.rank, _differences(first, second, False), 0, inf, False)]
    values = {name: rows[name].values[column.name] for name in claim.series_names()}

    def compare(a: str, b: str, low: float, high: float, ratio: bool) -> Comparison:
        both = (*values[a], *values[b])
        zero = ratio and 0 in both and NEVER not in both
        differences = _differences(values[a], values[b], ratio)
        return Comparison(a, b, differences, low, high, ratio, zero)

    if claim.close:
        margin = log(claim.times) if claim.times else claim.within
        pairs = combinations(claim.close, 2)
        return [compare(a, b, -margin, margin, bool(claim.times)) for a, b in pairs]
    least = log(claim.factor)
    low, high = (least, inf) if more_is_better(column) else (-inf, -least)
    groups = [group if isinstance(group, list) else [group] for group in claim.order]
    return [
        compare(a, b, low, high, claim.factor != 1)
        for better, worse in pairwise(groups)
        for a in better
        for b in worse
    ]


def _differences(a: list[float], b: list[float], ratio: bool) -> tuple[float, ...]:
    x, y = np.array(a, dtype=float), np.array(b, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where((x == 0) & (y == 0), 0.0, np.log(x) - np.log(y))
        return tuple((logs if ratio else x - y).tolist())


def breakdown_differences(
    claim: Claim, column: Column, rows: dict[str, ResultRow]
) -> tuple[float, ...]:
    """Per seed: the measured breakdown point of a series minus the predicted one.

    If a seed withstands the largest number of attackers, its breakdown point is somewhere beyond.
    The difference is then infinite if that number alone is beyond the margin, and NaN otherwise.
    """
    largest = max(attackers(facet) for facet in rows)
    differences = []
    for measured, predicted in zip(*breakdown_points(claim, column, rows), strict=True):
        beyond = inf if largest - predicted > claim.within else nan
        differences.append(beyond if measured == NEVER else measured - predicted)
    return tuple(differences)


def breakdown_points(
    claim: Claim, column: Column, rows: dict[str, ResultRow]
) -> tuple[list[float], list[float]]:
    """Per seed: the measured and the predicted breakdown point of a series. `rows`: by facet.

    The measured one is the largest number of attackers up to which the column of the claim reaches
    its target: at least this value if more is better, else at most. It is NEVER if the seed
    withstands every number.
    """
    ordered = sorted(rows, key=attackers)
    rises = more_is_better(column)

    def reaches(value: float) -> bool:
        return value >= claim.target if rises else value <= claim.target

    measured = []
    for values in zip(*(rows[facet].values[column.name] for facet in ordered), strict=True):
        withstood = list(takewhile(reaches, values))
        last = attackers(ordered[len(withstood) - 1]) if withstood else 0
        measured.append(NEVER if len(withstood) == len(ordered) else last)
    return measured, rows[ordered[0]].values[claim.breakdown]


def attackers(facet: str) -> int:
    """The number of hostile peers in a facet of a part across attack.peers: `peers = [0,9]`."""
    return int(value_label(facet.partition(" = ")[2]))


def rank_correlations(
    claim: Claim, column: Column, rows: dict[str, ResultRow]
) -> tuple[list[float], list[float]]:
    """Spearman's correlation per seed of each column of `rank` with how good the series are.

    It is positive if the column has the expected order.
    """
    seeds = range(min(len(row.values[column.name]) for row in rows.values()))
    better = 1 if more_is_better(column) else -1
    goodness = [[better * row.values[column.name][s] for row in rows.values()] for s in seeds]
    first, second = (
        [
            spearman([sign * row.values[name][s] for row in rows.values()], goodness[s])
            for s in seeds
        ]
        for name, sign in ((name, -1 if name in claim.smaller else 1) for name in claim.rank)
    )
    return first, second


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
