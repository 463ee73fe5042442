"""The scripts of tests/chaos, for a few seconds each: that they work, and that what they hold the network to is true."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[1] / "chaos"


@pytest.mark.parametrize("words", [("kill_and_restart", "--kills", "3"), ("bad_links", "--faults", "6"),
                                   ("partitions", "--partitions", "2"), ("full_disk", "--times", "1")], ids=lambda words: words[0])
def test_a_network_bears_it(gossamer: Path, words: tuple[str, ...]) -> None:
    script, *options = words
    command = [sys.executable, str(CHAOS / f"{script}.py"), "--program", str(gossamer), "--peers", "4", "--every", "50", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            found, said = running.communicate(timeout=1200)  # beyond the script's own patience
        finally:
            running.send_signal(signal.SIGINT)  # where it still runs it ends its processes, and what else it made
    if running.returncode == 77:
        pytest.skip(said.strip())
    assert running.returncode == 0, said
    assert json.loads(found)["largest_difference"] <= 0.01
