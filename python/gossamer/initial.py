"""What to do when two peers refuse each other because of their models: the errors of a start."""

import re
from hashlib import sha256

from gossamer._core import Error
from gossamer.trainer import RequestHandler, TensorHash, row_hashes

LISTED = 8  # tensors of a kind in a message

# src/net/wire/hello.cpp: "its model is THEIRS, ours is OURS", or "its model is not ours, OURS".
# The digits are the number of scaled features.
MODEL = r"external (\w+)(?:, start (\w+)(?:/(\d+))?)?"
BOTH = re.compile(f"its model is {MODEL}, ours is {MODEL}")
OWN = re.compile(f"its model is not ours, {MODEL}")

SAME_START = (
    "seed random numbers alike before the model is made, as with torch.manual_seed(), or set "
    'run.init = "different"'
)


def initial_hash(handler: RequestHandler, peer: int) -> str:
    """Of the row, and of the parameters that it does not have."""
    return combined(handler.initial_bytes(peer), handler.untrained_hashes(peer))


def combined(row: bytes, untrained: list[TensorHash]) -> str:
    start = sha256(row)
    for name, shape, found in untrained:
        start.update(f"{name} {shape} {found}".encode())
    return start.hexdigest()


def with_remedy(error: Error, handler: RequestHandler, hosted: list[int]) -> Error:
    """The error; if it says that two models differ, with the reason and with what to do."""
    text = str(error)
    if both := BOTH.search(text):
        model, _, features, own_model, own_start, own_features = both.groups()
        if model != own_model:
            return explained(
                error,
                "the models have different tensors: their names, shapes and order must be the same "
                "at all peers",
            )
        if features != own_features:
            return explained(
                error,
                f"the programs give the moments of {own_features or 'no'} features here and of "
                f"{features or 'none'} there: they must be those of the same features at all peers",
            )
        reason = f"the two peers start from different parameters: {SAME_START}"
    elif own := OWN.search(text):
        own_start = own[2]
        causes = ["have different tensors"]
        if own_start not in (None, "any"):
            causes.append(f"start from different parameters ({SAME_START})")
        if own[3]:
            causes.append("give the moments of different features")
        reason = f"the models of the two peers {', or '.join(causes)}"
    else:
        return error
    return explained(error, reason + tensor_hashes(handler, hosted, own_start))


def explained(error: Error, reason: str) -> Error:
    explained = Error(f"{error}; {reason}")
    explained.exit_code = error.exit_code
    return explained


def tensor_hashes(handler: RequestHandler, hosted: list[int], start: str | None) -> str:
    """The first tensors of this peer, so that two messages show which one differs first."""
    if start is None:
        return ""
    values, untrained = handler.initial_bytes(hosted[0]), handler.untrained_hashes(hosted[0])
    if not combined(values, untrained).startswith(start):
        return ""  # the parameters are not the initial ones any more
    text = (
        f". Shapes and hashes of the initial tensors of peer {hosted[0]}, to compare with the "
        f"other peer's: {listed(row_hashes(handler.tensors(), values))}"
    )
    return text + (f"; not in its optimizer: {listed(untrained)}" if untrained else "")


def listed(tensors: list[TensorHash]) -> str:
    hashes = []
    for name, shape, found in tensors[:LISTED]:
        size = "×".join(str(each) for each in shape) or "1"
        hashes.append(f"{name} ({size}) {found[:8]}")
    return ", ".join(hashes) + (", …" if len(tensors) > LISTED else "")
