"""The page of a run: `gossamer watch`, and `net.http` of a run that is under way."""

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from network_test_util import DEADLINE, NetworkFactory, ReservedPort, wait_until

ROOT = Path(__file__).resolve().parents[3]
URL = re.compile(r"http://[^/]*:\d+/")
# Prometheus' text format 0.0.4: a comment or a sample a line.
LINE = re.compile(
    r"# (HELP|TYPE) gossamer_\w+ .+"
    r'|gossamer_\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? [-+.e0-9]+'
)
PRIVATE = ("privacy.clip=1", "privacy.epsilon=5", "data.batch=8")
SMALL = ["--set", "run.peers=4", "--set", "run.rounds=6", "--set", "log.every=2"]


def names_of_metrics(text: str) -> set[str]:
    return set(re.findall(r"\bgossamer_\w+", text))


def text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
        return str(answer.read().decode())


def json_of(url: str) -> dict[str, Any]:
    value = json.loads(text_of(url))
    assert isinstance(value, dict)
    return value


@pytest.fixture
def folder(gossamer: Path, tmp_path: Path) -> Path:
    """The folder of a finished run of four peers."""
    out = tmp_path / "run"
    subprocess.run([gossamer, "run", *SMALL, "--quiet", "--out", out], check=True, cwd=tmp_path)
    return out


Watch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def watch(gossamer: Path) -> Iterator[Watch]:
    """watch(FOLDER) starts `gossamer watch` at a free port."""
    started = []

    def start(folder: Path) -> "subprocess.Popen[str]":
        command = [gossamer, "watch", folder, "--http", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def url_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = URL.search(line)
    assert found, line
    return found[0]


def test_a_finished_run_is_served_until_the_program_is_interrupted(
    folder: Path, watch: Watch
) -> None:
    process = watch(folder)
    url = url_of(process)
    state = json_of(url + "state")
    log = [json.loads(line) for line in (folder / "log-0.jsonl").read_text().splitlines()]
    networks = [record for record in log if record["record"] == "network"]
    assert state["rounds"]["consensus_distance"] == pytest.approx(
        [record["consensus_distance"] for record in networks], rel=1e-6
    )
    assert state["nodes"]["distance"] == pytest.approx(
        networks[-1]["distances_from_mean"], rel=1e-6
    )
    assert state["kept_rounds"] == [0, 2, 4, 6]
    assert state["end"]["reason"] == "finished"
    assert "<!doctype html>" in text_of(url)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE) == 0


def test_every_part_of_the_page_is_served_from_here(folder: Path, watch: Watch) -> None:
    """The page loads nothing of another host, and nothing that is missing."""
    url = url_of(watch(folder))
    seen, left = set(), ["index.html"]
    while left:
        name = left.pop()
        text = text_of(url + name)
        seen.add(name)
        assert not re.search(r"(src|href|url\(|from|import)\W{0,3}(https?:)?//", text), name
        parts = re.findall(r'(?:src|href)="\.?/?([\w.]+)"|from "\./([\w.]+)"', text)
        left += [part for pair in parts for part in pair if part and part not in seen]
    assert {"index.html", "page.css", "page.js"} < seen
    pages = Path(__file__).resolve().parents[3] / "src" / "peer" / "watch" / "page"
    assert {path.name for path in pages.iterdir()} == seen


def test_the_metrics_have_prometheus_text_format(folder: Path, watch: Watch) -> None:
    url = url_of(watch(folder))
    lines = text_of(url + "metrics").splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert 'gossamer_round{peer="3"} 6' in lines
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_logs_are_followed_while_processes_write_them(
    network: NetworkFactory, watch: Watch
) -> None:
    net = network(2, "run.rounds=2000000", "log.every=50")
    net.start("0"), net.start("1")
    wait_until("no log", lambda: len(list(net.out.glob("log-*.jsonl"))) == 2)
    url = url_of(watch(net.out))

    def rounds() -> list[int]:
        return [round or 0 for round in json_of(url + "state")["nodes"]["round"]]

    first = wait_until("no round", lambda: max(rounds(), default=0))
    wait_until("no later round", lambda: min(rounds()) > first)
    state = json_of(url + "state")
    assert state["run"]["served_by"] is None
    assert all(value is not None for value in state["nodes"]["distance"])  # from sketches


