"""The command line of experiments/sweep.py."""

import argparse
from pathlib import Path

from lab.measure import METRICS
from lab.selection import SELECTION_SEEDS


def arguments(argv: list[str], description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sweep.py", description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", type=Path, help="the base configuration, a TOML file")
    parser.add_argument(
        "axes",
        nargs="*",
        metavar="section.key=VALUES",
        help="an axis of the grid: a,b,c or first..last",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="section.key=value",
        help="a setting of all runs of the sweep; may be repeated",
    )
    parser.add_argument("-j", "--jobs", type=int, help="number of runs in parallel (default 1)")
    parser.add_argument(
        "--on",
        metavar="WHERE",
        help="where the runs are: `dask` starts workers of Dask here, `dask:ADDRESS` or\n"
        "`dask:FILE.json` uses those of a scheduler, and slurm, pbs, sge, lsf, … start\n"
        "them with dask-jobqueue; -j is the number of workers that are started\n"
        "(default: processes of this machine)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the sweep (default runs/<name of CONFIG>, of a shard\n"
        "runs/<name of CONFIG>-2-of-8)",
    )
    parser.add_argument(
        "--shard",
        metavar="K/N",
        help="run only the K-th of N disjoint parts of the cells. With --rates, one part\n"
        "has all runs of a condition. All machines need the same program",
    )
    parser.add_argument(
        "--skip-impossible",
        action="store_true",
        help="leave out and list the cells that the program refuses, such as those of a\n"
        "topology that does not exist for their number of peers",
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="one process per peer, connected by TCP on this machine",
    )
    parser.add_argument(
        "--variants",
        type=Path,
        help="a TOML file with named groups of settings, one more axis",
    )
    parser.add_argument(
        "--only", action="append", help="with --variants: use only this group; may be repeated"
    )
    parser.add_argument(
        "--keep-parameters",
        action="store_true",
        help="keep the final parameters of the runs, nearly all of their size",
    )
    parser.add_argument(
        "--again", action="store_true", help="run every cell again, even if it has a result"
    )
    add_selection_options(parser)
    return parser.parse_intermixed_args(argv)


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rates", default="", help="the step sizes to select from, such as 0.02,0.05,0.1"
    )
    parser.add_argument(
        "--selection-seeds",
        default=SELECTION_SEEDS,
        metavar="SEEDS",
        help="with --rates: the seeds that select step sizes; none of them is reported\n"
        f"(default {SELECTION_SEEDS})",
    )
    parser.add_argument(
        "--select",
        action="append",
        metavar="MEASURE",
        help="the measure that selects the step size, averaged over peers and seeds: the final\n"
        f"value of {', '.join(list(METRICS)[:4])},\n"
        f"{', '.join(list(METRICS)[4:])};\n"
        "or 'rounds until test_accuracy 0.9', also with bytes_sent, seconds or epsilon\n"
        "(default test_loss); if repeated, a step size is selected for each measure",
    )
