#!/usr/bin/env python3
"""Measures how fast the others go on once they have lost a peer that says nothing: the time of their rounds, before and after.

    tests/chaos/silent_peer.py --program build/release/bin/gossamer --times 9

Each time the rounds of all eight are timed, one of them is stopped (SIGSTOP), and when all others have said that it is out of reach
their rounds are timed; it is killed, so that there is no process left that could hold anything up, and they are timed again; it is
started again. A process that is stopped leaves its part of the machine to the others, and its neighbours exchange a row less, so on
few cores rounds get shorter whatever its silence costs. That is in what the rounds take of the processors, beside what they take
when it is dead. Prints a line of JSON: the medians of rounds a second and of the CPU time of a survivor's round in all three
states, and the median, least and most of two ratios: of a round's time, silent over all there, and of its CPU time, silent over
killed. Exit code 1: a process ended by itself, or the median of a ratio is beyond 1.1.
"""

import json
import os
import signal
import statistics
import sys
import time
from pathlib import Path

from chaos_test_util import Trial, eventually, parser, run

MOST = 1.1


def cpu_seconds(process: int) -> float:
    """User's and system's (proc(5): fields 14 and 15; the second, a name, is in parentheses)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def round_times(
    trial: Trial, timed: list[int], survivors: list[int], seconds: float
) -> tuple[float, float]:
    """Of a round of those timed, and of the survivors' CPU time in it, each."""
    processes = [trial.peers[peer].process.pid for peer in survivors]
    begin, used = time.monotonic(), sum(map(cpu_seconds, processes))
    rate = trial.rounds_per_second(timed, seconds)
    busy = (sum(map(cpu_seconds, processes)) - used) / len(processes) / (time.monotonic() - begin)
    return 1 / rate, busy / rate


def main() -> int:
    words = parser(__doc__)
    words.add_argument("--times", type=int, default=9)
    words.add_argument("--seconds", type=float, default=3, help="for which rounds are timed")
    options = words.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"there": [], "silent": [], "killed": []}
    with Trial(options) as trial:
        trial.start()
        for index in range(options.times):
            victim = trial.chance.randrange(options.peers)
            others = [peer for peer in trial.everybody if peer != victim]
            said = {peer: trial.peers[peer].said_bytes for peer in others}

            def all_say(words: str, said: dict[int, int] = said) -> bool:
                return all(
                    words in trial.peers[peer].said_after(begin) for peer, begin in said.items()
                )

            found["there"].append(round_times(trial, trial.everybody, others, options.seconds))
            trial.peers[victim].process.send_signal(signal.SIGSTOP)
            eventually(
                "all miss who is silent",
                lambda v=victim, say=all_say: say(f"peer {v} is out of reach"),
            )
            found["silent"].append(round_times(trial, others, others, options.seconds))
            trial.peers[victim].end()
            found["killed"].append(round_times(trial, others, others, options.seconds))
            trial.peers[victim] = trial.net.start(str(victim), resume="auto")
            eventually(
                "all have it back",
                lambda say=all_say: say(f"all {options.peers} peers are within reach"),
            )
            trial.tell(f"{index + 1} of {options.times}")
    ratios = {
        "time_silent_over_there": [
            s[0] / t[0] for s, t in zip(found["silent"], found["there"], strict=True)
        ],
        "cpu_silent_over_killed": [
            s[1] / k[1] for s, k in zip(found["silent"], found["killed"], strict=True)
        ],
    }
    medians = {name: round(statistics.median(values), 3) for name, values in ratios.items()}
    print(
        json.dumps(
            {
                "rounds_per_second": {
                    state: round(1 / statistics.median(each[0] for each in times))
                    for state, times in found.items()
                },
                "cpu_microseconds": {
                    state: round(1e6 * statistics.median(each[1] for each in times))
                    for state, times in found.items()
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
    return 0 if max(medians.values()) <= MOST else 1


if __name__ == "__main__":
    sys.exit(run(main))
