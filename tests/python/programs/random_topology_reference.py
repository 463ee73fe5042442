"""Random topologies as their papers define them: every outcome of a round, and expected rates.

EquiDyn: Song et al. 2022 (arXiv:2210.07881) and the authors' EquiTopo.py. Epidemic Learning: de Vos
et al. 2023 (arXiv:2310.01972). MATCHA: Wang et al. 2019 (arXiv:1905.09435) and the authors' graph
processor, whose semidefinite programs are solved here by other means than in the program under
test: cutting planes for the probabilities, and a bounded scalar minimiser for α.
"""

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog, minimize_scalar

Matrix = np.ndarray


def expected_factor(outcomes: list[Matrix], lazy: bool = False) -> float:
    """The largest eigenvalue of E WᵀW beside consensus, of equally likely outcomes."""
    n = len(outcomes[0])
    if lazy:
        outcomes = [(np.eye(n) + w) / 2 for w in outcomes]
    gram = np.mean([w.T @ w for w in outcomes], axis=0)
    return float(np.linalg.eigvalsh(gram - np.full((n, n), 1 / n))[-1])


def od_equidyn(n: int, shift: int, eta: float) -> Matrix:
    """Peer i weighs peer i + shift: ODEquiDyn of EquiTopo.py."""
    a = np.eye(n) / n
    for i in range(n):
        a[i, (i + shift) % n] = (n - 1) / n
    return (1 - eta) * np.eye(n) + eta * a


def ou_equidyn(n: int, shift: int, start: int, eta: float) -> Matrix:
    """Pairs in the order of the peers from `start`: OUEquiDyn of EquiTopo.py."""
    w, taken = np.zeros((n, n)), np.zeros(n, dtype=bool)
    for i in [*range(start, n), *range(start)]:
        j = (i + shift) % n
        if not taken[i] and not taken[j]:
            w[i, j] = w[j, i] = 1
            taken[[i, j]] = True
    w[~taken, ~taken] = 1
    return (1 - eta) * np.eye(n) + eta * (np.eye(n) / n + (n - 1) * w / n)


def equidyn(n: int, eta: float, directed: bool) -> list[Matrix]:
    """Every outcome of a round with all shifts, equally likely."""
    shifts = range(1, n)
    if directed:
        return [od_equidyn(n, shift, eta) for shift in shifts]
    return [ou_equidyn(n, shift, start, eta) for shift in shifts for start in range(n)]


def el_local(n: int, s: int) -> list[Matrix]:
    """Every choice of s receivers by each of n peers: W averages what a peer has and received."""
    outcomes = []
    choices = [list(combinations([i for i in range(n) if i != j], s)) for j in range(n)]
    for receivers in product(*choices):
        w = np.eye(n)
        for sender, to in enumerate(receivers):
            w[list(to), sender] = 1
        outcomes.append(w / w.sum(axis=1, keepdims=True))
    return outcomes


def el_oracle_factor(n: int, s: int) -> float:
    """α_s of the paper."""
    return (1 - s / (n - 1)) / (s + 1)


def el_local_factor(n: int, s: int) -> float:
    """β_s of the paper."""
    return (1 - (1 - s / (n - 1)) ** n) / s - 1 / (n - 1)


def laplacians(n: int, matchings: list[list[tuple[int, int]]]) -> list[Matrix]:
    found = []
    for matching in matchings:
        laplacian = np.zeros((n, n))
        for a, b in matching:
            edge = np.zeros(n)
            edge[[a, b]] = 1, -1
            laplacian += np.outer(edge, edge)
        found.append(laplacian)
    return found


def connectivity(parts: list[Matrix], p: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(np.tensordot(p, parts, 1))[1])


def matcha_probabilities(parts: list[Matrix], total: float) -> np.ndarray:
    """The p of a sum up to `total` that maximise λ2(Σ p_j L_j), by Kelley's cutting planes.

    λ2 is the least vᵀ L v of unit vectors v of mean 0, so each v bounds it by a linear function.
    """
    count = len(parts)
    p, cuts = np.full(count, min(1.0, total / count)), []
    best = p
    for _ in range(400):
        values, vectors = np.linalg.eigh(np.tensordot(p, parts, 1))
        if connectivity(parts, p) > connectivity(parts, best):
            best = p
        for k in range(1, len(values)):  # those near the smallest bound it nearly as well
            if values[k] <= 1.5 * values[1] + 1e-3:
                v = vectors[:, k] - vectors[:, k].mean()
                cuts.append([-float(v @ part @ v) for part in parts] + [1.0])
        solved = linprog(
            [0.0] * count + [-1.0],
            A_ub=[*cuts, [1.0] * count + [0.0]],
            b_ub=[0.0] * len(cuts) + [total],
            bounds=[(0, 1)] * count + [(None, None)],
        )
        p = solved.x[:-1]
        if -solved.fun - connectivity(parts, best) < 1e-5:
            break
    return best


def matcha_factor(parts: list[Matrix], p: np.ndarray, alpha: float) -> float:
    """ρ(α): the largest eigenvalue of E WᵀW − 11ᵀ/n."""
    n = len(parts[0])
    mean = np.tensordot(p, parts, 1)
    spread = np.tensordot(p * (1 - p), parts, 1)
    gram = np.eye(n) - 2 * alpha * mean + alpha**2 * (mean @ mean + 2 * spread)
    return float(np.linalg.eigvalsh(gram - np.full((n, n), 1 / n))[-1])


def matcha_alpha(parts: list[Matrix], p: np.ndarray, most: float) -> float:
    """The α of up to `most` with the smallest ρ."""
    most = min(most, 1 / connectivity(parts, p))
    found = minimize_scalar(
        lambda alpha: matcha_factor(parts, p, alpha),
        bounds=(0, most),
        method="bounded",
        options={"xatol": 1e-10},
    )
    ends = [most, float(found.x)]
    return min(ends, key=lambda alpha: matcha_factor(parts, p, alpha))
