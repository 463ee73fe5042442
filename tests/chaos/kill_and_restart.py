#!/usr/bin/env python3
"""Kills processes of a network one after the other, by SIGKILL and SIGSTOP, and starts them again, while the others train.

    tests/chaos/kill_and_restart.py --program build/release/bin/gossamer --kills 1000

Which and when follows from --seed; how the processes interleave does not. At the end the network is left alone until it has settled,
and every peer must stand where it stands when nothing happens. Prints one line of JSON: kills, longest pause of a survivor between two
records (each is of `--every` rounds), and the largest relative difference of a peer's loss from the undisturbed run's.
Exit code 1: a process ended by itself, nobody came back, or values differ by more than one percent.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from network_words import Network, Peer, eventually

SETTLED = 4000  # rounds after which the undisturbed run stands still


class Progress:
    """How long survivors take from one record to the next."""

    def __init__(self, net: Network) -> None:
        self.net, self.longest = net, 0.0
        self.seen: dict[int, tuple[int, float]] = {}

    def look(self, alive: list[int]) -> None:
        now = time.monotonic()
        self.seen = {peer: self.seen[peer] for peer in alive if peer in self.seen}
        for peer in alive:
            log = self.net.out / f"log-{peer}.jsonl"
            size = log.stat().st_size if log.is_file() else 0
            before, since = self.seen.get(peer, (size, now))
            self.longest = max(self.longest, now - since)
            self.seen[peer] = (size, now) if size != before else (before, since)


def losses(lines: list[str], last: bool) -> dict[int, float]:
    """Each peer's last loss, or the one before: the very last is of a round in which the others stopped."""
    found: dict[int, list[float]] = {}
    for record in map(json.loads, lines):
        if record["record"] == "round":
            found.setdefault(record["peer"], []).append(record["test_loss"])
    return {peer: values[-1 if last else -2] for peer, values in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=200, help="rounds between records")
    parser.add_argument("--between", type=float, nargs=2, default=(0.5, 2.0), metavar=("LOW", "HIGH"), help="seconds between kills")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
    options = parser.parse_args()
    program = options.program.resolve()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="gossamer-chaos-") as folder:
        sets = ("topology.kind=exponential", "algorithm.kind=gradient_tracking", "model.kind=linear", "data.kind=quadratic",
                "data.heterogeneity=1", "optimizer.rate=0.02", "data.batch=0", f"log.every={options.every}", *options.sets)
        still = Network(program, Path(folder) / "still", options.peers, *sets, f"run.rounds={SETTLED}")
        still.run_here()
        wanted = losses((still.folder / "one" / "log-0.jsonl").read_text(encoding="utf-8").splitlines(), last=True)
        net = Network(program, Path(folder) / "net", options.peers, *sets, "run.rounds=1000000000")
        peers: list[Peer] = [net.start(str(k)) for k in range(options.peers)]
        progress = Progress(net)

        def wait(seconds: float, alive: list[int]) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                progress.look(alive)
                for peer in alive:
                    if peers[peer].process.poll() is not None:
                        raise AssertionError(f"peer {peer} ended by itself: {peers[peer].said}")
                time.sleep(0.01)

        everybody = list(range(options.peers))
        try:
            net.running(*everybody)
            for kill in range(options.kills):
                wait(chance.uniform(*options.between), everybody)
                victim = chance.randrange(options.peers)
                others = [peer for peer in everybody if peer != victim]
                stalls = chance.random() < 0.1
                peers[victim].process.send_signal(signal.SIGSTOP if stalls else signal.SIGKILL)
                wait(chance.uniform(*options.between), others)
                if stalls:
                    peers[victim].process.send_signal(signal.SIGCONT)
                else:
                    peers[victim].process.wait()
                    peers[victim] = net.start(str(victim), resume="auto")
                    eventually(f"peer {victim} joins, but: {peers[victim].said}",
                               lambda v=victim, o=others: progress.look(o) or "joins in round" in peers[v].said)
                if sys.stderr.isatty():
                    print(f"\r{kill + 1} of {options.kills}, longest pause {progress.longest:.2f} s", end="", file=sys.stderr)
            longest = progress.longest
            begin = {k: (net.out / f"log-{k}.jsonl").read_text(encoding="utf-8").count('"record":"round"') for k in everybody}
            records = SETTLED // options.every + 2
            eventually("all settle", lambda: wait(0.2, everybody) or all(
                (net.out / f"log-{k}.jsonl").read_text(encoding="utf-8").count('"record":"round"') > begin[k] + records
                for k in everybody), 600)
            for peer in peers:
                peer.process.send_signal(signal.SIGINT)
            for peer in peers:
                peer.wait()
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            net.end()
        found = losses([line for k in everybody for line in (net.out / f"log-{k}.jsonl").read_text(encoding="utf-8").splitlines()],
                       last=False)
        difference = max(abs(found[k] - wanted[k]) / abs(wanted[k]) for k in everybody)
        print(json.dumps({"kills": options.kills, "longest_pause_seconds": round(longest, 3), "largest_difference": difference}))
        return 0 if difference <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
