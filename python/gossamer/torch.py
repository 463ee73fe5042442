"""PyTorch peers.

    import gossamer.torch as gossip
    optimizer = gossip.Optimizer(optimizer, "run.toml")   # joins the network as one of its peers
    ...
    loss.backward(); optimizer.step()                     # unchanged: a round every local_steps

Optimizer   wraps an optimizer of torch, so that a training loop is a peer of a network.
Averager    averages given tensors with the neighbours', without training; average() is one round
            of it.
Task        is a model with batches and a loss for every peer, for gossamer.run() and
            gossamer.peer().
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gossamer import _core
from gossamer.initial import explained
from gossamer.masters import Master, ShardMaster
from gossamer.own_data import Moments, Scales
from gossamer.peer_loop import PeerLoop
from gossamer.replica import Replica
from gossamer.runs import Settings
from gossamer.shards import Shard, check_peer, shard_of
from gossamer.state_bytes import from_bytes, to_bytes
from gossamer.torch_averager import Averager, average
from gossamer.torch_task import Task
from gossamer.trainer import RequestHandler, TensorHash, Tensors, unknown

__all__ = ["Averager", "Optimizer", "Task", "average"]

DIVERGED = 8  # an exit code


class Optimizer(PeerLoop, torch.optim.Optimizer):
    """An optimizer whose steps are those of a peer of a network.

    optimizer  the torch optimizer that steps locally, made before
    config     the TOML file of the run, the same on all machines, with model.kind = "external"
    peer       id of this peer; default: GOSSAMER_ID, or the rank that a launcher sets
    module     the model: tensors have its names then, and its buffers are seen
    buffers    floating-point buffers of `module`: "refuse" them, "keep" them at each peer, or
               "mix" them with the parameters
    samples    how many samples this peer has, with data.weights = "samples"
    moments    gossamer.moments() of this peer's samples, in place of `samples`; `scales` are the
               gossamer.Scales of all peers' samples then. Of a server, neither counts, but for the
               number of features
    settings   overrides of the file: {"run.rounds": 20} or ["run.rounds=20"]
    out        run folder; default: local.out, or runs/<run id>
    resume     "auto" restarts a process in its old run folder: all processes at the newest
               checkpoint that they share (checkpoint.every), or this one alone with the parameters
               of a neighbour
    state      objects with state_dict() and load_state_dict(), such as a loader of batches, which
               checkpoints contain beside the optimizer and torch's random numbers on the CPU
    check_gradients   step() raises Error for a gradient that is not finite, before the optimizer
               steps, which costs a pass over the gradients. Without it, a peer whose parameters
               are not finite ends before it sends them
    shard      (index, count): the parameters are one shard of a model, such as (rank, ranks) of the
               process group that holds the model. Parameters that are DTensors need it

    The call returns when all neighbours are there. The parameters then are views of a row of the
    runtime, a float32 array of shape (d,) with all d values of the peer (those on another device
    than the CPU, and those of half precision, are copied), and change when step() has mixed them.
    With run.init = "same", the default, all peers must start from the same parameters: seed torch
    alike, or set run.init = "different".

    step() blocks while the algorithm waits for neighbours; other Python threads run meanwhile.
    After the last round, `finished` is true, and the parameters are ordinary tensors again.
    `steps` counts the local steps, those before a checkpoint included: a resumed loop goes on with
    the batch of that number.
    close(), the end of a `with` block, and the end of the program leave the network: the others
    continue if the algorithm tolerates the loss of a peer.

    At a server (algorithm.kind = server or async_server, ids from run.peers on) is_server is true,
    and step() is one step with the gradients of peers, so the loop needs no loss there. A server of
    fedavg takes no steps: the call returns when the run is complete, and `finished` is true.

    With `shard`, the processes that hold the same shard of the model are a network of their own, in
    which each peer has one process. Its run id is run.id and the name of the shard, and its folders
    are folders of that name in those of the configuration. Of a DTensor, the local tensor is mixed.
    """

    _handler: "OneReplica"
    _noun = "optimizer"
    _several_ids = (
        "an optimizer trains one peer, and the ids are {ids}; give one of them, or use "
        "gossamer.peer() with a task"
    )
    _after_close = "takes no more steps"

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        config: str | os.PathLike[str],
        peer: int | None = None,
        *,
        module: torch.nn.Module | None = None,
        buffers: str = "refuse",
        samples: int | None = None,
        moments: Moments | None = None,
        settings: Settings = (),
        out: str | os.PathLike[str] | None = None,
        resume: str = "none",
        state: Sequence[Any] = (),
        check_gradients: bool = False,
        shard: Sequence[int] | None = None,
    ) -> None:
        # The base class is for isinstance() alone, which schedulers ask: all is the wrapped one's.
        self.wrapped = optimizer
        self._check_gradients = check_gradients
        self._steps_left = 0
        own_shard = shard_of(shard)
        check_peer(own_shard, peer)
        replica = Replica(optimizer, module, buffers)
        handler = OneReplica(replica, state, own_shard, samples, moments)
        self._join(handler, config, peer, settings, out, resume)

    def step(self, closure: Callable[[], Any] | None = None, *, loss: Any = None) -> Any:
        """One local step. Ends a round after local_steps of them; then it mixes.

        `loss`, or what `closure` returns, is recorded in the log.
        """
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        request = self._pending()
        replica = self._handler.replica
        replica.check()
        if self._steps_left == request.steps:
            replica.check_module()
        if self._check_gradients:
            replica.check_gradients(self.steps)
        number = loss.detach() if isinstance(loss, torch.Tensor) else loss
        number = None if number is None else float(number)
        rate = replica.rate
        if request.operation == "local_steps":
            replica.local_step()
        elif request.operation == "gradient":
            replica.write_gradient(request.gradient)
        else:
            replica.update(request.x, request.gradient)
        # A step that raised has not been done, and may be done again.
        if number is not None:
            request.add_loss(number)
        request.set_rate(rate)
        self._handler.steps += 1
        if request.operation == "local_steps":
            self._steps_left -= 1
            if self._steps_left > 0:
                return loss
            replica.store(request.x)
        self._complete()
        return loss

    @property
    def steps(self) -> int:
        """Local steps of this peer so far, those before a checkpoint included."""
        return self._handler.steps

    @property
    def scales(self) -> Scales:
        """The scales of all peers' samples, in a run whose peers give `moments`."""
        return self._handler.scales

    def close(self) -> None:
        """Leaves the network. The parameters keep their values, in memory of their own."""
        self._handler.replica.release()
        super().close()

    def _begin(self, request: _core.Request) -> None:
        self._handler.replica.take(request.x)
        self._steps_left = request.steps

    def _take_final(self, row: Any) -> None:
        self._handler.replica.take_copy(row)

    def _explained(self, error: _core.Error) -> _core.Error:
        name = self._handler.replica.first_not_finite() if error.exit_code == DIVERGED else None
        if name is None:
            return error
        return explained(
            error,
            f"parameter {name} is not finite after local step {self.steps - 1}; "
            "check_gradients=True finds a gradient that is not finite before the step",
        )

    # ---- the wrapped optimizer's
    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.wrapped.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.wrapped.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        return self.wrapped.defaults

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        self.wrapped.zero_grad(*arguments, **options)  # versions of torch differ in the default

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.wrapped.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.wrapped.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise _core.Error(
            "rows have a fixed layout: add parameter groups before the optimizer is wrapped"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _core.Error(
            "an optimizer that is a peer of a network has no copy; copy or pickle its state_dict()"
        )

    def __repr__(self) -> str:
        return f"gossamer.torch.Optimizer({self.wrapped!r})"


def check_shard(master: Master, shard: Shard | None) -> None:
    """A DTensor knows the place of this process in its device mesh."""
    if not isinstance(master, ShardMaster):
        return
    index, count = master.position()
    place = f"parameter {master.name} is a DTensor, of which this process holds shard"
    if shard is None and count > 1:
        raise _core.Error(f"shard: {place} {index} of {count}; give shard=({index}, {count})")
    if shard is not None and (shard.index, shard.count) != (index, count):
        raise _core.Error(
            f"shard: {place} {index} of {count}, and not {shard.index} of {shard.count}"
        )


class OneReplica(RequestHandler):
    """Serves the requests of one peer that need no new gradient."""

    saves_state = True

    def __init__(
        self,
        replica: Replica,
        more: Sequence[Any] = (),
        shard: Shard | None = None,
        samples: int | None = None,
        moments: Moments | None = None,
    ) -> None:
        for each in more:
            if not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
                raise _core.Error(
                    f"state: {type(each).__name__} has no state_dict() and load_state_dict()"
                )
        for master in replica.masters:
            check_shard(master, shard)
        self.replica, self.more, self.shard = replica, more, shard
        self.state_samples(
            None if samples is None else lambda peer: samples,
            None if moments is None else lambda peer: moments,
        )
        self.steps = 0  # local steps of the peer
        self.linear_steps = replica.linear_steps
        self.has_buffers = replica.has_buffers

    def tensors(self) -> Tensors:
        return self.replica.tensors()

    def initial_bytes(self, peer: int) -> bytes:
        return self.replica.initial_bytes()

    def untrained_hashes(self, peer: int) -> list[TensorHash]:
        return self.replica.untrained_hashes()

    def _check_start(self, request: _core.Request) -> None:
        """The process has no other peer to compare with."""

    def serve(self, request: _core.Request) -> None:
        if request.operation == "initialise":
            self.replica.write_initial(request.x)
        elif request.operation == "save":
            request.set_state(to_bytes(self._state()))
        elif request.operation == "restore":
            self._load(from_bytes(request.state))
        elif request.operation == "update":
            self.replica.update(request.x, request.gradient)
        elif request.operation == "reset":
            self.replica.reset()
        else:
            raise unknown(request)

    def _state(self) -> dict[str, Any]:
        return self.replica.state() | {
            "steps": self.steps,
            "random": torch.get_rng_state(),
            "more": [each.state_dict() for each in self.more],
            "shard": None if self.shard is None else self.shard.name,
        }

    def _load(self, state: dict[str, Any]) -> None:
        own = None if self.shard is None else self.shard.name
        if state.get("shard") != own:
            raise _core.Error(
                f"shard: the checkpoint is of {state.get('shard') or 'a whole model'}, and this "
                f"process holds {own or 'a whole model'}; resume each shard from its own folder"
            )
        self.replica.load_state(state)
        self.steps = int(state["steps"])
        torch.set_rng_state(state["random"])
        if len(state["more"]) != len(self.more):
            raise _core.Error(
                f"state: the checkpoint has the state of {len(state['more'])} objects, and "
                f"{len(self.more)} are given"
            )
        for each, saved in zip(self.more, state["more"], strict=True):
            each.load_state_dict(saved)
