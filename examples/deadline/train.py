# SPDX-License-Identifier: GPL-2.0-or-later
"""Fits a line with PyTorch, and tells elasticrun how much of the work is done.

srun elasticrun python3 train.py
"""

import argparse
import time

import slurm_elastic
import torch
import torch.nn.functional as F
from slurm_elastic import ElasticSampler, live
from torch.utils.data import DataLoader, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--global-batch", type=int, default=32, metavar="SAMPLES")
    parser.add_argument("--sample-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.manual_seed(0)
    x = torch.randn(1024, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = ElasticSampler(data, args.global_batch, seed=0)
    loader = DataLoader(data, batch_sampler=sampler)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    state = live.State(model, optimizer, sampler)
    total = args.epochs * len(sampler)

    def train(state):
        for epoch in range(sampler.epoch, args.epochs):
            sampler.set_epoch(epoch)
            for x, y in loader:
                # All the work, also that of worlds before, and of the run before a requeue.
                slurm_elastic.report_progress(state.steps, total)
                loss = F.mse_loss(state.ddp(x), y) * sampler.loss_scale()
                loss.backward()
                time.sleep(len(x) * args.sample_time)
                state.step()
            sampler.set_epoch(epoch + 1)
            slurm_elastic.save(state.state_dict())

    live.run(train, state)
    slurm_elastic.report_progress(state.steps, total)
    if sampler.rank == 0:
        print(f"steps={state.steps} weight={model.weight.mean().item():.2f}", flush=True)


if __name__ == "__main__":
    main()
