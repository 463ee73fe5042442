"""Messages of the runtime name options of the program; in Python they name arguments of a call."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gossamer._core import Error

P = ParamSpec("P")
R = TypeVar("R")

BEFORE, AFTER = r"(?<![^\s(])", r"(?![\w-])"  # an option, and no part of a path
ARGUMENTS = [
    (re.compile(r"^--set (?=\S)"), "settings: "),
    (re.compile(r"^--resume (.+?):(?=\s)"), r'resume="\1":'),
    (re.compile(rf"{BEFORE}--resume(\s+)auto{AFTER}"), 'resume="auto"'),
    (re.compile(rf"{BEFORE}--resume{AFTER}"), "resume=…"),
    (re.compile(rf"{BEFORE}--out{AFTER}"), "out=…"),
    (re.compile(rf"{BEFORE}--id{AFTER}"), "peer"),
]


def with_arguments(text: str) -> str:
    """A message of the runtime, with the arguments of Python in place of the program's options."""
    for option, argument in ARGUMENTS:
        text = option.sub(argument, text)
    return text


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function; what it raises names its arguments, and no options of the program."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Error as error:
            error.args = (with_arguments(str(error)),)
            raise

    return call
