"""What the examples have in common: their options, and the run of a task."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from pathlib import Path
from typing import Any

import gossamer

# What gossamer.messages makes of the program's options, and the options of the examples.
OPTIONS = [
    (r"^settings: (?=\S)", "--set "),
    (r"^out: ", "--out: "),
    (r"^(ids|peer): ", "--peer: "),
    (r'^resume="(.+?)":(?=\s)', r"--resume \1:"),
    (r'(?<![^\s(])resume="auto"', "--resume auto"),
    (r"(?<![^\s(])resume=…", "--resume"),
    (r"(?<![^\s(])out=…", "--out"),
    (r"(?<![^\s(])ids=…", "--peer"),
]


def parser(text: str | None, config: Path, peers: int, rounds: int) -> argparse.ArgumentParser:
    """A parser of the options that all examples have. `text` is the example's docstring."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add(
        "--peer",
        type=int,
        metavar="ID",
        help="be this peer of a network of processes (default: simulate all peers here)",
    )
    add(
        "--meet",
        type=Path,
        metavar="FOLDER",
        help="with --peer: processes of this machine find each other through FOLDER "
        "(default: [net] of the configuration names their addresses)",
    )
    add("--peers", type=int, default=peers, metavar="N", help=f"number of peers ({peers})")
    add("--rounds", type=int, default=rounds, metavar="N", help=f"rounds ({rounds})")
    add("--config", type=Path, default=config, metavar="FILE", help=f"of the run ({config.name})")
    add("--out", type=Path, metavar="FOLDER", help="run folder (default: runs/<run id>)")
    add(
        "--resume",
        default="none",
        metavar="auto",
        help="go on in the run folder (with --peer), or from its checkpoints (checkpoint.every)",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the configuration, such as topology.kind=complete; repeatable",
    )
    return made


def train(task: Any, options: argparse.Namespace, **model: object) -> dict[str, Any]:
    """Simulates all peers, or is one of them; prints and returns the result.

    `model`: what the options say of the task. The run id depends on it, and peers compare it.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = [f"run.peers={options.peers}", f"run.rounds={options.rounds}"]
    settings += [f"model.{key}={setting(value)}" for key, value in model.items()]
    settings += options.set
    if options.meet is not None:
        settings += ["net.listen=127.0.0.1:0", f"net.rendezvous={options.meet.resolve()}"]
    try:
        return run(task, options, settings)
    except gossamer.Error as error:
        print(f"{Path(sys.argv[0]).name}: {with_options(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)


def run(task: Any, options: argparse.Namespace, settings: list[str]) -> dict[str, Any]:
    places: dict[str, Any] = {"settings": settings, "out": options.out, "resume": options.resume}
    if options.peer is not None:
        end = gossamer.peer(options.config, task, options.peer, **places)
        print(f"peer {options.peer}: {end['reason']} after {end['rounds']} rounds")
        return end
    summary = gossamer.run(options.config, task, **places)
    final = summary["final"]
    loss, accuracy = final["test_loss"]["mean"], final["test_accuracy"]["mean"]
    print(f"{options.peers} peers, {summary['rounds']} rounds: ", end="")
    print(f"test loss {loss:.3f}, test accuracy {accuracy:.3f} (means over the peers)")
    print(f"{summary['bytes_sent']:,} bytes sent; final hash {summary['final_hash']}")
    return summary


def setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_options(message: str) -> str:
    """A message of the package, with options of the example in place of arguments of Python."""
    for argument, option in OPTIONS:
        message = re.sub(argument, option, message)
    return message
