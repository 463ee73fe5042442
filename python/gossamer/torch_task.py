"""Tasks of PyTorch: a model, batches and a loss for each peer (gossamer.torch.Task)."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gossamer import _core
from gossamer.joint_step import step_together
from gossamer.own_data import Moments
from gossamer.random_turns import TURNS
from gossamer.replica import Replica
from gossamer.state_bytes import from_bytes, to_bytes
from gossamer.torch_vmap import Training, VmapGradients, find_transforms
from gossamer.trainer import RequestHandler, TensorHash, Tensors, unknown


class Task(RequestHandler):
    """A model, batches and a loss for every peer: the task of gossamer.run() and gossamer.peer().

    model      model(peer) -> torch.nn.Module, the same for the same peer wherever it is called;
               with run.init = "same", the same for all peers. Servers, whose ids follow those of
               the peers, have a model and an optimizer too
    optimizer  optimizer(parameters) -> torch.optim.Optimizer
    batch      batch(peer, step) -> anything: batch `step` of the peer's own data
    loss       loss(module, batch) -> tensor of shape (), of any float dtype
    evaluate   evaluate(module) -> (loss, accuracy) on test data; optional. The module is in
               evaluation mode, and its modes and buffers are restored afterwards
    validate   validate(module) -> (loss, accuracy) on validation data, which no peer trains on; it
               is called in place of `evaluate` with data.evaluate = "validation"
    buffers    as of Optimizer
    samples    samples(peer) -> int: how many samples a peer has, with data.weights = "samples"
    moments    moments(peer) -> gossamer.Moments of a peer's samples, in place of `samples`. When
               the run begins, `scales` are the gossamer.Scales of all peers' samples
    seed       torch's random numbers, such as those of dropout, begin anew for each batch from
               (seed, peer, step), so that they are the same wherever and whenever a peer is
               trained. Tasks that run in several threads take turns
    vmap       the gradients of all peers that are ready are computed in one call (torch.func.vmap)

    With vmap=True, a process that hosts many peers of a small model is faster. Optimizers of
    PyTorch that are alike step in one call, others one by one. The task must satisfy this:

    - The loss depends on tensors alone: no Python branch on their values, no .item(), no NumPy.
    - The models of all peers have the same structure; the module that `loss` sees is that of one
      of them, with the tensors of each in turn. Peers are trained together if their batches have
      the same shapes; a batch is a tensor, or containers of tensors, numbers and texts.
    - Parameters that the loss does not use have a gradient of zero, and not none.

    The products are other ones than those of one peer, so the last bits of the results depend on
    which peers are trained together, and random numbers within the loss are drawn for these peers
    at once. A simulation still repeats with the same bits; the same run over TCP has other ones.
    PyTorch 2.0 or newer, or functorch with 1.13 (without dropout), is needed; where both are
    missing, a warning says so, and peers are trained one by one.
    """

    saves_state = True

    def __init__(
        self,
        model: Callable[[int], torch.nn.Module],
        optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer],
        batch: Callable[[int, int], Any],
        loss: Callable[[torch.nn.Module, Any], torch.Tensor],
        evaluate: Callable[[torch.nn.Module], Sequence[float]] | None = None,
        *,
        validate: Callable[[torch.nn.Module], Sequence[float]] | None = None,
        buffers: str = "refuse",
        samples: Callable[[int], int] | None = None,
        moments: Callable[[int], Moments] | None = None,
        seed: int = 0,
        vmap: bool = False,
    ) -> None:
        self._seed = seed
        transforms = find_transforms() if vmap else None
        self._together = None if transforms is None else VmapGradients(loss, transforms)
        self._model, self._optimizer = model, optimizer
        self._batch, self._loss = batch, loss
        given = {"test": evaluate, "validation": validate}
        self._evaluations = {name: each for name, each in given.items() if each is not None}
        self._buffers = buffers
        self.state_samples(samples, moments)
        self._peers: dict[int, tuple[torch.nn.Module, Replica]] = {}
        _, first = self._peer(0)
        self._tensors = first.tensors()
        self.linear_steps = first.linear_steps
        self.has_buffers = first.has_buffers
        self._seed_devices = torch.cuda.is_available() or any(
            master.device.type != "cpu" for master in first.masters
        )
        self._has_run = False

    def begin(self, starts_alike: bool) -> None:
        super().begin(starts_alike)
        TURNS.forget(self)
        if self._has_run:  # the models have the parameters of that run
            self._peers.clear()
            if self._together is not None:
                self._together.forget()
        self._has_run = True

    def tensors(self) -> Tensors:
        return self._tensors

    def initial_bytes(self, peer: int) -> bytes:
        return self._peer(peer)[1].initial_bytes()

    def untrained_hashes(self, peer: int) -> list[TensorHash]:
        return self._peer(peer)[1].untrained_hashes()

    def serve(self, request: _core.Request) -> None:
        module, replica = self._peer(request.peer)
        if request.operation == "initialise":
            replica.write_initial(request.x)
        elif request.operation == "local_steps":
            replica.take(request.x)
            for step in range(request.step, request.step + request.steps):
                self._backward(module, replica, request, step)
                replica.local_step()
            replica.check_module()
            replica.store(request.x)
        elif request.operation == "gradient":
            replica.take(request.x)
            self._backward(module, replica, request, request.step)
            replica.check_module()
            replica.write_gradient(request.gradient)
        elif request.operation == "update":
            replica.update(request.x, request.gradient)
        elif request.operation == "reset":
            replica.reset()
        elif request.operation == "save":
            request.set_state(to_bytes(replica.state()))
        elif request.operation == "restore":
            replica.load_state(from_bytes(request.state))
        elif request.operation == "evaluate":
            self._measure(module, replica, request)
        else:
            raise unknown(request)

    def serve_batch(self, requests: Sequence[_core.Request]) -> None:
        with TURNS.of(self):
            self._serve_batch(requests)

    def _serve_batch(self, requests: Sequence[_core.Request]) -> None:
        operation = requests[0].operation
        if self._together is None or operation not in ("local_steps", "gradient"):
            super().serve_batch(requests)
        elif operation == "gradient":
            self._backward_together(self._together, requests, 0)
            for request in requests:
                self._peer(request.peer)[1].write_gradient(request.gradient)
        else:
            for index in range(max(request.steps for request in requests)):
                remaining = [request for request in requests if index < request.steps]
                self._backward_together(self._together, remaining, index)
                replicas = [self._peer(request.peer)[1] for request in remaining]
                step_together(replicas, [request.x for request in remaining])

    def _backward_together(
        self, together: VmapGradients, requests: Sequence[_core.Request], index: int
    ) -> None:
        """_backward() of step `index` of each request."""
        peers = []
        for request in requests:
            module, replica = self._peer(request.peer)
            replica.take(request.x)
            self._seed_random(f"{request.shard_of} {request.step + index}")
            batch = self._batch(request.shard_of, request.step + index)
            peers.append(Training(module, replica, batch))
        self._seed_random(" ".join(f"{each.shard_of} {each.step + index}" for each in requests))
        losses = together.backward(peers)
        for request, peer, loss in zip(requests, peers, losses, strict=True):
            request.add_loss(loss)
            request.set_rate(peer.replica.rate)

    def _seed_random(self, place: str) -> None:
        seed = zlib.crc32(f"{self._seed} {place}".encode())
        if self._seed_devices:
            torch.manual_seed(seed)
        else:  # the same numbers; without a GPU, manual_seed() costs as much as a small model
            torch.default_generator.manual_seed(seed)

    def _backward(
        self, module: torch.nn.Module, replica: Replica, request: _core.Request, step: int
    ) -> None:
        replica.drop_gradients()
        self._seed_random(f"{request.shard_of} {step}")
        loss = self._loss(module, self._batch(request.shard_of, step))
        if not isinstance(loss, torch.Tensor) or loss.shape != ():
            raise _core.Error(
                f"task: the loss of peer {request.peer} is {described(loss)}; "
                "loss(module, batch) returns a tensor of shape ()"
            )
        loss.backward()
        replica.check()  # what the loss did to the parameters
        request.add_loss(float(loss.detach()))
        request.set_rate(replica.rate)

    def _measure(self, module: torch.nn.Module, replica: Replica, request: _core.Request) -> None:
        with torch.no_grad(), restored(module):
            replica.take_copy(request.x)
            replica.take_mean_buffers([self._peer(peer)[1] for peer in request.averaged])
            module.eval()
            self.measure(request, "module", module)

    def release(self) -> None:
        for _, replica in self._peers.values():
            replica.release()

    def _peer(self, peer: int) -> tuple[torch.nn.Module, Replica]:
        if peer not in self._peers:
            with TURNS.of(self):
                module = self._model(peer)
            if not isinstance(module, torch.nn.Module):
                raise _core.Error(
                    f"task: model({peer}) returned {described(module)}; it returns a "
                    "torch.nn.Module"
                )
            replica = Replica(self._optimizer(module.parameters()), module, self._buffers)
            if self._peers and replica.tensors() != self._tensors:
                raise _core.Error(f"task: the model of peer {peer} has other tensors than peer 0's")
            self._peers[peer] = module, replica
        return self._peers[peer]


@contextmanager
def restored(module: torch.nn.Module) -> Iterator[None]:
    """The modes and the buffers of the module are afterwards as before.

    The module is that of a peer, which may be between its gradient and its update: the update keeps
    the buffers that the module has. Parameters are taken from a row in each request.
    """
    modes = [(each, each.training) for each in module.modules()]
    buffers = [(each, each.clone()) for each in module.buffers()]
    try:
        yield
    finally:
        module.train(modes[0][1])  # and not the flag alone: a module may override it
        for each, training in modes:  # train() has set all submodules, and some may be frozen
            each.training = training
        for buffer, values in buffers:
            if not torch.equal(buffer, values):  # an expanded buffer cannot be written
                buffer.copy_(values)


def described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
