"""Peers over TCP: the bits of the simulation, and networks that survive the loss of a peer."""

import json
import signal
import subprocess
import threading
from pathlib import Path

import gossamer
import gossamer.torch as gossip
import pytest
import torch
from conftest import Configure
from process_test_util import Processes, Program, ReservedPort, wait_until
from tasks import NumpySoftmax, batch_of, loss_of, sgd, softmax, torch_task


def final_hash(program: Path, folder: Path) -> str:
    command = [str(program), "collect", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return str(json.loads((folder / "summary.json").read_text())["final_hash"])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm.order": "awc", "algorithm.local_steps": 3},
        {"algorithm.kind": "gradient_tracking", "codec.kind": "bf16"},
        {"algorithm.kind": "power_gossip"},
        {"algorithm.kind": "teleportation", "algorithm.active": 2},
    ],
    ids=["dpsgd", "awc", "tracking", "power_gossip", "teleportation"],
)
def test_a_task_and_a_loop_over_tcp_end_with_the_bits_of_the_simulation(
    configure: Configure,
    processes: Processes,
    program: Path,
    tmp_path: Path,
    settings: dict[str, object],
) -> None:
    config = configure(4, 20)
    simulated = gossamer.run(config, torch_task(), settings=settings, out=tmp_path / "simulated")
    overrides = [f"{key}={value}" for key, value in settings.items()]
    started = [
        processes.start("task_peer.py", config, "0,1", tmp_path / "tcp", "torch", *overrides)
    ]
    for peer in (2, 3):  # the same loss as the task's, in a loop
        started.append(processes.start("loop.py", config, peer, tmp_path / "tcp", *overrides))
    for each in started:
        assert each.result()
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]


def test_weights_of_samples_over_tcp_have_the_bits_of_the_simulation(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    """Each program knows how many samples it has itself."""
    settings = {"data.weights": "samples", "algorithm.local_steps": 2}
    task = gossip.Task(softmax, sgd, batch_of, loss_of, samples=lambda peer: 100 * (peer + 1))
    config = configure(3, 20)
    simulated = gossamer.run(config, task, settings=settings, out=tmp_path / "simulated")
    overrides = [f"{key}={value}" for key, value in settings.items()]
    started = [
        processes.start(
            "loop.py", config, peer, tmp_path / "tcp", f"samples={100 * (peer + 1)}", *overrides
        )
        for peer in range(3)
    ]
    for each in started:
        assert each.result()
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]


def test_an_asynchronous_server_over_tcp(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    config = configure(2, 20)
    kind = "algorithm.kind=async_server"
    started = [processes.start("loop.py", config, node, tmp_path / "out", kind) for node in (0, 1)]
    server = processes.start("task_peer.py", config, 2, tmp_path / "out", "torch", kind)
    assert [each.result()["steps"] for each in started] == [20, 20]
    assert server.result()["reason"] == "finished"
    assert final_hash(program, tmp_path / "out")


def test_a_process_that_waits_says_so(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    config = configure(2, 2)
    waiting = processes.start("task_peer.py", config, "0", tmp_path / "out", "numpy")
    waiting.wait_for("waiting for peer 1")
    other = processes.start("task_peer.py", config, "1", tmp_path / "out", "numpy")
    assert waiting.result() and other.result()


@pytest.mark.parametrize("interrupted", [False, True])
def test_control_c_ends_a_step_that_waits_for_a_late_neighbour(
    configure: Configure, processes: Processes, tmp_path: Path, interrupted: bool
) -> None:
    config = configure(2, 20)
    late = processes.start("loop.py", config, 1, tmp_path / "out", "pause=5")
    waiting = processes.start("loop.py", config, 0, tmp_path / "out")
    late.wait_for("paused")
    waiting.wait_for("step 5")
    if interrupted:
        waiting.process.send_signal(signal.SIGINT)
        assert waiting.wait() != 0
        assert "KeyboardInterrupt" in waiting.output
    late.tell()
    assert late.result()["steps"] == 20
    if not interrupted:
        assert waiting.result()["steps"] == 20


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"algorithm.kind": "server"}, 20),
        ({"algorithm.kind": "fedavg", "algorithm.local_steps": 2, "algorithm.fraction": 0.5}, 0),
    ],
    ids=["server", "fedavg"],
)
def test_a_server_over_tcp_ends_with_the_bits_of_the_simulation(
    configure: Configure,
    processes: Processes,
    program: Path,
    tmp_path: Path,
    settings: dict[str, object],
    steps: int,
) -> None:
    config = configure(3, 20)
    simulated = gossamer.run(config, torch_task(), settings=settings, out=tmp_path / "simulated")
    overrides = [f"{key}={value}" for key, value in settings.items()]
    out = tmp_path / "tcp"
    started = [processes.start("task_peer.py", config, "0,1", out, "torch", *overrides)]
    started += [processes.start("loop.py", config, node, out, *overrides) for node in (2, 3)]
    assert started[0].result()
    assert started[1].result()["steps"] > 0
    assert started[2].result()["steps"] == steps  # of the server
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]


