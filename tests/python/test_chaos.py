"""The scripts of tests/chaos, for a few seconds each: that they work, and that what they hold the network to is true."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[1] / "chaos"


@pytest.mark.parametrize("words", [("kill_and_restart", "--kills", "3"), ("bad_links", "--faults", "6"),
                                   ("partitions", "--partitions", "2"), ("full_disk", "--times", "1")], ids=lambda words: words[0])
def test_a_network_bears_it(gossamer: Path, words: tuple[str, ...]) -> None:
    script, *options = words
    done = subprocess.run([sys.executable, str(CHAOS / f"{script}.py"), "--program", str(gossamer), "--peers", "4", "--every", "50",
                           *options], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["largest_difference"] <= 0.01
