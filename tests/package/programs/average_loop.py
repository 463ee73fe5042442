"""Averages ten values, each the peer's id: average_loop.py CONFIG PEER OUT [option=value …].

Prints the rounds and the values as JSON at the end. Options: pause=7 waits for a line on
standard input before round 7; resume=auto; until=FILE ends the loop when there is this file.
"""

import json
import sys
from pathlib import Path

import gossamer
import numpy as np

config, peer, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = dict(argument.split("=", 1) for argument in sys.argv[4:])
values = np.full(10, float(peer))
rounds = 0
averager = gossamer.Averager([values], config, peer, out=out, resume=options.get("resume", "none"))
print("joined", values.tolist(), flush=True)
while not averager.finished and not Path(options.get("until", "none")).exists():
    if rounds == int(options.get("pause", -1)):
        print("paused", flush=True)
        sys.stdin.readline()
    averager.average()
    rounds += 1
averager.close()
print(json.dumps({"rounds": rounds, "values": values.tolist()}))
