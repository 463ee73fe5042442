"""Averaging without training: arrays that are mixed with the neighbours', one round a call.

averager = gossamer.Averager(arrays, "run.toml")    # joins the network
averager.average()                                  # one round
gossamer.average(arrays, "run.toml")                # the same in one call
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gossamer import _core
from gossamer.peer_loop import PeerLoop
from gossamer.runs import Settings
from gossamer.trainer import RequestHandler, Tensors, unknown


class Averager(PeerLoop):
    """Averages arrays with those of the neighbours, in place: one round in each average().

    tensors   NumPy arrays, by name or in order: of any float dtype and any shape, writable, the
              same shapes at all peers. gossamer.torch.Averager takes tensors of PyTorch
    config    the TOML file of the run, the same on all machines, with model.kind = "external"
    peer      id of this peer; default: GOSSAMER_ID, or the rank that a launcher sets
    settings  overrides of the file: {"run.rounds": 20} or ["run.rounds=20"]
    out       run folder; default: local.out, or runs/<run id>
    resume    "auto" restarts a process in its old run folder; it takes a neighbour's values

    The call returns when all neighbours are there. Each average() then hands the values over,
    mixes them by the topology and the algorithm of the configuration, and writes the result back.
    Between two calls the values may change: the next call mixes what it finds. Values travel as
    float32; those of another precision are rounded.

    After the last round (run.rounds), `finished` is true. close(), the end of a `with` block, and
    the end of the program leave the network: the others continue if the algorithm tolerates it.
    """

    _noun = "averager"
    _several_ids = "an averager is one peer, and the ids are {ids}; give one"
    _after_close = "mixes no more"

    def __init__(
        self,
        tensors: Mapping[str, Any] | Iterable[Any],
        config: str | os.PathLike[str],
        peer: int | None = None,
        *,
        settings: Settings = (),
        out: str | os.PathLike[str] | None = None,
        resume: str = "none",
    ) -> None:
        self._tensors = self._checked(by_name(tensors))
        self._places = {name: self._place(tensor) for name, tensor in self._tensors.items()}
        self._join(ZeroStart(self._tensors, self._flat), config, peer, settings, out, resume)

    def average(self, tensors: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        """Mixes the tensors once with the neighbours': one round.

        tensors   others of the same names, shapes and types, which take the place of the former
        """
        request = self._pending()
        self._tensors = self._ready(self._tensors if tensors is None else by_name(tensors))
        row = self._flat(request.x)
        # Rows start at zero. An asynchronous algorithm may have averaged this one already, with
        # that of a faster neighbour: so the first values are added, or the mean would move.
        start = row + 0 if request.step == 0 else None
        if request.operation == "local_steps":
            self._store(request.x)
            if start is not None:
                row += start
        else:  # the gradient whose step with rate 1 leads from x to the values, or adds them
            gradient = self._flat(request.gradient)
            self._store(gradient)
            gradient *= -1
            if start is None:
                gradient += row
        self._complete()

    def _begin(self, request: _core.Request) -> None:
        if request.step > 0:  # the row is mixed, or of a neighbour that this peer has joined
            self._take(request.x)

    def _take_final(self, row: Any) -> None:
        self._take(row)

    def _ready(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Checks tensors before anything is sent: those of before stay if one cannot be mixed."""
        if list(tensors) != list(self._places):
            raise _core.Error(
                f"tensors: the averager began with {', '.join(self._places)}, and is given "
                f"{', '.join(tensors) or 'none'}"
            )
        for name, tensor in self._checked(tensors).items():
            place = self._place(tensor)
            if place != self._places[name]:
                raise _core.Error(
                    f"tensor {name} has changed: it was {self._places[name]}, and is {place}"
                )
            if not self._is_finite(tensor):
                raise _core.Error(
                    f"tensor {name} has values that are not finite, or not as float32"
                )
        return tensors

    def _checked(self, tensors: dict[str, Any]) -> dict[str, Any]:
        for name, tensor in tensors.items():
            if problem := self._problem(tensor):
                raise _core.Error(f"tensor {name} {problem}")
        return tensors

    def _store(self, row: Any) -> None:
        for part, tensor in self._parts(row):
            self._assign(part, tensor)

    def _take(self, row: Any) -> None:
        for part, tensor in self._parts(row):
            self._assign(tensor, part)

    def _parts(self, row: Any) -> Iterable[tuple[Any, Any]]:
        flat, begin = self._flat(row), 0
        for tensor in self._tensors.values():
            end = begin + math.prod(tensor.shape)
            yield flat[begin:end].reshape(tensor.shape), tensor
            begin = end

    # ---- what gossamer.torch.Averager replaces
    def _problem(self, tensor: Any) -> str | None:
        """Why a tensor cannot be averaged."""
        import numpy

        if not isinstance(tensor, numpy.ndarray):
            return f"is of {type(tensor).__name__}, and no numpy.ndarray"
        if not numpy.issubdtype(tensor.dtype, numpy.floating):
            return f"is of {tensor.dtype}; rows hold real numbers"
        return None if tensor.flags.writeable else "is read-only, and is averaged in place"

    def _place(self, tensor: Any) -> str:
        """Shape and dtype, which do not change."""
        return f"{tensor.dtype} of shape {tuple(tensor.shape)}"

    def _flat(self, row: Any) -> Any:
        import numpy

        return numpy.asarray(row)

    def _assign(self, target: Any, source: Any) -> None:
        target[...] = source

    def _is_finite(self, tensor: Any) -> bool:
        import numpy

        with numpy.errstate(over="ignore"):
            return bool(numpy.isfinite(tensor.astype(numpy.float32, copy=False)).all())


