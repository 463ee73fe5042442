"""Decentralised training by gossip, with your own model and your own data.

    import gossamer.torch as gossip
    optimizer = gossip.Optimizer(optimizer, "run.toml")   # joins the network as one of its peers

run()       simulates all peers of a task in this process, in virtual time.
peer()      runs peers of the same task as part of a network of processes.
predict()   says what theory knows of a run, before it starts.
Averager    averages given arrays with the neighbours', without training; average() is one round
            of it.
moments()   is what peers tell each other of their samples, to scale them alike.
Trainer     is the protocol of a task: values in, values out, with NumPy arrays.
gossamer.torch   has Optimizer, Averager, average() and Task for PyTorch. Importing gossamer does
            not import it.

The program `gossamer` comes with the package; `gossamer run` and `gossamer peer`, or
`python -m gossamer`, load the file of a task that a configuration names. docs/TUTORIAL.md goes
from a loop to three machines, and docs/PYTHON.md has the rest.
"""

from gossamer._core import Error, __version__
from gossamer.averager import Averager, average
from gossamer.own_data import Moments, Scales, moments
from gossamer.runs import configuration, peer, predict, run
from gossamer.trainer import Trainer

__all__ = [
    "Averager",
    "Error",
    "Moments",
    "Scales",
    "Trainer",
    "__version__",
    "average",
    "configuration",
    "moments",
    "peer",
    "predict",
    "run",
]
