"""Errors of the package name arguments of Python where those of the program name options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossamer
import pytest
from conftest import Configure
from gossamer.messages import with_arguments
from tasks import NumpySoftmax

ALONE = {"run.peers": 1, "topology.kind": "complete"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stop them, and start again, with --resume auto", 'with resume="auto"'),
        ("another folder (checkpoint.folder, --out)", "(checkpoint.folder, out=…)"),
        ("choose another with --out, before you try again", "with out=…, before"),
        ("--resume a folder: there is none", 'resume="a folder": there is none'),
        ("--set run.rounds=x: 'x' is not", "settings: run.rounds=x: 'x' is not"),
        ("give it one with --id, or a key", "with ids=…, or a key"),
        ("runs/my--out already contains", "runs/my--out already"),
        ("runs/a--resume auto/log", "runs/a--resume auto/log"),
        ("`gossamer collect --checkpoint` puts", "`gossamer collect --checkpoint` puts"),
    ],
)
def test_options_become_arguments(text: str, expected: str) -> None:
    assert expected in with_arguments(text)


def simulated(config: Path, out: Path, **more: Any) -> None:
    gossamer.run(config, NumpySoftmax(), out=out, **more)


def as_peer(config: Path, out: Path, **more: Any) -> None:
    gossamer.peer(config, NumpySoftmax(), 0, settings=ALONE, out=out, **more)


@pytest.mark.parametrize("start", [simulated, as_peer])
def test_a_folder_with_a_run_is_refused_in_terms_of_python(
    configure: Configure, tmp_path: Path, start: Callable[..., None]
) -> None:
    config, out = configure(1, 2), tmp_path / "out"
    start(config, out)
    with pytest.raises(gossamer.Error) as refused:
        start(config, out)
    assert refused.value.exit_code == 3
    text = str(refused.value)
    assert 'resume it with resume="auto", choose another folder with out=…, or remove it' in text
    if start is as_peer:  # whose others may need it no more
        start(config, out, resume="auto")
    else:
        with pytest.raises(
            gossamer.Error, match="the log of a finished run.*folder with out=…, or"
        ):
            start(config, out, resume="auto")
    with pytest.raises(gossamer.Error, match='^resume=".*none here": there is no such folder'):
        start(config, tmp_path / "new", resume=str(tmp_path / "none here"))


@pytest.mark.parametrize("argument", ["ids", "peer"])
def test_a_message_names_the_argument_of_the_call_that_has_the_ids(
    configure: Configure, argument: str
) -> None:
    """With net.seeds, a process that no other can call claims no id."""
    settings = {
        **ALONE,
        "net.seeds": ["127.0.0.1:1"],
        "net.advertise": "none",
        "net.rendezvous": "",
    }
    with pytest.raises(gossamer.Error, match=rf"give it one with {argument}=…, or a key"):
        if argument == "ids":
            gossamer.peer(configure(1, 2), NumpySoftmax(), settings=settings)
        else:
            gossamer.Averager([NumpySoftmax().initial(0)], configure(1, 2), settings=settings)


def test_an_empty_list_of_ids_is_refused(configure: Configure) -> None:
    with pytest.raises(gossamer.Error, match="^ids: the list is empty"):
        gossamer.peer(configure(1, 2), NumpySoftmax(), [])


@pytest.mark.parametrize(
    ("out", "message"), [("a\0b", "out: .* has a null character"), ("\udcff", "out: .* not UTF-8")]
)
def test_a_name_that_no_run_folder_can_have_is_that_of_the_argument(
    configure: Configure, out: str, message: str
) -> None:
    with pytest.raises(gossamer.Error, match=message):
        simulated(configure(1, 2), Path(out))


def test_an_averager_too(configure: Configure, tmp_path: Path) -> None:
    values, config = NumpySoftmax().initial(0), configure(1, 1)
    with gossamer.Averager([values], config, 0, settings=ALONE, out=tmp_path) as averager:
        averager.average()
    with pytest.raises(gossamer.Error, match='with resume="auto", choose .* with out=…'):
        gossamer.Averager([values], config, 0, settings=ALONE, out=tmp_path)
