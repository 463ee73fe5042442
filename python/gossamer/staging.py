"""Copies between rows of the runtime, which are in host memory, and tensors on another device.

A device copies by itself, beside the program, from and to memory that is page-locked. Rows are
page-locked where they lie, or copied by way of a page-locked buffer; where neither is possible, a
copy waits for the device. The values are the same in each case.
"""

import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import torch

Copy = tuple[torch.Tensor, torch.Tensor]  # the target and the source


def on_host(device: torch.device) -> bool:
    """Whether the runtime can have its rows in this memory."""
    return device.type == "cpu"


class Lane(Protocol):
    """The copies from and to the devices of one type, in order."""

    def host_memory(self, row: torch.Tensor) -> torch.Tensor:
        """Where the values of a row lie for copies: in the row, or in a buffer of its length."""
        ...

    def submit(self, copies: Iterable[Copy]) -> None:
        """Copies follow all work that the program has submitted to the device. The memory stays
        where it is, and the host does not touch it, until finish()."""
        ...

    def lead(self) -> None:
        """Work that the program submits to the devices from now on follows all copies."""
        ...

    def finish(self) -> None:
        """Returns when all copies are done."""
        ...

    def release(self) -> None:
        """Rows may go, after finish()."""
        ...


class BlockingLane:
    """For devices without streams: each copy is done when submit() returns."""

    def host_memory(self, row: torch.Tensor) -> torch.Tensor:
        return row

    def submit(self, copies: Iterable[Copy]) -> None:
        for target, source in copies:
            target.copy_(source)

    def lead(self) -> None:
        pass

    def finish(self) -> None:
        pass

    def release(self) -> None:
        pass


class StreamLane:
    """One stream of copies on each device, beside the stream of the program.

    `devices` is torch.cuda, or the module of another kind of device with the same names.
    """

    def __init__(self, devices: Any) -> None:
        self._devices = devices
        self._streams: dict[torch.device, Any] = {}
        self._sources: list[torch.Tensor] = []  # torch may not reuse their memory until finish()
        self._locks: list[Any] = []

    def host_memory(self, row: torch.Tensor) -> torch.Tensor:
        if lock(self._devices, row):
            # Memory that goes while it is locked would lead later copies astray. The finalizer
            # keeps the row until it has run, which is at the end of this lane at the latest.
            self._locks.append(weakref.finalize(self, unlock, self._devices, row))
            return row
        try:
            return self._locked_buffer(row)
        except RuntimeError:  # this torch page-locks no memory for the device
            return row

    def submit(self, copies: Iterable[Copy]) -> None:
        by_device: dict[torch.device, list[Copy]] = {}
        for target, source in copies:
            device = source.device if on_host(target.device) else target.device
            by_device.setdefault(device, []).append((target, source))
        for device, chosen in by_device.items():
            if device not in self._streams:
                self._streams[device] = self._devices.Stream(device=device)
            stream = self._streams[device]
            stream.wait_stream(self._devices.current_stream(device))
            with self._devices.stream(stream):
                for target, source in chosen:
                    self._copy(target, source)
            self._sources += [source for _, source in chosen]

    def lead(self) -> None:
        for device, stream in self._streams.items():
            self._devices.current_stream(device).wait_stream(stream)

    def finish(self) -> None:
        for stream in self._streams.values():
            stream.synchronize()
        self._sources.clear()

    def release(self) -> None:
        for each in self._locks:
            each()
        self._locks.clear()

    def _locked_buffer(self, row: torch.Tensor) -> torch.Tensor:
        return torch.empty(row.numel(), dtype=row.dtype, pin_memory=True)

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        target.copy_(source, non_blocking=True)


def lane_of(device: torch.device) -> Lane:
    devices = getattr(torch, device.type, None)
    names = ("Stream", "current_stream", "stream")
    return StreamLane(devices) if all(hasattr(devices, name) for name in names) else BlockingLane()


def lock(devices: Any, row: torch.Tensor) -> bool:
    """Page-locks the memory of a row where it lies, if CUDA can."""
    if not hasattr(devices, "cudart"):
        return False
    runtime = devices.cudart()
    try:
        for_all_devices = 1  # cudaHostRegisterPortable
        size = row.numel() * row.element_size()
        status = int(runtime.cudaHostRegister(row.data_ptr(), size, for_all_devices))
    except (AttributeError, RuntimeError):
        return False
    if status != 0:
        # The next kernel would report this error as its own; this one does, and is of no use.
        with suppress(RuntimeError):
            torch.ones(1, device=devices.current_device())
        return False
    return True


def unlock(devices: Any, row: torch.Tensor) -> None:
    with suppress(RuntimeError):  # at the end of the program CUDA may be gone
        devices.cudart().cudaHostUnregister(row.data_ptr())


class Stager:
    """Copies between the rows of one peer and tensors on any devices, host memory included.

    A row of the run lasts until release(), and is prepared once. Row and part: host memory.
    """

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        # By type of device and address of a row: the row, and where its values lie for copies.
        self._memory: dict[tuple[str, int], Copy] = {}

    def push(self, row: torch.Tensor, copies: Sequence[Copy]) -> None:
        """Tensors take the values of parts of a row. The program sees the values from now on; the
        row may be written again after the next pull() only."""
        for kind, chosen in self._by_lane(copies, targets=True).items():
            memory = self._host_memory(kind, row)
            copies_there = [(target, twin(part, row, memory)) for target, part in chosen]
            if memory is not row:
                for (_, part), (_, source) in zip(chosen, copies_there, strict=True):
                    source.copy_(part)
            self._lanes[kind].submit(copies_there)
            self._lanes[kind].lead()

    def pull(self, row: torch.Tensor, copies: Sequence[Copy]) -> None:
        """Parts of a row take the values of tensors. All copies are done when it returns."""
        back: list[Copy] = []
        for kind, chosen in self._by_lane(copies, targets=False).items():
            memory = self._host_memory(kind, row)
            targets = [(twin(part, row, memory), tensor) for part, tensor in chosen]
            self._lanes[kind].submit(targets)
            if memory is not row:
                back += [(part, at) for (part, _), (at, _) in zip(chosen, targets, strict=True)]
        self.finish()
        for part, at in back:
            part.copy_(at)

    def finish(self) -> None:
        for lane in self._lanes.values():
            lane.finish()

    def release(self) -> None:
        """The rows of the run may go."""
        self.finish()
        for lane in self._lanes.values():
            lane.release()
        self._memory.clear()

    def _by_lane(self, copies: Sequence[Copy], *, targets: bool) -> dict[str, list[Copy]]:
        """The copies with another device, by its type; those within the host are done."""
        chosen: dict[str, list[Copy]] = {}
        for target, source in copies:
            device = target.device if targets else source.device
            if on_host(device):
                target.copy_(source)
                continue
            if device.type not in self._lanes:
                self._lanes[device.type] = lane_of(device)
            chosen.setdefault(device.type, []).append((target, source))
        return chosen

    def _host_memory(self, kind: str, row: torch.Tensor) -> torch.Tensor:
        key = kind, row.data_ptr()
        if key not in self._memory:
            self._memory[key] = row, self._lanes[kind].host_memory(row)
        first, memory = self._memory[key]
        return row if memory is first else memory


def twin(part: torch.Tensor, row: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """The part of `memory` that has the place of a part of `row`."""
    if memory is row:
        return part
    place = (part.data_ptr() - row.data_ptr()) // row.element_size()
    return memory[place : place + part.numel()].view(part.shape)
