"""docs/PYTHON.md: its complete programs, and the commands of its examples.

docs/TUTORIAL.md has its own tests, and parts of a loop are in those of the package.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import digits
import numpy as np
import pytest
from conftest import ROOT
from gossamer.task_file import load_module

PAGE = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")


def blocks(heading: str, language: str) -> list[str]:
    """The blocks of code of a section, in a language."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [text for each, text in found if each == language]


def the_run() -> str:
    """The page's run.toml."""
    (text,) = blocks("A peer in three lines", "toml")
    return text


def replaced(text: str, old: str, new: str) -> str:
    """The text with `new` in place of `old`, which must be there once."""
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


def start(folder: Path, command: str, **environment: str) -> "subprocess.Popen[str]":
    python = shlex.quote(sys.executable)
    return subprocess.Popen(
        ["bash", "-ec", f'python3() {{ {python} "$@"; }}\n{command}'],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process: "subprocess.Popen[str]") -> str:
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    return output


def test_a_task_without_pytorch(tmp_path: Path) -> None:
    """The page says to what the peers come."""
    (tmp_path / "run.toml").write_text(the_run(), encoding="utf-8")
    (program,) = blocks("Without PyTorch", "python")
    (tmp_path / "mean.py").write_text(program, encoding="utf-8")
    output_of(start(tmp_path, "python3 mean.py"))
    (parameters,) = (tmp_path / "runs").glob("*/final-0.safetensors")
    tensors = digits.read_tensors(parameters)
    assert len(tensors) == 3
    for name, values in tensors.items():
        assert np.abs(values - 1).max() < 0.01, name


def test_averaging(tmp_path: Path) -> None:
    """On this machine, in fewer rounds."""
    run = replaced(the_run(), "local_steps = 4 ", "local_steps = 1 ")
    run, _ = replaced(run, "rounds = 1000", "rounds = 20").split("[net]")
    net = '[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\n'
    (tmp_path / "run.toml").write_text(run + net, encoding="utf-8")
    (program,) = blocks("Averaging without training", "python")
    (tmp_path / "average.py").write_text(program, encoding="utf-8")
    started = [start(tmp_path, "python3 average.py", GOSSAMER_ID=str(peer)) for peer in range(3)]
    for process in started:
        values = re.fullmatch(r"tensor\(\[(.*)\]\)\n", output_of(process))
        assert values, "the program prints the tensor alone"
        assert np.abs(np.array(values[1].split(", "), float) - 1).max() < 1e-3


def commands(heading: str) -> list[str]:
    """Of the examples in a section."""
    (block,) = blocks(heading, "")
    first, *others = block.splitlines()
    assert first == "export PYTHONPATH=build/release/python"
    return others


def test_the_commands_of_the_numpy_example(tmp_path: Path) -> None:
    """One after the other in one folder, with a round each: no run is in the way of another."""
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    chosen = [each for each in commands("Without PyTorch") if "numpy_peer.py" in each]
    assert len(chosen) == 2
    for command in chosen:
        output = output_of(start(tmp_path, replaced(command, ".py", ".py --rounds 1")))
        assert "1 rounds: test loss" in output or "finished after 1 rounds" in output, output


def test_the_commands_of_the_pytorch_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs take their options, and all are of different runs; nothing is trained."""
    runs = []

    def train(task: Any, options: Any, **model: object) -> dict[str, Any]:
        runs.append((options.peers, options.rounds, *model.items()))
        return {}

    for command in commands("Examples with PyTorch"):
        (script, arguments) = re.findall(r"(experiments/\S+\.py)([^#&]*)", command)[0]
        words = shlex.split(arguments.replace("$i", "0"))
        short = ["--sample", "1"] if script.endswith("gpt.py") else []
        monkeypatch.setattr(sys, "argv", [script, *words, *short])
        module = load_module(ROOT / script)
        monkeypatch.setattr(module.example, "train", train)
        module.main()
    assert len(set(runs)) == len(runs) == 5
