#!/usr/bin/env python3
"""Runs a grid of Gossamer runs, each in its own folder. An interrupted sweep can be continued.

    sweep.py CONFIG topology.kind=ring,torus,complete run.seed=0..2 -j 2

The sweep runs every cell that has no complete result of its present configuration. With --rates,
every condition is first run at each step size with the selection seeds, and --select chooses the
best step size. Only the best is run with the seeds of the grid, which are reported. If the
configuration holds out validation samples (data.validation), the choice is made on these.
With --variants, the grid has one more axis, whose values are named groups of settings: the tables
[variants.NAME] of a TOML file.
Exit status: 0; 1 if a run failed; 2 for an invalid command; 130 if interrupted.
"""

import argparse
import fcntl
import os
import platform
import shlex
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lab import cells as grid
from lab.axes import VARIANT, Axis, Variants, parse_axes, parse_axis, parse_rates, read_variants
from lab.binary import build_hash, find_binary, program_command
from lab.cells import Cell
from lab.runner import RunnerOptions, run_all
from lab.errors import LabError
from lab.launch import JobResult, LaunchConfig, check
from lab.measure import METRICS, final_value, parse_measure
from lab.results import CellResult, write_sweep
from lab.selection import SELECTION_SEEDS, Choice, choose, evaluating_cell, selecting_axes
from lab.topology import unseen_phases


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sweep.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", type=Path, help="the base configuration, a TOML file")
    parser.add_argument(
        "axes",
        nargs="*",
        metavar="section.key=VALUES",
        help="an axis of the grid: a,b,c or first..last",
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, help="number of runs in parallel (default 1)"
    )
    parser.add_argument(
        "--out", type=Path, help="folder of the sweep (default runs/<name of CONFIG>)"
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="one process per peer, connected by TCP on this machine",
    )
    parser.add_argument(
        "--rates", default="", help="the step sizes to select from, such as 0.02,0.05,0.1"
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
    parser.add_argument(
        "--again", action="store_true", help="run every cell again, even if it has a result"
    )
    return parser.parse_intermixed_args(argv)


def main(argv: list[str]) -> int:
    options = arguments(argv)
    try:
        return sweep(options, argv)
    except LabError as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sweep: interrupted; run the same command to continue", file=sys.stderr)
        return 130


def sweep(options: argparse.Namespace, argv: list[str]) -> int:
    if options.jobs < 1:
        raise LabError(f"-j {options.jobs}: the number of parallel runs must be at least 1")
    config = grid.read_config(options.config)
    axes = parse_axes(options.axes)
    rates = parse_rates(options.rates) if options.rates else ()
    options.select = list(dict.fromkeys(options.select or ["test_loss"]))
    for select in options.select:
        if parse_measure(select).curve not in METRICS:
            raise LabError(f"--select {select}: the cost of a whole run cannot select a step size")
    selection_seeds = parse_axis(f"{grid.SEED}={options.selection_seeds}").values
    variants = chosen_variants(options)
    if variants:
        axes.insert(0, Axis(VARIANT, tuple(variants)))
    out = options.out or Path("runs") / options.config.stem
    key = grid.rate_key(config)
    cells = grid.make_cells(axes, rates, out, variants, key)
    selecting = []
    if rates:
        others = selecting_axes(axes, selection_seeds, config)
        selecting = [
            evaluating_cell(cell, config)
            for cell in grid.make_cells(others, rates, out, variants, key, selects=True)
        ]
    launch_config = LaunchConfig(
        program_command(config), options.config, threads(config, axes, options)
    )
    reported = [cell for cell in cells if not rates or cell.rate == rates[0]]
    check_cells(launch_config, config, [*selecting, *reported], options.jobs)
    make_folder(out)
    metadata = describe(options, argv, axes, rates, selection_seeds if rates else ())
    with lock_file(out) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LabError(f"another sweep is running in {out}") from error
        job = SweepJob(options, launch_config, config, metadata, build_hash(options.config, config))
        return job.run(selecting, cells, out)


def chosen_variants(options: argparse.Namespace) -> Variants:
    if not options.variants:
        if options.only:
            raise LabError(f"--only {options.only[0]} needs --variants")
        return {}
    variants = read_variants(options.variants)
    for name in options.only or ():
        if name not in variants:
            raise LabError(
                f"--only {name}: {options.variants} has the variants {', '.join(variants)}"
            )
    return {
        name: settings
        for name, settings in variants.items()
        if not options.only or name in options.only
    }


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"--out {out}: cannot create the folder: {error.strerror}") from error


