"""Runs of a task: simulated in this process, or as peers of a network."""

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from gossamer import _core
from gossamer.initial import initial_hash, with_remedy
from gossamer.messages import names_arguments
from gossamer.task_file import OWN_KEYS
from gossamer.trainer import ArrayHandler, RequestHandler, Tensors, Trainer

logger = logging.getLogger("gossamer")

Settings = Mapping[str, Any] | Iterable[str]


class RunArguments(TypedDict):
    """What _core.start() and _core.check() take beside the path of the configuration."""

    overrides: list[str]
    ids: _core.NetworkIds | None
    tensors: Tensors
    averages: bool
    linear_steps: bool
    has_buffers: bool
    shards: list[tuple[int, Sequence[float], Sequence[float]]]
    features: int
    evaluates: bool
    saves_state: bool
    initial_hash: str
    resume: str
    shows_progress: bool


@names_arguments()
def run(
    config: str | os.PathLike[str],
    task: Trainer | RequestHandler,
    *,
    settings: Settings = (),
    out: str | os.PathLike[str] | None = None,
    resume: str = "none",
) -> dict[str, Any]:
    """Simulates all peers of `task` in this process, in virtual time, and returns summary.json.

    config    the TOML file of the run, with model.kind = "external"
    task      a gossamer.Trainer, or a gossamer.torch.Task
    settings  overrides of the file: {"run.rounds": 20} or ["run.rounds=20"]; a list is a value too
    out       run folder; default: local.out, or runs/<run id>
    resume    "auto" continues the run of the folder at its newest checkpoint (checkpoint.every); or
              a folder of checkpoints, or the .json file of one

    Raises gossamer.Error: the configuration is not valid, or the run ended early.
    """
    handler = handler_of(task)
    background = start(handler, config, settings, out, ids=None, resume=resume)
    drive(background, handler)
    return read_json(Path(background.folder) / "summary.json")


@names_arguments()
def peer(
    config: str | os.PathLike[str],
    task: Trainer | RequestHandler,
    ids: int | str | Sequence[int] | None = None,
    *,
    settings: Settings = (),
    out: str | os.PathLike[str] | None = None,
    resume: str = "none",
) -> dict[str, Any]:
    """Runs peers of `task` as part of a network, to the end, and returns the log's last record.

    ids     the peers of this process: 3, "0-3" or [0, 1]; default: GOSSAMER_ID, the rank that a
            launcher sets, the ids of net.key, or one that the process claims (net.seeds). The ids
            of servers follow those of the peers
    resume  "auto" restarts a process in its old run folder: all processes at the newest checkpoint
            that they share, or this one alone with the parameters of a neighbour

    The other arguments are those of run(). On the CPU, with one thread, a synchronous run ends with
    the same parameters as run(), bit by bit. An exception in the task, and Ctrl-C, make the process
    leave; the others continue if the algorithm tolerates it.
    """
    handler = handler_of(task)
    settings = kept(settings)
    found = find_ids(ids, handler, config, settings, out)
    background = start(handler, config, settings, out, ids=found, resume=resume)
    drive(background, handler)
    log = Path(background.folder) / f"log-{found.ids[0]}.jsonl"
    return dict(json.loads(log.read_text(encoding="utf-8").splitlines()[-1]))


def handler_of(task: Trainer | RequestHandler) -> RequestHandler:
    return task if isinstance(task, RequestHandler) else ArrayHandler(task)


def find_ids(
    ids: int | str | Sequence[int] | None,
    handler: RequestHandler,
    config: str | os.PathLike[str],
    settings: Settings,
    out: str | os.PathLike[str] | None,
) -> _core.NetworkIds:
    """The peers of this process; with net.seeds this may wait for the other processes.

    The logs in `out`, the run folder, say which id the process had before.
    """
    if ids is None:
        text = ""
    elif isinstance(ids, int | str):
        text = str(ids)
    else:
        text = ",".join(str(each) for each in ids)
    if ids is not None and not text:
        raise _core.Error("ids: the list is empty; give the ids of this process's peers")
    overrides = overrides_for(handler, config, settings, out)
    return _core.find_ids(text, config=os.fspath(config), overrides=overrides)


def start(
    handler: RequestHandler,
    config: str | os.PathLike[str],
    settings: Settings,
    out: str | os.PathLike[str] | None,
    *,
    ids: _core.NetworkIds | None,
    resume: str = "none",
    shows_progress: bool = False,
) -> _core.BackgroundRun:
    return _core.start(
        os.fspath(config),
        **arguments(handler, config, settings, out, ids, resume, shows_progress),
    )


@names_arguments()
def predict(
    config: str | os.PathLike[str],
    task: Trainer | RequestHandler,
    *,
    settings: Settings = (),
    decay: float = 0.9,
) -> dict[str, Any]:
    """What theory says of run(): bytes, spectral gap, duration (docs/THEORY.md). It trains nothing.

    decay   γ of the effective number of neighbours n_W(γ)

    The other arguments are those of run(). Raises gossamer.Error: the configuration is not valid,
    or the run has an attack.
    """
    checked = check(handler_of(task), config, settings)
    return dict(json.loads(checked.predict(decay=decay, json=True)))


def check(
    handler: RequestHandler,
    config: str | os.PathLike[str],
    settings: Settings,
    out: str | os.PathLike[str] | None = None,
) -> _core.CheckedRun:
    """Checks a simulation without starting it."""
    given = arguments(handler, config, settings, out, ids=None, resume="none", shows_progress=False)
    return _core.check(os.fspath(config), **given)


