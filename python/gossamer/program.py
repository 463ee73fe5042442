"""The program `gossamer` of this package, as a console command.

The commands run, peer and predict of a configuration that names the file of a task (model.file of
model.kind = "external") are carried out here, in Python, and so is export to TensorBoard, W&B and
MLflow. Everything else is done by the program in C++.
"""

import json
import logging
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

from gossamer import _core, export
from gossamer.runs import check, configuration, drive, find_ids, handler_of, start
from gossamer.task_file import load_task
from gossamer.trainer import RequestHandler


class NotATask(Exception):
    """The arguments are for the program in C++."""


class Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NotATask(message)


def decay(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 0.999:
        raise ValueError
    return value


def parser() -> Parser:
    made = Parser(add_help=False)  # the program has the help
    commands = made.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name in ("run", "peer", "predict"):
        command = commands.add_parser(name, add_help=False, allow_abbrev=False)
        command.add_argument("config", nargs="?", default="")  # none: the defaults
        command.add_argument("--set", action="append", default=[])
        command.add_argument("--out")
        if name != "predict":
            command.add_argument("--resume", default="none")
            command.add_argument("-q", "--quiet", action="store_true")
        if name != "peer":
            command.add_argument("--json", action="store_true")
        if name == "run":
            command.add_argument("--check", action="store_true")
        elif name == "peer":
            command.add_argument("--id")
            command.add_argument("--key")
        else:
            command.add_argument("--decay", type=decay, default=0.9)
    return made


def main() -> None:
    """Exit codes are those of the program; 1 also for an exception in the task."""
    if sys.argv[1:2] == ["export"] and any(map(export.is_writer, sys.argv[2:])):
        return export.main(sys.argv[2:])
    try:
        options, config = task_run(sys.argv[1:])
    except NotATask:
        program = Path(__file__).parent / "bin" / "gossamer"
        os.execv(program, ["gossamer", *sys.argv[1:]])
    logging.basicConfig(level=logging.INFO, format="gossamer: %(message)s")
    try:
        execute(options, config)
    except _core.Error as error:
        print(f"gossamer: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def task_run(arguments: list[str]) -> tuple[Namespace, dict[str, dict[str, Any]]]:
    """The options and the configuration of a run with a task; NotATask otherwise."""
    options = parser().parse_args(arguments)
    if getattr(options, "key", None):
        options.set.append(f"net.key={options.key}")
    try:
        config = configuration(options.config, settings=options.set)
    except _core.Error as error:
        raise NotATask from error  # the program prints it
    if config["model"]["kind"] != "external" or not config["model"].get("file"):
        raise NotATask  # the library's own graphs have files too
    return options, config


def execute(options: Namespace, config: dict[str, dict[str, Any]]) -> None:
    handler = handler_of(load_task(config))
    if options.command == "peer":
        ids = find_ids(options.id, handler, options.config, options.set, options.out)
        run_to_end(options, handler, ids)
        if not options.quiet:
            peers = "peer" if len(ids.ids) == 1 else "peers"
            hosted = ", ".join(map(str, ids.ids))
            print(f"{peers} {hosted} finished {config['run']['rounds']} rounds")
    elif options.command == "predict" or options.check:
        checked = check(handler, options.config, options.set, options.out)
        if options.command == "predict":
            text = checked.predict(decay=options.decay, json=options.json)
            print(text, end="\n" if options.json else "")
        else:
            show_check(options, checked, config)
    else:
        folder = run_to_end(options, handler, None)
        summary = (folder / "summary.json").read_text(encoding="utf-8")
        if options.json:
            print(summary, end="")
        elif not options.quiet:
            print(f"{_core.summary_text(summary)}  {'run folder':<24}{folder}")


def show_check(
    options: Namespace, checked: _core.CheckedRun, config: dict[str, dict[str, Any]]
) -> None:
    size = json.loads(checked.size())
    if options.json:
        print(json.dumps(size, indent=2))
    elif not options.quiet:
        print(
            f"gossamer: the configuration is valid: {size['peers']} peers, "
            f"{config['topology']['kind']}, {size['parameters']} parameters each",
            file=sys.stderr,
        )


def run_to_end(options: Namespace, handler: RequestHandler, ids: _core.NetworkIds | None) -> Path:
    """Runs the task and returns the run folder. The first signal ends the run after its round."""
    stopped = Event()
    background: _core.BackgroundRun | None = None

    def stop(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stopped.set()
        if background is not None:
            background.stop()

    # The handlers come first: the log's existence means that the run has begun.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, stop)
    background = start(
        handler,
        options.config,
        options.set,
        options.out,
        ids=ids,
        resume=options.resume,
        shows_progress=not options.quiet,
    )
    if stopped.is_set():
        background.stop()
    drive(background, handler)
    return Path(background.folder)
