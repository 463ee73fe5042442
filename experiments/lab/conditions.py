"""What a report compares: conditions (cells without seed and step size), their runs, and their bands over the seeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.axes import VARIANT
from lab.cells import SEED
from lab.curves import Curves, read_curves
from lab.errors import LabError
from lab.results import Sweep
from lab.selection import Choice

KIND = "topology.kind"
_TIMES = 120  # points of a curve against time


@dataclass(frozen=True)
class Run:
    name: str
    summary: dict[str, Any]
    curves: Curves


@dataclass(frozen=True)
class Band:
    """Mean over the seeds, and the lowest and highest seed, at each logged round (or moment)."""

    rounds: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Condition:
    series: str  # what the legend says: a value of the first varied axis, topologies before others
    facet: str  # the other varied axes; empty when there are none
    runs: list[Run]
    expected: int  # seeds asked for
    choice: Choice | None
    labels: dict[str, str]  # its place in the grid: axis → value

    def band(self, name: str) -> Band:
        shared = self.runs[0].curves.rounds
        for run in self.runs[1:]:
            shared = np.intersect1d(shared, run.curves.rounds)
        rows = np.array(
            [run.curves.values[name][np.isin(run.curves.rounds, shared)] for run in self.runs]
        )
        return Band(shared, rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))

    def along(
        self, spent: str, name: str, last: float = np.inf, logarithmic: bool = False
    ) -> tuple[np.ndarray, Band]:
        """A curve against what was spent by then, the mean over the seeds: spent is round, bytes_sent or seconds. Of seconds
        at most up to `last`, evenly spaced on the axis as drawn: peers and seeds reach a round at different times."""
        if spent != "seconds":
            band = self.band(name)
            return (band.rounds.astype(float) if spent == "round" else self.band(spent).mean), band
        runs = [run.curves.by_time(name) for run in self.runs]
        end = min([*(times[-1] for times, _ in runs), last])
        begin = max(times[times > 0][0] for times, _ in runs)
        x = np.geomspace(begin, end, _TIMES) if logarithmic else np.linspace(0, end, _TIMES)
        rows = np.array(
            [values[np.searchsorted(times, x, side="right") - 1] for times, values in runs]
        )
        return x, Band(x, rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))

    @property
    def takes_virtual_time(self) -> bool:
        return all(run.summary.get("virtual_seconds") for run in self.runs)

    @property
    def topology(self) -> dict[str, Any]:
        return self.runs[0].curves.topology

    @property
    def server_bytes(self) -> np.ndarray:
        """Sent by each server of each run, in all."""
        return np.concatenate([run.curves.server_bytes for run in self.runs])

    def finals(self, name: str) -> np.ndarray:
        """The last logged value of a curve, per seed."""
        return np.array([run.curves.values[name][-1] for run in self.runs])


def read_conditions(sweep: Sweep) -> list[Condition]:
    """In the order of the grid; a condition without a finished run is left out (the report lists it)."""
    compared: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for result in sweep.compared():
        run = Run(result.cell.name, result.summary or {}, read_curves(result.cell.folder))
        compared.setdefault(result.cell.condition(), []).append(run)
    if not compared:
        raise LabError(
            f"{sweep.folder}: no run of the sweep can be compared (finished, at a selected step size)"
        )
    choices = {tuple(choice.condition.items()): choice for choice in sweep.choices}
    expected = len(sweep.about["axes"].get(SEED, [0]))
    varied = [key for key, values in sweep.about["axes"].items() if len(values) > 1 and key != SEED]
    series = next((key for key in (VARIANT, KIND, *varied) if key in varied), None)
    conditions = []
    for key, runs in compared.items():
        labels = dict(key)
        facet = ", ".join(f"{word_of(k)} = {labels[k]}" for k in varied if k != series)
        name = _series_name(series, labels) if series else runs[0].curves.topology["topology"]
        conditions.append(Condition(_plain(name), facet, runs, expected, choices.get(key), labels))
    return conditions


def facets(conditions: list[Condition]) -> dict[str, list[Condition]]:
    grouped: dict[str, list[Condition]] = {}
    for condition in conditions:
        grouped.setdefault(condition.facet, []).append(condition)
    return grouped


def _series_name(key: str, labels: dict[str, str]) -> str:
    return (
        labels[key]
        if key == VARIANT or key.endswith(".kind")
        else f"{word_of(key)} = {labels[key]}"
    )


def word_of(key: str) -> str:
    return key.rpartition(".")[2] if not key.endswith(".kind") else key.partition(".")[0]


def _plain(name: str) -> str:
    return name.strip('"').replace("_", " ")
