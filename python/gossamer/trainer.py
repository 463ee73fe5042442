"""The protocol of a task, and the handlers that carry out a run's requests with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from math import isnan, prod
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

from gossamer._core import Error, Request
from gossamer.own_data import Moments, Scales
from gossamer.shards import Shard

Tensors = list[tuple[str, list[int]]]
TensorHash = tuple[str, list[int], str]  # name, shape, and a hash of the values

ROUNDING = 1e-6  # of an accuracy that is added up from batches
EVALUATIONS = {"test": "evaluate", "validation": "validate"}  # a task's function, by data.evaluate


@runtime_checkable
class Trainer(Protocol):
    """A model with its data and its optimizer, for all peers of a run: values in, values out.

    `values` are the parameters of one peer: a read-only float32 array of shape (d,), the tensors
    one after the other. They are valid during the call. Peers are trained in the order of their
    ids, so a trainer may keep state by peer.

    These attributes are optional:
        evaluate(values) -> (loss, accuracy)   on the test data; recorded in the log
        validate(values) -> (loss, accuracy)   on validation data, in its place with data.evaluate =
                                               "validation"
        rate(peer) -> float                    the step size γ, which qg_momentum, dmsgd and
                                               decentlam ask for
        linear_steps: bool                     True promises that update() is SGD, which d2, extra
                                               and these three need; default False
        state(peer) -> bytes                   what the trainer keeps of a peer, for a checkpoint
        load_state(peer, state)                and the way back, when a run is resumed
        samples(peer) -> int                   how many samples a peer has, with data.weights =
                                               "samples"
        moments(peer) -> gossamer.Moments      of a peer's samples, in place of samples() (of a
                                               server, only the number of features is used); and
        agree(scales)                          gets the gossamer.Scales of all peers' samples,
                                               before the first gradient
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
    # What the program says of a peer's samples: their number or their moments, or nothing.
    _samples: Callable[[int], Any] | None = None
    _moments: Callable[[int], Any] | None = None
    _starts_alike = False  # all peers, because of run.init = "same"
    _start: tuple[int, list[TensorHash]] | None = None  # the first peer, and its initial tensors
    _feature_shape: tuple[int, ...] = ()
    _scales: Scales | None = None
    linear_steps = False
    has_buffers = False  # rows hold values that no gradient moves
    saves_state = False
    _evaluations: Mapping[str, Callable[[Any], Any]] = {}  # those of EVALUATIONS that the task has
    _evaluated = "test"
    shard: Shard | None = None  # of the model, the one that the rows hold

    @abstractmethod
    def tensors(self) -> Tensors: ...

    @abstractmethod
    def initial_bytes(self, peer: int) -> bytes:
        """The initial parameters of a peer as float32, for their hash."""

    def untrained_hashes(self, peer: int) -> list[TensorHash]:
        """Of parameters of a peer's model that its row does not have, which start alike too."""
        return []

    def state_samples(
        self, samples: Callable[[int], Any] | None, moments: Callable[[int], Any] | None
    ) -> None:
        """The numbers of samples, or the moments, are known by peer."""
        if samples is not None and moments is not None:
            raise Error("samples: give samples or moments; moments have the number of samples")
        self._samples, self._moments = samples, moments

    @property
    def counts_samples(self) -> bool:
        return self._samples is not None or self.has_moments

    @property
    def has_moments(self) -> bool:
        return self._moments is not None

    def begin(self, starts_alike: bool) -> None:
        """A run begins, perhaps not the first one of this handler."""
        self._starts_alike, self._start = starts_alike, None
        self._feature_shape, self._scales = (), None

    def choose_evaluation(self, samples: str, held_out: float) -> None:
        """Models are evaluated on these samples, a key of EVALUATIONS, in the run that begins.

        held_out   data.validation, the fraction of its samples that the task does not train on
        """
        if "validation" not in self._evaluations and (samples == "validation" or held_out > 0):
            key = "data.evaluate" if samples == "validation" else "data.validation"
            raise Error(
                f"{key}: the task has no function validate, which measures a model on samples "
                'that no peer trains on; give it one, or set data.evaluate = "test" and '
                "data.validation = 0"
            )
        self._evaluated = samples

    @property
    def evaluates(self) -> bool:
        return self._evaluated in self._evaluations

    def measure(self, request: Request, argument: str, value: Any) -> None:
        """Sets the request's loss and accuracy, which the task returns for a value."""
        call = f"{EVALUATIONS[self._evaluated]}({argument})"
        found = self._evaluations[self._evaluated](value)
        loss, accuracy = two_numbers(call, "(loss, accuracy)", found)
        if not (isnan(accuracy) or -ROUNDING <= accuracy <= 1 + ROUNDING):
            raise Error(
                f"task: {call} returned the accuracy {accuracy:g}; an accuracy is the part of the "
                "samples that are right, from 0 to 1, and NaN where there is none"
            )
        request.set_evaluation(loss, accuracy)

    @property
    def features(self) -> int:
        """Of which the moments are known; 0 before shard_summary()."""
        return prod(self._feature_shape) if self._feature_shape else 0

    @property
    def scales(self) -> Scales:
        """Those of all peers' samples, which are known when a run with moments has begun."""
        if self._scales is None:
            raise Error(
                "scales: the peers agree on them when the run begins, and only if each gives the "
                "moments of its samples"
            )
        return self._scales

    def agree(self, scales: Scales) -> None:
        self._scales = scales

    def shard_summary(self, peer: int) -> tuple[int, Sequence[float], Sequence[float]]:
        """What is exchanged of a peer's samples, if counts_samples: number, means, variances."""
        if self._moments is None:
            assert self._samples is not None
            return self._checked_count(peer, self._samples(peer)), (), ()
        found = self._moments(peer)
        if not isinstance(found, Moments):
            raise Error(
                f"moments: peer {peer} has {type(found).__name__}, which is no gossamer.Moments; "
                "gossamer.moments(samples) makes them"
            )
        if self._feature_shape and found.shape != self._feature_shape:
            raise Error(
                f"moments: features of peer {peer} have the shape {found.shape}, and those of "
                f"another peer {self._feature_shape}"
            )
        self._feature_shape = found.shape
        return self._checked_count(peer, found.samples), found.means, found.variances

    def _checked_count(self, peer: int, count: Any) -> int:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise Error(
                f"samples: peer {peer} has {count!r}; a peer needs one sample at least, and "
                "their number is an int"
            )
        return int(count)

    @abstractmethod
    def serve(self, request: Request) -> None: ...

    def serve_batch(self, requests: Sequence[Request]) -> None:
        """Serves the requests of BackgroundRun.next(): one operation, and each peer once."""
        if requests[0].operation == "agree":  # for all peers of the process
            means, deviations = requests[0].scales
            self.agree(Scales(means, deviations, self._feature_shape))
            return
        for request in requests:
            self.serve(request)
            if request.operation == "initialise" and self._starts_alike:
                self._check_start(request)

    def _check_start(self, request: Request) -> None:
        """Processes compare hashes of their starts; the peers of one process are compared here."""
        of_row = row_hashes(self.tensors(), memoryview(request.x).cast("B"))
        start = of_row + self.untrained_hashes(request.peer)
        first, known = self._start or (request.peer, start)
        if start != known:
            pairs = zip_longest(start, known)
            number, pair = next((k, each) for k, each in enumerate(pairs) if each[0] != each[1])
            name, _, _ = pair[0] or pair[1]  # one of them has no more tensors
            missing = ", which its optimizer does not have" if number >= len(of_row) else ""
            raise Error(
                f"run.init: peers {first} and {request.peer} start from different parameters (the "
                f"first is {name}{missing}); seed random numbers alike each time that a model is "
                'made, as with torch.manual_seed(), or set run.init = "different"'
            )
        self._start = first, known

    def release(self) -> None:
        """Drops all views of rows."""


