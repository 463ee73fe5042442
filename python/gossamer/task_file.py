"""Task files: Python files with a function task(config, …), which a configuration names.

    [model]
    kind = "external"
    file = "gpt_task.py"
    size = "0.8M"

    def task(config, *, size="0.1M", rate=0.003): ...

The parameters of the function after the first are the task's settings. A configuration sets them
beside `file`; all peers of a network must have the same values.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from gossamer._core import Error
from gossamer.trainer import RequestHandler, Trainer

OWN_KEYS = ("kind", "file")  # of [model], which are not the task's
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def load_task(config: Mapping[str, Mapping[str, Any]]) -> Trainer | RequestHandler:
    """The task of the file that a configuration names, made with the configuration's settings.

    config   as of gossamer.configuration()

    Raises gossamer.Error: the file does not exist or has no task, or a setting is not the task's.
    Exceptions of the file's own code pass.
    """
    model = config["model"]
    path = Path(model["file"])
    make = task_function(load_module(path), path)
    settings = {key: value for key, value in model.items() if key not in OWN_KEYS}
    task = make(config, **checked_settings(make, settings, path))
    if not isinstance(task, RequestHandler | Trainer):
        raise Error(
            f"model.file: {path}: task() returned {type(task).__name__}, which is no "
            "gossamer.torch.Task and no gossamer.Trainer"
        )
    return task


def load_module(path: Path) -> ModuleType:
    """Runs a file as a module. Files beside it can be imported, as those of a program."""
    if not path.is_file():
        raise Error(f"model.file: {path}: there is no such file")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) != str(path):
        raise Error(
            f"model.file: {path}: Python has a module '{path.stem}' of its own; give the file "
            "another name"
        )
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Error(f"model.file: {path}: this is not the name of a Python file: it ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def task_function(module: ModuleType, path: Path) -> Callable[..., Any]:
    make: Callable[..., Any] | None = getattr(module, "task", None)
    if not callable(make):
        raise Error(f"model.file: {path} has no function task(config), which returns the task")
    return make


def checked_settings(
    make: Callable[..., Any], settings: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    """The settings as task() takes them: an array is a tuple where the default is one.

    Those that **settings takes are not checked.
    """
    parameters = list(inspect.signature(make).parameters.values())
    takes_others = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    checked = dict(settings)
    known = {each.name: each.default for each in parameters[1:] if each.kind not in VARIADIC}
    for name, value in settings.items():
        if name not in known:
            if takes_others:
                continue
            raise Error(
                f"model.{name}: task() in {path} has no such setting; there are: "
                f"{', '.join(known) or 'none'}"
            )
        default = known[name]
        if default is inspect.Parameter.empty or default is None:
            continue
        if isinstance(value, list) and isinstance(default, tuple):
            checked[name] = tuple(value)
            continue
        if type(value) is not type(default) and not (type(value) is int and type(default) is float):
            raise Error(
                f"model.{name}: {value!r} is a value of another type than the default, {default!r}"
            )
    for name, default in known.items():
        if default is inspect.Parameter.empty and name not in settings:
            raise Error(f"model.{name}: task() in {path} needs this setting; give it a value")
    return checked
