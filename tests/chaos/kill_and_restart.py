#!/usr/bin/env python3
"""Kills processes of a network (SIGKILL) and restarts them, and stops some (SIGSTOP).

    tests/chaos/kill_and_restart.py --program build/release/bin/gossamer --kills 1000

One victim in ten is stopped instead of killed. A stop shorter than the failure timeout makes the
other peers wait. After a longer one they lose the victim, and it rejoins by itself. Stops do not
count as --kills. At the end every peer must have the result of a run without faults.

Prints one line of JSON: the kills, the stops and the stops beyond the failure timeout; the longest
time from a kill until all other peers have reported the loss; the longest pause between two records
(one per `--every` rounds) of a peer, and of a stopped peer; and the distances of rows before each
kill, during the absence of each victim and at the end (chaos_test_util.py). Exit code 1: a process
ended or did not rejoin, a pause is longer than 10 s, or a row or a loss deviates by more than 1 %.
"""

import argparse
import signal
import sys
import time

from chaos_test_util import Trial, wait_until, argument_parser, run


class KillTrial(Trial):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.longest_detection = 0.0

    def kill(self, victim: int, seconds: float) -> None:
        """Kills the victim, restarts it `seconds` after all others have reported its loss."""
        others = [peer for peer in self.all_peers if peer != victim]
        printed = {peer: self.peers[peer].stderr_bytes for peer in others}
        killed = time.monotonic()
        self.peers[victim].process.kill()

        def all_report_the_loss() -> bool:
            self.measure_pauses(others)
            return all(
                f"peer {victim} is unreachable" in self.peers[peer].stderr_after(printed[peer])
                for peer in others
            )

        wait_until(
            lambda: (
                f"all report the loss of peer {victim}; they printed: "
                f"{[self.peers[k].stderr_after(printed[k]) for k in others]}"
            ),
            all_report_the_loss,
        )
        self.longest_detection = max(self.longest_detection, time.monotonic() - killed)
        self.membership_changed(others)
        self.wait(seconds, others)
        self.sample(others)
        self.peers[victim].process.wait()
        self.peers[victim] = self.net.start(str(victim), resume="auto")

        def joins() -> bool:
            self.measure_pauses(others)
            return "joins in round" in self.peers[victim].stderr

        wait_until(lambda: f"peer {victim} joins; it printed: {self.peers[victim].stderr}", joins)
        self.membership_changed(others)

    def stop(self, victim: int, seconds: float) -> None:
        """Stops the victim for `seconds` and waits until it trains again."""
        self.isolated = {victim}
        self.peers[victim].process.send_signal(signal.SIGSTOP)
        self.wait(seconds)
        begin = self.round_records(victim)
        self.peers[victim].process.send_signal(signal.SIGCONT)

        def trains() -> bool:
            self.wait(0.01)
            return self.round_records(victim) > begin

        wait_until(lambda: f"peer {victim} trains; it printed: {self.peers[victim].stderr}", trains)
        self.all_reconnected()


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--every-seconds",
        type=float,
        nargs=2,
        default=(0.5, 2.0),
        metavar=("LOW", "HIGH"),
        help="seconds between faults; a killed victim is restarted after half of it",
    )
    parser.add_argument(
        "--failure-timeout", type=float, default=2, help="net.failure_timeout, in seconds"
    )
    options = parser.parse_args()
    options.sets.append(f"net.failure_timeout={options.failure_timeout}")
    with KillTrial(options) as trial:
        trial.start()
        done = {"kills": 0, "stops": 0, "stops_beyond_timeout": 0}
        while done["kills"] < options.kills:
            half = trial.rng.uniform(*options.every_seconds) / 2
            trial.wait(half)
            trial.sample(trial.all_peers)
            victim = trial.rng.randrange(options.peers)
            if trial.rng.random() >= 0.1:
                trial.kill(victim, half)
                done["kills"] += 1
            elif trial.rng.random() >= 0.5:
                trial.stop(victim, min(half, 0.8 * options.failure_timeout))
                done["stops"] += 1
            else:
                trial.stop(victim, trial.rng.uniform(1.2, 2) * options.failure_timeout)
                done["stops"] += 1
                done["stops_beyond_timeout"] += 1
            trial.show_progress(f"{done['kills']} of {options.kills}")
        return trial.finish(
            {
                **done,
                "longest_detection_seconds": round(trial.longest_detection, 3),
                "longest_pause_stopped_seconds": round(trial.longest_isolated_pause, 3),
            }
        )


if __name__ == "__main__":
    sys.exit(run(main))
