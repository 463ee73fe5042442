"""Intervals, tests and Holm's correction, against tables and worked examples, and by simulation."""

import numpy as np
import pytest
from lab.inference import half_width, holm, p_above, p_below, p_inside, p_outside
from lab.measure import NEVER


@pytest.mark.parametrize(("n", "quantile"), [(3, 4.303), (5, 2.776), (10, 2.262)])
def test_an_interval_has_the_width_of_students_table(n: int, quantile: float) -> None:
    values = np.arange(n, dtype=float)
    error = values.std(ddof=1) / np.sqrt(n)
    assert half_width(values) == pytest.approx(quantile * error, rel=2e-4)


def test_an_interval_needs_two_finite_values() -> None:
    assert half_width([1.0]) is None and half_width([1, NEVER, 2]) is None
    assert half_width([2, 2, 2]) == 0


def test_intervals_cover_the_mean_in_95_percent_of_samples() -> None:
    samples = np.random.default_rng(0).normal(size=(4000, 4))
    covered = [abs(sample.mean()) <= (half_width(sample) or 0) for sample in samples]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.01)


def test_the_paired_t_test_of_students_sleep_data() -> None:
    """Student 1908: two drugs on ten patients; R's t.test gives p = 0.002833 on both sides."""
    gain = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert 2 * p_above(gain, 0) == pytest.approx(0.002833, abs=1e-6)
    assert p_below(gain, 0) == pytest.approx(1 - 0.002833 / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "above"),
    [
        ([4, 4, 4, 4, 4], 1 / 32),  # no variance: a sign test
        ([NEVER, 3, NEVER], 1 / 8),  # no mean
        ([NEVER, -NEVER], 3 / 4),
        ([np.nan, 1, 1], 1 / 2),  # a NaN counts for no side
        ([0, 0, 0], 1),
        ([5], 1 / 2),
    ],
)
def test_only_signs_count_without_mean_or_variance(values: list[float], above: float) -> None:
    assert p_above(values, 0) == above


def test_equivalence_is_the_interval_within_the_margin() -> None:
    """The 95 % interval of the mean of these values is 0.2 ± 0.6392."""
    values = [-0.5, 0.0, 0.2, 0.4, 0.9]
    end = 0.2 + (half_width(values) or 0)
    assert end == pytest.approx(0.8392, abs=1e-4)
    assert p_inside(values, -end, end) == pytest.approx(0.025)
    assert p_inside(values, -1, 1) < 0.025 < p_inside(values, -0.8, 0.8)
    shifted = [value + 3 for value in values]
    assert p_inside(shifted, -1, 1) > 0.99 and p_outside(shifted, -1, 1) < 0.001
    assert p_outside(values, -1, 1) == 1


def test_one_bound_is_a_one_sided_test() -> None:
    values = [0.3, 0.5, 0.1, 0.6]
    assert p_inside(values, 0, np.inf) == p_above(values, 0)
    assert p_outside(values, 0, np.inf) == p_below(values, 0)


def test_holm_on_a_worked_example() -> None:
    """p = 0.01, 0.04, 0.03, 0.005: 4 · 0.005, 3 · 0.01, 2 · 0.03, then the largest so far."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1] and holm([]) == []


def test_the_seeds_are_the_last_axis() -> None:
    table = [[1, 2, 4], [3, 3, 3], [1, NEVER, 1]]
    assert p_above(table, 0).tolist() == [float(p_above(row, 0)) for row in table]
