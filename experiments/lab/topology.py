"""The report of `gossamer topology` on the graph of a run, and the rounds that a log must show.

A graph that changes with a period has a phase in every round. The peers' own models depend on the
phase: they agree exactly at the end of a period of Base-(k+1), and differ between. A value of such
a run is the mean over the phases of a period (lab/curves.py), so its log must show all of them.
"""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.participants import planned_changes

# The algorithms that send the same messages on every graph. Their runs have a topology too, which
# they do not use, and its period is none of theirs.
WITHOUT_GRAPH = frozenset(
    {"allreduce", "async_server", "centralized", "fedavg", "server", "teleportation"}
)
_DEFAULT_EVERY = 10  # of log.every


def uses_graph(config: dict[str, Any]) -> bool:
    """If the peers of a run exchange over its graph."""
    return config.get("algorithm", {}).get("kind") not in WITHOUT_GRAPH


def topology_metric(text: str, config: dict[str, Any], binary: Path) -> float:
    """A field of `gossamer topology --json` for a run's mixing matrix.

    `text` is the field's name and, optionally, a decay: `effective_neighbours 0.95`. Of a field
    with a value for each mixing rule, that of the run's rule.
    """
    key, _, decay = text.partition(" ")
    command = _command(config, binary) + (["--decay", decay] if decay else [])
    done = _run(tuple(command))
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
    value = json.loads(done.stdout).get(key)
    if isinstance(value, dict):
        value = value.get(config["mixing"]["rule"], 0)  # the mean has none
    if not isinstance(value, (int, float)):
        raise LabError(f"{' '.join(command)}: the output has no number '{key}'")
    return float(value)


def unseen_phases(config: dict[str, Any], binary: Path) -> str:
    """Why the log of a valid run would not show every phase of its graph; empty if it will."""
    if not uses_graph(config):
        return ""
    run = dict(config.get("run", {}), seed=0)
    begin = 0  # of the last graph
    if participants := run.get("participants"):
        change = planned_changes(participants)[-1]
        begin, run["peers"] = change.first, len(change.peers)
    done = _run(tuple(_command({"topology": config.get("topology", {}), "run": run}, binary)))
    period = json.loads(done.stdout)["period"] if done.returncode == 0 else 1  # 0: random graphs
    log = config.get("log", {})
    every, last = log.get("every", _DEFAULT_EVERY), log.get("last", 1)
    rounds = run.get("rounds", period * every)
    shown = range(begin, rounds + 1)
    seen = _phases_seen(every, last, shown, period)
    if seen >= period:
        return ""
    others = (k for k in (*range(every, every + period), 1) if k)
    graph = config.get("topology", {}).get("kind", "of the run")
    better = next((k for k in others if _phases_seen(k, last, shown, period) == period), None)
    return (
        f"log.every = {every} shows {seen} of the {period} rounds after which the graph "
        f"{graph} repeats. The peers' models depend on that round, so a value "
        "is the mean over all of them: "
        + (
            f"choose log.every = {better}, or log.last = {period} for values at the end"
            if better
            else f"run at least {period} rounds"
        )
    )


def _phases_seen(every: int, last: int, rounds: range, period: int) -> int:
    """The number of different phases among the logged rounds after the first one of `rounds`, which
    a graph begins with.
    """
    begin, end = rounds[0], rounds[-1]
    logged = {*range(max(begin, end - last) + 1, end + 1)}
    if every:
        logged.update(range(every, end + 1, every))
    return len({(t - begin) % period for t in logged if t > begin}) if period else 0


def _command(config: dict[str, Any], binary: Path) -> list[str]:
    topology, run = dict(config.get("topology", {})), config.get("run", {})
    command = [str(binary), "topology", topology.pop("kind", "ring"), "--json"]
    command += ["-n", str(run["peers"])] if "peers" in run else []
    command += ["--weights", topology.pop("weights", "auto"), "--seed", str(run.get("seed", 0))]
    command += ["--lazy"] if topology.pop("lazy", False) else []
    command += ["--allow-negative"] if topology.pop("allow_negative", False) else []
    for name, value in topology.items():
        command += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return command


@cache
def _run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
