"""A task as peers of a network: task_peer.py CONFIG IDS OUT KIND [section.key=value …].

KIND is torch, numpy or scaled. IDS may be empty: the process claims an id.
"""

import json
import logging
import sys

import gossamer
import torch
from tasks import NumpySoftmax, scaled_task, torch_task

config, ids, out, task, *settings = sys.argv[1:]
torch.set_num_threads(1)
logging.basicConfig(level=logging.INFO)
trained = {"torch": torch_task, "numpy": NumpySoftmax, "scaled": scaled_task}[task]()
print(json.dumps(gossamer.peer(config, trained, ids or None, settings=settings, out=out)))
