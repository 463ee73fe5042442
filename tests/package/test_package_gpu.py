"""Parameters on a GPU, whose copies a GPU makes by itself. Skipped where torch sees none."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gossamer.torch as gossip
import pytest
import torch
from conftest import Configure
from gossamer import staging
from test_package_staging import CASES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

WAYS = ("locked", "buffer", "blocking")


@contextmanager
def copied(way: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """From rows that are page-locked where they lie, by way of a buffer, or one by one."""
    with patch.context() as within:
        if way == "buffer":
            within.setattr(staging, "lock", lambda devices, row: False)
        if way == "blocking":
            within.setattr(staging, "lane_of", lambda device: staging.BlockingLane())
        yield


def exact_steps(config: Path, peer: int, device: str, **options: Any) -> list[torch.Tensor]:
    """The products are with powers of two, and so exact: a GPU has no other bits than the CPU."""
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(size, generator=generator) for size in ((256, 1000), (7,), (300, 5))]
    parameters = [torch.nn.Parameter(each.to(device)) for each in values]
    inner = torch.optim.SGD(parameters, lr=0.25, momentum=0.5)
    with gossip.Optimizer(inner, config, peer, **options) as optimizer:
        while not optimizer.finished:
            for parameter in parameters:
                parameter.grad = parameter.detach() * (0.5 * (1 + peer))
            optimizer.step()
    return [parameter.detach().cpu() for parameter in parameters]


def network(
    config: Path, settings: dict[str, Any], device: str, loop: Any = exact_steps
) -> list[torch.Tensor]:
    """The tensors of both peers at the end."""
    folder = Path(mkdtemp(dir=config.parent))
    settings = settings | {"net.rendezvous": str(folder / "meet")}

    def run(peer: int) -> list[torch.Tensor]:
        return loop(config, peer, device, settings=settings, out=folder / f"out-{peer}")

    with ThreadPoolExecutor(2) as threads:
        return [tensor for tensors in threads.map(run, range(2)) for tensor in tensors]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_network_on_a_gpu_has_the_bits_of_the_cpu(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, case: str, way: str
) -> None:
    config = configure(2, 6)
    expected = network(config, CASES[case], "cpu")
    with copied(way, monkeypatch):
        found = network(config, CASES[case], "cuda")
    assert all(map(torch.equal, found, expected))


def training(config: Path, peer: int, device: str, **options: Any) -> list[torch.Tensor]:
    # Not torch's own random numbers, which the threads of the two peers share.
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 30)
    model.to(device)
    inputs = torch.randn(64, 512, generator=generator.manual_seed(peer)).to(device)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with gossip.Optimizer(inner, config, peer, module=model, **options) as optimizer:
        while not optimizer.finished:
            optimizer.zero_grad()
            (model(inputs) - inputs).square().mean().backward()
            optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.parametrize("case", ["atc", "awc-steps"])
def test_all_ways_to_copy_train_the_same_model(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    config, found = configure(2, 20), []
    for way in WAYS:
        with copied(way, monkeypatch):
            found.append(network(config, CASES[case], "cuda", training))
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_rows_are_page_locked_until_the_end(configure: Configure, tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.ones(100_000, device="cuda"))
    parameter.grad = torch.ones_like(parameter)
    inner = torch.optim.SGD([parameter], lr=0.25)
    optimizer = gossip.Optimizer(inner, configure(1, 10), 0, out=tmp_path / "out")
    optimizer.step()
    rows = [row for row, _ in optimizer._handler.replica._stager._memory.values()]
    assert rows and all(row.is_pinned() for row in rows)
    optimizer.close()
    assert not any(row.is_pinned() for row in rows)
    assert bool((parameter == 0.75).all())
