"""Confidence intervals and tests of a mean over seeds, for few seeds.

The t-test assumes normal values. It has no variance to work with if all values are equal, and no
mean if a value is not finite (a seed did not reach a target): the sign test takes its place then.
"""

from collections.abc import Sequence
from math import comb, isinf, sqrt

import numpy as np
from scipy.special import stdtr, stdtrit

LEVEL = 0.95  # of confidence intervals
_EQUAL = 1e-9  # relative spread of values that differ by rounding only

Values = Sequence[float] | np.ndarray


def half_width(values: Values) -> float | None:
    """Half the width of the 95 % confidence interval of the mean (Student's t).

    None for fewer than two values, or if a value is not finite.
    """
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    quantile = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2))
    return quantile * float(np.std(values, ddof=1)) / sqrt(len(values))


def has_t_test(values: Values) -> np.ndarray:
    """If the values are finite and not all equal. Otherwise only their signs are tested.

    The seeds are the last axis, here and in the functions below; the result has the other axes.
    """
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array).all(axis=-1)
    zeros = np.where(finite[..., None], array, 0.0)
    return finite & (np.ptp(zeros, axis=-1) > _EQUAL * np.abs(zeros).max(axis=-1))


def p_above(values: Values, bound: float) -> np.ndarray:
    """One-sided p-value of "the mean is above the bound"; small if it is.

    The t-test of the mean, or the sign test of the median. A NaN is evidence for neither side.
    """
    array = np.asarray(values, dtype=float)
    if isinf(bound):
        return np.full(array.shape[:-1], 0.0 if bound < 0 else 1.0)
    n = array.shape[-1]
    tails = np.array(
        [sum(comb(n, k) for k in range(above, n + 1)) / 2**n for above in range(n + 1)]
    )
    signs = tails[(array > bound).sum(axis=-1)]
    if n < 2:
        return signs
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (array.mean(axis=-1) - bound) / (array.std(axis=-1, ddof=1) / sqrt(n))
    return np.where(has_t_test(array), stdtr(n - 1, -t), signs)


def p_below(values: Values, bound: float) -> np.ndarray:
    """One-sided p-value of "the mean is below the bound"."""
    return p_above(-np.asarray(values, dtype=float), -bound)


def p_inside(values: Values, low: float, high: float) -> np.ndarray:
    """p-value of "the mean is between the bounds", by two one-sided tests (TOST, Schuirmann 1987).

    With one infinite bound it is the one-sided test of the other.
    """
    return np.maximum(p_above(values, low), p_below(values, high))


def p_outside(values: Values, low: float, high: float) -> np.ndarray:
    """p-value of "the mean is below the lower or above the upper bound" (Bonferroni over both)."""
    sides = 2 - isinf(low) - isinf(high)
    return np.minimum(1, sides * np.minimum(p_below(values, low), p_above(values, high)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number (Holm 1979).

    If a claim is called when its adjusted value is at most α, the probability of one or more false
    calls is at most α.
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
