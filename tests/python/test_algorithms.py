"""The program against the iterations of the papers in numpy.

The task is softmax regression with one class per peer. Gradients are full, so that a run is a
deterministic iteration. Models are compared after several numbers of rounds.
"""

import itertools
import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Rows = np.ndarray[Any, np.dtype[np.float64]]
PEERS, PIXELS, RATE = 6, 8, 0.5
TOLERANCE = 2e-5


class Problem:
    """Tiny images of six classes in IDX files, one class per peer, and gradients in double."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder, self._runs = program, folder, 0
        noise = np.random.default_rng(1)
        labels = np.concatenate(
            [np.repeat(np.arange(PEERS), np.arange(3, 3 + PEERS)), np.arange(PEERS)]
        ).astype(np.uint8)
        images = noise.integers(0, 256, (len(labels), 2, PIXELS // 2), dtype=np.uint8)
        (folder / "images-idx3-ubyte").write_bytes(
            struct.pack(">BBBBIII", 0, 0, 8, 3, *images.shape) + images.tobytes()
        )
        (folder / "labels-idx1-ubyte").write_bytes(
            struct.pack(">BBBBI", 0, 0, 8, 1, len(labels)) + labels.tobytes()
        )
        self.images = images.reshape(-1, PIXELS) / 255.0
        self.labels = labels
        self.train = len(labels) - PEERS
        # The class of a peer is the one whose bias grows in one local step.
        stepped = self.run("dpsgd", "ring", 1, "algorithm.order=awc", "run.init=same")
        grown = (
            stepped.reshape(PEERS, PEERS, PIXELS + 1)[:, :, -1]
            - self.start.reshape(PEERS, PEERS, PIXELS + 1)[:, :, -1]
        )
        self.classes = grown.argmax(axis=1)
        assert sorted(self.classes) == list(range(PEERS))

    @property
    def start(self) -> Rows:
        return self.run("dpsgd", "ring", 0)

    @property
    def out(self) -> Path:
        """The folder of the last run."""
        return self.folder / f"run-{self._runs}"

    def command(self, algorithm: str, topology: str, rounds: int, *sets: str) -> list[str]:
        self._runs += 1
        overrides = [
            f"algorithm.kind={algorithm}",
            f"topology.kind={topology}",
            f"run.rounds={rounds}",
            f"run.peers={PEERS}",
            "run.seed=3",
            "model.kind=softmax",
            "data.kind=idx",
            f"data.path={self.folder}",
            f"data.classes={PEERS}",
            f"data.test_count={PEERS}",
            "data.partition=label",
            "data.classes_per_peer=1",
            "data.batch=0",
            f"optimizer.rate={RATE}",
            "local.threads=1",
            *sets,
        ]
        return [
            str(self.program),
            "run",
            "--quiet",
            "--json",
            "--out",
            str(self.out),
            *(argument for each in overrides for argument in ("--set", each)),
        ]

    def tensors(self, algorithm: str, topology: str, rounds: int, *sets: str) -> dict[str, Any]:
        """The tensors of a run's safetensors file, in file order."""
        command = self.command(algorithm, topology, rounds, *sets)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        blob = (self.out / "final-0.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", blob[:8])
        values = blob[8 + length :]
        return {
            name: np.frombuffer(values[slice(*entry["data_offsets"])], dtype="<f4").reshape(
                entry["shape"]
            )
            for name, entry in json.loads(blob[8 : 8 + length]).items()
            if name != "__metadata__"
        }

    def run(self, algorithm: str, topology: str, rounds: int, *sets: str) -> Rows:
        """The parameters after `rounds` rounds, a row per peer: weights and bias of each class."""
        tensors, rows = self.tensors(algorithm, topology, rounds, *sets), []
        for peer in range(PEERS):
            own = [tensor for name, tensor in tensors.items() if name.startswith(f"peer{peer}.")]
            (weight,) = (tensor for tensor in own if tensor.ndim == 2)
            (bias,) = (tensor for tensor in own if tensor.ndim == 1)
            assert weight.shape in ((PEERS, PIXELS), (PIXELS, PEERS))
            rows.append(
                np.column_stack(
                    [weight if weight.shape == (PEERS, PIXELS) else weight.T, bias]
                ).ravel()
            )
        return np.array(rows, dtype=np.float64)

    def error(self, algorithm: str, topology: str, *sets: str) -> str:
        command = self.command(algorithm, topology, 1, *sets)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        return done.stderr.strip().removeprefix("gossamer: ")

    def gradients(self, x: Rows) -> Rows:
        """∇f_i(x_i) of the cross entropy on the whole shard of each peer i."""
        g = np.zeros_like(x)
        for i, (row, label) in enumerate(zip(x, self.classes, strict=True)):
            images = self.images[: self.train][self.labels[: self.train] == label]
            features = np.column_stack([images, np.ones(len(images))])
            logits = features @ row.reshape(PEERS, PIXELS + 1).T
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            shares[:, label] -= 1
            g[i] = (shares.T @ features / len(features)).ravel()
        return g

    def local_steps(
        self, x: Rows, steps: int, momentum: float = 0, velocity: Rows | None = None
    ) -> tuple[Rows, Rows]:
        v = np.zeros_like(x) if velocity is None else velocity
        for _ in range(steps):
            v = momentum * v + self.gradients(x)
            x = x - RATE * v
        return x, v


