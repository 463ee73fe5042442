#!/usr/bin/env python3
"""Kills processes of a network one after the other, by SIGKILL and SIGSTOP, and starts them again, while the others train.

    tests/chaos/kill_and_restart.py --program build/release/bin/gossamer --kills 1000

At the end the network is left alone until it has settled, and every peer must stand where it stands when nothing happens. Prints one
line of JSON: kills, longest pause of a survivor between two records (each is of `--every` rounds), and the largest relative difference of
a peer's loss from the undisturbed run's. Exit code 1: a process ended by itself, nobody came back, a pause is longer
than 10 s, or values differ by more than one percent.
"""

import signal
import sys

from chaos_words import Trial, eventually, parser, run


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--kills", type=int, default=20)
    words.add_argument("--every-seconds", type=float, nargs=2, default=(0.5, 2.0), metavar=("LOW", "HIGH"),
                       help="from one kill to the next; the victim is gone for half of it, and the time in which it joins comes on top")
    options = words.parse_args()
    with Trial(options) as trial:
        trial.start()
        for kill in range(options.kills):
            half = trial.chance.uniform(*options.every_seconds) / 2
            trial.wait(half)
            victim = trial.chance.randrange(options.peers)
            others = [peer for peer in trial.everybody if peer != victim]
            stalls = trial.chance.random() < 0.1
            trial.peers[victim].process.send_signal(signal.SIGSTOP if stalls else signal.SIGKILL)
            trial.wait(half, others)
            if stalls:
                trial.peers[victim].process.send_signal(signal.SIGCONT)
            else:
                trial.peers[victim].process.wait()
                trial.peers[victim] = trial.net.start(str(victim), resume="auto")
                eventually(lambda: f"peer {victim} joins, but: {trial.peers[victim].said}",
                           lambda v=victim, o=others: trial.look(o) or "joins in round" in trial.peers[v].said)
            trial.tell(f"{kill + 1} of {options.kills}")
        return trial.settle({"kills": options.kills})


if __name__ == "__main__":
    sys.exit(run(main))
