"""Tasks that run in several threads of a process: the results are those of runs one by one."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossamer
import gossamer.torch as gossip
import torch
from conftest import Configure
from gossamer.random_turns import RandomTurns
from tasks import batch_of, loss_of, sgd, softmax


def with_dropout(peer: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Dropout(0.5), softmax(peer))


def task(seed: int, begins: Callable[[], None] = lambda: None) -> gossip.Task:
    """Its loss and its evaluation draw random numbers. `begins`: called once, before a loss."""
    calls = [begins]

    def batch(peer: int, step: int) -> Any:
        if calls:
            calls.pop()()
        return batch_of(peer, step)

    def evaluate(module: torch.nn.Module) -> tuple[float, float]:
        return float(torch.rand(())), 0

    return gossip.Task(with_dropout, sgd, batch, loss_of, evaluate, seed=seed)


def test_runs_in_threads_have_the_results_of_runs_one_by_one(
    configure: Configure, tmp_path: Path
) -> None:
    config = configure(4, 5)

    def run(made: gossip.Task, name: str) -> Any:
        summary = gossamer.run(config, made, out=tmp_path / name)
        return summary["final_hash"], summary["final"]

    alone = [run(task(seed), f"alone {seed}") for seed in (0, 1)]
    other, found = task(1), []
    thread = threading.Thread(target=lambda: found.append(run(other, "thread")))

    def begin() -> None:
        """The other run draws and seeds now, unless it has to wait for its turn."""
        thread.start()
        thread.join(0.2)

    found.append(run(task(0, begin), "main"))
    thread.join()
    assert alone[0] != alone[1]
    assert all(each in found for each in alone)


def test_a_task_finds_the_random_numbers_as_it_has_left_them() -> None:
    class Owner:
        pass

    turns, first, second = RandomTurns(), Owner(), Owner()
    torch.manual_seed(3)
    expected = torch.rand(4).tolist()
    torch.manual_seed(3)
    drawn = []
    with turns.of(first):
        drawn.append(float(torch.rand(())))
        with turns.of(second):  # a run within the first one
            torch.manual_seed(9)
        drawn.append(float(torch.rand(())))
    with turns.of(second):
        torch.manual_seed(8)
    with turns.of(first):
        drawn.append(float(torch.rand(())))
    turns.forget(first)
    with turns.of(first):  # the newest turn was its own
        drawn.append(float(torch.rand(())))
    assert drawn == expected
