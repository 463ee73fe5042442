"""Algorithms with a momentum of their own against the papers' iterations in numpy, 200 rounds."""

from __future__ import annotations


import numpy as np
import pytest
from iteration_test_util import DECAY, DECAYED, LAZY, check_iteration, lazy_ring
from softmax_problem import RATE, Problem, Rows


@pytest.mark.parametrize("nesterov", [False, True])
def test_quasi_global_momentum(problem: Problem, nesterov: bool) -> None:
    """Lin et al. 2021, Alg. 1: the local step is PyTorch's SGD with momentum, from the buffer m.

    m does not keep the local buffer, but follows (x − x⁺)/γ. With Nesterov's form of the local
    step it is QG-DSGDm-N, as in the program of the paper (decentralized_qg_sgd.py).
    """
    w, x, mu = lazy_ring(), problem.start, 0.9
    m = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, m
        g = problem.gradients(x) + DECAY * x
        local = mu * m + g
        following = w @ (x - RATE * (g + mu * local if nesterov else local))
        m = mu * m + (1 - mu) * (x - following) / RATE
        x = following
        return x

    sets = (LAZY, DECAYED, f"algorithm.momentum={mu}")
    sets += (f"algorithm.nesterov={str(nesterov).lower()}",)
    check_iteration(problem, step, "qg_momentum", "ring", *sets)


def test_dmsgd(problem: Problem) -> None:
    """Yu, Jin and Yang 2019: buffer and model step locally, then both are averaged."""
    w, x, beta = lazy_ring(), problem.start, 0.9
    m = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, m
        buffer = beta * m + problem.gradients(x) + DECAY * x
        x, m = w @ (x - RATE * buffer), w @ buffer
        return x

    check_iteration(problem, step, "dmsgd", "ring", LAZY, DECAYED, f"algorithm.momentum={beta}")


def test_decentlam(problem: Problem) -> None:
    """Yuan et al. 2021, Alg. 2: momentum SGD with x/γ − W (x − γ ∇f(x))/γ for the gradient."""
    w, x, beta = lazy_ring(), problem.start, 0.9
    m = np.zeros_like(x)

    def step(_: int) -> Rows:
        nonlocal x, m
        g = problem.gradients(x) + DECAY * x
        m = beta * m + x / RATE - w @ (x - RATE * g) / RATE
        x = x - RATE * m
        return x

    sets = (LAZY, DECAYED, f"algorithm.momentum={beta}")
    check_iteration(problem, step, "decentlam", "ring", *sets)
