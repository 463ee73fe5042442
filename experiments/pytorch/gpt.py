#!/usr/bin/env python3
"""A GPT on the characters or bytes of a text, trained by peers on a ring.

  python3 gpt.py                              simulates 8 peers on the text of data/text
  python3 gpt.py --text book.txt --size 10M --device cuda
  for i in 0 1; do python3 gpt.py --peers 2 --peer $i --meet meet --out run & done; wait
  python3 -m gossamer run gpt.toml            the same task, with the program's command line

PYTHONPATH has the package, for example build/release/python. The last tenth of the text is for
tests, the end of the rest for validation (data.validation), and each peer has a part of what is
left, or draws from all of it. The run ends with text that the model has written.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import gossamer.torch as gossip
import torch
from gpt_model import SIZES, GPT, generate
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
import example  # noqa: E402

TEXT = Path(__file__).resolve().parents[2] / "data" / "text" / "genesis-exodus.txt.gz"
TEST_BLOCKS = 32  # of the text for tests or for validation, evenly spaced
PRETRAINING_RATE = 3e-3
IN_THE_RUN_ID = (
    *("level", "size", "vocabulary", "block", "batch"),
    *("rate", "steps", "alike", "pretrained"),
)


def bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


class Text:
    """A text as numbers, and back. Files whose names end with .gz are unpacked."""

    def __init__(self, paths: list[Path], level: str) -> None:
        data = b"\n".join(bytes_of(path) for path in paths)
        if level == "byte":
            self.symbols: list[str] = [chr(byte) for byte in range(256)]
            self.values = torch.tensor(list(data), dtype=torch.uint8)
        else:
            text = data.decode("utf-8", errors="replace")
            self.symbols = sorted(set(text))
            number = {symbol: index for index, symbol in enumerate(self.symbols)}
            self.values = torch.tensor([number[symbol] for symbol in text], dtype=torch.int32)
        self._bytes = level == "byte"
        self.name = f"{len(data)}-{zlib.crc32(data):08x}"  # tells texts apart, wherever files are

    def decode(self, values: list[int]) -> str:
        if self._bytes:
            return bytes(values).decode("utf-8", errors="replace")
        return "".join(self.symbols[value] for value in values)


class Blocks:
    """Blocks of a text, with the next symbol of each position as its target."""

    def __init__(self, values: torch.Tensor, length: int, device: str) -> None:
        if len(values) < length + 2:
            raise SystemExit(
                f"a part of the text has {len(values)} symbols, and a block {length}: use a longer "
                "text, fewer --peers, or a shorter --block"
            )
        self.values, self.length, self.device = values, length, device

    def at(self, begins: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        places = begins[:, None] + torch.arange(self.length + 1)
        block = self.values[places].long().to(self.device)
        return block[:, :-1], block[:, 1:]

    def random(self, size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        last = len(self.values) - self.length
        return self.at(torch.randint(last, (size,), generator=generator))

    def spaced(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        last = len(self.values) - self.length - 1
        return self.at(torch.linspace(0, last, count).long())


class Cosine(torch.optim.AdamW):
    """AdamW with a step size that grows in the first twentieth of the steps and falls to 0.

    The step size follows the half wave of a cosine, from the largest one, lr, on.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], steps: int, **options: Any) -> None:
        super().__init__(parameters, **options)
        self._steps, self._largest = steps, self.defaults["lr"]

    def step(self, closure: Any = None) -> Any:
        done = max((int(state["step"]) for state in self.state.values()), default=0)
        warmup = max(1, self._steps // 20)
        left = min(1.0, max(0, done - warmup) / max(1, self._steps - warmup))
        share = min((done + 1) / warmup, (1 + math.cos(math.pi * left)) / 2)
        for group in self.param_groups:
            group["lr"] = self._largest * share
        return super().step(closure)


def loss_of(module: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    inputs, targets = batch
    outputs = module(inputs)
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def pretrain(module: nn.Module, blocks: Blocks, options: argparse.Namespace) -> None:
    """Trains a model before the run, as one process would, with the blocks of all peers."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=PRETRAINING_RATE, betas=(0.9, 0.99))
    for step in range(options.pretrained):
        seed = zlib.crc32(f"{options.seed} before {step}".encode())
        optimizer.zero_grad()
        loss_of(module, blocks.random(options.batch * options.peers, seed)).backward()
        optimizer.step()


def task_of(options: argparse.Namespace, text: Text) -> tuple[gossip.Task, dict[int, GPT]]:
    """The task, and the models of the peers of this process."""
    size = len(text.values) * 9 // 10
    held_out = round(size * options.validation)
    train, validation, test = text.values.tensor_split([size - held_out, size])
    parts = [train] * options.peers if options.alike else train.tensor_split(options.peers)
    own = [Blocks(part, options.block, options.device) for part in parts]
    vocabulary = max(options.vocabulary, len(text.symbols))
    models: dict[int, GPT] = {}
    start: dict[str, torch.Tensor] = {}  # of a pre-trained model, the same for every peer

    def model(peer: int) -> nn.Module:
        torch.manual_seed(options.seed)
        models[peer] = GPT(SIZES[options.size], vocabulary, options.block).to(options.device)
        if options.pretrained > 0:
            if not start:
                pretrain(models[peer], Blocks(train, options.block, options.device), options)
                start.update(copy.deepcopy(models[peer].state_dict()))
            models[peer].load_state_dict(start)
        return models[peer]

    def batch(peer: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        # torch's generator takes the lower 32 bits of a seed only.
        seed = zlib.crc32(f"{options.seed} {peer} {step}".encode())
        return own[peer].random(options.batch, seed)

    def evaluation(values: torch.Tensor) -> Callable[[nn.Module], tuple[float, float]]:
        inputs, targets = Blocks(values, options.block, options.device).spaced(TEST_BLOCKS)

        def evaluate(module: nn.Module) -> tuple[float, float]:
            outputs = module(inputs)
            loss = nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
            return float(loss), float((outputs.argmax(-1) == targets).float().mean())

        return evaluate

    def optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        if options.steps > 0:
            return Cosine(parameters, options.steps, lr=options.rate, betas=(0.9, 0.99))
        return torch.optim.AdamW(parameters, lr=options.rate, betas=(0.9, 0.99))

    validate = evaluation(validation) if held_out > 0 else None
    return gossip.Task(
        model, optimizer, batch, loss_of, evaluation(test), validate=validate
    ), models


def task(
    config: Mapping[str, Mapping[str, Any]],
    *,
    text: str = "",
    level: str = "char",
    size: str = "0.1M",
    vocabulary: int = 0,
    block: int = 32,
    batch: int = 8,
    rate: float = 3e-3,
    steps: int = 0,
    alike: bool = False,
    pretrained: int = 0,
    device: str = "cpu",
) -> gossip.Task:
    """The task of gpt.toml. [model] sets these parameters; they are the options of this script."""
    torch.set_num_threads(1)
    given = {key: value for key, value in locals().items() if key not in ("config", "text")}
    run = config["run"]
    held_out = config["data"]["validation"]
    options = argparse.Namespace(peers=run["peers"], seed=run["seed"], validation=held_out, **given)
    return task_of(options, Text([Path(text) if text else TEXT], level))[0]


def main() -> None:
    config = Path(__file__).with_name("external.toml")
    parser = example.parser(__doc__, config, peers=8, rounds=80)
    add = parser.add_argument
    add("--text", type=Path, nargs="+", metavar="FILE", help=f"(default: {TEXT.name})")
    add("--level", choices=["char", "byte"], default="char", help="what a symbol is (char)")
    sizes = ", ".join(f"{name}: {size}" for name, size in SIZES.items())
    add("--size", choices=list(SIZES), default="0.1M", help=f"of the model: {sizes} (0.1M)")
    add(
        "--vocabulary",
        type=int,
        default=0,
        metavar="N",
        help="rows of the embedding, if more than the text has symbols; with 50257, that of "
        "GPT-2, --size gpt2 has 124 M parameters",
    )
    add("--block", type=int, default=32, metavar="N", help="symbols in a block (32)")
    add("--batch", type=int, default=8, metavar="N", help="blocks in a batch (8)")
    add("--rate", type=float, default=3e-3, metavar="R", help="of AdamW (0.003)")
    add("--steps", type=int, default=0, metavar="N", help="of a cosine schedule; 0: none (0)")
    add("--alike", action="store_true", help="every peer draws its blocks from all of the text")
    add(
        "--pretrained",
        type=int,
        default=0,
        metavar="N",
        help="steps that the model has been trained before peers start, with the blocks of all (0)",
    )
    add("--seed", type=int, default=0, metavar="N", help="of the model and the batches (0)")
    add("--sample", type=int, default=200, metavar="N", help="symbols to write at the end (200)")
    add("--device", default="cpu", help="of torch, such as cuda (cpu)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.validation = 0.0
    options.set[:0] = [f"log.every={max(1, options.rounds // 5)}", f"run.seed={options.seed}"]
    text = Text(options.text or [TEXT], options.level)
    task, models = task_of(options, text)
    parameters = sum(parameter.numel() for parameter in models[0].parameters())
    print(f"{len(text.values):,} symbols, {len(text.symbols)} different; {parameters:,} parameters")
    chosen = {key: getattr(options, key) for key in IN_THE_RUN_ID}
    if options.peer is None:  # each process of a network has its own
        chosen["device"] = options.device
    example.train(task, options, text=text.name, **chosen)
    model = models[options.peer or 0]
    print(text.decode(generate(model, text.values[:1].tolist(), options.sample)))


if __name__ == "__main__":
    main()
