"""The graphs of Takezawa et al. 2023 (arXiv:2305.11420) as lists of matrices.

Algorithms 1 to 3 of the paper. Where the paper leaves a choice of peers open, the choice is that of
the program that the authors published: which peers are paired in the exchange rounds, and which of
the others average meanwhile.
"""

import numpy as np

Matrices = list[np.ndarray]


def greedy_factors(n: int, k: int) -> list[int]:
    """Factors of n of k + 1 or less, the largest that divides first; in ascending order."""
    factors = []
    for factor in range(k + 1, 1, -1):
        while n % factor == 0:
            factors.append(factor)
            n //= factor
    assert n == 1
    return sorted(factors)


def is_smooth(n: int, k: int) -> bool:
    for factor in range(2, k + 2):
        while n % factor == 0:
            n //= factor
    return n == 1


def hyper_hypercube(n: int, k: int) -> Matrices:
    """Algorithm 1; the identity for one peer."""
    rounds, stride = [], 1
    for side in greedy_factors(n, k):
        place = np.arange(n)
        line = (place // (stride * side)) * stride + place % stride
        rounds.append((line[:, None] == line[None, :]) / side)
        stride *= side
    return rounds or [np.eye(1)]


def put(matrix: np.ndarray, block: np.ndarray, peers: range) -> None:
    matrix[np.ix_(peers, peers)] = block


def digits_of(n: int, k: int) -> list[tuple[range, int]]:
    """The peers of each digit of n in base k + 1 that is not 0, and the power of its place."""
    digits, begin, power = [], 0, 1
    while power * (k + 1) <= n:
        power *= k + 1
    while begin < n:
        if (count := (n - begin) // power) > 0:
            digits.append((range(begin, begin + count * power), power))
            begin += count * power
        power //= k + 1
    return digits


def exchange_round(digits: list[tuple[range, int]], d: int, k: int, matrix: np.ndarray) -> None:
    """Digit d exchanges with all lower ones; its peers that are not paired average themselves."""
    peers, power = digits[d]
    parts = [list(peers[begin : begin + power]) for begin in range(0, len(peers), power)]
    weight = len(peers) / sum(len(each) for each, _ in digits[d:]) / len(parts)
    for lower, _ in reversed(digits[d + 1 :]):
        for i in lower:
            for part in parts:
                j = part.pop()
                matrix[i, j] = matrix[j, i] = weight
    left = [peer for part in parts for peer in part]
    for begin in range(0, len(left), k + 1):
        group = left[begin : begin + k + 1]
        matrix[np.ix_(group, group)] = 1 / len(group)


def simple_base(n: int, k: int) -> Matrices:
    """Algorithm 2."""
    if is_smooth(n, k):
        return hyper_hypercube(n, k)
    digits = digits_of(n, k)
    within = [hyper_hypercube(len(peers), k) for peers, _ in digits]
    first, last = len(within[0]), len(digits) - 1
    rounds = []
    for m in range(first + 1 + len(hyper_hypercube(digits[0][1], k))):
        matrix = np.zeros((n, n))
        if first <= m < first + last:
            exchange_round(digits, m - first, k, matrix)
        for place, (peers, power) in enumerate(digits):
            done = m - first - place - (place < last)
            if m < first:
                put(matrix, within[place][m % len(within[place])], peers)
            elif done >= 0 and len(peers) <= k:  # single peers: the whole digit
                put(matrix, within[place][done % len(within[place])], peers)
            elif done >= 0:
                cube = hyper_hypercube(power, k)
                for begin in range(0, len(peers), power):
                    put(matrix, cube[done % len(cube)], peers[begin : begin + power])
        np.fill_diagonal(matrix, 0)
        np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
        rounds.append(matrix)
    return rounds


def base(n: int, k: int) -> Matrices:
    """Algorithm 3."""
    q = n
    for factor in range(2, k + 2):
        while q % factor == 0:
            q //= factor
    parts, across, simple = simple_base(q, k), hyper_hypercube(n // q, k), simple_base(n, k)
    if len(simple) < len(parts) + len(across):
        return simple
    return [np.kron(np.eye(n // q), w) for w in parts] + [np.kron(w, np.eye(q)) for w in across]