def row_hashes(tensors: Tensors, values: bytes | memoryview) -> list[TensorHash]:
    """Of the tensors of a row, which has these bytes."""
    hashes, begin = [], 0
    for name, shape in tensors:
        end = begin + 4 * prod(shape)
        hashes.append((name, shape, sha256(values[begin:end]).hexdigest()))
        begin = end
    return hashes


def pair(call: str, wanted: str, found: Any) -> tuple[Any, Any]:
    """The two values that a method of the task returned."""
    try:
        first, second = found
    except (TypeError, ValueError) as error:
        length = f" of length {len(found)}" if isinstance(found, tuple | list) else ""
        raise Error(
            f"task: {call} returned {type(found).__name__}{length}; it returns {wanted}"
        ) from error
    return first, second


def two_numbers(call: str, wanted: str, found: Any) -> tuple[float, float]:
    first, second = pair(call, wanted, found)
    try:
        return float(first), float(second)
    except (TypeError, ValueError) as error:
        raise Error(f"task: {call} returned no two numbers; it returns {wanted}") from error


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
        self._evaluations = {
            samples: getattr(trainer, name)
            for samples, name in EVALUATIONS.items()
            if hasattr(trainer, name)
        }
        self.state_samples(getattr(trainer, "samples", None), getattr(trainer, "moments", None))
        if self.has_moments and not hasattr(trainer, "agree"):
            raise Error(
                f"task: {type(trainer).__name__} has moments() and no agree(scales), which gets "
                "what the peers agree on"
            )
        self.linear_steps = bool(getattr(trainer, "linear_steps", False))
        self.saves_state = hasattr(trainer, "state") and hasattr(trainer, "load_state")
        self._length = sum(int(numpy.prod(shape, dtype=numpy.int64)) for _, shape in self._tensors)

    def tensors(self) -> Tensors:
        return self._tensors

    def initial_bytes(self, peer: int) -> bytes:
        return bytes(self._checked("initial", self._trainer.initial(peer)).tobytes())

    def agree(self, scales: Scales) -> None:
        self._trainer.agree(scales)  # type: ignore[attr-defined]

    def serve(self, request: Request) -> None:
        if request.operation == "save":
            state: Any = self._trainer.state(request.peer)  # type: ignore[attr-defined]
            if not isinstance(state, bytes):
                raise Error(f"task: state() returned {type(state).__name__}; it returns bytes")
            request.set_state(state)
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
            self.measure(request, "values", values)
        else:
            raise unknown(request)

    def _gradient(self, request: Request, step: int, values: Any) -> Any:
        found = self._trainer.gradient(request.shard_of, step, values)
        loss, gradient = pair("gradient(peer, step, values)", "(loss, gradient)", found)
        request.add_loss(float(loss))
        if rate := getattr(self._trainer, "rate", None):
            request.set_rate(float(rate(request.peer)))
        return self._checked("gradient", gradient)

    def _updated(self, request: Request, step: int, values: Any, gradient: Any) -> Any:
        return self._checked("update", self._trainer.update(request.peer, step, values, gradient))

    def _checked(self, method: str, values: Any) -> Any:
        if self._numpy.iscomplexobj(values):
            raise Error(f"task: {method}() returned complex numbers; rows hold real ones")
        array = self._numpy.asarray(values, dtype=self._numpy.float32)
        if array.shape != (self._length,):
            raise Error(
                f"task: {method}() returned an array of shape {array.shape}; the tensors of "
                f"tensors() have {self._length} values, so it is ({self._length},)"
            )
        return array
