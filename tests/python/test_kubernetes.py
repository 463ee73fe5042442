"""deploy/kubernetes.yaml: which pods start anew. tests/launchers.sh runs the whole network."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

LEFT_OUT = "the run is not complete: peer 3 was cut off from others, and left out 2 of 9 rounds"


def script(folder: Path) -> str:
    """The command of a pod, with folders of this machine."""
    text = (ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")
    (stateful,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "StatefulSet")
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/bin/sh", "-c"]
    (command,) = container["args"]
    for path in ("/keys/", "/own-key/", "/run/gossamer/"):
        assert path in command
        command = command.replace(path, f"{folder}{path}")
    return str(command)


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("code", "message", "stays"),
    [
        (0, "", True),
        (5, LEFT_OUT, True),
        (5, "peer 2 was lost", False),
        (5, None, False),  # no log: the run has not begun
        (3, LEFT_OUT, False),
        (4, None, False),
    ],
)
def test_a_pod_stays_whose_peer_did_the_last_round(
    tmp_path: Path, code: int, message: str | None, stays: bool
) -> None:
    """Programs in the places of gossamer and of the sleep that keeps a pod."""
    for name in ("keys", "own-key", "run/gossamer/digits", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "keys" / "peer.key").touch()
    if message is not None:
        end = f'{{"record":"end","reason":"lost_peer","message":"{message}","rounds":7}}'
        log = tmp_path / "run" / "gossamer" / "digits" / "log-3.jsonl"
        log.write_text(f'{{"record":"header"}}\n{end}\n', encoding="utf-8")
    write_program(tmp_path / "bin" / "gossamer", f"exit {code}")
    write_program(tmp_path / "bin" / "sleep", 'echo "stays: $1"')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", script(tmp_path)],
        env={**os.environ, "PATH": path, "GOSSAMER_ID": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == ("stays: infinity\n" if stays else "")
    assert done.returncode == (0 if stays else code)


def test_the_message_of_rounds_left_out_is_the_one_that_a_pod_looks_for(tmp_path: Path) -> None:
    begin = '"the run is not complete: '
    assert f"grep -q '{begin}'" in script(tmp_path) and f'"{LEFT_OUT}"'.startswith(begin)
    source = ROOT / "src" / "peer" / "runtime" / "network_place.cpp"
    assert begin in source.read_text(encoding="utf-8")
