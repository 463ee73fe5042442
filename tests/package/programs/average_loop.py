"""Averages ten values, each the peer's id: average_loop.py CONFIG PEER OUT [pause=7] [resume=auto].

Prints the rounds and the values as JSON at the end. pause=7 waits for a line on standard input
before round 7.
"""

import json
import sys

import gossamer
import numpy as np

config, peer, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = dict(argument.split("=", 1) for argument in sys.argv[4:])
values = np.full(10, float(peer))
rounds = 0
averager = gossamer.Averager([values], config, peer, out=out, resume=options.get("resume", "none"))
print("joined", values.tolist(), flush=True)
while not averager.finished:
    if rounds == int(options.get("pause", -1)):
        print("paused", flush=True)
        sys.stdin.readline()
    averager.average()
    rounds += 1
print(json.dumps({"rounds": rounds, "values": values.tolist()}))
