#!/usr/bin/env python3
"""Runs a grid of Gossamer runs, each in its own folder. An interrupted sweep can be continued.

    sweep.py CONFIG topology.kind=ring,torus,complete run.seed=0..2 -j 2

The sweep runs every cell that has no complete result of its present configuration, and of the
present content of the files that it names (data, graphs, models, tasks in Python). With --rates,
every condition is first run at each step size with the selection seeds, and --select chooses the
best step size. Only the best is run with the seeds of the grid, which are reported. If the
configuration holds out validation samples (data.validation), the choice is made on these.
With --variants, the grid has one more axis, whose values are named groups of settings: the tables
[variants.NAME] of a TOML file. A setting that names a file means the one beside the variants, if it
is there.

With --shard, several machines share a sweep. Copy the folders of all shards into one, and give the
same command without --shard for this folder. It runs what is missing and writes the results of all:

    sweep.py CONFIG AXES --shard 1/2        # on one machine, into runs/NAME-1-of-2
    sweep.py CONFIG AXES --shard 2/2        # on another, into runs/NAME-2-of-2
    mkdir -p runs/NAME && cp -r runs/NAME-*-of-2/. runs/NAME
    sweep.py CONFIG AXES                    # into runs/NAME

With --on, the runs are on workers of Dask, which may be jobs of a batch system such as Slurm. All
workers must see the folder of the sweep, the configuration and the program at the same paths.

Exit status: 0; 1 if a run failed; 2 for an invalid command; 130 if interrupted.
"""

import argparse
import fcntl
import os
import platform
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lab import cells as grid
from lab.axes import (
    VARIANT,
    Axis,
    Variants,
    parse_axes,
    parse_axis,
    parse_constants,
    parse_rates,
    read_variants,
)
from lab.binary import build_hash, program_command
from lab.cells import Cell
from lab.runner import RunnerOptions, run_all
from lab.errors import LabError
from lab.inputs import InputFiles
from lab.grid_check import Faults, check_cells, fault_lines
from lab.launch import JobResult, LaunchConfig
from lab.measure import METRICS, parse_measure
from lab.results import CellResult, write_sweep
from lab.selection import Choice, choose, evaluating_cell, selecting_axes
from lab.shards import Shard, parse_shard
from lab.sweep_arguments import arguments
from lab.sweep_curves import write_curves
from lab.sweep_summary import print_summary


def main(argv: list[str]) -> int:
    options = arguments(argv, __doc__)
    try:
        return sweep(options, argv)
    except LabError as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sweep: interrupted; run the same command to continue", file=sys.stderr)
        return 130


def sweep(options: argparse.Namespace, argv: list[str]) -> int:
    with runs_where(options) as run_cells:
        return sweep_with(run_cells, options, argv)


RunCells = Callable[[RunnerOptions, list[Cell], dict[str, JobResult]], None]


@contextmanager
def runs_where(options: argparse.Namespace) -> Iterator[RunCells]:
    """What runs the cells: processes of this machine, or workers of Dask."""
    given_scheduler = (options.on or "").startswith("dask:")
    if options.jobs is not None and given_scheduler:
        raise LabError(f"-j {options.jobs}: --on {options.on} uses the workers that are there")
    options.jobs = 1 if options.jobs is None else options.jobs
    if options.jobs < 1:
        raise LabError(f"-j {options.jobs}: the number of parallel runs must be at least 1")
    if not options.on:
        yield run_all
        return
    from lab.on_dask import DaskWorkers

    with DaskWorkers(options.on, options.jobs) as workers:
        yield workers.run_all


def sweep_with(run_cells: RunCells, options: argparse.Namespace, argv: list[str]) -> int:
    shard = parse_shard(options.shard) if options.shard else None
    out = options.out or Path("runs") / default_name(options.config.stem, shard)
    constants = parse_constants(options.set)
    config = grid.merge(grid.read_config(options.config), constants)
    grid_axes = read_axes(options)
    selecting, cells = make_grid(grid_axes, out, config)
    grid.check_constants(constants, [*selecting, *cells])
    launch_config = LaunchConfig(
        program_command(config),
        options.config,
        {**constants, **threads(config, grid_axes.axes, options)},
        options.keep_parameters,
    )
    rates = grid_axes.rates
    reported = [cell for cell in cells if not rates or cell.rate == rates[0]]
    impossible = check_cells(
        launch_config, config, [*selecting, *reported], options.jobs, options.skip_impossible
    )
    report_impossible(impossible)
    selecting, cells = without(impossible, selecting, cells)
    if shard:
        cells, selecting = shard.part(cells, selecting)
    make_folder(out)
    metadata = describe(options, argv, grid_axes, constants, impossible)
    with lock_file(out) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LabError(f"another sweep is running in {out}") from error
        build = build_hash()
        inputs = InputFiles(options.config, constants)
        job = SweepJob(run_cells, options, launch_config, config, metadata, build, inputs)
        return job.run(selecting, cells, out)


