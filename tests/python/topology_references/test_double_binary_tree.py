"""The double binary tree against its definition, from the roots down.

Sanders, Speck and Träff 2009: two binary trees over the same peers, in which an inner peer of one
tree is a leaf of the other. The layout is NCCL's, which draws its trees in trees.cc.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_matrices import adjacency, lazily, reports, spectral_gap, weighted

SIZES = [*range(1, 97), 127, 128, 129, 180, 255, 256]
Children = dict[int, list[int]]


def in_order(first: int, last: int, step: int) -> tuple[int, Children]:
    """The binary tree over first..last − 1; its root is `step` from the start, a power of two."""
    while first + step > last:
        step //= 2
    root = first + step - 1
    children: Children = {root: []}
    for begin, end in ((first, root), (root + 1, last)):
        if begin < end:
            child, below = in_order(begin, end, step // 2)
            children |= below
            children[root].append(child)
    return root, children


def first_tree(n: int) -> Children:
    """Peer 0, and below it the in-order tree of the others, odd peers as its leaves."""
    if n == 1:
        return {0: []}
    step = 1
    while 2 * step < n:
        step *= 2
    root, children = in_order(1, n, step)
    return children | {0: [root]}


def second_tree(n: int) -> Children:
    """The first tree in a mirror for even n, or shifted by one peer for odd n."""

    def place(i: int) -> int:
        return n - 1 - i if n % 2 == 0 else (i + 1) % n

    return {place(i): [place(j) for j in below] for i, below in first_tree(n).items()}


def edges_of(*trees: Children) -> set[tuple[int, int]]:
    return {
        (min(i, j), max(i, j)) for tree in trees for i, children in tree.items() for j in children
    }


@cache
def printed(gossamer: Path, *arguments: str) -> list[dict[str, Any]]:
    return reports(gossamer, "double_binary_tree", ",".join(map(str, SIZES)), *arguments)


def test_the_reference_is_the_tree_that_nccl_draws() -> None:
    tree = first_tree(14)
    assert {i: children for i, children in tree.items() if children} == {
        0: [8],
        8: [4, 12],
        4: [2, 6],
        12: [10, 13],
        2: [1, 3],
        6: [5, 7],
        10: [9, 11],
    }
    mirrored, shifted = second_tree(12), second_tree(13)
    assert {i: sorted(children) for i, children in mirrored.items() if children} == {
        11: [3],
        3: [1, 7],
        7: [5, 9],
        1: [0, 2],
        5: [4, 6],
        9: [8, 10],
    }
    assert shifted[1] == [9] and shifted[9] == [5, 0] and shifted[0] == [11]
    assert shifted[5] == [3, 7]


def test_the_reference_is_a_double_binary_tree() -> None:
    for n in SIZES:
        trees = first_tree(n), second_tree(n)
        for tree in trees:
            (root,) = set(range(n)) - {child for children in tree.values() for child in children}
            assert sorted(tree) == list(range(n))
            assert all(len(children) <= 2 for children in tree.values())
            level, depth = [root], 0
            while children := [child for i in level for child in tree[i]]:
                level, depth = children, depth + 1
            assert depth <= (n - 1).bit_length()
        # An inner peer of one tree is a leaf of the other. With an odd n, NCCL's shift leaves one
        # exception: peer 0, the root of the first tree, with one child in each.
        first, second = ({i for i, children in tree.items() if children} for tree in trees)
        assert first & second == ({0} if n % 2 == 1 and n > 1 else set())


@pytest.mark.parametrize("rule", ["metropolis", "uniform"])
@pytest.mark.parametrize("lazy", [False, True])
def test_edges_weights_and_gap(gossamer: Path, rule: str, lazy: bool) -> None:
    flags = ["--weights", rule, *(["--lazy"] if lazy else [])]
    for n, found in zip(SIZES, printed(gossamer, *flags), strict=True):
        edges = edges_of(first_tree(n), second_tree(n))
        a = adjacency(n, edges)
        w = weighted(a, rule)
        w = lazily(w) if lazy else w
        (matrix,) = np.array(found["matrix"])
        np.testing.assert_allclose(matrix, w, rtol=0, atol=1e-14, err_msg=f"n = {n}")
        assert found["edges"] == len(edges) and found["peers"] == n
        assert (found["degree_min"], found["degree_max"]) == (a.sum(0).min(), a.sum(0).max())
        assert found["degree_max"] <= 4
        assert found["spectral_gap"] == pytest.approx(spectral_gap(w), abs=1e-9), n
