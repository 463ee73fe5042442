"""The conditions that a report compares.

A condition is a grid point without seed and step size. It has a run for each seed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.axes import VARIANT
from lab.cells import SEED
from lab.curves import Curves, read_curves
from lab.errors import LabError
from lab.measure import METRICS, final_value
from lab.participants import last_graph
from lab.results import Sweep
from lab.selection import TEST, Choice
from lab.topology import uses_graph

KIND = "topology.kind"
_TIME_POINTS = 120  # points of a curve against time


@dataclass(frozen=True)
class Run:
    name: str
    summary: dict[str, Any]
    curves: Curves

    @property
    def split(self) -> str:
        """The samples on which the models are evaluated: `test` or `validation`."""
        return self.summary.get("config", {}).get("data", {}).get("evaluate", TEST)

    def final(self, metric: str) -> float | None:
        """The value at the end of the run: the mean over the last period if the graph has one."""
        if self.curves.period == 1:
            return final_value(self.summary, metric)
        value = float(self.curves.period_mean(metric)[-1])
        return value if np.isfinite(value) else None

    @property
    def worst_accuracy(self) -> float | None:
        """The lowest test accuracy of a peer at the end, as `final` has the mean."""
        if self.curves.period == 1:
            worst = self.summary["final"]["test_accuracy"]["min"]
            return None if worst is None else float(worst)
        lowest = self.curves.lowest_of_period("test_accuracy")
        return lowest if np.isfinite(lowest) else None


@dataclass(frozen=True)
class Band:
    """Mean, lowest and highest value over the seeds, at each logged round or time."""

    rounds: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Condition:
    series: str  # name in the legend: the value of the variant, topology or first varied axis
    facet: str  # values of the other varied axes; empty if there are none
    runs: list[Run]
    expected: int  # number of seeds in the grid
    choice: Choice | None
    labels: dict[str, str]  # axis → value
    place: tuple[int, ...] = ()  # of the facet in the grid

    def band(self, name: str) -> Band:
        shared = self.runs[0].curves.rounds
        for run in self.runs[1:]:
            shared = np.intersect1d(shared, run.curves.rounds)
        rows = np.array(
            [run.curves.values[name][np.isin(run.curves.rounds, shared)] for run in self.runs]
        )
        return Band(shared, rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))

    def curve_against(
        self, cost: str, name: str, last: float = np.inf, logarithmic: bool = False
    ) -> tuple[np.ndarray, Band]:
        """A curve against a cost: the costs (mean over the seeds), and the band of the values.

        `cost` is round, steps, bytes_sent or seconds. Seeds reach a round at different times, so a
        curve against seconds is sampled at times up to `last`, evenly spaced on the axis as drawn.
        """
        if cost != "seconds":
            band = self.band(name)
            return (band.rounds.astype(float) if cost == "round" else self.band(cost).mean), band
        runs = [run.curves.by_time(name) for run in self.runs]
        end = min([*(times[-1] for times, _ in runs), last])
        begin = max(times[times > 0][0] for times, _ in runs)
        x = (
            np.geomspace(begin, end, _TIME_POINTS)
            if logarithmic
            else np.linspace(0, end, _TIME_POINTS)
        )
        rows = np.array(
            [values[np.searchsorted(times, x, side="right") - 1] for times, values in runs]
        )
        return x, Band(x, rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))

    @property
    def has_virtual_time(self) -> bool:
        return all(run.summary.get("virtual_seconds") for run in self.runs)

    @property
    def topology(self) -> dict[str, Any]:
        """That of the first seed. Random graphs differ from seed to seed."""
        return self.topologies[0]

    @property
    def topologies(self) -> list[dict[str, Any]]:
        """Of each seed."""
        return [run.curves.topology for run in self.runs]

    @property
    def last_graphs(self) -> list[dict[str, Any]]:
        """The properties of each seed's graph at the end, when participants have changed."""
        return [last_graph(topology) for topology in self.topologies]

    @property
    def changes_participants(self) -> bool:
        return any(len(topology.get("changes") or ()) > 1 for topology in self.topologies)

    @property
    def peer_counts(self) -> set[int]:
        """How many peers take part at a time, of each seed."""
        return {
            each["peers"]
            for topology in self.topologies
            for each in topology.get("changes") or [topology]
        }

    @property
    def uses_graph(self) -> bool:
        return uses_graph(self.runs[0].summary.get("config", {}))

    @property
    def server_bytes(self) -> np.ndarray:
        """Bytes that each server of each run has sent: [runs × servers]."""
        return np.concatenate([run.curves.server_bytes for run in self.runs])

    @property
    def dates_targets(self) -> bool:
        """If the logs show when a target is reached (Curves.dates_targets)."""
        return all(run.curves.dates_targets for run in self.runs)

    def finals(self, name: str) -> np.ndarray:
        """The value of a metric at the end of the run, or a whole cost, for each seed."""
        return np.array(
            [
                (run.curves.period_mean(name) if name in METRICS else run.curves.values[name])[-1]
                for run in self.runs
            ]
        )


