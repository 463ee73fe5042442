"""A rough outline of C++ sources as clang-format lays them out: classes, their members, functions.

It reads no types and no macros' values. That is enough to count, and takes a second for the tree.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<raw>\w*)\(.*?\)(?P=raw)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*",
    re.DOTALL | re.MULTILINE,
)
_CLASS = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:requires\b.*\s)?(?:class|struct|union)\s+"
    r"(?:alignas\s*\(\d+\)\s*)?(?P<name>[\w:]+(?:\s*<.*>)?)\s*(?:final\b)?\s*(?::[^:].*)?$",
    re.DOTALL,
)
_SKIPPED = re.compile(r"^(?:using|typedef|friend|static_assert|enum|template\s*<[^>]*>\s*friend)\b")
_LABEL = re.compile(r"^\s*(?:public|private|protected)\s*:\s*")


@dataclass
class Class:
    name: str
    path: Path
    line: int
    members: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


@dataclass
class Function:
    head: str
    path: Path
    line: int
    lines: int


def outline(path: Path) -> tuple[list[Class], list[Function]]:
    """The classes of a file, nested ones too, and the functions with a body."""
    text = _NOISE.sub(_blank, path.read_text(encoding="utf-8"))
    reader = _Reader(text, path)
    reader.block(0, None)
    return reader.classes, reader.functions


def _blank(match: re.Match[str]) -> str:
    """Text of the same lines without what the match says; a literal stays a literal."""
    filler = '""' if match.group().startswith(('"', "'", "R")) else " "
    return filler + "\n" * match.group().count("\n")


class _Reader:
    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path
        self.classes: list[Class] = []
        self.functions: list[Function] = []

    def block(self, at: int, owner: Class | None) -> int:
        """Reads the statements of a namespace or class up to its closing brace."""
        begin = at
        while at < len(self.text):
            char = self.text[at]
            if char == "}":
                return at
            if char == ";":
                self._statement(self.text[begin:at], owner)
                begin = at = at + 1
            elif char in "([":
                at = self._closing(at) + 1
            elif char == "{":
                begin, at = self._braces(begin, at, owner)
            else:
                at += 1
        return at

    def _braces(self, begin: int, at: int, owner: Class | None) -> tuple[int, int]:
        """What begins at `begin` has a brace at `at`; returns where the next statement begins."""
        head = _bare(self.text[begin:at])
        if re.match(r'^(?:inline\s+)?namespace\b|^extern\s*""$', head):
            end = self.block(at + 1, None) + 1
            return end, end
        if found := _CLASS.match(head):
            made = Class(found["name"], self.path, self._line(at))
            self.classes.append(made)
            return begin, self.block(at + 1, made) + 1  # a member may follow the brace
        end = self._closing(at) + 1
        if _is_function(head):
            first = self._line(self.text.rindex(head.split("\n")[0], begin, at))
            self.functions.append(Function(head, self.path, first, self._line(end) - first + 1))
            # An initialiser in braces before the body: `: member_{…} {…}`.
            rest = self.text[end:].lstrip()
            if rest[:1] in (",", "{"):
                self.functions.pop()
                return begin, end
            if owner is not None:
                owner.methods.append(head)
            return end, end
        return begin, end  # an initialiser, an enum: the statement ends with a semicolon

    def _statement(self, statement: str, owner: Class | None) -> None:
        head = _bare(statement)
        if owner is None or not head or _SKIPPED.match(head) or _CLASS.match(head.split("{")[0]):
            # `struct {…} name;` declares a member; `struct Name {…};` does not.
            return
        if not _is_function(head):
            owner.members += _names(head)
        elif not re.search(r"=\s*(?:delete|default)$", head):
            owner.methods.append(head)

    def _closing(self, at: int) -> int:
        depth = 0
        for place in range(at, len(self.text)):
            char = self.text[place]
            if char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
                if depth == 0:
                    return place
        raise AssertionError(f"{self.path}:{self._line(at)}: an open bracket")

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1


def _bare(head: str) -> str:
    head = head.strip()
    while found := _LABEL.match(head):
        head = head[found.end() :]
    return head.strip()


def _names(declaration: str) -> list[str]:
    """One for each member that is declared: `int a = 0, b = 0` declares two."""
    for brackets in (r"<[^<>]*>", r"\([^()]*\)", r"\{[^{}]*\}"):
        while (shorter := re.sub(brackets, "", declaration)) != declaration:
            declaration = shorter
    return declaration.split(",")


def _is_function(head: str) -> bool:
    """Whether a declaration has parameters: brackets outside template arguments and values."""
    if re.search(r"\boperator\b", head):
        return True
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    head = re.sub(r"\b(?:alignas|decltype|noexcept|requires)\s*\([^()]*\)", "", head)
    return "(" in re.split(r"=|\{", head)[0]
