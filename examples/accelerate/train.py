# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on numbers that it makes itself, with Accelerate.

srun elasticrun python3 train.py
"""

import argparse
import json
import os
import time

import slurm_elastic
import torch
from elastic_accelerate import new_accelerator
from slurm_elastic import ElasticSampler, live
from torch.utils.data import DataLoader, TensorDataset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, x):
        return self.layers(x)


def shard(model, mesh):
    """Called in each world, with a mesh of all its workers."""
    from torch.distributed.fsdp import fully_shard

    for each in model.layers:
        if isinstance(each, torch.nn.Linear):
            fully_shard(each, mesh=mesh)
    fully_shard(model, mesh=mesh)


def shard_in_units(model, mesh):
    """Each unit of --elastic-replica=N nodes has all of the model (HSDP)."""
    shard(model, slurm_elastic.unit_mesh(mesh.device_type))


def total(model):
    """The same on all ranks."""
    values = (each.detach().sum() for each in model.parameters())
    return float(sum(v.full_tensor() if hasattr(v, "full_tensor") else v for v in values))


def log(args, sampler, indices, steps, model, optimizer):
    """A JSON line for each step of this process."""
    if args.log is None:
        return
    record = {
        "epoch": sampler.epoch,
        "step": sampler.step,
        "rank": sampler.rank,
        "world": sampler.world_size,
        "generation": slurm_elastic.generation(),
        "indices": indices,
        "global_step": steps,
        "total": total(model),
        "rate": optimizer.param_groups[0]["lr"],
    }
    with open(os.path.join(args.log, str(os.getpid())), "a") as file:
        file.write(json.dumps(record) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--global-batch", type=int, default=32, metavar="SAMPLES")
    parser.add_argument("--clip", type=float, default=1.0, metavar="NORM", help="of the gradients")
    parser.add_argument("--fsdp", action="store_true", help="shard the model by fully_shard()")
    parser.add_argument("--hybrid", action="store_true", help="shard it inside each unit (HSDP)")
    parser.add_argument(
        "--log", metavar="DIR", help="a file for each process: what its steps have trained on"
    )
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(200, 12, dtype=torch.float64)
    dataset = TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long(), torch.arange(len(x)))
    sampler = ElasticSampler(dataset, args.global_batch, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler)
    net = Net().double()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(sgd, 40, gamma=0.9)
    function = shard_in_units if args.hybrid else shard if args.fsdp else None
    state = live.State(net, sgd, scheduler, sampler, shard=function)

    def train(state):
        accelerator = new_accelerator(state, cpu=True)
        model, optimizer = accelerator.prepare(net, sgd)
        for epoch in range(sampler.epoch, args.epochs):
            sampler.set_epoch(epoch)
            for x, y, index in loader:
                time.sleep(args.step_time)
                scale = sampler.loss_scale()  # uneven batches, every sample weighs the same
                loss = torch.nn.functional.cross_entropy(model(x), y) * scale
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), args.clip)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                log(args, sampler, index.tolist() if scale else [], state.steps + 1, net, sgd)
                state.commit()
        return total(net)

    parameters = live.run(train, state)
    if sampler.rank == 0:
        print(f"trained {state.steps} steps, parameters {parameters:.9f}", flush=True)


if __name__ == "__main__":
    main()