def arguments(
    handler: RequestHandler,
    config: str | os.PathLike[str],
    settings: Settings,
    out: str | os.PathLike[str] | None,
    ids: _core.NetworkIds | None,
    resume: str,
    shows_progress: bool,
) -> RunArguments:
    overrides = overrides_for(handler, config, settings, out)
    sections = read_sections(config, overrides, settings)
    starts_alike = sections["run"]["init"] == "same"
    handler.begin(starts_alike)
    handler.choose_evaluation(sections["data"]["evaluate"], sections["data"]["validation"])
    shards = shards_of(handler, int(sections["run"]["peers"]), ids)
    return {
        "overrides": overrides,
        "ids": ids,
        "tensors": handler.tensors(),
        "averages": handler.averages,
        "linear_steps": handler.linear_steps,
        "has_buffers": handler.has_buffers,
        "shards": shards,
        "features": handler.features,
        "evaluates": handler.evaluates,
        "saves_state": handler.saves_state,
        "initial_hash": initial_hash(handler, ids.ids[0]) if ids and starts_alike else "",
        "resume": resume,
        "shows_progress": shows_progress,
    }


def shards_of(
    handler: RequestHandler, peers: int, ids: _core.NetworkIds | None
) -> list[tuple[int, Sequence[float], Sequence[float]]]:
    """What is exchanged of the samples of each peer of this process, by peer: number, means and
    variances; 0 samples for the others. Empty if the handler does not say."""
    if not handler.counts_samples:
        return []
    shards: list[tuple[int, Sequence[float], Sequence[float]]] = [(0, (), ())] * peers
    for node in range(peers) if ids is None else ids.ids:
        if node < peers:
            shards[node] = handler.shard_summary(node)
        elif handler.has_moments:  # a server, which has no samples that count
            handler.shard_summary(node)
    return shards


def overrides_for(
    handler: RequestHandler,
    config: str | os.PathLike[str],
    settings: Settings,
    out: str | os.PathLike[str] | None,
) -> list[str]:
    overrides = overrides_of(settings)
    if out is not None:
        overrides.append(f"local.out={folder_text(out)}")
    if handler.shard is not None:
        overrides = handler.shard.overrides(config, overrides)
    return overrides


def folder_text(out: str | os.PathLike[str]) -> str:
    """The name of a run folder, which the files of the run will have."""
    text = os.fspath(out)
    if "\0" in text:
        raise _core.Error(f"out: {text!r} has a null character, at which the system would end it")
    if not is_utf8(text):
        raise _core.Error(
            f"out: {text!r} is not UTF-8, as the files of a run are; give another run folder"
        )
    return text


def is_utf8(text: str) -> bool:
    """A name of the system that is not UTF-8 has surrogates in Python."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


@names_arguments()
def configuration(
    config: str | os.PathLike[str], *, settings: Settings = ()
) -> dict[str, dict[str, Any]]:
    """The checked configuration of a file with overrides: section, key, value.

    Raises gossamer.Error, with the place and what is possible there.
    """
    return read_sections(config, overrides_of(settings), settings)


def read_sections(
    config: str | os.PathLike[str], overrides: list[str], settings: Settings
) -> dict[str, dict[str, Any]]:
    """The checked configuration with these overrides, among which `settings` are."""
    sections = dict(json.loads(_core.configuration(os.fspath(config), overrides=overrides)))
    if isinstance(settings, Mapping) and sections["model"]["kind"] == "external":
        check_task_settings(settings, sections["model"])
    return sections


def check_task_settings(settings: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    """Texts and lists of a task have the values that were given.

    Only the file declares the types of a task's keys; of others the runtime reads the text.
    """
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if section != "model" or name in OWN_KEYS or not isinstance(value, str | list | tuple):
            continue
        given = value if isinstance(value, str) else list(value)
        if (found := model.get(name)) != given:
            raise _core.Error(
                f"{key}: a setting takes its type from the configuration file, and {given!r} would "
                f"become {found!r}; write {key} in the configuration file"
            )


def kept(settings: Settings) -> Settings:
    """Settings that can be read twice."""
    return settings if isinstance(settings, str | Mapping) else list(settings)


def overrides_of(settings: Settings) -> list[str]:
    if isinstance(settings, str):
        raise _core.Error(
            f"settings: give a dictionary or a list, such as [{settings!r}], and not a text alone"
        )
    if not isinstance(settings, Mapping):
        return list(settings)
    return [f"{key}={setting_text(key, value)}" for key, value in settings.items()]


def setting_text(key: str, value: Any) -> str:
    if value is None:
        raise _core.Error(f"{key}: None is no value; leave the key out for its default")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(item_text(key, item) for item in value)}]"
    return str(value)


def item_text(key: str, item: Any) -> str:
    """An item of a list. Quotes keep its commas; a quotation mark itself has no escape."""
    text = setting_text(key, item)
    if isinstance(item, int):
        return text
    if '"' in text:
        raise _core.Error(
            f"{key}: the item {item!r} has a quotation mark, which only the configuration file can "
            "give; write the list there"
        )
    return f'"{text}"'


def drive(background: _core.BackgroundRun, handler: RequestHandler) -> None:
    """Serves the requests of a run to its end."""
    try:
        while batch := background.next():
            handler.serve_batch(batch)
            background.complete()
    except _core.Error as error:
        raise with_remedy(error, handler, background.hosted) from error.__cause__
    finally:
        handler.release()
        background.close()
        log_messages(background)


def log_message(line: str) -> None:
    logger.info(line)


def log_messages(background: _core.BackgroundRun) -> None:
    for line in background.take_messages():
        log_message(line)


def read_json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
