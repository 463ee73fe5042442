"""Checkpoints of cut models, put together: a run goes on from them however it is cut then."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from network_test_util import Network, NetworkFactory

MLP = ("model.kind=mlp", "model.hidden=[32,32,32]", "data.batch=16", "topology.kind=complete")
KEPT = ("run.rounds=12", "log.every=12", "checkpoint.every=4", "checkpoint.keep=3")
LAYERS, SLICES = "split.layers=3", "split.parameters=2"


def start(net: Network, workers: int, *sets: str, resume: Path | None = None) -> None:
    for replica in range(net.peers):
        for part in range(workers):
            ids = f"{replica}.{part}" if workers > 1 else str(replica)
            net.start(ids, *sets, resume=str(resume or "none"))


def finish(net: Network) -> None:
    codes = net.wait()
    assert codes == [0] * len(codes), [peer.stderr for peer in net.processes]
    net.processes.clear()


def put_together(net: Network) -> subprocess.CompletedProcess[str]:
    return net.collect("--checkpoint")


def checkpoint_after_8_rounds(net: Network, workers: int, cut: str) -> Path:
    """The folder of the checkpoint of a run whose worker 1.0 lacks the one of its last round."""
    start(net, workers, cut)
    finish(net)
    for path in (net.out / f"part0of{workers}" / "checkpoints").glob("round-00000012-1.*"):
        path.unlink()
    done = put_together(net)
    assert done.returncode == 0, done.stderr
    manifest = Path(done.stdout.strip())
    assert manifest == net.out / "checkpoints" / "round-00000008-0.json"
    return manifest.parent


def resume_in_one_process(net: Network, checkpoint: Path, *sets: str) -> dict[str, Any]:
    out = net.folder / f"resumed{'-'.join(sets)}"
    options = ("--quiet", "--json", "--out", str(out), "--resume", str(checkpoint))
    done = subprocess.run(
        net.command("run", *options, sets=sets), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "resuming from the checkpoint of round 8" in done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.mark.parametrize(
    ("workers", "cut", "sets"),
    [
        (3, LAYERS, ("optimizer.momentum=0.9",)),
        (2, SLICES, ("algorithm.kind=gradient_tracking", "optimizer.kind=adam")),
        (2, SLICES, ("algorithm.kind=push_sum", "run.init=different")),
    ],
    ids=["momentum", "gradient tracking and Adam", "push-sum"],
)
def test_a_run_goes_on_however_it_is_cut(
    network: NetworkFactory, workers: int, cut: str, sets: tuple[str, ...]
) -> None:
    net = network(2, *MLP, *KEPT, *sets)
    whole = net.run_in_one_process()
    checkpoint = checkpoint_after_8_rounds(net, workers, cut)
    saved = json.loads((checkpoint / "round-00000008-0.json").read_text())
    assert "part" not in saved
    assert [node["node"] for node in saved["nodes"]] == [0, 1]
    # The same cut and another one, in one process and in many; and whole models.
    for other in ((), (SLICES,), (LAYERS, SLICES)):
        assert resume_in_one_process(net, checkpoint, *other)["final_hash"] == whole["final_hash"]
    for number, (parts, other) in enumerate(((1, ()), (2, ("split.layers=2",)), (2, (SLICES,)))):
        net.out = net.folder / f"out-{number}"
        start(net, parts, *other, resume=checkpoint)
        finish(net)
        summary = net.summary()
        assert summary["final_hash"] == whole["final_hash"]
        assert summary["final"] == whole["final"]


def test_what_replicas_have_sent_counts_once(network: NetworkFactory) -> None:
    net = network(2, *MLP, *KEPT)
    start(net, 2, SLICES)
    finish(net)
    sent = net.summary()["bytes_sent"]
    for path in net.out.glob("part*of2/checkpoints/round-00000012-0.*"):
        path.unlink()
    checkpoint = Path(put_together(net).stdout.strip()).parent
    net.out = net.folder / "again"
    start(net, 2, "split.layers=2", resume=checkpoint)
    finish(net)
    # Rows are cut at other values, so that the number of messages, and their headers, differ.
    assert net.summary()["bytes_sent"] == pytest.approx(sent, rel=0.05)


def test_workers_go_on_from_a_run_that_was_not_cut(network: NetworkFactory) -> None:
    net = network(2, *MLP, *KEPT, "optimizer.momentum=0.9")
    whole = net.run_in_one_process()
    checkpoint = net.folder / "one" / "checkpoints" / "round-00000008-0.json"
    start(net, 2, SLICES, resume=checkpoint)
    finish(net)
    assert net.summary()["final_hash"] == whole["final_hash"]


def test_checkpoints_that_do_not_fit_are_refused(network: NetworkFactory) -> None:
    net = network(2, *MLP, *KEPT)
    net.run_in_one_process()
    refused = subprocess.run(
        [str(net.program), "collect", str(net.folder / "one"), "--checkpoint"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "the models of this run are not cut over processes" in refused.stderr

    start(net, 2, "split.layers=2")
    finish(net)
    # The part of one worker is no checkpoint of whole models, nor of another part.
    part = net.out / "part1of2" / "checkpoints"
    whole = net.start("0", out=net.folder / "other", resume=str(part))
    assert whole.wait() == 2
    assert "split.layers is 2 there and 1 here" in whole.stderr
    for worker in ("0.0", "0.1"):
        net.start(worker, "split.layers=2", out=net.folder / "other", resume=str(part))
    assert 0 not in net.wait()
    assert "has part 1 of cut models, and not what this process holds" in net.processes[1].stderr
    net.processes.clear()
    # Of the files of all workers none may be missing or damaged: an earlier round is taken.
    damaged = part / "round-00000012-1.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    done = put_together(net)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("round-00000008-0.json")
    assert "skipped" in done.stderr
    assert str(damaged) in done.stderr
    for path in part.glob("round-*-0.json"):
        path.unlink()
    refused = put_together(net)
    assert refused.returncode == 3
    assert "there is no round of which all workers have a checkpoint" in refused.stderr
