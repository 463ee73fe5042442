"""The predictions of `gossamer predict` for the runs that a report compares."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from lab.binary import find_binary
from lab.conditions import Condition, Run
from lab.curves import Curves
from lab.errors import LabError

# The metrics that can have a predicted curve.
CURVES = ("consensus_distance", "distance_to_optimum")


class Predictions:
    """Predicted curves by condition and metric.

    Calls the program once for each run that can have a prediction: a run of consensus, a run with a
    known optimum, or a run in virtual time.
    """

    def __init__(self, conditions: list[Condition], sweep_folder: Path) -> None:
        self.unavailable = ""  # why there are no predictions; empty if there are
        self._curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._round_seconds: dict[str, dict[str, float] | None] = {}
        runs = [
            run
            for condition in conditions
            for run in condition.runs
            if not _is_attacked(run) and (_may_have_a_curve(run) or _has_virtual_time(run))
        ]
        if not runs:
            return
        try:
            program = find_binary()
            for run in runs:
                prediction = _predict(program, sweep_folder / run.name)
                self._curves[run.name] = _curves(prediction)
                self._round_seconds[run.name] = prediction["round_seconds"]
        except LabError as error:
            self._curves.clear()
            self.unavailable = f"No predicted curves are drawn: {error}."

    def curve(self, condition: Condition, metric: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Rounds, and the mean over the seeds; None unless every seed has a curve."""
        per_seed = [self._curves.get(run.name, {}).get(metric) for run in condition.runs]
        curves = [curve for curve in per_seed if curve is not None]
        if len(curves) < len(per_seed) or any(
            not np.array_equal(curve[0], curves[0][0]) for curve in curves
        ):
            return None
        return curves[0][0], np.mean([values for _, values in curves], axis=0)

    def round_seconds(self, run: Run) -> dict[str, float] | None:
        """Virtual seconds of a round by kind (whole, training, …); None if not predicted."""
        return self._round_seconds.get(run.name)

    def has_any(self, conditions: list[Condition], metric: str) -> bool:
        return any(self.curve(condition, metric) is not None for condition in conditions)


def _is_attacked(run: Run) -> bool:
    """Theory says nothing about a run with hostile peers."""
    return run.summary.get("config", {}).get("attack", {}).get("kind", "none") != "none"


def _may_have_a_curve(run: Run) -> bool:
    curves: Curves = run.curves
    algorithm = run.summary.get("config", {}).get("algorithm", {}).get("kind")
    return algorithm == "consensus" or curves.has("distance_to_optimum")


def _has_virtual_time(run: Run) -> bool:
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


def _curves(prediction: dict[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    if prediction["rounds"] is None:
        return {}
    rounds = np.array(prediction["rounds"], dtype=float)
    return {
        name: (
            rounds,
            np.array([np.nan if v is None else v for v in prediction[name]], dtype=float),
        )
        for name in CURVES
        if prediction[name] is not None
    }
