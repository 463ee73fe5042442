"""Draws what the sites of docs/TUTORIAL.md learn, each alone and then together.

    .venv/bin/python experiments/tutorial.py --out docs/images/tutorial.png

It runs the programs of the page, as the page gives them, in a Python that has the package and
PyTorch: .venv-torch with the package of the release build, or $GOSSAMER_PYTHON.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from lab import style, tutorial_page

style.use_style()

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import ListedColormap  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SITES, LOW, HIGH = 3, 50, 150  # the part of the plane, in centimetres
# What a site says of each place, and the points that it has.
ENDING = f"""
across = torch.linspace({LOW}, {HIGH}, 240)
places = torch.stack(torch.meshgrid(across, across, indexing="xy"), 2).reshape(-1, 2)
with torch.no_grad():
    kinds = model(scales(places)).argmax(1).reshape(240, 240)
import numpy
right = right.float().mean()
numpy.savez(f"site-{{site}}.npz", kinds=kinds, points=inputs, of=targets, right=right)
"""


def results(folder: Path, program: str) -> list[dict[str, np.ndarray]]:
    """Of the three sites, which run at the same time."""
    (folder / "train.py").write_text(program + ENDING, encoding="utf-8")
    own = ROOT / ".venv-torch" / "bin" / "python"
    python = os.environ.get("GOSSAMER_PYTHON") or str(own)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if python == str(own):
        environment["PYTHONPATH"] = str(ROOT / "build" / "release" / "python")
    started = [
        subprocess.Popen(
            [python, "train.py"], cwd=folder, env=environment | {"GOSSAMER_ID": str(site)}
        )
        for site in range(SITES)
    ]
    if any(each.wait() != 0 for each in started):
        raise SystemExit("tutorial.py: a site has failed")
    return [dict(np.load(folder / f"site-{site}.npz")) for site in range(SITES)]


def draw(alone: list[dict[str, np.ndarray]], together: dict[str, np.ndarray], out: Path) -> None:
    colours = style.COLOURS[:SITES]
    figure, axes = plt.subplots(1, 4, figsize=(style.WIDTH_INCHES, 2.15), layout="constrained")
    titles = [f"site {site} alone" for site in range(SITES)] + ["all three, as peers"]
    for axis, title, found in zip(axes, titles, [*alone, together], strict=True):
        axis.imshow(
            found["kinds"],
            cmap=ListedColormap(colours),
            vmin=0,
            vmax=2,
            alpha=0.28,
            origin="lower",
            extent=(LOW, HIGH, LOW, HIGH),
        )
        every = [found] if found is not together else alone
        for points in every:
            shown = slice(0, 600 // len(every))
            axis.scatter(
                *points["points"][shown].T,
                s=1.2,
                c=[colours[kind] for kind in points["of"][shown]],
                linewidths=0,
            )
        axis.set_title(f"{title}: {float(found['right']):.0%}", fontsize=8.5)
        axis.set(xlim=(LOW, HIGH), ylim=(LOW, HIGH), xticks=[], yticks=[], aspect="equal")
        axis.grid(False)
        axis.spines[:].set_visible(False)
    figure.savefig(out, dpi=style.PNG_DPI)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone = results(Path(folder), tutorial_page.program())
        (Path(folder) / "run.toml").write_text(tutorial_page.blocks(2, "toml")[0], encoding="utf-8")
        together = results(Path(folder), tutorial_page.program(2, 4))
    draw(alone, together[0], options.out)


if __name__ == "__main__":
    main()
