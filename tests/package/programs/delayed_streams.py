"""A device of the tests: its memory is the host's, and its copies are as late as they may be.

A stream runs what was submitted to it when another stream or the host waits for it, and never
before, so a copy for which nothing waits is missing. The program computes at once.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from gossamer import masters, staging


class DelayedStream:
    def __init__(self) -> None:
        self._submitted: list[Callable[[], object]] = []
        self._done = 0

    def submit(self, work: Callable[[], object]) -> None:
        self._submitted.append(work)

    def run_until(self, count: int) -> None:
        while self._done < count:
            self._done += 1
            self._submitted[self._done - 1]()

    def wait_stream(self, other: "DelayedStream") -> None:
        """All that is submitted from now on follows what `other` has got so far."""
        count = len(other._submitted)
        self.submit(lambda: other.run_until(count))

    def synchronize(self) -> None:
        self.run_until(len(self._submitted))


class EagerStream(DelayedStream):
    """Of a program whose operations on tensors are done when they return."""

    def submit(self, work: Callable[[], object]) -> None:
        super().submit(work)
        self.synchronize()


class Cudart:
    """cudaHostRegister, which refuses if `refuses`, and its reverse."""

    def __init__(self, refuses: bool) -> None:
        self.refuses, self.locked = refuses, set[int]()

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:  # noqa: N802
        assert size > 0 and flags == 1 and address not in self.locked
        if not self.refuses:
            self.locked.add(address)
        return 712 if self.refuses else 0

    def cudaHostUnregister(self, address: int) -> None:  # noqa: N802
        self.locked.remove(address)


class DelayedDevices:
    """What staging uses of torch.cuda."""

    def __init__(self, program: DelayedStream, *, locks: bool = True) -> None:
        self.program, self.streams = program, list[DelayedStream]()
        self.runtime = Cudart(refuses=not locks)
        self._current = program

    def Stream(self, device: torch.device) -> DelayedStream:  # noqa: N802
        self.streams.append(DelayedStream())
        return self.streams[-1]

    def current_stream(self, device: torch.device) -> DelayedStream:
        return self._current

    @contextmanager
    def stream(self, stream: DelayedStream) -> Iterator[None]:
        before, self._current = self._current, stream
        yield
        self._current = before

    def cudart(self) -> Cudart:
        return self.runtime

    def current_device(self) -> torch.device:
        return torch.device("cpu")


class DelayedLane(staging.StreamLane):
    """The lane of DelayedDevices."""

    copied = 0  # tensors

    def _locked_buffer(self, row: torch.Tensor) -> torch.Tensor:
        return torch.full_like(row, float("nan"))

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        kept = weakref.ref(source)  # torch uses memory that nothing refers to for other tensors
        self._devices.current_stream(target.device).submit(lambda: target.copy_(kept()))
        self.copied += 1

    @property
    def locked(self) -> set[int]:
        return self._devices.runtime.locked


@contextmanager
def parameters_elsewhere(patch: Any, *, locks: bool = True) -> Iterator[list[DelayedLane]]:
    """Parameters that are made within it count as those of another device. Gives the lanes."""
    lanes: list[DelayedLane] = []

    def lane_of(device: torch.device) -> DelayedLane:
        lanes.append(DelayedLane(DelayedDevices(EagerStream(), locks=locks)))
        return lanes[-1]

    with patch.context() as within:
        within.setattr(staging, "on_host", lambda device: False)
        within.setattr(masters, "on_host", lambda device: False)
        within.setattr(staging, "lane_of", lane_of)
        yield lanes