@dataclass(frozen=True)
class GridAxes:
    """The grid as the command line gives it."""

    axes: list[Axis]
    rates: tuple[str, ...]
    selection_seeds: tuple[str, ...]
    variants: Variants


def read_axes(options: argparse.Namespace) -> GridAxes:
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
    return GridAxes(axes, rates, selection_seeds, variants)


def make_grid(
    grid_axes: GridAxes, out: Path, config: dict[str, Any]
) -> tuple[list[Cell], list[Cell]]:
    """The cells that select step sizes, and the cells that are reported."""
    axes, rates, variants = grid_axes.axes, grid_axes.rates, grid_axes.variants
    key = grid.rate_key(config)
    cells = grid.make_cells(axes, rates, out, variants, key)
    if not rates:
        return [], cells
    others = selecting_axes(axes, grid_axes.selection_seeds, config)
    selecting = grid.make_cells(others, rates, out, variants, key, selects=True)
    return [evaluating_cell(cell, config) for cell in selecting], cells


def default_name(stem: str, shard: Shard | None) -> str:
    return f"{stem}-{shard.index}-of-{shard.count}" if shard else stem


def without(
    impossible: Faults, selecting: list[Cell], cells: list[Cell]
) -> tuple[list[Cell], list[Cell]]:
    """The possible cells. Of the reported cells of a grid point, one step size was checked."""
    names = {name for cells_of_fault in impossible.values() for name in cells_of_fault}
    points = [cell.labels for cell in cells if cell.name in names]
    return (
        [cell for cell in selecting if cell.name not in names],
        [cell for cell in cells if cell.labels not in points],
    )


def report_impossible(impossible: Faults) -> None:
    if impossible:
        count = sum(len(names) for names in impossible.values())
        print(f"sweep: {count} impossible cell(s) left out:", file=sys.stderr)
        print("\n".join(fault_lines(impossible)), file=sys.stderr)


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

    run_cells: RunCells
    options: argparse.Namespace
    launch_config: LaunchConfig
    config: dict[str, Any]
    metadata: dict[str, Any]
    build: str
    inputs: InputFiles

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
        write_curves(out, results, choices)
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
        hashes = {cell.name: self._hash(cell) for cell in cells}
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
            self.run_cells(runner, pending, finished)
        finally:
            results += [cell_result(cell, hashes[cell.name], finished) for cell in cells]

    def _hash(self, cell: Cell) -> str:
        inputs = self.inputs.digests(grid.merge(self.config, cell.overrides), cell.overrides)
        return grid.configuration_hash(self.config, cell.overrides, self.options.processes, inputs)


def threads(
    config: dict[str, Any], axes: list[Axis], options: argparse.Namespace
) -> dict[str, str]:
    """Divides the cores among parallel runs, unless the user sets local.threads.

    Results do not depend on the number of threads. A thread of a worker elsewhere has one core.
    """
    if "threads" in config.get("local", {}) or any(axis.key == "local.threads" for axis in axes):
        return {}
    cores = len(os.sched_getaffinity(0))
    one = options.processes or options.on not in (None, "dask")
    return {"local.threads": "1" if one else str(max(1, cores // options.jobs))}


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


def describe(
    options: argparse.Namespace,
    argv: list[str],
    grid_axes: GridAxes,
    constants: dict[str, str],
    impossible: Faults,
) -> dict[str, Any]:
    return {
        "command": shlex.join(["experiments/sweep.py", *argv]),
        "config": str(options.config),
        "config_text": options.config.read_text(encoding="utf-8"),
        "set": constants,
        "axes": {axis.key: list(axis.values) for axis in grid_axes.axes},
        "rates": list(grid_axes.rates),
        "select": options.select,
        "selection_seeds": list(grid_axes.selection_seeds) if grid_axes.rates else [],
        "impossible": impossible,
        "shard": options.shard,
        "processes": options.processes,
        "jobs": options.jobs,
        "on": options.on,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
