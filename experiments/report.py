#!/usr/bin/env python3
"""Writes the report of a sweep: an HTML page, figures as PNG and SVG, and a table on the terminal.

    report.py runs/quickstart [--target 0.9] [--out DIR]

Only finished runs are compared. The page names failed, diverged and missing runs.
"""

import argparse
import shlex
import sys
from pathlib import Path

from lab import captions
from lab.captions import join_list
from lab.conditions import Condition, by_facet, read_conditions, series_list
from lab.errors import LabError
from lab.figures import ReportFigure, cost_axes, curve_figure, drawn_facets
from lab.gap import gap_figure
from lab.graphs import graphs_figure
from lab.measure import parse_measure
from lab.metric import CONSENSUS, Metric, Target, choose_metric, make_target
from lab.page import PageContent, render, save_figures
from lab.predictions import Predictions
from lab.results import Sweep, read_sweep
from lab.speedup import speedup_figure, speedup_points
from lab.split import split_figure, split_points
from lab.style import use_style
from lab.tables import make_table, print_table


def arguments(line: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="report.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sweep", type=Path, help="a folder written by sweep.py")
    parser.add_argument(
        "--target",
        type=float,
        help="the accuracy (or loss, or distance) to which rounds are counted\n"
        "(default: 90 %% of the best final accuracy, mean over the seeds)",
    )
    parser.add_argument(
        "--out", type=Path, help="folder of report.html and figures/ (default: the sweep's folder)"
    )
    parser.add_argument("--title", help="title of the page")
    return parser.parse_args(line)


def main(line: list[str]) -> int:
    options = arguments(line)
    try:
        path = report(options, line)
    except LabError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    print(f"report: {path.resolve()}")
    return 0


def report(options: argparse.Namespace, line: list[str]) -> Path:
    sweep = read_sweep(options.sweep)
    conditions = read_conditions(sweep)
    metric = choose_metric(conditions)
    targets = {
        facet: make_target(metric, members, options.target)
        for facet, members in by_facet(conditions).items()
    }
    use_style()
    predictions = Predictions(conditions, sweep.folder)
    figures = make_figures(conditions, metric, targets, predictions)
    averaged = averaged_conditions(sweep)
    table = make_table(conditions, metric, targets, averaged)
    title = options.title or f"How connectivity shapes learning: {sweep.folder.resolve().name}"
    this_command = shlex.join(["experiments/report.py", *line])
    notes = captions.warnings(sweep, conditions, averaged)
    notes += [predictions.unavailable] if predictions.unavailable else []
    content = PageContent(
        title,
        summary_sentence(conditions),
        notes,
        figures,
        table,
        captions.method(sweep, conditions),
        f"{sweep.metadata['command']}\n{this_command}",
        sweep.metadata["config"],
        sweep.metadata["config_text"],
    )
    out = options.out or options.sweep
    page = render(content, save_figures(figures, out / "figures"))
    path = out / "report.html"
    path.write_text(page, encoding="utf-8")
    goal = (
        next(iter(targets.values())).description if len(targets) == 1 else "different in each facet"
    )
    print_table(table, f"{summary_sentence(conditions)}\nTarget: {goal}.")
    for note in notes:
        print(f"note: {note}")
    return path


def averaged_conditions(sweep: Sweep) -> list[Condition]:
    """The conditions at the step sizes selected for the averaged model.

    Empty if none is selected for it alone.
    """
    for select in sweep.metadata["select"][1:]:
        if parse_measure(select).curve in ("averaged_accuracy", "averaged_loss"):
            return read_conditions(sweep, select)
    return []


def make_figures(
    conditions: list[Condition],
    metric: Metric,
    targets: dict[str, Target],
    predictions: Predictions,
) -> list[ReportFigure]:
    def curves(stem: str, shown: Metric, caption: str) -> ReportFigure:
        caption += captions.predicted_caption(shown, predictions, conditions)
        names = {"round": "rounds", "bytes_sent": "bytes", "seconds": "virtual time"}
        costs = join_list([names[cost] for cost in cost_axes(conditions)])
        title = f"{shown.label.capitalize()} against {costs}"
        return curve_figure(stem, title, caption, conditions, shown, predictions)

    figures = [curves("learning", metric, captions.metric_caption(metric, conditions))]
    has_consensus = any(run.curves.has(CONSENSUS.name) for c in conditions for run in c.runs)
    if metric.name != CONSENSUS.name and has_consensus and drawn_facets(conditions, CONSENSUS):
        figures.append(curves("consensus", CONSENSUS, captions.consensus_caption(conditions)))
    if speedups := speedup_points(conditions, predictions):
        figures.append(speedup_figure(speedups))
    if splits := split_points(conditions, metric, targets, predictions):
        figures.append(split_figure(splits))
    figures.append(
        gap_figure(conditions, metric, targets, captions.gap_caption(metric, targets, conditions))
    )
    if any(condition.uses_graph for condition in conditions):
        figures.append(graphs_figure(conditions, captions.graphs_caption(conditions)))
    return figures


def trained(config: dict) -> dict[str, str]:
    """Algorithm, model and data of a run, as far as its configuration names them. A task brings its
    own data."""
    found = {section: str(values["kind"]) for section, values in config.items() if "kind" in values}
    if found.get("model") == "external":
        found["model"] = f"the task in {Path(config['model'].get('file', '')).name or 'Python'}"
        found.pop("data", None)
    return found


def summary_sentence(conditions: list[Condition]) -> str:
    """One sentence on peers, model, data, algorithm, conditions and seeds."""
    configs = [condition.runs[0].summary.get("config", {}) for condition in conditions]
    known = [trained(config) for config in configs]
    kind = {
        section: join_list(list(dict.fromkeys(name for name in names if name)))
        for section in ("algorithm", "model", "data")
        if any(names := [each.get(section, "") for each in known])
    }
    peers = sorted(set().union(*(condition.peer_counts for condition in conditions)))
    seeds = sorted({len(condition.runs) for condition in conditions})
    span = [str(v[0]) if len(v) == 1 else f"{v[0]} to {v[-1]}" for v in (peers, seeds)]
    what = " on ".join(kind[section] for section in ("model", "data") if section in kind)
    by = f" by {kind['algorithm']}" if "algorithm" in kind else ""
    served = any(condition.server_bytes.size for condition in conditions)
    return (
        f"{span[0]} peers{'' if served else ' without a server'}{f', {what}' if what else ''}{by}: "
        f"{series_list(conditions)}; "
        f"{span[1]} {'seed' if span[1] == '1' else 'seeds'} each."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
