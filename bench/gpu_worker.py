# SPDX-License-Identifier: GPL-2.0-or-later
"""A live training for bench/gpu, in float64: each node of the private Slurm has a GPU.

    gpu_worker.py ddp|sharded GPUS LIMIT

GPUS   of this machine, for nodes n1, n2, … in turn. 0: on the host, over gloo.
LIMIT  seconds, or with an "s" steps.

Rank 0 prints for each step: its number, the size of the world, the backend, and the loss of the
whole batch. Without elasticrun one process trains alone: the losses have to be the same.
"""

import os
import re
import sys
import time

kind, gpus, limit = sys.argv[1], int(sys.argv[2]), sys.argv[3]
name = os.environ.get("SLURMD_NODENAME", "n1")
node = int(re.search(r"\d+$", name).group())
os.environ["CUDA_VISIBLE_DEVICES"] = str((node - 1) % gpus) if gpus else ""
# NCCL lets two processes use one GPU if it takes them for processes of two hosts. They then talk
# by TCP.
os.environ["NCCL_HOSTID"] = name
os.environ["NCCL_SOCKET_IFNAME"] = "lo"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from slurm_elastic import ElasticSampler, live  # noqa: E402

BATCH, SAMPLES, WIDTH = 24, 240, 512

device = "cuda" if gpus else "cpu"
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Linear(64, WIDTH),
    torch.nn.Tanh(),
    torch.nn.Linear(WIDTH, WIDTH),
    torch.nn.Tanh(),
    torch.nn.Linear(WIDTH, 8),
).double()
x = torch.randn(SAMPLES, 64, dtype=torch.float64).to(device)
y = (torch.arange(SAMPLES) % 8).to(device)
model.to(device)


def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
sampler = ElasticSampler(SAMPLES, BATCH, seed=1)
options = {"shard": shard, "copy_every": 2} if kind == "sharded" else {}
state = live.State(model, optimizer, sampler, **options)


def whole(loss):
    """The loss of the whole batch, of this rank's part of it."""
    if not dist.is_initialized():
        return loss.detach()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def train(state):
    begun = time.monotonic()

    def is_over():
        return (
            state.steps >= int(limit[:-1])
            if limit.endswith("s")
            else time.monotonic() - begun > float(limit)
        )

    while not is_over():
        sampler.set_epoch(sampler.epoch)
        for drawn in sampler:
            loss = torch.nn.functional.cross_entropy(state.ddp(x[drawn]), y[drawn])
            loss = loss * sampler.loss_scale()
            loss.backward()
            total = whole(loss)
            state.step()
            if sampler.rank == 0:
                backend = dist.get_backend() if dist.is_initialized() else "alone"
                print(
                    f"step {state.steps} world {sampler.world_size} {backend} {float(total):.15g}",
                    flush=True,
                )
            if is_over():
                return
            if not limit.endswith("s"):
                time.sleep(0.02)
        sampler.set_epoch(sampler.epoch + 1)


live.run(train, state)
