"""docs/TUTORIAL.md: its programs and its commands, as a reader would type them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGE, ROOT
from process_test_util import ReservedPort

sys.path.insert(0, str(ROOT / "experiments"))
from lab.tutorial_page import blocks, program  # noqa: E402


class Reader:
    """A reader, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.write("train.py", program())

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def change(self, *sections: int) -> None:
        """Makes the changes of these sections."""
        self.write("train.py", program(*sections))
        self.write("run.toml", blocks(2, "toml")[0])

    def process(self, command: str) -> "subprocess.Popen[str]":
        python = shlex.quote(sys.executable)
        programs = f'python() {{ {python} "$@"; }}; gossamer() {{ {python} -m gossamer "$@"; }}\n'
        return subprocess.Popen(
            ["bash", "-c", programs + command],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> str:
        process = self.process(command)
        output = process.communicate(timeout=120)[0]
        assert process.returncode == 0, output
        return output


def accuracies(output: str) -> list[int]:
    found = re.findall(r"site \d: (\d+)% of the test points", output)
    assert len(found) == 3, output
    return [int(each) for each in found]


def test_three_peers_on_one_machine(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "site")
    (command,) = blocks(1, "sh")
    assert all(55 <= each <= 72 for each in accuracies(reader.type(command)))
    reader.change(2)
    (start, clean) = blocks(3, "sh")
    apart = accuracies(reader.type(start))
    assert all(each >= 80 for each in apart)
    reader.type(clean)
    reader.change(2, 4)
    (start, collect) = blocks(4, "sh")
    together = accuracies(reader.type(start))
    assert all(each >= 95 for each in together) and min(together) > max(apart)
    summary = reader.type(collect)
    assert "finished after 250 rounds: 3 peers, ring, 4547 parameters" in summary
    assert "bytes sent              27390000" in summary  # on every machine
    shown = blocks(4, "")[1]
    assert [line[:26] for line in shown.splitlines()] == [
        line[:26] for line in summary.splitlines()
    ]


def test_three_machines(tmp_path: Path) -> None:
    """Folders in place of machines; loopback addresses and keys in place of the page's."""
    readers = [Reader(tmp_path / f"machine{site}") for site in range(3)]
    keygen = blocks(5, "sh")[0]
    keys = [reader.type(keygen).splitlines()[0] for reader in readers]
    (net,) = blocks(5, "toml")
    with ReservedPort() as first, ReservedPort() as second, ReservedPort() as third:
        join_by_addresses(readers, net, dict(zip((first, second, third), keys, strict=True)))


def join_by_addresses(readers: list[Reader], net: str, keys: dict[str, str]) -> None:
    """`keys`: the public key of each address."""
    _, doctor, start = blocks(5, "sh")
    for address, key in keys.items():
        net = re.sub(
            r'"10\.0\.0\.\d:7000", key = ".*?"', f'"{address}", key = "{key}"', net, count=1
        )
    for site, reader in enumerate(readers):
        reader.change(2, 4, 6)
        run = blocks(2, "toml")[0]
        reader.write("run.toml", run[: run.index("[net]")] + net)
        found = reader.process(doctor.replace("--id 0", f"--id {site}")).communicate(timeout=60)[0]
        assert "configuration     3 peers on ring; the model is the program's" in found
        assert "problem" not in found, found
    started = [
        reader.process(start.replace("GOSSAMER_ID=0", f"GOSSAMER_ID={site}"))
        for site, reader in enumerate(readers)
    ]
    output = "".join(each.communicate(timeout=120)[0] for each in started)
    assert all(each >= 95 for each in accuracies(output))


def test_the_page_shows_what_it_prints() -> None:
    """The figures of the page are in the bounds that are tested above."""
    shown = [accuracies(blocks(number, "")[0]) for number in (1, 3, 4)]
    assert max(shown[0]) <= 72 and min(shown[1]) >= 80 and min(shown[2]) >= 95


@pytest.mark.parametrize("number", [2, 4, 6])
def test_changes_are_few(number: int) -> None:
    added = [
        line for diff in blocks(number, "diff") for line in diff.splitlines() if line[0] == "+"
    ]
    assert len(added) <= 3
