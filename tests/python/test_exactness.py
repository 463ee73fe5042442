"""Exact algorithms reach the common optimum in float32 and stay there.

The problem has a quadratic of condition number 10 for each of 8 peers (9 on the torus, which 8
cannot be) with different minimisers (heterogeneity 1) and full gradients; the step size is 0.2/L.
After 8,000 rounds, or after 15/gap rounds if that is more, the relative distance to the optimum
must be at most 2e-4 for another 8,000 rounds: rounding errors must not accumulate.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

PEERS, CONVERGED, REMAINING, TOLERANCE = 8, 8_000, 8_000, 2e-4
SYMMETRIC = ("ring", "torus", "hypercube", "complete")
# Needed by D², and by tracking in awc order on a bipartite graph at this step size.
LAZY = ("topology.lazy=true",)
CENTRALISED = [
    ("allreduce", (f"algorithm.form={form}",)) for form in ("ring", "root", "all_to_all")
] + [("server", (f"algorithm.servers={servers}",)) for servers in (1, 3)]
CASES = (
    [(topology, "gradient_tracking", ()) for topology in (*SYMMETRIC, "exponential")]
    + [
        (topology, "gradient_tracking", ("algorithm.order=awc", *LAZY))
        for topology in (*SYMMETRIC, "exponential")
    ]
    + [(topology, kind, LAZY) for topology in SYMMETRIC for kind in ("d2", "extra")]
    + [(graph, "push_pull", ("optimizer.rate=0.05",)) for graph in ("star", "exponential")]
    + [("complete", kind, sets) for kind, sets in CENTRALISED]
    + [(tree, "relay_sgd", ()) for tree in ("path", "binary_tree")]
    + [("complete", "diloco", ("algorithm.local_steps=1",))]
)


@pytest.mark.parametrize(
    ("topology", "kind", "sets"),
    CASES,
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_reaches_the_common_optimum_and_stays(
    gossamer: Path, tmp_path: Path, topology: str, kind: str, sets: tuple[str, ...]
) -> None:
    settings = (
        f"run.peers={9 if topology == 'torus' else PEERS}",
        f"run.rounds={CONVERGED + REMAINING}",
        f"topology.kind={topology}",
        f"algorithm.kind={kind}",
        "model.kind=linear",
        "data.kind=quadratic",
        "data.condition=10",
        "data.heterogeneity=1",
        "data.batch=0",
        "optimizer.rate=0.2",
        "log.every=1000",
        "local.threads=1",
        *sets,
    )
    overrides = [argument for each in settings for argument in ("--set", each)]
    done = subprocess.run(
        [str(gossamer), "run", *overrides, "--out", str(tmp_path / "run"), "--quiet"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    records = [
        json.loads(line)
        for line in (tmp_path / "run" / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    gap = records[0]["topology"]["spectral_gap"]
    distances = {r["round"]: r["distance_to_optimum"] for r in records if r["record"] == "network"}
    assert distances[0] > 0.5
    late = {t: distance for t, distance in distances.items() if t >= max(CONVERGED, 15 / gap)}
    assert len(late) > 5
    assert max(late.values()) <= TOLERANCE, late
