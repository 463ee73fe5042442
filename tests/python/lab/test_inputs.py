"""A sweep runs a cell again if a file that the run reads has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lab.inputs
import pytest
from lab.cells import configuration_hash
from lab.inputs import InputFiles, digest


@pytest.mark.parametrize("key", ["topology.path", "data.path", "model.file", "sim.latency_file"])
@pytest.mark.parametrize("given", ["in the configuration", "by --set", "as an axis"])
def test_a_changed_file_is_run_again(lab: Any, tmp_path: Path, key: str, given: str) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    section, _, name = key.partition(".")
    text = (tmp_path / "small.toml").read_text(encoding="utf-8")
    if given == "in the configuration":
        file = folder / "input.txt"  # beside the configuration
        table = f"[{section}]\n"
        line = f'{name} = "input.txt"\n'
        text = text.replace(table, table + line) if table in text else f"{text}{table}{line}"
    else:
        file = tmp_path / "input.txt"  # in the working folder
    (folder / "run.toml").write_text(text, encoding="utf-8")
    setting = f"{key}=input.txt"
    options = {"by --set": ("--set", setting), "as an axis": (setting,)}.get(given, ())

    def complete() -> str:
        done = lab("sweep", "configs/run.toml", *options, "--out", "out")
        assert done.returncode == 0, done.stderr
        return done.stderr.partition("\n")[0].rpartition(", ")[2]

    file.write_text("0 1\n", encoding="utf-8")
    assert (complete(), complete()) == ("0 of them complete", "1 of them complete")
    file.write_text("0 2\n", encoding="utf-8")
    assert (complete(), complete()) == ("0 of them complete", "1 of them complete")
    file.write_text("0 1\n", encoding="utf-8")
    assert complete() == "0 of them complete"


def test_a_hash_without_files_is_that_of_earlier_sweeps(tmp_path: Path) -> None:
    config = {"run": {"seed": 0}, "data": {"path": "nowhere", "test_path": ""}}
    inputs = InputFiles(tmp_path / "run.toml", ()).digests(config, ())
    assert inputs == {}
    assert configuration_hash(config, {}, False, inputs) == "a9bb055d3027937d12d12065e8b71a84"
    (tmp_path / "nowhere").touch()
    inputs = InputFiles(tmp_path / "run.toml", ()).digests(config, ())
    assert list(inputs) == ["data.path"]
    assert configuration_hash(config, {}, False, inputs) != configuration_hash(config, {}, False)


def test_folders_that_runs_write_are_no_inputs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keys = ("local.out", "checkpoint.folder", "net.rendezvous", "net.members", "net.key")
    config = {key.partition(".")[0]: {} for key in keys}
    for key in keys:
        config[key.partition(".")[0]][key.partition(".")[2]] = "file"
    assert InputFiles(tmp_path / "run.toml", ()).digests(config, ()) == {}


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("images", lambda folder: (folder / "images" / "deep" / "b").write_bytes(b"other")),
        ("images", lambda folder: (folder / "images" / "c").touch()),
        ("images", lambda folder: (folder / "images" / "a").rename(folder / "images" / "d")),
        ("own-{peer}.csv", lambda folder: (folder / "own-1.csv").write_bytes(b"other")),
    ],
)
def test_a_folder_has_the_digest_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, change: Callable[[Path], Any]
) -> None:
    (tmp_path / "images" / "deep").mkdir(parents=True)
    for name in ("images/a", "images/deep/b", "own-0.csv", "own-1.csv"):
        (tmp_path / name).write_bytes(name.encode())
    before = digest(tmp_path / path)
    assert before and before == digest(tmp_path / path)
    monkeypatch.setattr(lab.inputs, "_MOST_BYTES", 3)  # too large to be read
    unread = digest(tmp_path / path)
    assert unread and unread != before
    change(tmp_path)
    assert digest(tmp_path / path) != unread
    monkeypatch.undo()
    assert digest(tmp_path / path) != before


def test_the_labels_beside_images_count(tmp_path: Path) -> None:
    images, labels = tmp_path / "images-idx3-ubyte", tmp_path / "labels-idx1-ubyte"
    images.write_bytes(b"images")
    labels.write_bytes(b"labels")
    config = {"data": {"kind": "idx", "path": images.name}}
    before = InputFiles(tmp_path / "run.toml", ()).digests(config, ())
    labels.write_bytes(b"others")
    assert InputFiles(tmp_path / "run.toml", ()).digests(config, ()) != before
