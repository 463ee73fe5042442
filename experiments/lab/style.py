"""The style of all figures.

The colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish, followed
by the muted colours of Tol (2021). Line styles and markers distinguish series in black and white.
"""

import matplotlib

matplotlib.use("Agg")

from cycler import cycler  # noqa: E402
from matplotlib import rcParams  # noqa: E402

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C7A00",
    "#332288",
    "#882255",
    "#44AA99",
    "#999933",
    "#AA4499",
    "#117733",
    "#DDCC77",
    "#888888",
)
LINES = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Predicted curves, drawn over measured ones of any colour.
PREDICTED = {
    "color": "#111111",
    "linestyle": (0, (2.4, 1.8)),
    "linewidth": 0.9,
}
WIDTH_INCHES = 7.2  # the text width of a page
PNG_DPI = 220
INK = "#222222"


def use_style() -> None:
    rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.labelsize": 9,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "legend.fontsize": 9,
            "figure.titlesize": 11,
            "figure.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.grid": True,
            "grid.color": "#DDDDDD",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 1.7,
            "lines.markersize": 4.5,
            "legend.frameon": False,
            "legend.handlelength": 3.2,
            "figure.dpi": 110,
            "savefig.facecolor": "white",
            "svg.fonttype": "path",
            "svg.hashsalt": "gossamer",
            "axes.prop_cycle": cycler(color=COLOURS),
        }
    )


def series_style(index: int) -> dict[str, object]:
    """The style of series number `index` of a figure. The first 64 differ in colour or marker.

    There are fewer markers than colours: in each round through the markers, markers and lines are
    shifted by one.
    """
    shift, position = divmod(index, len(MARKERS))
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": LINES[(position + shift) % len(LINES)],
        "marker": MARKERS[(position + shift) % len(MARKERS)],
    }
