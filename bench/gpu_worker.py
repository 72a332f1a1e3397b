# SPDX-License-Identifier: GPL-2.0-or-later
"""A live training for bench/gpu: each node of the private Slurm has one GPU of this machine.

    gpu_worker.py GPUS SECONDS    GPUS 0: on the host, over gloo

All ranks know the loss of each step from a training by one process, and compare.
"""

import os
import re
import sys
import time

gpus, seconds = int(sys.argv[1]), float(sys.argv[2])
node = int(re.search(r"\d+$", os.environ["SLURMD_NODENAME"]).group())
os.environ["CUDA_VISIBLE_DEVICES"] = str((node - 1) % gpus) if gpus else ""

import torch  # noqa: E402
from slurm_elastic import ElasticSampler, live  # noqa: E402

BATCH, SAMPLES = 24, 240

device = "cuda" if gpus else "cpu"
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 8)).to(
    device
)
x = torch.randn(SAMPLES, 64).to(device)
y = (torch.arange(SAMPLES) % 8).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
sampler = ElasticSampler(SAMPLES, BATCH, seed=1)
state = live.State(model, optimizer, sampler)


def train(state):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sampler.set_epoch(sampler.epoch)
        for drawn in sampler:
            loss = torch.nn.functional.cross_entropy(state.ddp(x[drawn]), y[drawn])
            (loss * sampler.loss_scale()).backward()
            state.step()
            if sampler.rank == 0:
                backend = torch.distributed.get_backend()
                print(f"step {state.steps} world {sampler.world_size} {backend}", flush=True)
            time.sleep(0.02)
        sampler.set_epoch(sampler.epoch + 1)


live.run(train, state)
