#!/usr/bin/env python3
"""Fills the disk of the checkpoints repeatedly, and kills and restarts a process while it is full.

    sudo tests/chaos/full_disk.py --program build/release/bin/gossamer --times 10

The checkpoints of all processes are on one small file system in memory. While it is full, all
processes train on and report the failed checkpoints, and a restarted process rejoins. After space
is freed, checkpoints are written again, and the newest one of each process must be complete.

Prints one line of JSON: how often the disk was full, the longest pause between two records of a
peer, and the distances of rows during the faults and at the end (chaos_test_util.py). Exit code 1:
a process ended, a checkpoint is damaged, a pause is longer than 10 s, or a row or a loss deviates
by more than 1 %. Needs root to mount; otherwise it prints the reason, and the exit code is 77.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from chaos_test_util import PeerProcess, Trial, wait_until, argument_parser, run


@contextlib.contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[None]:
    folder.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "gossamer-chaos", str(folder)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Writes the file until no space is left."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as out:
        while out.write(b"\0" * 4096):
            pass


class DiskTrial(Trial):
    disk: Path

    def launch(self, peer: int) -> PeerProcess:
        return self.net.start(
            str(peer), f"checkpoint.folder={self.disk}", "checkpoint.every=500", resume="auto"
        )

    def newest(self, peer: int) -> int:
        return max(
            (int(file.name.split("-")[1]) for file in self.disk.glob(f"round-*-{peer}.json")),
            default=0,
        )


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("needs root, to mount a small file system", file=sys.stderr)
        return 77
    with DiskTrial(options) as trial:
        trial.disk = trial.folder / "disk"
        with small_disk(trial.disk, 1024):
            trial.start()
            for index in range(options.times):
                reported = [peer.stderr.count("checkpoint") for peer in trial.peers]
                fill(trial.disk / "filler")

                def all_report(reported: list[int] = reported) -> bool:
                    trial.wait(0.05)
                    return all(
                        trial.peers[k].stderr.count("checkpoint") > reported[k]
                        for k in trial.all_peers
                    )

                wait_until("all processes report the failed checkpoint", all_report)
                victim = trial.rng.randrange(options.peers)
                trial.peers[victim].process.kill()
                trial.peers[victim].process.wait()
                trial.wait(trial.rng.uniform(0, 1), [k for k in trial.all_peers if k != victim])
                trial.peers[victim] = trial.launch(victim)
                wait_until(
                    lambda: f"peer {victim} joins; it printed: {trial.peers[victim].stderr}",
                    lambda v=victim: "joins in round" in trial.peers[v].stderr,
                )
                trial.membership_changed(trial.all_peers)
                before = [trial.newest(k) for k in trial.all_peers]
                (trial.disk / "filler").unlink()

                def written(before: list[int] = before) -> bool:
                    trial.wait(0.05)
                    return all(trial.newest(k) > before[k] for k in trial.all_peers)

                wait_until("all processes write checkpoints again", written)
                trial.sample(trial.all_peers)
                trial.show_progress(f"{index + 1} of {options.times}")
            code = trial.finish({"times_full": options.times})
            for k in trial.all_peers:
                checkpoint = f"{trial.disk}/round-{trial.newest(k):08d}-{k}.safetensors"
                checked = subprocess.run(
                    [
                        str(trial.net.program),
                        "average",
                        checkpoint,
                        "-o",
                        str(trial.folder / "mean.safetensors"),
                    ],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert checked.returncode == 0, checked.stderr
            return code


if __name__ == "__main__":
    sys.exit(run(main))
