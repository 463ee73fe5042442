"""What a seed draws: edges, shifts, pairs and receivers, from the program's keyed random numbers.

Philox gives the numbers (philox_reference.py), keyed by (seed, peer, purpose, step). The algorithms
that make graphs of them are those of the papers that each function names, in plain Python. A step
is an attempt for a graph that is drawn once, and a round for a graph that is drawn in each round.
"""

import math
from collections.abc import Iterator

from philox_reference import NO_PEER, below, random_order, shuffle, stream, unit

TOPOLOGY = 6  # the purpose of a stream of random graphs
FIRST_ROUND = 1 << 20  # the step of round 0 where earlier steps draw shifts or a base graph
ATTEMPTS = 100

Edges = set[tuple[int, int]]  # (smaller, larger)


def numbers(seed: int, step: int, peer: int = NO_PEER) -> Iterator[int]:
    return stream(seed, peer, TOPOLOGY, step)


def is_connected(n: int, edges: Edges) -> bool:
    reached, waiting = {0}, [0]
    while waiting:
        here = waiting.pop()
        for a, b in edges:
            if here in (a, b) and (other := a + b - here) not in reached:
                reached.add(other)
                waiting.append(other)
    return len(reached) == n


def erdos_renyi(n: int, p: float, seed: int) -> Edges:
    """G(n, p) by geometric skips over the pairs (Batagelj and Brandes 2005), until connected."""
    for attempt in range(ATTEMPTS):
        random = numbers(seed, attempt)
        pairs = [(j, i) for i in range(1, n) for j in range(i)]
        edges, place = set(), -1
        while True:
            skipped = math.floor(math.log(1 - unit(random)) / math.log(1 - p)) if p < 1 else 0
            place += 1 + skipped
            if place >= len(pairs):
                break
            edges.add(pairs[place])
        if is_connected(n, edges):
            return edges
    raise AssertionError("no draw was connected")


def paired_points(n: int, degree: int, random: Iterator[int]) -> Edges | None:
    """A random regular graph (Steger and Wormald 1999), or None where points are left over."""
    edges: Edges = set()
    points = [peer for peer in range(n) for _ in range(degree)]
    while points:
        shuffle(random, points)
        left = []
        for a, b in zip(points[::2], points[1::2], strict=True):
            edge = (min(a, b), max(a, b))
            if a == b or edge in edges:
                left += [a, b]
            else:
                edges.add(edge)
        alone = sorted(set(left))
        joinable = any((a, b) not in edges for a in alone for b in alone if a < b)
        if len(left) == len(points) and not joinable:
            return None
        points = left
    return edges


def regular(n: int, degree: int, random: Iterator[int]) -> Edges | None:
    """Of a dense graph, the edges that it lacks are drawn."""
    if 2 * degree < n:
        return paired_points(n, degree, random)
    lacking = paired_points(n, n - 1 - degree, random)
    if lacking is None:
        return None
    return {(j, i) for i in range(n) for j in range(i)} - lacking


def random_regular(n: int, degree: int, seed: int) -> Edges:
    for attempt in range(ATTEMPTS):
        edges = regular(n, degree, numbers(seed, attempt))
        if edges is not None and is_connected(n, edges):
            return edges
    raise AssertionError("no draw was connected")


def oracle(n: int, degree: int, seed: int, t: int) -> Edges:
    """EL-Oracle: a random regular graph in round t, which need not be connected."""
    random = numbers(seed, t)
    while True:
        if (edges := regular(n, degree, random)) is not None:
            return edges


def receivers(n: int, count: int, seed: int, t: int, sender: int) -> set[int]:
    """EL-Local: others to which a peer sends; a sample by Floyd (Bentley and Floyd 1987)."""
    random = numbers(seed, t, sender)
    sample: set[int] = set()
    for last in range(n - 1 - count, n - 1):
        drawn = below(random, last + 1)
        sample.add(last if drawn in sample else drawn)
    return {other + (other >= sender) for other in sample}


def matching(n: int, seed: int, t: int) -> Edges:
    """Peers in a random order, the first with the second, the third with the fourth, …"""
    order = random_order(n, numbers(seed, t))
    return {(min(pair), max(pair)) for pair in zip(order[::2], order[1::2], strict=False)}


def shifts(n: int, m: int, seed: int) -> list[int]:
    """The shifts of EquiStatic; drawn anew while a common factor with n disconnects the graph."""
    attempt = 0
    while True:
        random = numbers(seed, attempt)
        drawn = [1 + below(random, n - 1) for _ in range(m)]
        if math.gcd(n, *drawn) == 1:
            return drawn
        attempt += 1


def shift_and_start(n: int, choices: list[int], seed: int, t: int) -> tuple[int, int]:
    """EquiDyn: the shift of round t, and the peer from which OU-EquiDyn forms pairs."""
    random = numbers(seed, FIRST_ROUND + t)
    shift = choices[below(random, len(choices))]
    return shift, below(random, n)


def active(probabilities: list[float], seed: int, t: int) -> list[bool]:
    """MATCHA: the matchings that are active in round t."""
    random = numbers(seed, FIRST_ROUND + t)
    return [unit(random) < p for p in probabilities]
