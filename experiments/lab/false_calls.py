"""Simulates how often the rule of lab/claims.py calls a claim of a page falsely.

Every claim is placed where false calls are most frequent, on the edge between true and false: the
mean of one comparison is at a bound, and its other comparisons are true beyond doubt. Any verdict
but "open" is then a false call. The claims of a page have independent noise.
"""

from collections.abc import Callable
from functools import cache
from math import inf, sqrt

import numpy as np

from lab.claims import ALPHA, claim_p_value
from lab.comparisons import Comparison
from lab.inference import p_inside, p_outside

_DRAWS = 10_000
_FAR = 1e6  # from the other bound of a closeness, in standard deviations
Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

# Noise of a difference per seed, with mean 0.
NOISES: dict[str, Noise] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "heavy tails (Student's t with 3 degrees of freedom)": lambda random, shape: random.standard_t(
        3, shape
    ),
    "both series skewed (exponential)": lambda random, shape: random.laplace(size=shape),
    "one series skewed, the other without noise": lambda random, shape: (
        random.exponential(size=shape) - 1
    ),
}


def page_rate(cases: list[list[Comparison]]) -> float:
    """The fraction of simulated pages with a false call, for the claims and seeds of a page."""
    shapes = [
        (len(comparisons[0].differences), len(comparisons), comparisons[0].is_closeness)
        for comparisons in cases
        if comparisons
    ]
    return false_call_rate(tuple(shapes), len(cases), "normal")


@cache
def false_call_rate(shapes: tuple[tuple[int, int, bool], ...], claims: int, noise: str) -> float:
    """`shapes`: seeds, comparisons and whether it is a closeness, of each claim with results."""
    random = np.random.default_rng(0)
    smallest = np.ones(_DRAWS)
    for seeds, comparisons, closeness in shapes:
        differences = NOISES[noise](random, (_DRAWS, seeds))
        low, high = 0.0, _FAR if closeness else inf
        p_false = np.minimum(1, comparisons * p_outside(differences, low, high))
        smallest = np.minimum(smallest, claim_p_value(p_inside(differences, low, high), p_false))
    return float((claims * smallest <= ALPHA).mean())


def two_standard_errors_rate(seeds: int, claims: int, noise: str) -> float:
    """The same for the rule of earlier pages: the mean is beyond two standard errors."""
    differences = NOISES[noise](np.random.default_rng(0), (_DRAWS, claims, seeds))
    errors = differences.std(axis=-1, ddof=1) / sqrt(seeds)
    return float((np.abs(differences.mean(axis=-1)) > 2 * errors).any(axis=-1).mean())


def table(claims: int = 8, seeds: tuple[int, ...] = (3, 5, 10)) -> str:
    """Rates of a page of claims of one comparison, by noise and seeds; in brackets the old rule."""
    header = " | ".join(f"{n} seeds" for n in seeds)
    lines = [f"| noise of a difference | {header} |", f"|---|{'---:|' * len(seeds)}"]
    for noise in NOISES:
        rates = [
            f"{100 * false_call_rate(((n, 1, False),) * claims, claims, noise):.1f} % "
            f"({100 * two_standard_errors_rate(n, claims, noise):.0f} %)"
            for n in seeds
        ]
        lines.append(f"| {noise} | {' | '.join(rates)} |")
    return "\n".join(lines)
