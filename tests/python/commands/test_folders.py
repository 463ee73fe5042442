"""Folders in which commands cannot write, or which are gone."""

import json
import subprocess

from network_test_util import DEADLINE, NetworkFactory


def test_collect_prints_the_results_also_where_it_cannot_write(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=3")
    net.run_in_one_process()
    summary = net.folder / "one" / "summary.json"
    printed = summary.read_text(encoding="utf-8")
    summary.unlink()
    summary.mkdir()  # root may write where permissions say otherwise
    done = subprocess.run(
        [net.program, "collect", "--json", summary.parent],
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert json.loads(done.stdout)["final_hash"] == json.loads(printed)["final_hash"]
    assert f"cannot write {summary}: it is no regular file but a folder" in done.stderr


def test_a_working_folder_that_is_gone_is_named(network: NetworkFactory) -> None:
    net = network(2, "run.rounds=3")
    gone = net.folder / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "{net.program}" run --out x'
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("gossamer: the working folder: "), done.stderr
