"""A task as peers of a network: task_peer.py CONFIG IDS OUT torch|numpy [section.key=value …].

IDS may be empty: the process claims an id.
"""

import json
import logging
import sys

import gossamer
import torch
from tasks import NumpySoftmax, torch_task

config, ids, out, task, *settings = sys.argv[1:]
torch.set_num_threads(1)
logging.basicConfig(level=logging.INFO)
trained = torch_task() if task == "torch" else NumpySoftmax()
print(json.dumps(gossamer.peer(config, trained, ids or None, settings=settings, out=out)))
