#!/usr/bin/env python3
"""Runs a published result again, and writes what came of it beside what the paper says.

    paper.py ying2021 [-j 2]        one folder of experiments/papers, or several, or `all`
    paper.py ying2021 --render      tables and verdict again from results.json, without running anything
    paper.py ying2021 --full --set data.path=CIFAR   the study at full size, into runs/papers/ying2021-full

The runs are sweeps in runs/papers/NAME and go on where they were stopped. results.json, figure.svg, the results in README.md
and the index are written into the repository, unless --full or --set make it another study: then below runs/papers.
Exit status: 0, whatever the verdict; 1 when a run failed; 2 for a bad command or study; 130 when interrupted.
"""

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

import sweep
from lab.axes import parse_axes
from lab.binary import ROOT, find_binary
from lab.readme_section import chapter, index, replace_results
from lab.errors import LabError
from lab.outcome import check_columns, collect, read_outcome, write_outcome
from lab.page import save_svg
from lab.panels import draw
from lab.results import Sweep, read_sweep
from lab.study import Part, Study, full_size, merge_axes, read_study
from lab.style import use_style
from lab.verdict import judge, verdict

PAPERS = ROOT / "experiments" / "papers"


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="paper.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="+", metavar="STUDY", help=f"{', '.join(study_names())}, or all"
    )
    parser.add_argument("-j", "--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--full", action="store_true", help="the full-size study")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=VALUE", help="for every run"
    )
    parser.add_argument("--out", type=Path, help="folder of the sweeps (default runs/papers/STUDY)")
    parser.add_argument(
        "--again", action="store_true", help="run everything again, finished or not"
    )
    parser.add_argument(
        "--render",
        action="store_true",
        help="write tables and verdict from results.json, and run nothing",
    )
    return parser.parse_args(words)


def study_names() -> list[str]:
    return sorted(path.parent.name for path in PAPERS.glob("*/study.toml"))


def main(words: list[str]) -> int:
    options = arguments(words)
    names = study_names() if options.studies == ["all"] else options.studies
    code = 0
    try:
        for name in names:
            study = read_study(PAPERS / name)
            check_columns(study)
            code = max(code, render(study) if options.render else run(study, options))
        if (options.render or not is_other(options)) and code == 0:
            done = [
                read_study(PAPERS / name)
                for name in study_names()
                if (PAPERS / name / "results.json").exists()
            ]
            replace_results(PAPERS / "README.md", index(done))
    except LabError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paper: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return code


def is_other(options: argparse.Namespace) -> bool:
    """Whether this is another study than the one that the repository holds results of."""
    return bool(options.full or options.set)


def run(study: Study, options: argparse.Namespace) -> int:
    """The sweeps of every part, then results, figure and text."""
    out = (options.out or Path("runs") / "papers") / (
        f"{study.name}-full" if options.full else study.name
    )
    if options.set and not options.out:
        raise LabError("--set makes this another study: give it a folder of its own with --out")
    study = full_size(study) if options.full else study
    extra = parse_axes(options.set)
    study = replace(
        study, parts=tuple(replace(part, axes=merge_axes(part.axes, extra)) for part in study.parts)
    )
    code, sweeps = 0, dict[str, Sweep]()
    for part in study.parts:
        print(f"paper: {study.name}, {part.name}", file=sys.stderr, flush=True)
        done = sweep.main(sweep_words(study, part, out, options))
        if done not in (0, 1):
            raise (
                KeyboardInterrupt
                if done == 130
                else LabError(f"{study.name}: the sweep of part '{part.name}' cannot be run")
            )
        code = max(code, done)
        sweeps[part.name] = read_sweep(out / part.name)
    outcome, conditions = collect(study, sweeps, find_binary())
    home = out if is_other(options) else study.folder
    write_outcome(home / "results.json", outcome)
    use_style()
    save_svg(draw(study, outcome, conditions), home / "figure.svg", study.title)
    text = chapter(study, outcome)
    replace_results(home / "README.md", text)
    print(
        text
        if is_other(options)
        else f"paper: {study.name}: the ordering {verdict(judge(study, outcome))}"
    )
    return code


def sweep_words(study: Study, part: Part, out: Path, options: argparse.Namespace) -> list[str]:
    """The command line of sweep.py that runs a part."""
    words = [
        str(study.folder / part.config),
        *part.axes,
        "--variants",
        str(study.folder / study.variants_file),
        "--out",
        str(out / part.name),
        "-j",
        str(options.jobs),
    ]
    words += [word for name in part.variants for word in ("--only", name)]
    words += ["--rates", part.rates, "--select", part.select] if part.rates else []
    return words + (["--again"] if options.again else [])


def render(study: Study) -> int:
    replace_results(
        study.folder / "README.md", chapter(study, read_outcome(study.folder / "results.json"))
    )
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
