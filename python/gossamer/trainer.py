"""The protocol of a task, and the handlers that carry out a run's requests with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from gossamer._core import Error, Request
from gossamer.shards import Shard

Tensors = list[tuple[str, list[int]]]


@runtime_checkable
class Trainer(Protocol):
    """A model with its data and its optimizer, for all peers of a run: values in, values out.

    `values` are the parameters of one peer: a read-only float32 array of shape (d,), the tensors
    one after the other. They are valid during the call. Peers are trained in the order of their
    ids, so a trainer may keep state by peer.

    These attributes are optional:
        evaluate(values) -> (loss, accuracy)   on the test data; recorded in the log
        rate(peer) -> float                    the step size γ, which qg_momentum, dmsgd and
                                               decentlam ask for
        linear_steps: bool                     True promises that update() is SGD, which d2, extra
                                               and these three need; default False
        state(peer) -> bytes                   what the trainer keeps of a peer, for a checkpoint
        load_state(peer, state)                and the way back, when a run is resumed
        samples(peer) -> int                   how many samples a peer has, with data.weights =
                                               "samples"
        reset(peer)                            what update() keeps of a peer begins anew: in each
                                               round of fedavg, and when a peer joins again

    A server (server, async_server, fedavg) is a peer without data: initial() and update() are asked
    for it, and gradient() is not. Each of several servers owns a part of the values, and update()
    gets gradients of zero for the other parts.
    """

    def tensors(self) -> Mapping[str, Sequence[int]]:
        """Names and shapes of the tensors of a row, in order."""
        ...

    def initial(self, peer: int) -> Any:
        """The initial parameters of a peer, shape (d,)."""
        ...

    def gradient(self, peer: int, step: int, values: Any) -> tuple[float, Any]:
        """The loss of batch `step` of a peer's data, and its gradient, shape (d,)."""
        ...

    def update(self, peer: int, step: int, values: Any, gradient: Any) -> Any:
        """The parameters after optimizer step `step` of a peer, shape (d,)."""
        ...


def unknown(request: Request) -> Error:
    return Error(f"this version of the package knows no request '{request.operation}'")


class RequestHandler(ABC):
    """Carries out the requests of a run."""

    averages = False  # a step replaces the row by values to average
    counts_samples = False  # samples() is known
    linear_steps = False
    has_buffers = False  # rows hold values that no gradient moves
    evaluates = False
    saves_state = False
    shard: Shard | None = None  # of the model, the one that the rows hold

    @abstractmethod
    def tensors(self) -> Tensors: ...

    @abstractmethod
    def initial_bytes(self, peer: int) -> bytes:
        """The initial parameters of a peer as float32, for their hash."""

    def samples(self, peer: int) -> int:
        """How many samples a peer has, if counts_samples."""
        raise NotImplementedError

    @abstractmethod
    def serve(self, request: Request) -> None: ...

    def serve_batch(self, requests: Sequence[Request]) -> None:
        """Serves the requests of BackgroundRun.next(): one operation, and each peer once."""
        for request in requests:
            self.serve(request)

    def release(self) -> None:
        """Drops all views of rows."""


class ArrayHandler(RequestHandler):
    """Serves requests with a Trainer, over NumPy arrays."""

    def __init__(self, trainer: Trainer) -> None:
        import numpy

        if not isinstance(trainer, Trainer):
            raise Error(
                f"task: {type(trainer).__name__} is no gossamer.Trainer: it needs the methods "
                "tensors, initial, gradient and update"
            )
        self._numpy = numpy
        self._trainer = trainer
        self._tensors = [
            (name, [int(size) for size in shape]) for name, shape in trainer.tensors().items()
        ]
        self.evaluates = hasattr(trainer, "evaluate")
        self.counts_samples = hasattr(trainer, "samples")
        self.linear_steps = bool(getattr(trainer, "linear_steps", False))
        self.saves_state = hasattr(trainer, "state") and hasattr(trainer, "load_state")
        self._length = sum(int(numpy.prod(shape, dtype=numpy.int64)) for _, shape in self._tensors)

    def tensors(self) -> Tensors:
        return self._tensors

    def initial_bytes(self, peer: int) -> bytes:
        return bytes(self._checked("initial", self._trainer.initial(peer)).tobytes())

    def samples(self, peer: int) -> int:
        return self._trainer.samples(peer)  # type: ignore[attr-defined,no-any-return]

    def serve(self, request: Request) -> None:
        if request.operation == "save":
            request.set_state(self._trainer.state(request.peer))  # type: ignore[attr-defined]
            return None
        if request.operation == "restore":
            self._trainer.load_state(request.peer, request.state)  # type: ignore[attr-defined]
            return None
        if request.operation == "reset":
            if reset := getattr(self._trainer, "reset", None):
                reset(request.peer)
            return None
        x = self._numpy.asarray(request.x)
        values = x.view()
        values.flags.writeable = False
        if request.operation == "initialise":
            x[:] = self._checked("initial", self._trainer.initial(request.peer))
        elif request.operation == "local_steps":
            for step in range(request.step, request.step + request.steps):
                gradient = self._gradient(request, step, values)
                x[:] = self._updated(request, step, values, gradient)
        elif request.operation == "gradient":
            self._numpy.asarray(request.gradient)[:] = self._gradient(request, request.step, values)
        elif request.operation == "update":
            gradient = self._numpy.asarray(request.gradient)
            x[:] = self._updated(request, request.step, values, gradient)
        elif request.operation == "evaluate":
            loss, accuracy = self._trainer.evaluate(values)  # type: ignore[attr-defined]
            request.set_evaluation(float(loss), float(accuracy))
        else:
            raise unknown(request)

    def _gradient(self, request: Request, step: int, values: Any) -> Any:
        loss, gradient = self._trainer.gradient(request.shard_of, step, values)
        request.add_loss(float(loss))
        if rate := getattr(self._trainer, "rate", None):
            request.set_rate(float(rate(request.peer)))
        return self._checked("gradient", gradient)

    def _updated(self, request: Request, step: int, values: Any, gradient: Any) -> Any:
        return self._checked("update", self._trainer.update(request.peer, step, values, gradient))

    def _checked(self, method: str, values: Any) -> Any:
        array = self._numpy.asarray(values, dtype=self._numpy.float32)
        if array.shape != (self._length,):
            raise Error(
                f"task: {method}() returned an array of shape {array.shape}; the tensors of "
                f"tensors() have {self._length} values, so it is ({self._length},)"
            )
        return array
