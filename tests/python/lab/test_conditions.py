"""The names and the order of a report's conditions."""

from pathlib import Path
from typing import Any

from lab.conditions import read_conditions, short_keys
from lab.results import read_sweep
from lab.study import Part, facet_names


def test_axes_with_one_last_part_have_their_whole_names(lab: Any, tmp_path: Path) -> None:
    assert short_keys(["topology.kind", "run.peers"]) == {
        "topology.kind": "topology",
        "run.peers": "peers",
    }
    axes = ("codec.fraction=0.1,0.2", "data.fraction=0.1,0.2", "run.peers=4,5")
    done = lab("sweep", "small.toml", *axes, "--out", "out")
    assert done.returncode == 0, done.stderr
    conditions = read_conditions(read_sweep(tmp_path / "out"))
    assert conditions[1].series == "codec.fraction = 0.1"
    assert conditions[1].facet == "data.fraction = 0.1, peers = 5"
    assert len({(c.series, c.facet) for c in conditions}) == len(conditions) == 8
    part = Part("runs", "run.toml", axes[:2])
    assert facet_names(part)[1] == "codec.fraction = 0.1, data.fraction = 0.2"
