"""AD-PSGD and the asynchronous server against simulations of their events in numpy, 200 rounds.

In virtual time the order of events follows from how long each step and each message takes. The
references compute these times from the settings, and step in double in the order that results.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from iteration_test_util import ROUNDS, SEED, check_rows
from philox_reference import below, stream, unit
from softmax_problem import PEERS, Problem, Rows

TOPOLOGY, NETWORK, STEP_TIME = 6, 8, 12  # purposes of streams, src/base/philox.hpp
STEP, LATENCY, WIDTH = 10_000_000, 3_000_000, 0.5  # nanoseconds, times random factors
PACES = (
    f"sim.compute_ms={STEP / 1e6}",
    f"sim.compute_spread={WIDTH}",
    f"sim.latency_ms={LATENCY / 1e6}",
    f"sim.latency_spread={WIDTH}",
)
# Two events of one node that are closer together have no certain order.
APART = 10  # nanoseconds


def factor(peer: int, purpose: int, step: int) -> float:
    """exp(s z − s²/2), s the width and z standard normal (Box and Muller)."""
    numbers = stream(SEED, peer, purpose, step)
    radius, angle = unit(numbers), unit(numbers)
    z = math.sqrt(-2 * math.log(1 - radius)) * math.cos(2 * math.pi * angle)
    return math.exp(WIDTH * z - WIDTH**2 / 2)


def gradient(problem: Problem, peer: int, row: Rows) -> Rows:
    """∇f_peer at the row."""
    own: Rows = problem.gradients(np.tile(row, (PEERS, 1)))[peer]
    return own


@dataclass
class Event:
    what: str
    at: int
    peer: int  # that has sent the message
    row: Rows


class Events:
    """In the order of time."""

    def __init__(self) -> None:
        self._now, self._numbers = 0, itertools.count()
        self._events: list[tuple[int, int, Event]] = []

    def step(self, peer: int, step: int, row: Rows) -> None:
        duration = round(STEP * factor(peer, STEP_TIME, step))
        self._add(duration, Event("step", peer, peer, row))

    def send(self, what: str, peer: int, to: int, row: Rows) -> None:
        latency = round(LATENCY * factor(min(peer, to), NETWORK, max(peer, to)))
        self._add(latency, Event(what, to, peer, row.copy()))

    def _add(self, duration: int, event: Event) -> None:
        heapq.heappush(self._events, (self._now + duration, next(self._numbers), event))

    def __iter__(self) -> Iterator[Event]:
        last: dict[int, int] = {}
        while self._events:
            self._now, _number, event = heapq.heappop(self._events)
            assert self._now - last.get(event.at, -APART) >= APART
            last[event.at] = self._now
            yield event


def served(problem: Problem, start: Rows, rounds: int, rate: float, bound: float) -> Rows:
    """Dean et al. 2012: x ← x − γ g for each push as it arrives, and the worker pulls x.

    Ho et al. 2013: a worker waits for its pull while it is more than `bound` rounds ahead of the
    slowest.
    """
    server, x, workers = PEERS, start[0], start.copy()
    pushes, pulls, events = [0] * PEERS, [0] * PEERS, Events()

    def begin(worker: int) -> None:
        if pulls[worker] < rounds:
            events.step(worker, pulls[worker], gradient(problem, worker, workers[worker]))

    for worker in range(PEERS):
        begin(worker)
    waited = stale = 0
    answered = [0] * PEERS  # the pushes before its pull
    for event in events:
        if event.what == "step":
            events.send("push", event.at, server, event.row)
        elif event.what == "push":
            stale = max(stale, sum(pushes) - answered[event.peer])
            x = x - rate * event.row
            pushes[event.peer] += 1
            for worker in range(PEERS):
                ahead = pushes[worker] > min(pushes) + bound
                waited += ahead
                if pulls[worker] < pushes[worker] and not ahead:
                    pulls[worker], answered[worker] = pulls[worker] + 1, sum(pushes)
                    events.send("pull", server, worker, x)
        else:
            workers[event.at] = event.row
            begin(event.at)
    assert pushes == pulls == [rounds] * PEERS
    assert rounds < ROUNDS or (stale > PEERS and (waited > 0) == (bound < math.inf))
    return workers


@pytest.mark.parametrize("bound", [-1, 1])
def test_async_server(problem: Problem, bound: int) -> None:
    rate = 1 / 32
    sets = (*PACES, f"optimizer.rate={rate}", f"algorithm.staleness_bound={bound}")
    start = problem.run("async_server", "complete", 0, *sets)
    for rounds in (1, 2, 3, ROUNDS):
        actual = problem.run("async_server", "complete", rounds, *sets)
        expected = served(problem, start, rounds, rate, math.inf if bound < 0 else bound)
        check_rows(actual, expected, rounds)


def neighbours_of(graph: str) -> list[list[int]]:
    if graph == "complete":
        return [[j for j in range(PEERS) if j != i] for i in range(PEERS)]
    return [sorted({(i - 1) % PEERS, (i + 1) % PEERS}) for i in range(PEERS)]


@dataclass
class Peer:
    x: Rows
    colour: int
    round: int = 0
    before: Rows = field(default_factory=lambda: np.zeros(0))
    waits: bool = False
    stepping: bool = False
    parted: set[int] = field(default_factory=set)
    questions: list[Event] = field(default_factory=list)


class AdPsgd:
    """Lian et al. 2018: x ← x − γ ∇f(x before); meanwhile x_i, x_j ← (x_i + x_j)/2, j random.

    A peer asks neighbours of higher colours: on a bipartite graph, the paper's active peers ask
    the passive ones. A peer that waits for an answer itself answers later. After its last round a
    peer keeps its model, and is asked no more once its neighbours have noticed.
    """

    def __init__(self, problem: Problem, start: Rows, graph: str, rate: float) -> None:
        self.problem, self.rate, self.neighbours = problem, rate, neighbours_of(graph)
        colours = range(PEERS) if graph == "complete" else (0, 1) * (PEERS // 2)
        self.peers = [Peer(row, colour) for row, colour in zip(start, colours, strict=True)]
        self.events, self.postponed, self.late = Events(), 0, 0

    def run(self, rounds: int) -> Rows:
        for i in range(PEERS):
            self.begin(i, rounds)
        for event in self.events:
            self.happen(event, rounds)
        return np.array([peer.x for peer in self.peers])

    def begin(self, i: int, rounds: int) -> None:
        me = self.peers[i]
        self.answer_all(i, me.round == rounds)
        if me.round == rounds:
            for j in self.neighbours[i]:
                self.events.send("parting", i, j, me.x)
            return
        me.before = me.x
        asked = [j for j in self.neighbours[i] if self.peers[j].colour > me.colour]
        asked = [j for j in asked if j not in me.parted]
        me.waits, me.stepping = bool(asked), True
        if asked:
            partner = asked[below(stream(SEED, i, TOPOLOGY, me.round), len(asked))]
            self.events.send("question", i, partner, me.x)
        self.events.step(i, me.round, gradient(self.problem, i, me.x))

    def answer_all(self, i: int, final: bool) -> None:
        me = self.peers[i]
        for question in me.questions:
            if not final:
                me.x = (me.x + question.row) / 2
            self.events.send("answer", i, question.peer, question.row if final else me.x)
        me.questions = []

    def happen(self, event: Event, rounds: int) -> None:
        me, final = self.peers[event.at], self.peers[event.at].round == rounds
        if event.what == "parting":
            me.parted.add(event.peer)
        elif event.what == "question":
            me.questions.append(event)
            self.postponed += me.waits
            self.late += final
            if not me.waits:
                self.answer_all(event.at, final)
        elif event.what == "answer":
            me.x, me.waits = event.row, False
            if me.stepping:
                self.answer_all(event.at, final)
        else:
            me.stepping, me.before = False, event.row
        if event.what in ("answer", "step") and not me.waits and not me.stepping:
            me.x = me.x - self.rate * me.before
            me.round += 1
            self.begin(event.at, rounds)


@pytest.mark.parametrize("graph", ["ring", "complete"])
def test_ad_psgd(problem: Problem, graph: str) -> None:
    rate = 1 / 8
    sets = (*PACES, f"optimizer.rate={rate}", "run.init=different")
    start = problem.run("ad_psgd", graph, 0, *sets)
    for rounds in (1, 2, 3, ROUNDS):
        reference = AdPsgd(problem, start, graph, rate)
        check_rows(problem.run("ad_psgd", graph, rounds, *sets), reference.run(rounds), rounds)
    assert (reference.postponed > 0) == (graph == "complete")
