#!/usr/bin/env python3
"""Runs a grid of Gossamer runs, each in a folder of its own, and goes on where it was stopped.

    sweep.py CONFIG topology.kind=ring,torus,complete run.seed=0..2 -j 2

A run counts only when its summary.json is whole, says `finished`, and was made from this very configuration. With
--rates, every cell is run at each step size and the best one, by --select over the seeds, is the cell's result. With
--variants, the grid has one more axis: named groups of settings, tables [variants.NAME] of a TOML file.
Exit status: 0; 1 when a run failed; 2 for a bad command; 130 when interrupted.
"""

import argparse
import fcntl
import os
import platform
import shlex
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from lab import cells as grid
from lab.axes import VARIANT, Axis, Variants, parse_axes, parse_rates, read_variants
from lab.binary import build_hash, find_binary
from lab.cells import Cell
from lab.runner import Plan, run_all
from lab.errors import LabError
from lab.launch import Outcome, Recipe, check
from lab.measure import METRICS, final_value, parse_measure
from lab.results import Result, write_sweep
from lab.selection import Choice, choose


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sweep.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", type=Path, help="the run that the grid varies, a TOML file")
    parser.add_argument(
        "axes", nargs="*", metavar="section.key=VALUES", help="an axis: a,b,c or first..last"
    )
    parser.add_argument("-j", "--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument(
        "--out", type=Path, help="folder of the sweep (default runs/<name of CONFIG>)"
    )
    parser.add_argument(
        "--processes", action="store_true", help="one process per peer, over TCP on this machine"
    )
    parser.add_argument(
        "--rates", default="", help="step sizes to select from, per cell: 0.02,0.05,0.1"
    )
    parser.add_argument(
        "--variants",
        type=Path,
        help="a TOML file with named groups of settings, an axis of its own",
    )
    parser.add_argument(
        "--only", action="append", help="with --variants: take this one; may be repeated"
    )
    parser.add_argument(
        "--select",
        default="test_loss",
        metavar="MEASURE",
        help="what selects the step size, averaged over peers and seeds: the final value of\n"
        f"{', '.join(METRICS)};\n"
        "or 'rounds until test_accuracy 0.9', also bytes_sent, seconds (default test_loss)",
    )
    parser.add_argument(
        "--again", action="store_true", help="run every cell again, finished or not"
    )
    return parser.parse_intermixed_args(words)


def main(words: list[str]) -> int:
    options = arguments(words)
    try:
        return sweep(options, words)
    except LabError as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sweep: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def sweep(options: argparse.Namespace, words: list[str]) -> int:
    if options.jobs < 1:
        raise LabError(f"-j {options.jobs}: at least one run at a time")
    config = grid.read_config(options.config)
    axes = parse_axes(options.axes)
    rates = parse_rates(options.rates) if options.rates else ()
    if parse_measure(options.select).curve not in METRICS:
        raise LabError(
            f"--select {options.select}: what was spent in all says nothing of a step size"
        )
    variants = chosen_variants(options)
    if variants:
        axes.insert(0, Axis(VARIANT, tuple(variants)))
    out = options.out or Path("runs") / options.config.stem
    cells = grid.make_cells(axes, rates, out, variants)
    recipe = Recipe(find_binary(), options.config, threads(config, axes, options))
    refuse_bad_cells(recipe, cells, options.jobs)
    make_folder(out)
    about = describe(options, words, axes, rates)
    with lock_file(out) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LabError(f"another sweep is at work in {out}") from error
        return carry_out(options, recipe, config, cells, about)


def chosen_variants(options: argparse.Namespace) -> Variants:
    if not options.variants:
        if options.only:
            raise LabError(f"--only {options.only[0]}: there are no --variants to take it from")
        return {}
    variants = read_variants(options.variants)
    for name in options.only or ():
        if name not in variants:
            raise LabError(f"--only {name}: {options.variants} has {', '.join(variants)}")
    return {
        name: settings
        for name, settings in variants.items()
        if not options.only or name in options.only
    }


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(
            f"--out {out}: no folder of a sweep can be made there: {error.strerror}"
        ) from error


