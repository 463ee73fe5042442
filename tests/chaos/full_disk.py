#!/usr/bin/env python3
"""Trains with checkpoints on a disk that fills up and is freed again, and kills and restarts a process while it is full.

    sudo tests/chaos/full_disk.py --program build/release/bin/gossamer --times 10

The checkpoints of all processes are on one small file system in memory. While it is full everybody trains on and says so; what is
restarted comes back; when there is room again checkpoints are written again, and the newest of each process is whole. Prints one
line of JSON: how often it was full, longest pause between two records of a peer, and how far off peers were on the way and in the
end (chaos_test_util.py). Exit code 1: a process ended by itself, a checkpoint is damaged, a pause is longer than 10 s, or a row or a
loss is off by more than one percent. Needs root (to mount); without, exit code 77, and the reason.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from chaos_test_util import Peer, Trial, eventually, parser, run


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
    """Until not a byte is left."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as out:
        while out.write(b"\0" * 4096):
            pass


class DiskTrial(Trial):
    disk: Path

    def launch(self, peer: int) -> Peer:
        return self.net.start(
            str(peer), f"checkpoint.folder={self.disk}", "checkpoint.every=500", resume="auto"
        )

    def newest(self, peer: int) -> int:
        return max(
            (int(file.name.split("-")[1]) for file in self.disk.glob(f"round-*-{peer}.json")),
            default=0,
        )


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--times", type=int, default=5)
    options = words.parse_args()
    if os.geteuid() != 0:
        print("needs root, to mount a small file system", file=sys.stderr)
        return 77
    with DiskTrial(options) as trial:
        trial.disk = trial.folder / "disk"
        with small_disk(trial.disk, 1024):
            trial.start()
            for index in range(options.times):
                said = [peer.said.count("checkpoint") for peer in trial.peers]
                fill(trial.disk / "filler")

                def all_say(said: list[int] = said) -> bool:
                    trial.wait(0.05)
                    return all(
                        trial.peers[k].said.count("checkpoint") > said[k] for k in trial.everybody
                    )

                eventually("all say that there is no room for their checkpoint", all_say)
                victim = trial.chance.randrange(options.peers)
                trial.peers[victim].process.kill()
                trial.peers[victim].process.wait()
                trial.wait(trial.chance.uniform(0, 1), [k for k in trial.everybody if k != victim])
                trial.peers[victim] = trial.launch(victim)
                eventually(
                    lambda: f"peer {victim} joins, but: {trial.peers[victim].said}",
                    lambda v=victim: "joins in round" in trial.peers[v].said,
                )
                trial.change(trial.everybody)
                before = [trial.newest(k) for k in trial.everybody]
                (trial.disk / "filler").unlink()

                def written(before: list[int] = before) -> bool:
                    trial.wait(0.05)
                    return all(trial.newest(k) > before[k] for k in trial.everybody)

                eventually("all write checkpoints again", written)
                trial.stand(trial.everybody)
                trial.tell(f"{index + 1} of {options.times}")
            code = trial.settle({"full": options.times})
            for k in trial.everybody:
                whole = f"{trial.disk}/round-{trial.newest(k):08d}-{k}.safetensors"
                checked = subprocess.run(
                    [
                        str(trial.net.program),
                        "average",
                        whole,
                        whole,
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
