"""The programs and commands of docs/TUTORIAL.md."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "TUTORIAL.md"


def section(number: int) -> str:
    """A numbered section of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return re.split(r"^## \d\. .*\n", text, flags=re.MULTILINE)[number].split("\n## ")[0]


def blocks(number: int, language: str) -> list[str]:
    """The blocks of code of a section, in a language; "" for output."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section(number), re.MULTILINE | re.DOTALL)
    return [text for each, text in found if each == language]


def program(*changes: int) -> str:
    """train.py of section 1, with the changes of other sections."""
    (text,) = blocks(1, "python")
    for number in changes:
        for diff in blocks(number, "diff"):
            text = patched(text, diff)
    return text


def patched(text: str, diff: str) -> str:
    """The text with the lines of a diff exchanged, which it has once."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    if text.count(old) != 1:
        raise ValueError(f"the program does not have these lines once:\n{old}")
    return text.replace(old, new)