@pytest.fixture(scope="module")
def problem(gossamer: Path, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return Problem(gossamer, tmp_path_factory.mktemp("classes"))


def check_iteration(
    problem: Problem,
    step: Callable[[int], Rows],
    last: int,
    algorithm: str,
    topology: str,
    *sets: str,
) -> None:
    """Compares the program with `step`, the models after round t, in the first and last rounds."""
    for t in range(last):
        x = step(t)
        if t < 3 or t == last - 1:
            actual = problem.run(algorithm, topology, t + 1, *sets)
            np.testing.assert_allclose(actual, x, rtol=0, atol=TOLERANCE, err_msg=f"round {t + 1}")


UNEVEN = [(0, 1), (0, 2), (0, 4), (1, 2), (2, 3), (3, 4), (3, 0), (4, 5), (5, 0)]


def edge_list(problem: Problem, name: str, edges: list[tuple[int, int]]) -> tuple[str, str]:
    path = problem.folder / f"{name}.edges"
    path.write_text("".join(f"{a} {b}\n" for a, b in edges), encoding="utf-8")
    return f"topology.path={path}", "topology.directed=true"


@pytest.mark.parametrize("kind", ["push_sum", "async_push_sum"])
def test_push_sum(problem: Problem, kind: str) -> None:
    w = np.eye(PEERS)
    for a, b in UNEVEN:
        w[b, a] = 1
    w /= w.sum(axis=0)
    x, weight = problem.start, np.ones((PEERS, 1))
    z = x.copy()

    def step(_: int) -> Rows:
        nonlocal x, weight, z
        x = w @ (x - RATE * problem.gradients(z))
        weight = w @ weight
        z = x / weight
        return z

    check_iteration(problem, step, 60, kind, "file", *edge_list(problem, "uneven", UNEVEN))


@pytest.mark.parametrize("kind", ["path", "binary_tree", "star"])
def test_relay_sgd(problem: Problem, kind: str) -> None:
    parents = {"path": lambda i: i - 1, "binary_tree": lambda i: (i - 1) // 2, "star": lambda _: 0}[
        kind
    ]
    edges = [(i, parents(i)) for i in range(1, PEERS)]
    neighbours = {
        i: [b for a, b in edges if a == i] + [a for a, b in edges if b == i] for i in range(PEERS)
    }
    x = problem.start
    messages = {(i, j): np.zeros_like(x[0]) for i in range(PEERS) for j in neighbours[i]}
    counts = dict.fromkeys(messages, 0)

    def step(_: int) -> Rows:
        nonlocal x, messages, counts
        half, _v = problem.local_steps(x, 1)
        messages, counts = (
            {
                (i, j): half[i] + sum(messages[k, i] for k in neighbours[i] if k != j)
                for i, j in messages
            },
            {(i, j): 1 + sum(counts[k, i] for k in neighbours[i] if k != j) for i, j in counts},
        )
        x = np.array(
            [
                (half[i] + sum(messages[j, i] for j in neighbours[i]))
                / (1 + sum(counts[j, i] for j in neighbours[i]))
                for i in range(PEERS)
            ]
        )
        return x

    check_iteration(problem, step, 60, "relay_sgd", kind)


def test_diloco(problem: Problem) -> None:
    outer_rate, outer_momentum, inner = 0.7, 0.9, 0.5
    x = problem.start
    velocity, v = np.zeros_like(x), np.zeros_like(x[0])

    def step(_: int) -> Rows:
        nonlocal x, velocity, v
        theta, velocity = problem.local_steps(x, 5, inner, velocity)
        outer = (x - theta).mean(axis=0)
        v = outer_momentum * v + outer
        x = x - outer_rate * (outer + outer_momentum * v)
        return x

    check_iteration(
        problem,
        step,
        20,
        "diloco",
        "complete",
        "algorithm.local_steps=5",
        f"optimizer.momentum={inner}",
    )


def test_noloco(problem: Problem) -> None:
    alpha, beta, gamma = 0.5, 0.7, 0.9
    x = problem.start
    delta = np.zeros_like(x)
    pairs = matchings(problem, 12)

    def step(t: int) -> Rows:
        nonlocal x, delta
        theta, _v = problem.local_steps(x, 4)
        other = pairs[t]
        way = (theta - x + theta[other] - x[other]) / 2
        delta = alpha * delta + beta * way - gamma * (x - (x + x[other]) / 2)
        x = x + delta
        return x

    check_iteration(
        problem,
        step,
        12,
        "noloco",
        "random_matching",
        "algorithm.local_steps=4",
        f"algorithm.pull={gamma}",
    )


def matchings(problem: Problem, rounds: int) -> list[Any]:
    """The partner of each peer in each round.

    Without their local steps, two partners have equal models after a round of D-PSGD.
    """
    models = [
        problem.run("dpsgd", "random_matching", t, "algorithm.order=awc", "run.init=different")
        for t in range(rounds + 1)
    ]
    pairs = []
    for before, after in itertools.pairwise(models):
        mixed = after + RATE * problem.gradients(before)
        distance = np.abs(mixed[:, None] - mixed[None]).max(axis=2) + np.eye(PEERS)
        assert distance.min(axis=1).max() < 1e-5
        assert (np.sort(distance)[:, 1] > 1e-2).all()
        pairs.append(distance.argmin(axis=1))
    return pairs


def test_error_messages_name_a_valid_choice(problem: Problem) -> None:
    uneven = edge_list(problem, "uneven", UNEVEN)
    assert "algorithm push_sum" in problem.error("dpsgd", "file", *uneven)
    assert "algorithm.kind = push_sum" in problem.error(
        "dpsgd", "file", *uneven, "topology.weights=out_degree"
    )
    one_way = edge_list(problem, "one-way", [(i, i + 1) for i in range(PEERS - 1)])
    assert "the row of peer 1 never reaches peer 0" in problem.error("push_sum", "file", *one_way)
    assert "choose path, star, binary_tree" in problem.error("relay_sgd", "ring")
    assert "choose complete" in problem.error("diloco", "ring")
    assert "choose random_matching" in problem.error("noloco", "ring")
    for algorithm, topology in (
        ("push_sum", "ring"),
        ("relay_sgd", "path"),
        ("diloco", "complete"),
        ("noloco", "random_matching"),
    ):
        assert "set algorithm.policy = sync" in problem.error(
            algorithm, topology, "algorithm.policy=async"
        )


def test_a_column_stochastic_matrix_is_reported_as_such(problem: Problem) -> None:
    sets = [
        argument
        for each in edge_list(problem, "uneven", UNEVEN)
        for argument in ("--set", each.removeprefix("topology."))
    ]
    command = [str(problem.program), "topology", "file", "-n", str(PEERS), *sets]
    rejected = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rejected.returncode == 2 and "out_degree" in rejected.stderr
    done = subprocess.run(
        [*command, "--weights", "out_degree", "--json", "--matrix"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (w,) = (np.array(matrix) for matrix in report["matrix"])
    np.testing.assert_allclose(w.sum(axis=0), 1, atol=1e-12)
    assert (
        report["weights"] == "out_degree"
        and report["connected"]
        and not report["doubly_stochastic"]
        and not report["symmetric"]
    )
    moduli = sorted(abs(np.linalg.eigvals(w)))
    assert moduli[-1] == pytest.approx(1) and report["spectral_gap"] == pytest.approx(
        1 - moduli[-2], abs=1e-9
    )
    assert report["effective_neighbours"] is None
    text = subprocess.run(
        [*command, "--weights", "out_degree"], capture_output=True, text=True, check=True
    ).stdout
    assert (
        "doubly stochastic             no" in text
        and "effective neighbours          not known" in text
    )


@pytest.mark.parametrize(
    ("algorithm", "topology", "messages"),
    [
        ("dpsgd", "star", 5),
        ("gradient_tracking", "ring", 4),
        ("push_sum", "exponential", 3),
        ("relay_sgd", "path", 2),
        ("diloco", "complete", 5),
        ("noloco", "random_matching", 1),
    ],
    ids=lambda value: str(value),
)
def test_bytes_match_the_prediction(
    problem: Problem, algorithm: str, topology: str, messages: int
) -> None:
    """The busiest peer sends the bytes in the header and 72 bytes of framing per message."""
    rounds = 4
    sets = ["algorithm.local_steps=2"] if algorithm in ("diloco", "noloco") else []
    problem.run(algorithm, topology, rounds, *sets)
    lines = (problem.out / "log-0.jsonl").read_text(encoding="utf-8").splitlines()
    log = [json.loads(line) for line in lines]
    predicted = log[0]["topology"]["bytes_per_round_per_peer"]
    sent = max(
        record["bytes_sent"]
        for record in log
        if record["record"] == "round" and record["round"] == rounds
    )
    assert sent == rounds * (predicted + 72 * messages)
