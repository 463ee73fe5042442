"""The documentation names only files and tests that exist, and its links resolve."""

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
# A path of the repository in backticks. Names in capitals and patterns with * are placeholders.
PATH = re.compile(r"`((?:src|tests|docs|experiments|scripts|cmake)/[\w./-]+)`")
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
TEST = re.compile(r"`(test_\w+)`")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
EXAMPLES = {"src/topology/kinds/wheel.cpp"}  # files of a tutorial
FIELDS = {"test_loss", "test_accuracy"}  # of a log


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
        if path not in EXAMPLES and not (ROOT / path.removesuffix(".")).exists()
    ]
    links = LINK.findall(CODE.sub("", text))
    missing += [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in TEST.findall(text) if name not in test_names | FIELDS]
    assert not missing, "\n".join(missing)