def by_name(tensors: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    if not isinstance(tensors, Mapping):
        tensors = {str(index): tensor for index, tensor in enumerate(tensors)}
    return dict(tensors)


# Of average(), by class, configuration and peer.
kept: dict[tuple[type[Averager], str, int | None], Averager] = {}


def average(
    tensors: Mapping[str, Any] | Iterable[Any],
    config: str | os.PathLike[str],
    peer: int | None = None,
    **options: Any,
) -> bool:
    """Mixes arrays once with the neighbours', in place: one round. Returns if a round is left.

    The first call with this configuration joins the network, with an Averager that the process
    keeps until the last round; `options` are those of the Averager. Later calls have arrays of the
    same shapes. A call after the last round would begin another run, which needs a folder of its
    own (`out`).
    """
    return average_once(Averager, tensors, config, peer, options)


def average_once(
    kind: type[Averager],
    tensors: Mapping[str, Any] | Iterable[Any],
    config: str | os.PathLike[str],
    peer: int | None,
    options: dict[str, Any],
) -> bool:
    """The call average() of a class of averagers."""
    key = kind, os.path.abspath(config), peer
    given = by_name(tensors)
    if key not in kept:
        kept[key] = kind(given, config, peer, **options)
    averager = kept[key]
    try:
        averager.average(given)
    finally:
        if averager.finished or averager.has_left:  # by an error: the next call joins again
            del kept[key]
    return not averager.finished


class ZeroStart(RequestHandler):
    """What the runtime knows of an averager. Rows start at zero, which is the same at all peers."""

    averages = True

    def __init__(self, tensors: Mapping[str, Any], flat: Callable[[Any], Any]) -> None:
        self._flat = flat  # a row as an array or tensor
        self._tensors = [
            (name, [int(size) for size in tensor.shape]) for name, tensor in tensors.items()
        ]

    def tensors(self) -> Tensors:
        return self._tensors

    def initial_bytes(self, peer: int) -> bytes:
        return bytes(4 * sum(math.prod(shape) for _, shape in self._tensors))

    def serve(self, request: _core.Request) -> None:
        row = self._flat(request.x)
        if request.operation == "initialise":
            row *= 0
        elif request.operation == "update":
            row -= self._flat(request.gradient)
        elif request.operation != "reset":
            raise unknown(request)
