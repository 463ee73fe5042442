#!/usr/bin/env python3
"""Measures the rounds of the other peers before and after they have lost a peer that is stopped.

    tests/chaos/silent_peer.py --program build/release/bin/gossamer --times 9

Each repetition measures the rounds of all eight peers; of the other seven after one is stopped
(SIGSTOP) and lost; and of the other seven after the stopped process is killed, so that it cannot
delay anything. Then it restarts the process. A stopped process leaves its share of the machine to
the others, and its neighbours exchange one row less, so rounds become shorter on few cores. The
script therefore also measures the CPU time of a round and compares it with that after the kill.

Prints one line of JSON: the medians of rounds per second and of a survivor's CPU time per round in
all three states, and the median, least and largest of two ratios: the time of a round, silent over
complete, and the CPU time of a round, silent over killed. Exit code 1: a process ended, or the
median of a ratio is larger than 1.1.
"""

import json
import os
import signal
import statistics
import sys
import time
from pathlib import Path

from chaos_test_util import Trial, wait_until, argument_parser, run

MAX_RATIO = 1.1


def cpu_seconds(process: int) -> float:
    """User and system time: fields 14 and 15 of /proc/PID/stat, proc(5).

    Field 2, a name in parentheses, may contain spaces.
    """
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def round_times(
    trial: Trial, timed: list[int], survivors: list[int], seconds: float
) -> tuple[float, float]:
    """Seconds of a round of the timed peers, and CPU seconds of a survivor in it."""
    processes = [trial.peers[peer].process.pid for peer in survivors]
    begin, used = time.monotonic(), sum(map(cpu_seconds, processes))
    rate = trial.rounds_per_second(timed, seconds)
    busy = (sum(map(cpu_seconds, processes)) - used) / len(processes) / (time.monotonic() - begin)
    return 1 / rate, busy / rate


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3, help="the time of each measurement")
    options = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {"complete": [], "silent": [], "killed": []}
    with Trial(options) as trial:
        trial.start()
        for index in range(options.times):
            victim = trial.rng.randrange(options.peers)
            others = [peer for peer in trial.all_peers if peer != victim]
            printed = {peer: trial.peers[peer].stderr_bytes for peer in others}

            def all_print(text: str, printed: dict[int, int] = printed) -> bool:
                return all(
                    text in trial.peers[peer].stderr_after(begin) for peer, begin in printed.items()
                )

            times["complete"].append(round_times(trial, trial.all_peers, others, options.seconds))
            trial.peers[victim].process.send_signal(signal.SIGSTOP)
            wait_until(
                "all others report the loss of the stopped peer",
                lambda v=victim, check=all_print: check(f"peer {v} is unreachable"),
            )
            times["silent"].append(round_times(trial, others, others, options.seconds))
            trial.peers[victim].kill()
            times["killed"].append(round_times(trial, others, others, options.seconds))
            trial.peers[victim] = trial.net.start(str(victim), resume="auto")
            wait_until(
                "all report the return of the peer",
                lambda check=all_print: check(f"all {options.peers} peers are reachable"),
            )
            trial.show_progress(f"{index + 1} of {options.times}")
    ratios = {
        "time_silent_over_complete": [
            s[0] / t[0] for s, t in zip(times["silent"], times["complete"], strict=True)
        ],
        "cpu_silent_over_killed": [
            s[1] / k[1] for s, k in zip(times["silent"], times["killed"], strict=True)
        ],
    }
    medians = {name: round(statistics.median(values), 3) for name, values in ratios.items()}
    print(
        json.dumps(
            {
                "rounds_per_second": {
                    state: round(1 / statistics.median(each[0] for each in measured))
                    for state, measured in times.items()
                },
                "cpu_microseconds": {
                    state: round(1e6 * statistics.median(each[1] for each in measured))
                    for state, measured in times.items()
                },
                **{
                    name: {
                        "median": medians[name],
                        "least": round(min(values), 3),
                        "most": round(max(values), 3),
                    }
                    for name, values in ratios.items()
                },
            }
        )
    )
    return 0 if max(medians.values()) <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(run(main))
