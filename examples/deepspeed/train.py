# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on numbers that it makes itself, with DeepSpeed and ZeRO.

srun elasticrun --mode=restart python3 train.py
"""

import argparse
import time

import slurm_elastic
import torch
import torch.distributed as dist
from elastic_deepspeed import initialize, load, save
from slurm_elastic import ElasticSampler
from torch.utils.data import DataLoader, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--global-batch", type=int, default=32, metavar="SAMPLES")
    parser.add_argument("--stage", type=int, choices=[1, 2], default=2, help="of ZeRO, default 2")
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def loss_of_all(loss):
    """The mean over the global batch."""
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def main():
    args = parse_arguments()
    slurm_elastic.init()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(200, 12)
    dataset = TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    engine = initialize(model, optimizer, {"zero_optimization": {"stage": args.stage}})
    sampler = ElasticSampler(dataset, args.global_batch, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler)
    load(engine, sampler=sampler)
    for epoch in range(sampler.epoch, args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader, sampler.step):
            scale = sampler.loss_scale()  # uneven batches, every sample weighs the same
            loss = torch.nn.functional.cross_entropy(engine(x), y) * scale
            engine.backward(loss)
            engine.step()
            sampler.commit()
            mean = loss_of_all(loss)
            if dist.get_rank() == 0:
                world = dist.get_world_size()
                print(f"epoch {epoch} step {step} world {world} loss {mean:.9f}", flush=True)
            time.sleep(args.step_time)
            if slurm_elastic.elastic_event_detected():
                save(engine, sampler=sampler)
                slurm_elastic.leave()
    save(engine, sampler=sampler)


if __name__ == "__main__":
    main()
