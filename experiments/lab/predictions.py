"""Theory beside the measured curves: what `gossamer predict` says of the runs that a report compares."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from lab.binary import find_binary
from lab.conditions import Condition, Run
from lab.curves import Curves
from lab.errors import LabError

# What theory may have a curve of.
CURVES = ("consensus_distance", "distance_to_optimum")


class Predictions:
    """Predicted curves by condition and metric. Asks the program once for each run, and only where theory may have a curve:
    for mixing alone, and where the optimum is known."""

    def __init__(self, conditions: list[Condition], sweep_folder: Path) -> None:
        self.missing = ""  # why nothing could be asked, in words
        self._curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._round_seconds: dict[str, dict[str, float] | None] = {}
        runs = [
            run
            for condition in conditions
            for run in condition.runs
            if _may_have_a_curve(run) or _takes_time(run)
        ]
        if not runs:
            return
        try:
            program = find_binary()
            for run in runs:
                said = _predict(program, sweep_folder / run.name)
                self._curves[run.name] = _curves(said)
                self._round_seconds[run.name] = said["round_seconds"]
        except LabError as error:
            self._curves.clear()
            self.missing = f"No predicted curves are drawn: {error}."

    def curve(self, condition: Condition, metric: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Rounds and values, the mean over the seeds; None unless there is one for every seed."""
        found = [self._curves.get(run.name, {}).get(metric) for run in condition.runs]
        curves = [curve for curve in found if curve is not None]
        if len(curves) < len(found) or any(
            not np.array_equal(curve[0], curves[0][0]) for curve in curves
        ):
            return None
        return curves[0][0], np.mean([values for _, values in curves], axis=0)

    def round_seconds(self, run: Run) -> dict[str, float] | None:
        """How long a round of the run takes, in virtual time: whole, training, …; None where that is not predicted."""
        return self._round_seconds.get(run.name)

    def any(self, conditions: list[Condition], metric: str) -> bool:
        return any(self.curve(condition, metric) is not None for condition in conditions)


def _may_have_a_curve(run: Run) -> bool:
    curves: Curves = run.curves
    algorithm = run.summary.get("config", {}).get("algorithm", {}).get("kind")
    return algorithm == "consensus" or curves.has("distance_to_optimum")


def _takes_time(run: Run) -> bool:
    return bool(run.summary.get("virtual_seconds"))


def _predict(program: Path, folder: Path) -> dict[str, Any]:
    resolved = min(folder.glob("resolved-*.toml"), default=None)
    if resolved is None:
        raise LabError(f"{folder}: no resolved-*.toml")
    done = subprocess.run(
        [program, "predict", resolved, "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"{resolved}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _curves(said: dict[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    if said["rounds"] is None:
        return {}
    rounds = np.array(said["rounds"], dtype=float)
    return {
        name: (rounds, np.array([np.nan if v is None else v for v in said[name]], dtype=float))
        for name in CURVES
        if said[name] is not None
    }
