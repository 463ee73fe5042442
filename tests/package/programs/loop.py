"""A user's training loop as a peer: loop.py CONFIG PEER OUT [option=value …] [section.key=value …].

Prints a line for each step, and at the end a JSON object. Options: fail=7 raises an exception in
step 7, fail=exit calls sys.exit, nan=7 makes a gradient NaN, checked=1 checks gradients, pause=7
waits for a line on standard input before step 7; init=3 seeds the model; frozen=3 is a parameter
that is not the optimizer's; resume=auto; samples=9;
until=FILE ends the loop when there is this file, and leave=FILE leaves for good; moments=64 scales
the inputs as the peers agree, by 64 features or by all as one.
"""

import json
import signal
import sys
from pathlib import Path

import gossamer.torch as gossip
import torch
from tasks import accuracy_of, batch_of, loss_of, moments_of, sgd

config, peer, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
arguments = dict(argument.split("=", 1) for argument in sys.argv[4:])
options = {key: value for key, value in arguments.items() if "." not in key}
settings = {key: value for key, value in arguments.items() if "." in key}
pause, fail = int(options.get("pause", -1)), int(options.get("fail", -1))
torch.set_num_threads(1)
# Shells make their background jobs ignore it, and with them the tests that such a job runs.
signal.signal(signal.SIGINT, signal.default_int_handler)

torch.manual_seed(int(options.get("init", 0)))
model = torch.nn.Linear(64, 10)
trained = list(model.parameters())
if "frozen" in options:
    model.frozen = torch.nn.Parameter(torch.tensor(float(options["frozen"])), requires_grad=False)
optimizer = gossip.Optimizer(
    sgd(trained),
    config,
    peer,
    settings=settings,
    out=out,
    module=model,
    samples=int(options["samples"]) if "samples" in options else None,
    moments=moments_of(peer, int(options["moments"])) if "moments" in options else None,
    resume=options.get("resume", "none"),
    check_gradients="checked" in options,
)
print("joined", flush=True)
step, loss = optimizer.steps, None
while not optimizer.finished and not Path(options.get("until", "none")).exists():
    if step == pause:
        print("paused", flush=True)
        sys.stdin.readline()
    if step == fail:
        raise ZeroDivisionError("a bug of the user")
    if Path(options.get("leave", "none")).exists():
        optimizer.leave()
    optimizer.zero_grad()
    if not optimizer.is_server:
        inputs, targets = batch_of(peer, step)
        if "moments" in options:
            inputs = optimizer.scales(inputs)
        loss = loss_of(model, (inputs, targets))
        loss.backward()
    if step == int(options.get("nan", -1)):
        model.bias.grad[3] = float("nan")
    optimizer.step(loss=loss)
    step += 1
    print(f"step {step}", flush=True)
optimizer.close()
end = json.loads((out / f"log-{peer}.jsonl").read_text().splitlines()[-1])
print(json.dumps({"steps": step, "accuracy": accuracy_of(model)[1], "end": end}))
