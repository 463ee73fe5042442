"""Operators of native models against PyTorch's in double: losses and gradients of random graphs."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(
    os.environ.get("GOSSAMER_MODEL_GRADIENTS")
    or ROOT / "build" / "release" / "bin" / "model_gradients"
)
MODELS = 200

Parameters = dict[str, Any]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
}


def channels_first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)


def channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1)


def dense(x: Tensor, weights: dict[str, Tensor], p: Parameters) -> Tensor:
    rows = x if p["per_position"] else x.reshape(len(x), 1, 1, -1)
    y = rows @ weights["weights"]
    return ACTIVATIONS[p["activation"]](y + weights["bias"] if p["bias"] else y)


def convolution(x: Tensor, weights: dict[str, Tensor], p: Parameters) -> Tensor:
    kernel = weights["weights"].permute(3, 2, 0, 1)
    assert ("bias" in weights) == p["bias"]
    bias = weights.get("bias")
    y = functional.conv2d(channels_first(x), kernel, bias, padding=p["padding"])
    return ACTIVATIONS[p["activation"]](channels_last(y))


def group_norm(x: Tensor, weights: dict[str, Tensor], p: Parameters) -> Tensor:
    y = functional.group_norm(
        channels_first(x), p["groups"], weights["scale"], weights["shift"], eps=1e-5
    )
    return ACTIVATIONS[p["activation"]](channels_last(y))


def layer_norm(x: Tensor, weights: dict[str, Tensor], _: Parameters) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weights["scale"], weights["shift"], eps=1e-5)


def average_pool(x: Tensor, _: dict[str, Tensor], p: Parameters) -> Tensor:
    return channels_last(functional.avg_pool2d(channels_first(x), p["size"]))


def max_pool(x: Tensor, _: dict[str, Tensor], p: Parameters) -> Tensor:
    return channels_last(functional.max_pool2d(channels_first(x), p["size"]))


def activation(x: Tensor, _: dict[str, Tensor], p: Parameters) -> Tensor:
    return ACTIVATIONS[p["activation"]](x)


def reshape(x: Tensor, _: dict[str, Tensor], p: Parameters) -> Tensor:
    extents = (p["height"], p["width"], p["channels"])
    return x.reshape(len(x), *(extent or -1 for extent in extents))


def embedding(x: Tensor, weights: dict[str, Tensor], _: Parameters) -> Tensor:
    tokens = x.reshape(len(x), -1).long()
    return functional.embedding(tokens, weights["table"]).unsqueeze(2)


def attention(x: Tensor, _: dict[str, Tensor], p: Parameters) -> Tensor:
    batch, height, width, channels = x.shape
    heads = x.reshape(batch, height * width, p["heads"], 3, -1).permute(3, 0, 2, 1, 4)
    query, key, value = heads
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    if p["causal"]:
        later = torch.ones(scores.shape[-2:]).triu(diagonal=1).bool()
        scores = scores.masked_fill(later, float("-inf"))
    y = torch.softmax(scores, dim=-1) @ value
    return y.permute(0, 2, 1, 3).reshape(batch, height, width, channels // 3)


ONE_INPUT = {
    "dense": dense,
    "convolution": convolution,
    "group_norm": group_norm,
    "layer_norm": layer_norm,
    "average_pool": average_pool,
    "max_pool": max_pool,
    "activation": activation,
    "reshape": reshape,
    "embedding": embedding,
    "attention": attention,
    "position_embedding": lambda x, weights, _: x + weights["table"],
}


def output(operation: dict[str, Any], inputs: list[Tensor], weights: dict[str, Tensor]) -> Tensor:
    p = operation["parameters"]
    if operation["kind"] == "add":
        return ACTIVATIONS[p["activation"]](sum(inputs[1:], inputs[0]))
    if operation["kind"] == "concatenate":
        return torch.cat(inputs, dim=-1)
    return ONE_INPUT[operation["kind"]](inputs[0], weights, p)


def loss_of(model: dict[str, Any], row: Tensor) -> Tensor:
    weights: dict[str, dict[str, Tensor]] = {}
    for block in model["blocks"]:
        name, _, role = block["name"].rpartition(".")
        length = int(torch.tensor(block["shape"]).prod())
        tensor = row[block["offset"] : block["offset"] + length].reshape(block["shape"])
        weights.setdefault(name, {})[role] = tensor
    features = torch.tensor(model["features"], dtype=torch.float32).double()
    samples = channels_last(features.reshape(model["batch"], *model["shape"]))
    outputs: list[Tensor] = []
    for operation in model["operations"]:
        inputs = [samples if k == -1 else outputs[k] for k in operation["inputs"]]
        outputs.append(output(operation, inputs, weights.get(operation["name"], {})))
    logits = outputs[-1].reshape(model["batch"], -1)
    if "targets" in model:
        targets = torch.tensor(model["targets"], dtype=torch.float32).double()
        return functional.mse_loss(logits.reshape(-1), targets) / 2
    return functional.cross_entropy(logits, torch.tensor(model["labels"]))


@pytest.fixture(scope="module")
def models() -> list[dict[str, Any]]:
    result = subprocess.run([PROGRAM, str(MODELS)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_losses_and_gradients_of_random_graphs(models: list[dict[str, Any]]) -> None:
    assert len(models) == MODELS
    kinds = {operation["kind"] for model in models for operation in model["operations"]}
    assert kinds == {*ONE_INPUT, "add", "concatenate"}
    assert sum("targets" in model for model in models) == MODELS // 4
    for model in models:
        row = torch.tensor(model["row"], dtype=torch.float64, requires_grad=True)
        loss = loss_of(model, row)
        loss.backward()
        gradient = torch.tensor(model["gradient"], dtype=torch.float64)
        error = torch.linalg.norm(row.grad - gradient) / torch.linalg.norm(row.grad)
        assert abs(loss.item() - model["loss"]) < 1e-10, model["seed"]
        assert error < 1e-10, (model["seed"], float(error))
