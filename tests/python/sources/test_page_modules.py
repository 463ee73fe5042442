"""The modules of the page of a run that need no browser, in Node.js."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "src" / "peer" / "watch" / "page"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")

Script = Callable[..., Any]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """script(TEXT, VALUE) runs a module of JavaScript beside those of the page, with VALUE as
    `given`, and returns what it passes to answer().
    """
    for source in PAGE.glob("*.js"):
        shutil.copy(source, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def run(text: str, given: Any = None) -> Any:
        head = f"const given = {json.dumps(given)};\n"
        tail = "\nfunction answer(value) { console.log(JSON.stringify(value)); }\n"
        (tmp_path / "script.js").write_text(head + text + tail)
        done = subprocess.run(
            [str(NODE), "script.js"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def run_of(peers: int, servers: int = 0, run_id: str = "r") -> dict[str, Any]:
    """What /state says of a run on a ring."""
    edges = [[peer, (peer + 1) % peers] for peer in range(peers)]
    return {"run_id": run_id, "peers": peers, "servers": servers, "edges": edges, "hostile": None}


def node_of(id: int, *totals: tuple[float, float, float, float]) -> dict[str, Any]:
    """The figures of a node: round, seconds, bytes sent and seconds of training in its first record
    and in its newest one.
    """
    names = ("round", "seconds", "bytes_sent", "train_seconds")
    figures: dict[str, Any] = {"id": id, "state": "training"}
    for prefix, values in zip(("first_", ""), totals, strict=True):
        figures |= {prefix + name: value for name, value in zip(names, values, strict=True)}
    return figures


def state_of(run: dict[str, Any], *nodes: dict[str, Any]) -> dict[str, Any]:
    columns = {name: [node[name] for node in nodes] for name in nodes[0]}
    return {"version": 1, "run": run, "nodes": columns}


FACTS = """
import { bytesPerRound, bytesSent, secondsPerRound, slowestIn } from "./facts.js";
import { RunState } from "./state.js";
const state = new RunState();
state.take(given);
answer({
  sent: bytesSent(state), each: bytesPerRound(state), pace: secondsPerRound(state),
  slow: slowestIn(state, [0, 1, 2]),
});
"""


def test_a_newcomer_counts_from_its_first_record(script: Script) -> None:
    state = state_of(
        run_of(3),
        node_of(0, (0, 0, 0, 0), (1000, 50, 4000, 10)),
        node_of(1, (0, 0, 0, 0), (1000, 50, 4000, 10)),
        node_of(2, (900, 0, 0, 0), (1000, 5, 400, 2)),
    )
    facts = script(FACTS, state)
    assert facts == {
        "sent": 8400,
        "each": 4,
        "pace": 0.05,
        "slow": {"id": 2, "part": pytest.approx(2)},
    }


def test_a_page_of_newcomers_alone_has_their_pace(script: Script) -> None:
    state = state_of(
        run_of(3),
        node_of(0, (900, 1, 100, 1), (1000, 6, 500, 2)),
        node_of(1, (990, 1, 0, 0), (1000, 9, 40, 1)),
        node_of(2, (1000, 0, 7, 0), (1000, 0, 7, 0)),
    )
    facts = script(FACTS, state)
    assert facts["sent"] == 547 and facts["each"] == 4 and facts["pace"] == 0.05
    assert facts["slow"]["id"] == 1


def test_bytes_of_servers_count(script: Script) -> None:
    state = state_of(
        run_of(2, servers=1),
        node_of(0, (0, 0, 0, 0), (10, 1, 100, 0)),
        node_of(1, (0, 0, 0, 0), (10, 1, 100, 0)),
        node_of(2, (0, 0, 0, 0), (10, 1, 600, 0)),
    )
    facts = script(FACTS, state)
    assert facts["sent"] == 800 and facts["each"] == 40
    assert facts["slow"] is None


def test_nothing_is_known_before_the_second_record(script: Script) -> None:
    state = state_of(run_of(1), node_of(0, (0, 0, 5, 0), (0, 0, 5, 0)))
    assert script(FACTS, state) == {"sent": 5, "each": None, "pace": None, "slow": None}


TAKE = """
import { RunState } from "./state.js";
const state = new RunState();
answer(given.map((each) => [...state.take(each)].includes("another run")));
"""


def test_the_whole_state_of_the_same_run_is_no_other_run(script: Script) -> None:
    """When participants change, the process sends the whole state again."""

    def state(**run: Any) -> dict[str, Any]:
        return state_of(run_of(3) | run, node_of(0, (0, 0, 0, 0), (2, 1, 0, 0)))

    states = [state(), state(edges=[[0, 1]]), state(run_id="s"), state(run_id="s", servers=1)]
    assert script(TAKE, states) == [True, False, True, True]
    assert script(TAKE, [{"version": 5, "nodes": {}}, state(), state()]) == [False, True, False]


RELAYED = """
import { isRelayed } from "./state.js";
answer(given.map((link) => [isRelayed({ replay: null }, link), isRelayed({ replay: 4 }, link)]));
"""


def test_a_lost_link_is_not_relayed(script: Script) -> None:
    links = [
        {"state": state, "route": route}
        for state in ("active", "suspected", "lost")
        for route in ("relayed", "direct")
    ]
    now = [relayed for relayed, _ in script(RELAYED, links)]
    assert now == [True, False, True, False, False, False]
    assert not any(before for _, before in script(RELAYED, links))


NOTE = """
import { graphNote } from "./panels.js";
import { RunState } from "./state.js";
answer(given.map((each) => {
  const state = new RunState();
  state.take(each);
  return graphNote(state, { replay: null });
}));
"""


def test_a_page_says_of_which_worker_its_figures_are(script: Script) -> None:
    node = node_of(0, (0, 0, 0, 0), (2, 1, 0, 0))
    states = [
        state_of(run_of(3) | {"part": part, "workers": workers}, node)
        for part, workers in ((None, None), (0, 4))
    ]
    assert script(NOTE, states) == ["", "Each peer has 4 workers: figures of worker 0 of each."]
