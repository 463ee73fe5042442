"""The documentation and the comments name only files and tests that exist, and links resolve."""

import re
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "experiments" / "papers").rglob("*.md"),
    ]
)
MODULES = "|".join(sorted(path.name for path in (ROOT / "src").iterdir()))
# A path of the repository, or of src/, in backticks. Names in capitals and patterns with * are
# placeholders.
PATH = re.compile(rf"`((?:src|tests|docs|experiments|scripts|cmake|python|{MODULES})/[\w./-]+)`")
# The same in a comment of C++, where it is a file.
COMMENTED = re.compile(
    rf"//.*?(?<![\w/.])((?:src|tests|docs|experiments|{MODULES})/[\w./]+\.(?:[ch]pp|md|cu|py))\b"
)
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
TEST = re.compile(r"`(test_\w+)`")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
EXAMPLES = {"src/topology/kinds/wheel.cpp"}  # files of a tutorial
FIELDS = {"test_loss", "test_accuracy"}  # of a log


def exists(path: str) -> bool:
    return (ROOT / path).exists() or (ROOT / "src" / path).exists()


@pytest.fixture(scope="module")
def test_names() -> set[str]:
    """The names of all Python test functions and C++ test programs."""
    names = set()
    for path in (ROOT / "tests").glob("p*/**/test_*.py"):  # python, package
        names.add(path.stem)
        names |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    names |= {f"test_{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir()}
    return names | {"test_cuda_gpu"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_links_and_tests_exist(page: Path, test_names: set[str]) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [
        path
        for path in PATH.findall(text)
        if path not in EXAMPLES and not exists(path.removesuffix("."))
    ]
    links = LINK.findall(CODE.sub("", text))
    missing += [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in TEST.findall(text) if name not in test_names | FIELDS]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("folder", ["src", "tests", "python"])
def test_comments_name_files_that_exist(folder: str) -> None:
    missing = [
        f"{source.relative_to(ROOT)}: {path}"
        for source in sorted((ROOT / folder).rglob("*"))
        if source.suffix in (".hpp", ".cpp", ".cu")
        for path in COMMENTED.findall(source.read_text(encoding="utf-8"))
        if not exists(path)
    ]
    assert not missing, "\n".join(missing)