def state_when(url: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The state of a page, once it fulfils the condition."""

    def fulfilled() -> dict[str, Any] | None:
        state = json_of(url + "state")
        return state if condition(state) else None

    found = wait_until(lambda: text_of(url + "state"), fulfilled)
    assert found is not None
    return found


def lost_links(state: dict[str, Any]) -> list[tuple[int, int]]:
    links = state["links"]
    ends = zip(links["a"], links["b"], links["state"], strict=True)
    return [(a, b) for a, b, what in ends if what == "lost"]


def events_of(state: dict[str, Any]) -> list[tuple[int, str]]:
    return list(zip(state["events"]["peer"], state["events"]["event"], strict=True))


def url_of_process(process: Any) -> str:
    return str(wait_until(lambda: process.stderr, lambda: URL.search(process.stderr))[0])


def test_any_process_of_a_network_serves_figures_of_all(network: NetworkFactory) -> None:
    net = network(4, "topology.kind=path", "run.rounds=2000000", "log.every=50")
    served = net.start("0", "net.http=127.0.0.1:0")
    for peer in ("1", "2", "3"):
        net.start(peer)
    url = url_of_process(served)
    state = state_when(url, lambda state: state["nodes"]["state"] == ["training"] * 4)
    assert state["run"]["served_by"] == [0] and state["run"]["hears_others"]
    first = min(state["nodes"]["round"])
    state = state_when(url, lambda state: min(state["nodes"]["round"]) > first)
    state = state_when(url, lambda state: 4 in state["rounds"]["nodes"])
    state = state_when(
        url, lambda state: any(value is not None for value in state["rounds"]["consensus_distance"])
    )
    # Each process is a target of Prometheus.
    metrics = text_of(url + "metrics")
    assert 'gossamer_round{peer="0"}' in metrics and 'gossamer_round{peer="3"}' not in metrics
    # The link between 2 and 3 is none of this process's own.
    net.processes[3].process.kill()
    lost = state_when(url, lambda state: state["nodes"]["state"][3] == "lost")
    assert lost_links(lost) == [(2, 3)]
    assert lost["links"]["a"] == [0, 1, 2] and min(lost["links"]["bytes"]) > 0


def test_suspicions_of_any_process_are_shown(network: NetworkFactory) -> None:
    """Peer 2, which is no neighbour of the process with the page, suspects peer 3. It waits for
    peer 3, and records no round meanwhile.
    """
    net = network(
        4, "topology.kind=path", "run.rounds=2000000", "log.every=50", "net.failure_timeout=20"
    )
    served = net.start("0", "net.http=127.0.0.1:0")
    for peer in ("1", "2", "3"):
        net.start(peer)
    url = url_of_process(served)
    state_when(url, lambda state: state["nodes"]["state"] == ["training"] * 4)
    net.processes[3].process.send_signal(signal.SIGSTOP)
    suspected = state_when(url, lambda state: "suspected" in state["links"]["state"])
    links = suspected["links"]
    assert [
        (a, b)
        for a, b, state in zip(links["a"], links["b"], links["state"], strict=True)
        if state == "suspected"
    ] == [(2, 3)]
    net.processes[3].process.send_signal(signal.SIGCONT)
    state_when(url, lambda state: "suspected" not in state["links"]["state"])
    # A peer that joins later is shown as such everywhere, and so is what others observe of it.
    net.processes[3].process.kill()
    state_when(url, lambda state: state["nodes"]["state"][3] == "lost")
    net.start("3", resume="auto")
    state_when(url, lambda state: state["nodes"]["state"][3] == "joined")
    seen = [(2, "link_lost"), (2, "link_restored"), (3, "joined")]
    state_when(url, lambda state: set(seen) <= set(events_of(state)))
    for _ in range(3):  # more reports
        before = json_of(url + "state")["nodes"]["round"][2]
        state = state_when(url, lambda state, before=before: state["nodes"]["round"][2] > before)
    events = events_of(state)
    assert [events.count(event) for event in seen] == [1, 1, 1]


def test_figures_are_shared_only_where_that_is_allowed(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=2000000", "log.every=50")
    first = net.start("0", "net.http=127.0.0.1:0", "net.share_figures=off")
    second = net.start("1", "net.http=127.0.0.1:0")
    urls = [url_of_process(first), url_of_process(second)]
    for own, url in enumerate(urls):
        state_when(url, lambda state, own=own: (state["nodes"]["round"][own] or 0) > 500)
    states = [json_of(url + "state") for url in urls]
    assert [state["run"]["hears_others"] for state in states] == [False, True]
    assert states[0]["nodes"]["state"] == ["training", "unknown"]
    assert states[1]["nodes"]["state"] == ["unknown", "training"]
    with socket.create_connection(net.address(0), DEADLINE) as stranger:
        stranger.sendall(bytes(64))
    wait_until(
        "the refused connection is counted",
        lambda: (
            'gossamer_refused_connections_total{reason="handshakes"} 1'
            in text_of(urls[0] + "metrics")
        ),
    )
    dashboard = (ROOT / "deploy/grafana.json").read_text(encoding="utf-8")
    assert names_of_metrics(dashboard) <= names_of_metrics(text_of(urls[0] + "metrics"))
    net.processes[1].process.kill()
    lost = state_when(urls[0], lambda state: "lost" in state["nodes"]["state"])
    assert lost_links(lost) == [(0, 1)]
    assert "gossamer_links_lost 1" in text_of(urls[0] + "metrics")


def test_private_gradients_share_no_figures(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=200000", "log.every=50", *PRIVATE)
    first = net.start("0", "net.http=127.0.0.1:0")
    net.start("1", "net.http=127.0.0.1:0")
    url = url_of_process(first)
    state = state_when(url, lambda state: (state["nodes"]["round"][0] or 0) > 200)
    assert not state["run"]["hears_others"]
    assert state["nodes"]["state"] == ["training", "unknown"]


def test_the_page_changes_no_bit(gossamer: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "served"
    command = [gossamer, "run", *SMALL, "--quiet", "--out", out, "--set", "net.http=127.0.0.1:0"]
    subprocess.run(command, check=True, cwd=tmp_path)
    hashes = [json.loads((run / "summary.json").read_text())["final_hash"] for run in (folder, out)]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("address", ["8080", "127.0.0.1:x", "192.0.2.1:8080"])
def test_a_wrong_address_is_named_and_nothing_is_left(
    gossamer: Path, tmp_path: Path, address: str
) -> None:
    out = tmp_path / "run"
    command = [gossamer, "run", *SMALL, "--out", out, "--set", f"net.http={address}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode in (2, 7)
    assert "net.http" in result.stderr and address in result.stderr
    assert not out.exists()


def test_what_cannot_be_watched_is_named(gossamer: Path, folder: Path, tmp_path: Path) -> None:
    def fails(*arguments: object) -> str:
        command = [gossamer, "watch", *arguments]
        result = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        assert result.returncode != 0
        return result.stderr

    assert "missing" in fails(tmp_path / "missing", "--http", "127.0.0.1:0")
    (tmp_path / "empty").mkdir()
    assert "contains no run" in fails(tmp_path / "empty", "--http", "127.0.0.1:0")
    with ReservedPort() as address:
        taken = subprocess.Popen(
            [gossamer, "watch", folder, "--http", address], stdout=subprocess.PIPE, text=True
        )
        try:
            url_of(taken)
            assert f"--http: cannot listen at {address}" in fails(folder, "--http", address)
        finally:
            taken.kill()
            taken.communicate()


def test_another_site_cannot_read_the_page(folder: Path, watch: Watch) -> None:
    """A name of another site that leads to this machine is refused (DNS rebinding)."""
    request = urllib.request.Request(
        url_of(watch(folder)) + "state", headers={"Host": "rebound.example"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=DEADLINE)
    assert refused.value.code == 403


def test_the_logs_of_workers_are_those_of_one_run(network: NetworkFactory, watch: Watch) -> None:
    """Each worker logs the figures of its replica."""
    net = network(2, "model.kind=mlp", "model.hidden=[8]", "split.layers=2", "run.rounds=4")
    for worker in ("0.0", "0.1", "1.0", "1.1"):
        net.start(worker)
    assert net.wait() == [0] * 4, [each.stderr for each in net.processes]
    for folder in (net.out, net.out / "part1of2"):
        state = json_of(url_of(watch(folder)) + "state")
        assert state["end"]["reason"] == "finished"
        assert state["nodes"]["state"] == ["finished"] * 2
        assert all(nodes == due == 2 for nodes, due in zip(
            state["rounds"]["nodes"], state["rounds"]["due"], strict=True
        ))  # fmt: skip
