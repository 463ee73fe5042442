"""A GPT: the decoder of a transformer, with the norms before the layers (Radford et al. 2019)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


class Size(NamedTuple):
    layers: int
    heads: int
    width: int

    def __str__(self) -> str:
        return f"{self.layers} layers of width {self.width}"


SIZES = {
    "0.1M": Size(2, 2, 64),
    "0.8M": Size(4, 4, 128),
    "10M": Size(6, 6, 384),
    "25M": Size(8, 8, 512),
    "gpt2": Size(12, 12, 768),
}


class Attention(nn.Module):
    """Causal self-attention: softmax(q kᵀ / √d) v, for each head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.query_key_value = nn.Linear(size.width, 3 * size.width)
        self.output = nn.Linear(size.width, size.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length, width = x.shape[-2:]
        q, k, v = (
            part.unflatten(-1, (self.heads, width // self.heads)).transpose(-2, -3)
            for part in self.query_key_value(x).chunk(3, dim=-1)
        )
        if hasattr(F, "scaled_dot_product_attention"):  # from torch 2.0 on
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        found: torch.Tensor = self.output(mixed.transpose(-2, -3).flatten(-2))
        return found


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention = Attention(size)
        self.mlp_norm = nn.LayerNorm(size.width)
        self.mlp = nn.Sequential(
            nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Linear(4 * size.width, size.width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class GPT(nn.Module):
    """Logits of the next symbol at each position. The embedding is the output layer too."""

    def __init__(self, size: Size, vocabulary: int, block: int) -> None:
        super().__init__()
        self.block = block
        self.embedding = nn.Embedding(vocabulary, size.width)
        self.position = nn.Embedding(block, size.width)
        self.blocks = nn.Sequential(*(Block(size) for _ in range(size.layers)))
        self.norm = nn.LayerNorm(size.width)
        self.apply(initialise)
        for name, parameter in self.named_parameters():  # the layers that write to the sum
            if name.endswith(("output.weight", "mlp.2.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * size.layers))

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        places = torch.arange(symbols.shape[-1], device=symbols.device)
        x = self.blocks(self.embedding(symbols) + self.position(places))
        return F.linear(self.norm(x), self.embedding.weight)


def initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


@torch.no_grad()
def generate(model: GPT, start: list[int], count: int, seed: int = 0) -> list[int]:
    """`count` symbols after `start`, drawn from the model's distribution."""
    generator = torch.Generator().manual_seed(seed)
    symbols = list(start)
    model.eval()
    for _ in range(count):
        device = model.embedding.weight.device
        window = torch.tensor([symbols[-model.block :]], device=device)
        probabilities = model(window)[0, -1].softmax(-1).cpu()
        symbols.append(int(torch.multinomial(probabilities, 1, generator=generator)))
    return symbols
