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


def call(net: Network, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(net.program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def put_together(net: Network) -> subprocess.CompletedProcess[str]:
    return call(net, "collect", net.out, "--checkpoint")


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
    mean = net.folder / "mean.safetensors"
    averaged = call(net, "average", checkpoint / "round-00000008-0.json", "--output", mean)
    assert averaged.returncode == 0, averaged.stderr
    assert f", {whole['parameters']} parameters" in averaged.stdout
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
    refused = call(net, "collect", net.folder / "one", "--checkpoint")
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
    assert "are of rounds 12, 12" in refused.stderr
    assert "skipped round 12: part 1 of replica 0, 1 has no checkpoint of it\n" in refused.stderr
    for path in part.glob("round-*.json"):
        path.unlink()
    refused = put_together(net)
    assert refused.returncode == 3
    assert f"the workers of part 1 have no checkpoint in {part}" in refused.stderr


def test_files_of_two_runs_are_not_put_together(network: NetworkFactory) -> None:
    net = network(2, *MLP, *KEPT)
    runs = [net.folder / name for name in ("a", "b")]
    for out in runs:
        net.out = out
        start(net, 2, "split.layers=2", f"run.id={out.name}")
        finish(net)
    other = runs[0] / "part1of2" / "checkpoints"
    # Checkpoints of the other run, and a checkpoint under the name of another round.
    for path in sorted((runs[1] / "part1of2" / "checkpoints").glob("round-00000012-*")):
        path.replace(other / path.name)
    for path in sorted(other.glob("round-00000008-*")):
        path.rename(other / path.name.replace("00000008", "00000004"))
    net.out = runs[0]
    done = put_together(net)
    assert done.returncode == 3
    assert "it is of run b, and the logs are of run a" in done.stderr
    assert "it is of round 8, unlike its name" in done.stderr
    # Logs of the other run.
    (runs[0] / "part1of2").rename(runs[0] / "old")
    (runs[1] / "part1of2").rename(runs[0] / "part1of2")
    for path in (runs[0] / "old").rglob("*"):
        if path.is_file():
            path.unlink()
    refused = put_together(net)
    assert refused.returncode == 3
    assert "a folder may contain only one run" in refused.stderr


def test_own_data_without_test_samples_are_refused(network: NetworkFactory, tmp_path: Path) -> None:
    files = [tmp_path / f"{peer}.csv" for peer in range(2)]
    for number, file in enumerate(files):
        rows = [f"{number + k},{k % 3},{k % 2}" for k in range(40)]
        file.write_text("\n".join(["a,b,class", *rows]) + "\n")
    data = ("data.kind=csv", f"data.path={tmp_path}/{{peer}}.csv", "data.partition=own")
    own = (*data, 'data.class_names=["0","1"]')
    net = network(2, *MLP, *KEPT, *own)
    start(net, 2, "split.layers=2")
    finish(net)
    for path in net.out.rglob("final-*.safetensors"):
        path.unlink()  # as if it had been killed
    refused = put_together(net)
    assert refused.returncode == 2
    assert "depends on samples that the peers kept" in refused.stderr


def test_a_checkpoint_and_a_summary_are_not_asked_for_at_once(gossamer: Path) -> None:
    for other in ("--json", "--survivors"):
        command = [str(gossamer), "collect", ".", "--checkpoint", other]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert "excludes" in refused.stderr
