"""Messages of the runtime name options of the program; in Python they name arguments of a call."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gossamer._core import Error

P = ParamSpec("P")
R = TypeVar("R")

BEFORE, AFTER = r"(?<![^\s(])", r"(?![\w-])"  # an option, and no part of a path
IDS = re.compile(rf"{BEFORE}--id{AFTER}")
ARGUMENTS = [
    (re.compile(r"^--set (?=\S)"), "settings: "),
    (re.compile(r"^--resume (.+?):(?=\s)"), r'resume="\1":'),
    (re.compile(rf"{BEFORE}--resume(\s+)auto{AFTER}"), 'resume="auto"'),
    (re.compile(rf"{BEFORE}--resume{AFTER}"), "resume=…"),
    (re.compile(rf"{BEFORE}--out{AFTER}"), "out=…"),
]


def with_arguments(text: str, ids: str = "ids") -> str:
    """A message of the runtime, with the arguments of Python in place of the program's options.

    ids   the argument that has the ids of the peers
    """
    for option, argument in ARGUMENTS:
        text = option.sub(argument, text)
    return IDS.sub(f"{ids}=…", re.sub(r"^--id: ", f"{ids}: ", text))


def names_arguments(ids: str = "ids") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: what the function raises names its arguments, and no options of the program."""

    def named(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Error as error:
                error.args = (with_arguments(str(error), ids),)
                raise

        return call

    return named