def lock_file(out: Path) -> TextIO:
    try:
        return (out / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise LabError(f"--out {out}: nothing can be written there: {error.strerror}") from error


def carry_out(
    options: argparse.Namespace,
    recipe: Recipe,
    config: dict[str, Any],
    cells: list[Cell],
    about: dict[str, Any],
) -> int:
    """Runs what is not yet settled, writes the results, whatever happens, and says how it went."""
    out = cells[0].folder.parent
    hashes = {
        cell.name: grid.configuration_hash(config, cell.overrides, options.processes)
        for cell in cells
    }
    todo = [cell for cell in cells if options.again or not grid.settled(cell, hashes[cell.name])]
    build = build_hash(recipe.binary)
    note_what_is_there(cells, todo, build, out)
    outcomes: dict[str, Outcome] = {}
    try:
        run_all(
            Plan(recipe, config, hashes, build, options.processes, options.jobs), todo, outcomes
        )
    finally:
        results = [result_of(cell, hashes[cell.name], outcomes) for cell in cells]
        summaries = {r.cell.name: r.summary for r in results if r.summary}
        rates = tuple(about["rates"])
        choices = choose(cells, summaries, rates, parse_measure(options.select)) if rates else []
        write_sweep(out, about, results, choices)
    return conclude(results, choices, options.select, out)


def threads(
    config: dict[str, Any], axes: list[Axis], options: argparse.Namespace
) -> dict[str, str]:
    """The cores are shared between the runs at work, unless the user has said otherwise. No result depends on it."""
    if "threads" in config.get("local", {}) or any(axis.key == "local.threads" for axis in axes):
        return {}
    cores = len(os.sched_getaffinity(0))
    return {"local.threads": "1" if options.processes else str(max(1, cores // options.jobs))}


def refuse_bad_cells(recipe: Recipe, cells: list[Cell], jobs: int) -> None:
    """The program itself checks every cell before any is run, so that the last is not found to be wrong after a night."""
    with ThreadPoolExecutor(jobs) as pool:
        faults = list(pool.map(lambda cell: check(recipe, cell), cells))
    bad: dict[str, list[str]] = {}
    for cell, fault in zip(cells, faults, strict=True):
        if fault:
            bad.setdefault(fault, []).append(cell.name)
    if bad:
        lines = [
            f"{fault}\n  (cell {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
            for fault, names in bad.items()
        ]
        raise LabError("\n".join(["the grid cannot run:", *lines]))


def note_what_is_there(cells: list[Cell], todo: list[Cell], build: str, out: Path) -> None:
    names = {cell.name for cell in todo}
    kept = [cell for cell in cells if cell.name not in names]
    print(
        f"sweep: {len(cells)} run(s) in {out}, {len(kept)} of them there already",
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
            f"sweep: note: {len(foreign)} of these were made by another build of gossamer; --again runs them anew",
            file=sys.stderr,
        )


def result_of(cell: Cell, config_hash: str, outcomes: dict[str, Outcome]) -> Result:
    outcome = outcomes.get(cell.name)
    if outcome and outcome.status != "finished":
        return Result(cell, outcome.status, outcome.error)
    status = grid.settled(cell, config_hash)
    if status == "finished":
        return Result(cell, status, "", grid.read_json(cell.folder / "summary.json"))
    return Result(cell, status or "missing", "" if status else "not run to its end")


def conclude(results: list[Result], choices: list[Choice], select: str, out: Path) -> int:
    """A diverged run is an answer to a grid of step sizes and a failure without one."""
    metric = parse_measure(select).curve
    for choice in choices:
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
                why = f"runs on these data have no {metric}; --select another metric, nothing finished is run again"
            else:
                why = "each diverged or lacks runs"
            print(f"sweep: {name}: no step size can be judged: {why}", file=sys.stderr)
        elif choice.at_edge:
            print(
                f"sweep: {name}: the best step size {choice.rate} is at the edge of the grid; widen --rates",
                file=sys.stderr,
            )
    bad = [
        r
        for r in results
        if r.status in ("failed", "missing") or (r.status == "diverged" and not choices)
    ]
    unjudged = [choice for choice in choices if choice.rate is None]
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
    return 1 if bad or unjudged else 0


def describe(
    options: argparse.Namespace, words: list[str], axes: list[Axis], rates: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "command": shlex.join(["experiments/sweep.py", *words]),
        "config": str(options.config),
        "config_text": options.config.read_text(encoding="utf-8"),
        "axes": {axis.key: list(axis.values) for axis in axes},
        "rates": list(rates),
        "select": options.select,
        "processes": options.processes,
        "jobs": options.jobs,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
