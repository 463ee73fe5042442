"""Fetching MNIST: right files are kept, and no other ones."""

import hashlib
from pathlib import Path

import mnist
import pytest


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two small files in the place of MNIST's."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    files = []
    for file, content in zip(mnist.FILES, (b"images" * 100, b"labels"), strict=True):
        (folder / file.remote).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        files.append(mnist.RemoteFile(file.name, file.remote, len(content), sha256))
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    return folder


def run(folder: Path, *mirrors: str) -> int:
    return mnist.main([str(folder), *(text for url in mirrors for text in ("--from", url))])


def test_files_are_fetched_once(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    nowhere = (tmp_path / "nowhere").as_uri()
    assert run(folder, nowhere, mirror.as_uri()) == 0
    assert "2 of 2 files fetched" in capsys.readouterr().out
    assert (folder / "labels-idx1-ubyte.gz").read_bytes() == b"labels"
    assert len(list(folder.iterdir())) == 2
    assert run(folder, nowhere) == 0  # nothing is missing
    assert f"--set data.path={folder}" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"labelz", b"", b"labels" * 1000])
def test_other_files_are_refused(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (mirror / "t10k-labels-idx1-ubyte.gz").write_bytes(content)
    folder = tmp_path / "data"
    assert run(folder, mirror.as_uri()) == 1
    message = capsys.readouterr().err
    assert "no mirror has t10k-labels-idx1-ubyte.gz" in message
    assert "another file than the one that was expected" in message
    assert [path.name for path in folder.iterdir()] == ["images-idx3-ubyte.gz"]


def test_a_file_of_the_users_is_not_replaced(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "images-idx3-ubyte.gz").write_bytes(b"own")
    assert run(folder, mirror.as_uri()) == 1
    assert "move it away" in capsys.readouterr().err
    assert (folder / "images-idx3-ubyte.gz").read_bytes() == b"own"


def test_where_no_mirror_answers_each_is_named(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "data", (tmp_path / "a").as_uri(), "gopher://b") == 1
    message = capsys.readouterr().err
    assert "a/t10k-images-idx3-ubyte.gz: " in message
    assert "gopher://b/t10k-images-idx3-ubyte.gz: " in message
    assert "copy the files" in message
