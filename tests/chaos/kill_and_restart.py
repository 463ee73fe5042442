#!/usr/bin/env python3
"""Kills processes of a network one after the other (SIGKILL), starts them again while the others train, and stops some (SIGSTOP).

    tests/chaos/kill_and_restart.py --program build/release/bin/gossamer --kills 1000

One victim in ten is not killed but stopped for a while, shorter than the silence, so that the others wait for it, or longer, so
that they lose it and it comes back by itself. These are not among the --kills. At the end the network is left alone for as long as
it needs, and every peer must stand where it stands when nothing happens. Prints one line of JSON: kills, stops and how many of them
were longer than the silence; the longest time from a kill until all others have said that the victim is out of reach; the longest
pause of a survivor between two records (each is of `--every` rounds), and of one that was stopped; and how far off peers were,
before each kill and while each victim was gone, of those looks that came late enough to demand anything, and in the end
(chaos_test_util.py). Exit code 1: a process ended by itself, nobody came back, a pause is longer than 10 s, or a row or a loss is off
by more than one percent.
"""

import argparse
import signal
import sys
import time

from chaos_test_util import Trial, eventually, parser, run


class Killer(Trial):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.longest_detection = 0.0

    def kill(self, victim: int, seconds: float) -> None:
        """It is gone for so long, and the time in which it is missed and joins."""
        others = [peer for peer in self.everybody if peer != victim]
        said = {peer: self.peers[peer].said_bytes for peer in others}
        killed = time.monotonic()
        self.peers[victim].process.kill()

        def all_miss_it() -> bool:
            self.look(others)
            return all(
                f"peer {victim} is out of reach" in self.peers[peer].said_after(said[peer])
                for peer in others
            )

        eventually(
            lambda: (
                f"all miss peer {victim}, but: {[self.peers[k].said_after(said[k]) for k in others]}"
            ),
            all_miss_it,
        )
        self.longest_detection = max(self.longest_detection, time.monotonic() - killed)
        self.change(others)
        self.wait(seconds, others)
        self.stand(others)
        self.peers[victim].process.wait()
        self.peers[victim] = self.net.start(str(victim), resume="auto")

        def joins() -> bool:
            self.look(others)
            return "joins in round" in self.peers[victim].said

        eventually(lambda: f"peer {victim} joins, but: {self.peers[victim].said}", joins)
        self.change(others)

    def stop(self, victim: int, seconds: float) -> None:
        """It does nothing for so long, and then catches up."""
        self.apart = {victim}
        self.peers[victim].process.send_signal(signal.SIGSTOP)
        self.wait(seconds)
        begin = self.records(victim)
        self.peers[victim].process.send_signal(signal.SIGCONT)

        def goes_on() -> bool:
            self.wait(0.01)
            return self.records(victim) > begin

        eventually(lambda: f"peer {victim} goes on, but: {self.peers[victim].said}", goes_on)
        self.reunite()


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--kills", type=int, default=20)
    words.add_argument(
        "--every-seconds",
        type=float,
        nargs=2,
        default=(0.5, 2.0),
        metavar=("LOW", "HIGH"),
        help="from one to the next; the victim is gone for half of it, and the time in which it joins comes on top",
    )
    words.add_argument("--silence", type=float, default=2, help="net.failure_timeout, in seconds")
    options = words.parse_args()
    options.sets.append(f"net.failure_timeout={options.silence}")
    with Killer(options) as trial:
        trial.start()
        done = {"kills": 0, "stops": 0, "stops_beyond_silence": 0}
        while done["kills"] < options.kills:
            half = trial.chance.uniform(*options.every_seconds) / 2
            trial.wait(half)
            trial.stand(trial.everybody)
            victim = trial.chance.randrange(options.peers)
            if trial.chance.random() >= 0.1:
                trial.kill(victim, half)
                done["kills"] += 1
            elif trial.chance.random() >= 0.5:
                trial.stop(victim, min(half, 0.8 * options.silence))
                done["stops"] += 1
            else:
                trial.stop(victim, trial.chance.uniform(1.2, 2) * options.silence)
                done["stops"] += 1
                done["stops_beyond_silence"] += 1
            trial.tell(f"{done['kills']} of {options.kills}")
        return trial.settle(
            {
                **done,
                "longest_detection_seconds": round(trial.longest_detection, 3),
                "longest_pause_stopped_seconds": round(trial.longest_apart, 3),
            }
        )


if __name__ == "__main__":
    sys.exit(run(main))
