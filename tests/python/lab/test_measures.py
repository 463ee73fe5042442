"""Measures of a run's curves."""

from dataclasses import replace

import numpy as np
import pytest
from lab.conditions import Run
from lab.curves import Curves
from lab.errors import LabError
from lab.measure import METRICS, NEVER, parse_measure


def curves(period: int = 1, every: int = 10, **values: list[float]) -> Curves:
    length = len(next(iter(values.values())))
    names = ("test_accuracy", "test_loss", "bytes_sent", "seconds", "consensus_distance")
    arrays = {name: np.array(values.get(name, [np.nan] * length), dtype=float) for name in names}
    return Curves(
        np.arange(length) * every,
        arrays,
        {"period": period},
        False,
        {name: np.array([array]) for name, array in arrays.items()},
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("test_accuracy", 0.8),
        ("rounds until test_accuracy 0.5", 10),
        ("bytes_sent until test_accuracy 0.6", 400),
        ("rounds until test_accuracy 0.9", NEVER),
        ("seconds until test_loss 1.5", 0.5),
        ("test_accuracy at 10", 0.6),
        ("test_accuracy at 11", 0.8),
        ("bytes_sent", 800),
        ("rounds", 20),
    ],
)
def test_measure(text: str, value: float) -> None:
    run = curves(
        test_accuracy=[0.1, 0.6, 0.8],
        test_loss=[2, 1.4, 1],
        bytes_sent=[0, 400, 800],
        seconds=[0, 0.5, 1],
    )
    assert parse_measure(text).value(run) == value


def test_phases_that_the_end_alone_shows_date_no_target() -> None:
    """With period 2, rounds 10, 20 and 30 are of one phase, and round 31 is of the other."""
    run = curves(period=2, test_accuracy=[0.1, 0.5, 0.7, 0.9, 0.8])
    run.rounds[-1] = 31
    ended = replace(run, last=2)
    assert parse_measure("test_accuracy").value(ended) == pytest.approx(0.85)
    for text in ("rounds until test_accuracy 0.6", "test_accuracy at 20"):
        with pytest.raises(LabError, match="repeats after 2 rounds, and log.last shows some"):
            parse_measure(text).value(ended)
    whole = curves(period=2, every=1, test_accuracy=[0.1, 0.5, 0.7, 0.9, 0.8])
    assert replace(whole, last=9).dates_targets
    static = curves(period=1, test_accuracy=[0.1, 0.5, 0.7])
    assert parse_measure("rounds until test_accuracy 0.6").value(replace(static, last=2)) == 20
    spread = curves(period=2, every=11, test_accuracy=[0.1, 0.5, 0.7, 0.9, 0.8])
    measure = parse_measure("rounds until test_accuracy 0.6")
    assert measure.value(replace(spread, last=2)) == measure.value(spread) == 22


def test_samples_are_read_by_losses_and_accuracies_alone() -> None:
    reads = {text: parse_measure(text).reads_samples for text in METRICS}
    assert [text for text, samples in reads.items() if not samples] == [
        "train_loss",
        "distance_to_optimum",
        "averaged_distance_to_optimum",
        "consensus_distance",
    ]
    assert parse_measure("rounds until test_accuracy 0.5").reads_samples
    assert not parse_measure("bytes_sent until consensus_distance 0.5").reads_samples


def test_a_curve_against_seconds_uses_the_times_of_each_peer() -> None:
    """One peer is ten times slower: after 2 s the fast peer has 0.6 and the slow one still 0."""
    peers = {
        "seconds": np.array([[0.0, 1, 2], [0, 10, 20]]),
        "test_accuracy": np.array([[0, 0.4, 0.6], [0, 0.8, 1.0]]),
    }
    means = {name: rows.mean(axis=0) for name, rows in peers.items()}
    run = Curves(np.arange(3), means, {}, False, peers)
    times, values = run.by_time("test_accuracy")
    assert times.tolist() == [0, 1, 2, 10, 20] and values == pytest.approx([0, 0.2, 0.3, 0.7, 0.8])
    assert parse_measure("seconds until test_accuracy 0.3").value(run) == 2
    assert parse_measure("rounds until test_accuracy 0.6").value(run) == 1


