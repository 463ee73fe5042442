"""Draws what `gossamer leak` read off the messages of a run, beside the samples themselves.

    gossamer leak experiments/leak.toml --out runs/leak
    .venv/bin/python experiments/leak.py runs/leak/leak --out leak.png

A column is a peer that the first group of observers attacked, in the order of its distance from
them. The sample is the one of the peer's batch that was read off best.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from lab import style

style.use_style()

import matplotlib.pyplot as plt  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

MOST_COLUMNS = 10


def columns(leak: dict) -> list[tuple[int, dict]]:
    """Numbers of the shown samples of the first group, with the outcome for their peer."""
    first = leak["groups"][0]
    outcomes = {peer["peer"]: peer for peer in first["peers"]}
    shown = [
        (number, outcomes[sample["peer"]] | {"psnr": sample["psnr"]})
        for number, sample in enumerate(leak["shown"])
        if sample["observers"] == first["observers"]
    ]
    return sorted(shown, key=lambda one: (one[1]["distance"], one[1]["peer"]))[:MOST_COLUMNS]


def picture(sample: np.ndarray) -> np.ndarray:
    """[height, width] of one channel, or [height, width, 3]."""
    return sample[0] if sample.shape[0] != 3 else sample.transpose(1, 2, 0)


def draw(leak: dict, tensors: dict[str, np.ndarray], out: Path) -> None:
    shown = columns(leak)
    original, recovered = tensors["original"], tensors["recovered"]
    lowest, highest = float(original.min()), float(original.max())
    figure, axes = plt.subplots(
        2, len(shown), figsize=(max(3.0, 0.72 * len(shown) + 0.9), 2.35), squeeze=False
    )
    for column, (number, outcome) in enumerate(shown):
        for row, images in enumerate((original, recovered)):
            here = axes[row][column]
            image = (picture(images[number]) - lowest) / (highest - lowest)
            here.imshow(image.clip(0, 1), cmap="gray_r", vmin=0, vmax=1)
            here.set_xticks([])
            here.set_yticks([])
            here.grid(False)
            for spine in here.spines.values():
                spine.set_visible(True)
                spine.set_color("#BBBBBB")
        hops = outcome["distance"]
        axes[0][column].set_title(
            f"peer {outcome['peer']}\n{hops} hop{'s' if hops != 1 else ''}",
            fontsize=8,
            loc="center",
        )
        axes[1][column].set_xlabel(f"{outcome['psnr']:.0f} dB", fontsize=8)
    axes[0][0].set_ylabel("sample", fontsize=8.5)
    axes[1][0].set_ylabel("read off", fontsize=8.5)
    figure.tight_layout(pad=0.4, w_pad=0.3, h_pad=0.3)
    figure.savefig(out, dpi=style.PNG_DPI)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with leak.json and samples.safetensors")
    parser.add_argument("--out", type=Path, help="the picture; default: leak.png in the folder")
    options = parser.parse_args()
    try:
        leak = json.loads((options.folder / "leak.json").read_text())
        tensors = load_file(options.folder / "samples.safetensors")
    except (OSError, ValueError) as error:
        sys.exit(
            f"leak.py: {options.folder}: {error}; gossamer leak writes leak.json there, and"
            " samples.safetensors if samples were read off"
        )
    if not columns(leak):
        sys.exit("leak.py: no sample was read off for the first group of observers")
    out = options.out or options.folder / "leak.png"
    if not out.parent.is_dir():
        sys.exit(f"leak.py: --out {out}: the folder {out.parent} does not exist")
    draw(leak, tensors, out)


if __name__ == "__main__":
    main()
