#!/usr/bin/env python3
"""Reproduces published results and compares our results with the claims of the paper.

    paper.py ying2021 [-j 2]        runs a study: folders of experiments/papers, or `all`
    paper.py ying2021 --render      writes the text again from results.json, without any run
    paper.py ying2021 --full --set data.path=CIFAR --out big    runs the study at full size

The runs are sweeps in runs/papers/NAME. An interrupted study can be continued. results.json,
figure.svg, the results in README.md and the index are written into the repository. With --full or
--set they are written into the folder of the study's sweeps instead.
Exit status: 0, regardless of the claims; 1 if a run failed; 2 for an invalid command or study;
130 if interrupted.
"""

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

import mnist
import sweep
from lab.axes import parse_axes
from lab.binary import ROOT, find_binary
from lab.cells import read_config
from lab.readme_section import index_section, readme_section, replace_results
from lab.errors import LabError
from lab.study_results import check_columns, collect, read_results, write_results
from lab.page import save_svg
from lab.panels import draw
from lab.results import Sweep, read_sweep
from lab.study import Part, Study, full_size, merge_axes
from lab.study_file import read_study
from lab.style import use_style
from lab.claims import evaluate, summarise

PAPERS = ROOT / "experiments" / "papers"


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="paper.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="+", metavar="STUDY", help=f"{', '.join(study_names())}, or all"
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, help="number of runs in parallel (default 1)"
    )
    parser.add_argument("--full", action="store_true", help="the full-size study")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="section.key=VALUE",
        help="an override for every run",
    )
    parser.add_argument(
        "--out", type=Path, help="parent folder of the sweeps (default runs/papers)"
    )
    parser.add_argument(
        "--again", action="store_true", help="run everything again, even if it has a result"
    )
    parser.add_argument(
        "--render",
        action="store_true",
        help="write the text again from results.json, without any run",
    )
    return parser.parse_args(argv)


def study_names() -> list[str]:
    return sorted(path.parent.name for path in PAPERS.glob("*/study.toml"))


def main(argv: list[str]) -> int:
    options = arguments(argv)
    names = study_names() if options.studies == ["all"] else options.studies
    code = 0
    try:
        for name in names:
            study = read_study(PAPERS / name)
            check_columns(study)
            code = max(code, render(study) if options.render else run(study, options))
        if (options.render or not is_variation(options)) and code == 0:
            complete = [
                read_study(PAPERS / name)
                for name in study_names()
                if (PAPERS / name / "results.json").exists()
            ]
            replace_results(PAPERS / "README.md", index_section(complete))
    except LabError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paper: interrupted; run the same command to continue", file=sys.stderr)
        return 130
    return code


def is_variation(options: argparse.Namespace) -> bool:
    """If the options change the study, so that its results do not belong into the repository."""
    return bool(options.full or options.set)


def run(study: Study, options: argparse.Namespace) -> int:
    """Runs the sweep of every part and writes results, figure and text."""
    out = (options.out or Path("runs") / "papers") / (
        f"{study.name}-full" if options.full else study.name
    )
    if options.set and not options.out:
        raise LabError("--set changes the study: choose a folder for it with --out")
    study = full_size(study) if options.full else study
    extra = parse_axes(options.set)
    study = replace(
        study, parts=tuple(replace(part, axes=merge_axes(part.axes, extra)) for part in study.parts)
    )
    provide_images(study)
    code, sweeps = 0, dict[str, Sweep]()
    for part in study.parts:
        print(f"paper: {study.name}, {part.name}", file=sys.stderr, flush=True)
        status = sweep.main(sweep_arguments(study, part, out, options))
        if status not in (0, 1):
            raise (
                KeyboardInterrupt
                if status == 130
                else LabError(f"{study.name}: the sweep of part '{part.name}' cannot be run")
            )
        sweeps[part.name] = read_sweep(out / part.name)
        if part.diverged is None or unfinished(sweeps[part.name]):
            code = max(code, status)
    results, conditions = collect(study, sweeps, find_binary())
    home = out if is_variation(options) else study.folder
    write_results(home / "results.json", results)
    use_style()
    save_svg(draw(study, results, conditions), home / "figure.svg", study.title)
    text = readme_section(study, results)
    replace_results(home / "README.md", text)
    print(
        text
        if is_variation(options)
        else f"paper: {study.name}: {summarise(evaluate(study, results))}"
    )
    return code


def provide_images(study: Study) -> None:
    """Fetches MNIST if a part of the study trains on it and it is not there."""
    for part in study.parts:
        path = read_config(study.folder / part.config).get("data", {}).get("path", "")
        replaced = any(axis.key == "data.path" for axis in parse_axes(list(part.axes)))
        if path and not replaced and (study.folder / path).resolve() == mnist.FOLDER:
            try:
                if mnist.fetch_all(mnist.FOLDER, mnist.MIRRORS):
                    print(f"paper: fetched MNIST into {mnist.FOLDER}", file=sys.stderr)
            except (mnist.FetchError, OSError) as error:
                raise LabError(
                    f"{study.name} trains on MNIST: {mnist.refusal(error, mnist.FOLDER)}"
                ) from error


def unfinished(sweep: Sweep) -> bool:
    """If a run neither finished nor diverged."""
    return any(result.status in ("failed", "missing") for result in sweep.results)


def sweep_arguments(study: Study, part: Part, out: Path, options: argparse.Namespace) -> list[str]:
    """The arguments of sweep.py that run a part."""
    arguments = [
        str(study.folder / part.config),
        *part.axes,
        "--variants",
        str(study.folder / study.variants_file),
        "--out",
        str(out / part.name),
        "-j",
        str(options.jobs),
    ]
    arguments += [argument for name in part.variants for argument in ("--only", name)]
    if part.rates:
        arguments += ["--rates", part.rates, "--selection-seeds", part.selection_seeds]
        arguments += [text for select in study.selects_of(part) for text in ("--select", select)]
    return arguments + (["--again"] if options.again else [])


def render(study: Study) -> int:
    replace_results(
        study.folder / "README.md",
        readme_section(study, read_results(study.folder / "results.json")),
    )
    return 0


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