def read_conditions(sweep: Sweep, select: str = "") -> list[Condition]:
    """The conditions in the order of the grid, without those that have no finished run.

    Their runs have the step sizes selected for the measure `select`; if it is empty, for the first
    measure of the sweep. Throws LabError if there is no condition.
    """
    select = select or sweep.metadata["select"][0]
    compared: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for result in sweep.comparable_results(select):
        run = Run(result.cell.name, result.summary or {}, read_curves(result.cell.folder))
        compared.setdefault(result.cell.condition(), []).append(run)
    if not compared:
        raise LabError(
            f"{sweep.folder}: no run of the sweep has finished at a selected step size, "
            "so there is nothing to compare"
        )
    choices = sweep.choices_for(select)
    expected = len(sweep.metadata["axes"].get(SEED, [0]))
    varied = [
        key for key, values in sweep.metadata["axes"].items() if len(values) > 1 and key != SEED
    ]
    series = next((key for key in (VARIANT, KIND, *varied) if key in varied), None)
    conditions = []
    for key, runs in compared.items():
        labels = dict(key)
        names = short_keys(varied)
        facet_keys = [k for k in varied if k != series]
        facet = ", ".join(f"{names[k]} = {labels[k]}" for k in facet_keys)
        place = tuple(sweep.metadata["axes"][k].index(labels[k]) for k in facet_keys)
        name = (
            _series_name(series, names[series], labels)
            if series
            else runs[0].curves.topology["topology"]
        )
        conditions.append(
            Condition(_display_text(name), facet, runs, expected, choices.get(key), labels, place)
        )
    return conditions


def selection_split(conditions: list[Condition]) -> str:
    """The split that selected the step sizes: `test`, `validation`, or `test or validation`."""
    return " or ".join(sorted({c.choice.split for c in conditions if c.choice}))


def evaluation_split(conditions: list[Condition]) -> str:
    """The split of the test metrics: `test`, `validation`, or `test or validation`."""
    return " or ".join(sorted({run.split for c in conditions for run in c.runs}))


def by_facet(conditions: list[Condition]) -> dict[str, list[Condition]]:
    """The facets in the order of the grid, even if the first series lacks some of them."""
    grouped: dict[str, list[Condition]] = {}
    for condition in sorted(conditions, key=lambda condition: condition.place):
        grouped.setdefault(condition.facet, []).append(condition)
    return grouped


def series_list(conditions: list[Condition]) -> str:
    """The names of the series; separated by semicolons if a name has a comma."""
    names = dict.fromkeys(condition.series for condition in conditions)
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _series_name(key: str, name: str, labels: dict[str, str]) -> str:
    return labels[key] if key == VARIANT or key.endswith(".kind") else f"{name} = {labels[key]}"


def short_key(key: str) -> str:
    return key.rpartition(".")[2] if not key.endswith(".kind") else key.partition(".")[0]


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Key → its short name, or the whole key where two keys would have the same name."""
    names = {key: short_key(key) for key in keys}
    counts = Counter(names.values())
    return {key: name if counts[name] == 1 else key for key, name in names.items()}


def _display_text(name: str) -> str:
    return name.strip('"').replace("_", " ")