def lock_file(out: Path) -> TextIO:
    try:
        return (out / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise LabError(f"--out {out}: cannot write to the folder: {error.strerror}") from error


@dataclass(frozen=True)
class SweepJob:
    """Runs the cells that have no result: those that select step sizes, then those reported."""

    options: argparse.Namespace
    launch_config: LaunchConfig
    config: dict[str, Any]
    metadata: dict[str, Any]
    build: str

    def run(self, selecting: list[Cell], cells: list[Cell], out: Path) -> int:
        """Writes the results even if interrupted. Prints a summary and returns the exit status."""
        results: list[CellResult] = []
        choices: list[Choice] = []
        try:
            if selecting:
                self._run_cells(selecting, results, out)
                choices = self._choose(selecting, results)
                rates = {(tuple(c.condition.items()), c.rate) for c in choices}
                cells = [cell for cell in cells if (cell.condition(), cell.rate) in rates]
            self._run_cells(cells, results, out)
        finally:
            write_sweep(out, self.metadata, results, choices)
        return print_summary(results, choices, out)

    def _choose(self, selecting: list[Cell], results: list[CellResult]) -> list[Choice]:
        summaries = {r.cell.name: r.summary for r in results if r.summary}
        return [
            choice
            for select in self.options.select
            for choice in choose(selecting, summaries, tuple(self.metadata["rates"]), select)
        ]

    def _run_cells(self, cells: list[Cell], results: list[CellResult], out: Path) -> None:
        """Runs the cells without a result, and appends the results of all, even if interrupted."""
        options = self.options
        hashes = {
            cell.name: grid.configuration_hash(self.config, cell.overrides, options.processes)
            for cell in cells
        }
        pending = [
            cell
            for cell in cells
            if options.again or not grid.completed_status(cell, hashes[cell.name])
        ]
        report_existing(cells, pending, self.build, out)
        finished: dict[str, JobResult] = {}
        runner = RunnerOptions(
            self.launch_config, self.config, hashes, self.build, options.processes, options.jobs
        )
        try:
            run_all(runner, pending, finished)
        finally:
            results += [cell_result(cell, hashes[cell.name], finished) for cell in cells]


def threads(
    config: dict[str, Any], axes: list[Axis], options: argparse.Namespace
) -> dict[str, str]:
    """Divides the cores among parallel runs, unless the user sets local.threads.

    Results do not depend on the number of threads.
    """
    if "threads" in config.get("local", {}) or any(axis.key == "local.threads" for axis in axes):
        return {}
    cores = len(os.sched_getaffinity(0))
    return {"local.threads": "1" if options.processes else str(max(1, cores // options.jobs))}


def check_cells(
    launch_config: LaunchConfig, config: dict[str, Any], cells: list[Cell], jobs: int
) -> None:
    """Lets the program check every cell before the first run. Throws LabError with all faults."""

    def fault(cell: Cell) -> str:
        return check(launch_config, cell) or unseen_phases(
            grid.merge(config, cell.overrides), find_binary()
        )

    with ThreadPoolExecutor(jobs) as pool:
        faults = list(pool.map(fault, cells))
    bad: dict[str, list[str]] = {}
    for cell, fault in zip(cells, faults, strict=True):
        if fault:
            bad.setdefault(fault, []).append(cell.name)
    if bad:
        lines = [
            f"{fault}\n  (cell {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
            for fault, names in bad.items()
        ]
        raise LabError("\n".join(["the grid has invalid cells:", *lines]))


def report_existing(cells: list[Cell], pending: list[Cell], build: str, out: Path) -> None:
    names = {cell.name for cell in pending}
    kept = [cell for cell in cells if cell.name not in names]
    use = "to select step sizes " if cells and cells[0].selects else ""
    print(
        f"sweep: {len(cells)} run(s) {use}in {out}, {len(kept)} of them complete",
        file=sys.stderr,
        flush=True,
    )
    foreign = [
        cell
        for cell in kept
        if (grid.read_json(cell.folder / "cell.json") or {}).get("build") != build
    ]
    if foreign:
        print(
            f"sweep: note: {len(foreign)} of these are from another build of gossamer; "
            "--again repeats them",
            file=sys.stderr,
        )


def cell_result(cell: Cell, config_hash: str, finished: dict[str, JobResult]) -> CellResult:
    job = finished.get(cell.name)
    if job and job.status != "finished":
        return CellResult(cell, job.status, job.error)
    status = grid.completed_status(cell, config_hash)
    if status == "finished":
        return CellResult(cell, status, "", grid.read_json(cell.folder / "summary.json"))
    return CellResult(cell, status or "missing", "" if status else "not run to the end")


def print_summary(results: list[CellResult], choices: list[Choice], out: Path) -> int:
    """Prints problems and counts. Returns the exit status.

    A run that diverges is a failure, unless it serves to select a step size.
    """
    for choice in choices:
        metric = parse_measure(choice.measure).curve
        name = ", ".join(f"{key}={value}" for key, value in choice.condition.items()) or "the run"
        if choice.rate is None:
            finished = [
                r.summary
                for r in results
                if r.summary
                and dict(r.cell.condition()) == choice.condition
                and r.status == "finished"
            ]
            if finished and all(final_value(summary, metric) is None for summary in finished):
                reason = (
                    f"runs on these data have no {metric}: choose another metric with --select "
                    "(finished runs are not repeated)"
                )
            else:
                reason = "each one has a diverged, failed or missing run"
            print(f"sweep: {name}: no step size can be selected: {reason}", file=sys.stderr)
        elif choice.at_edge:
            print(
                f"sweep: {name}: the best step size {choice.rate} is at the edge of the grid; "
                "extend --rates",
                file=sys.stderr,
            )
    bad = [
        r
        for r in results
        if r.status in ("failed", "missing") or (r.status == "diverged" and not r.cell.selects)
    ]
    unselected = [choice for choice in choices if choice.rate is None]
    counts = {
        s: sum(r.status == s for r in results)
        for s in ("finished", "diverged", "failed", "missing")
    }
    print(
        "sweep: "
        + ", ".join(f"{n} {status}" for status, n in counts.items() if n)
        + f"; results in {out}",
        file=sys.stderr,
    )
    return 1 if bad or unselected else 0


def describe(
    options: argparse.Namespace,
    argv: list[str],
    axes: list[Axis],
    rates: tuple[str, ...],
    selection_seeds: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "command": shlex.join(["experiments/sweep.py", *argv]),
        "config": str(options.config),
        "config_text": options.config.read_text(encoding="utf-8"),
        "axes": {axis.key: list(axis.values) for axis in axes},
        "rates": list(rates),
        "select": options.select,
        "selection_seeds": list(selection_seeds),
        "processes": options.processes,
        "jobs": options.jobs,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
