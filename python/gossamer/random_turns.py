"""torch's random numbers for tasks that run in several threads of a process.

All threads share one generator on the CPU, and one on each GPU. A task seeds it before each batch,
and another task that drew or seeded meanwhile would change what it trains. Tasks therefore take
turns, and each one finds the random numbers as it has left them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch

State = tuple[torch.Tensor, list[torch.Tensor]]  # of the CPU and of the GPUs


class RandomTurns:
    """The turns of tasks, which are any objects that weak references may have."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._nesting = 0
        self._last: Any = lambda: None  # a reference to the task that had the newest turn
        self._left: WeakKeyDictionary[object, State] = WeakKeyDictionary()

    @contextmanager
    def of(self, task: object) -> Iterator[None]:
        """No other task has a turn meanwhile, except one that this one runs itself."""
        with self._lock:
            outer = self._last() if self._nesting > 0 else None
            self._switch_to(task)
            self._nesting += 1
            try:
                yield
            finally:
                self._nesting -= 1
                if outer is not None:
                    self._switch_to(outer)

    def forget(self, task: object) -> None:
        """The next turn of the task goes on with the random numbers of the program."""
        with self._lock:
            self._left.pop(task, None)

    def _switch_to(self, task: object) -> None:
        last = self._last()
        if last is task:
            return
        if last is not None:
            self._left[last] = current_state()
        if task in self._left:
            set_state(self._left[task])
        self._last = ref(task)


def current_state() -> State:
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return torch.get_rng_state(), gpus


def set_state(state: State) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


TURNS = RandomTurns()  # of the tasks of this process, as its generators are