SAW = [0.1, 0.7, 0.3, 0.9, 0.5, 0.9, 0.7, 0.9]  # better in the second round of each period


@pytest.mark.parametrize("every", [1, 3])
def test_a_value_of_a_periodic_graph_is_the_mean_over_its_period(every: int) -> None:
    run = curves(period=2, every=every, test_accuracy=SAW, bytes_sent=[10] * 8)
    assert parse_measure("test_accuracy").value(run) == pytest.approx((0.7 + 0.9) / 2)
    assert parse_measure(f"test_accuracy at {3 * every}").value(run) == pytest.approx(0.6)
    assert parse_measure("rounds until test_accuracy 0.7").value(run) == 5 * every, (
        "the target is reached when every round of a period is at it"
    )
    assert parse_measure("rounds until test_accuracy 0.8").value(run) == NEVER
    assert parse_measure("rounds until test_accuracy 0.7").value(curves(test_accuracy=SAW)) == 10
    assert parse_measure("bytes_sent").value(run) == 10


def test_a_log_of_one_phase_has_no_value() -> None:
    """Rounds 0, 4, 8, …: the log shows a graph of period 4 only when it has just agreed."""
    run = curves(period=4, every=4, test_accuracy=SAW)
    assert np.isnan(parse_measure("test_accuracy").value(run))
    assert parse_measure("rounds until test_accuracy 0.5").value(run) == NEVER


@pytest.mark.parametrize(
    "text",
    [
        "accuracy",
        "rounds until test_accuracy",
        "hours until test_loss 1",
        "test_loss 1",
        "rounds until test_loss 1 at 3",
        "rounds until bytes_sent 7",
        "rounds until test_accuracy 0.9.1",
        "rounds until test_accuracy .",
        "",
    ],
)
def test_an_invalid_measure_is_rejected(text: str) -> None:
    with pytest.raises(LabError, match="is no measure"):
        parse_measure(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds until test_accuracy 90", "between 0 and 1: write 0.9 for 90 %$"),
        ("seconds until averaged_accuracy 1.5", "accuracies lie between 0 and 1: write 0.015 for"),
        ("rounds until test_accuracy 900", "accuracies lie between 0 and 1$"),
        ("rounds until test_accuracy -0.1", "accuracies lie between 0 and 1$"),
        ("rounds until backdoor_success 20", "backdoor_success lies between 0 and 1: write 0.2"),
    ],
)
def test_a_target_in_percent_is_rejected(text: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        parse_measure(text)
    assert parse_measure("rounds until test_accuracy 1").target == 1
    assert parse_measure("rounds until test_loss 90").target == 90


def test_a_measure_of_a_missing_curve_is_an_error() -> None:
    run = curves(test_accuracy=[0.1, 0.6, 0.8])
    with pytest.raises(LabError, match="no test_loss"):
        parse_measure("test_loss").value(run)
    with pytest.raises(LabError, match="20 rounds"):
        parse_measure("test_accuracy at 30").value(run)


def test_the_worst_peer_is_the_lowest_of_the_last_period() -> None:
    """Rounds 0 to 4 of two peers and a graph of period 3; the last period is rounds 2 to 4."""
    run = curves(period=3, every=1, test_accuracy=[0.1, 0.2, 0.5, 0.7, 0.9])
    accuracies = np.array([[0.1, 0.1, 0.6, 0.6, 0.9], [0.1, 0.3, 0.4, 0.8, np.nan]])
    run = replace(run, peers={"test_accuracy": accuracies})
    assert run.lowest_of_period("test_accuracy") == 0.4
    static = replace(run, topology={"period": 1})
    assert static.lowest_of_period("test_accuracy") == 0.9, "of the peers that are there"
    ends = {"final": {"test_accuracy": {"min": 0.8}}}
    assert Run("run", ends, run).worst_accuracy == 0.4
    assert Run("run", ends, static).worst_accuracy == 0.8
    lost = replace(run, peers={"test_accuracy": np.full((2, 5), np.nan)})
    assert Run("run", ends, lost).worst_accuracy is None