def test_numpy_over_tcp_ends_with_the_bits_of_the_simulation(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    config = configure(4, 20)
    simulated = gossamer.run(config, NumpySoftmax(), out=tmp_path / "simulated")
    started = [
        processes.start("task_peer.py", config, ids, tmp_path / "tcp", "numpy")
        for ids in ("0-1", "2-3")
    ]
    for each in started:
        assert each.result()["reason"] == "finished"
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]


def test_programs_without_ids_claim_them(
    configure: Configure, processes: Processes, program: Path, tmp_path: Path
) -> None:
    config = configure(3, 20)
    simulated = gossamer.run(config, NumpySoftmax(), out=tmp_path / "simulated")
    with ReservedPort() as seed:
        settings = (f'net.seeds=["{seed}"]', "net.rendezvous=", "net.listen=")
        started = [
            processes.start("task_peer.py", config, "", tmp_path / "tcp", "numpy", *settings)
            for _ in range(3)
        ]
        assert [each.result()["reason"] for each in started] == ["finished"] * 3
    assert final_hash(program, tmp_path / "tcp") == simulated["final_hash"]


def test_an_interrupt_ends_the_wait_for_an_id(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    settings = ('net.seeds=["127.0.0.1:1"]', "net.rendezvous=", "net.join_timeout=100")
    waiting = processes.start("task_peer.py", configure(3, 20), "", tmp_path, "numpy", *settings)
    waiting.wait_for("waiting for an id: 0 of 3 ids have a process; seeds: 127.0.0.1:1: ")
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.wait() != 0
    assert "KeyboardInterrupt" in waiting.output


def test_more_programs_than_peers_are_refused(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(gossamer.Error, match="WORLD_SIZE: 4 processes were started, and the netw"):
        gossamer.peer(configure(3, 20), NumpySoftmax(), out=tmp_path / "out")


def test_a_program_that_stands_still_is_lost(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    """Its process answers, so that only the deadline for rows can end the wait of the others."""
    config = configure(4, 30)
    loops = [
        processes.start(
            "loop.py",
            config,
            peer,
            tmp_path / "out",
            "net.row_timeout=2",
            *(["pause=5"] if peer == 2 else []),
        )
        for peer in range(4)
    ]
    for peer in (0, 1, 3):
        assert loops[peer].result()
        log = (tmp_path / f"out/log-{peer}.jsonl").read_text().splitlines()
        lost = [each for each in map(json.loads, log) if each.get("event") == "link_lost"]
        assert [each["neighbour"] for each in lost] == ([] if peer == 0 else [2])
    assert loops[2].process.poll() is None


@pytest.mark.parametrize("killed", range(4))
def test_a_killed_peer_is_left_out_and_rejoins(
    configure: Configure, processes: Processes, tmp_path: Path, killed: int
) -> None:
    waiting, enough = (killed + 1) % 4, tmp_path / "enough"
    config = configure(4, 10**6)
    pauses = {killed: "pause=5", waiting: "pause=20"}

    def start(peer: int, option: str) -> Program:
        return processes.start("loop.py", config, peer, tmp_path / "out", f"until={enough}", option)

    loops = [start(peer, pauses.get(peer, "resume=none")) for peer in range(4)]
    loops[killed].wait_for("paused")
    loops[killed].process.send_signal(signal.SIGKILL)
    loops[waiting].wait_for("paused")  # the others go on
    again = start(killed, "resume=auto")
    loops[waiting].tell()
    again.wait_for("step 100")
    enough.touch()
    ends = [loops[peer].result() for peer in range(4) if peer != killed] + [again.result()]
    assert all(end["accuracy"] > 0.9 for end in ends)


@pytest.mark.parametrize("how", ["exception", "interrupt"])
def test_the_others_go_on_when_a_loop_ends_early(
    configure: Configure, processes: Processes, tmp_path: Path, how: str
) -> None:
    config = configure(4, 30)
    more = {"exception": "fail=5", "interrupt": "pause=5"}[how]
    leaving = processes.start("loop.py", config, 1, tmp_path / "out", more)
    others = [processes.start("loop.py", config, peer, tmp_path / "out") for peer in (0, 2, 3)]
    if how == "interrupt":
        leaving.wait_for("paused")
        leaving.process.send_signal(signal.SIGINT)
    assert leaving.wait() != 0
    assert {"exception": "ZeroDivisionError", "interrupt": "KeyboardInterrupt"}[
        how
    ] in leaving.output
    for other in others:
        assert other.result()["end"]["reason"] == "finished"
    end = json.loads((tmp_path / "out" / "log-1.jsonl").read_text().splitlines()[-1])
    assert (end["reason"], end["message"]) == ("interrupted", "peer 1 was stopped by its program")


def test_control_c_ends_the_wait_for_others(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    alone = processes.start("loop.py", configure(2, 5), 0, tmp_path / "out")
    wait_until("peer 0 has an address", lambda: rendezvous(tmp_path))
    alone.process.send_signal(signal.SIGINT)
    assert alone.wait() != 0
    assert "KeyboardInterrupt" in alone.output


def rendezvous(folder: Path) -> dict[str, str]:
    """The addresses that peers have published."""
    return {path.name: path.read_text() for path in folder.glob("meet/*") if path.is_file()}


@pytest.mark.parametrize("which", ["init", "frozen"])
def test_different_initial_parameters_are_refused(
    configure: Configure, processes: Processes, tmp_path: Path, which: str
) -> None:
    config = configure(2, 5)
    started = [
        processes.start("loop.py", config, peer, tmp_path / "out", f"{which}={peer}")
        for peer in (0, 1)
    ]
    wait_until("one is rejected", lambda: any(each.process.poll() for each in started))
    assert any("its model is" in each.output and ", start " in each.output for each in started)
    remedy = "seed random numbers alike before the model is made, as with torch.manual_seed(), or"
    assert any(remedy in each.output for each in started)
    listed = any("; not in its optimizer: frozen (1) " in each.output for each in started)
    assert listed == (which == "frozen")
    different = [
        processes.start(
            "loop.py", config, peer, tmp_path / "b", f"{which}={peer}", "run.init=different"
        )
        for peer in (0, 1)
    ]
    assert all(each.result()["steps"] == 5 for each in different)


def output_of_a_nan(configure: Configure, processes: Processes, out: Path, *options: str) -> str:
    """What peer 2 of 4 prints, whose gradient is NaN in step 5. It ends, and the others go on."""
    config = configure(4, 20)
    started = [
        processes.start("loop.py", config, peer, out, *(["nan=5", *options] if peer == 2 else []))
        for peer in range(4)
    ]
    assert started[2].wait() != 0
    assert all(started[peer].result()["steps"] == 20 for peer in (0, 1, 3))
    return started[2].output


def test_a_gradient_that_is_not_finite_is_named(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    output = output_of_a_nan(configure, processes, tmp_path / "out", "checked=1")
    assert "the gradient of parameter bias is not finite in local step 5" in output


def test_a_peer_that_diverges_names_the_parameter(
    configure: Configure, processes: Processes, tmp_path: Path
) -> None:
    output = output_of_a_nan(configure, processes, tmp_path / "out")
    assert "peer 2 diverged: in round 5" in output
    assert "parameter bias is not finite after local step 5" in output


@pytest.fixture
def pair(configure: Configure, processes: Processes, tmp_path: Path) -> tuple[Path, Program]:
    """A network of two: the test is peer 0, and a loop, which waits before step 3, is peer 1."""
    config = configure(2, 10)
    return config, processes.start("loop.py", config, 1, tmp_path / "out", "pause=3")


def test_other_threads_run_while_a_step_waits(pair: tuple[Path, Program], tmp_path: Path) -> None:
    config, other = pair
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    counted = 0

    def count() -> None:  # and then let the neighbour go on
        nonlocal counted
        other.wait_for("paused")
        while counted < 1000:
            counted += 1
        other.tell()

    thread = threading.Thread(target=count)
    with gossip.Optimizer(
        sgd(model.parameters()), config, 0, out=tmp_path / "out", module=model
    ) as optimizer:
        thread.start()
        step = 0
        while not optimizer.finished:
            optimizer.zero_grad()
            loss_of(model, batch_of(0, step)).backward()
            optimizer.step()  # waits for the neighbour in step 3
            step += 1
    thread.join()
    assert (step, counted) == (10, 1000)
    assert optimizer.metrics()["round"] == 10
    with pytest.raises(gossamer.Error, match="the run of 10 rounds is complete"):
        optimizer.step()
    assert other.wait() == 0
