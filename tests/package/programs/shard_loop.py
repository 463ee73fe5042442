"""One rank of a model that FSDP shards, as a peer: shard_loop.py CONFIG PEER RANK OUT [option …].

The two ranks of a peer are a process group of gloo. Prints the whole parameters as JSON at the end.
Options: stop=4 leaves after 4 steps; resume=auto; shard=1 names another shard than the rank's.
"""

import json
import sys
from pathlib import Path

import gossamer.torch as gossip
import torch
import torch.distributed as dist
from tasks import batch_of, loss_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2
config, peer, rank, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
options = dict(argument.split("=", 1) for argument in sys.argv[5:])
torch.set_num_threads(1)
meeting = f"file://{out}/group-{peer}-{options.get('resume')}"
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)

torch.manual_seed(0)
model = torch.nn.Linear(64, 10)
fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,)))
optimizer = gossip.Optimizer(
    torch.optim.Adam(model.parameters(), lr=0.01),
    config,
    peer,
    module=model,
    shard=(int(options.get("shard", rank)), RANKS),
    out=out / "run",
    resume=options.get("resume", "none"),
)
print("joined", flush=True)
while not optimizer.finished and optimizer.steps < int(options.get("stop", 1000)):
    optimizer.zero_grad()
    loss = loss_of(model, batch_of(peer, optimizer.steps))  # both ranks: FSDP takes their mean
    loss.backward()
    optimizer.step(loss=loss)
optimizer.close()
whole = {name: tensor.full_tensor().tolist() for name, tensor in model.named_parameters()}
print(json.dumps({"steps": optimizer.steps, "parameters": whole}))
dist.destroy_process_group()
