# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network that is sharded by fully_shard (FSDP2); each world starts it from a
checkpoint, into which each worker of the world before has written its part.

    srun elasticrun --mode=restart python3 train_dcp.py

Needs PyTorch 2.13 or later to run on CPUs. For what cannot live on in the next world, as
train_fsdp.py does: other meshes, tensor parallelism, parameters that are placed in other ways.
"""

import argparse
import time

import digits
import slurm_elastic
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--global-batch", type=int, default=128, metavar="SAMPLES")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--log", metavar="FILE", help="append what each step has trained on")
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def main():
    args = parse_arguments()
    dtype = getattr(torch, args.dtype)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    slurm_elastic.init()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    train_set, held_out = digits.load(dtype)
    sampler = slurm_elastic.ElasticSampler(train_set, args.global_batch, seed=args.seed)
    loader = DataLoader(train_set, batch_sampler=sampler)
    model = digits.build_model(dtype)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    log = digits.Log(args.log, rank, world, len(train_set))

    objects = {"model": model, "optimizer": optimizer, "sampler": sampler}
    slurm_elastic.load_latest(into=objects, dcp=True)

    for epoch in range(sampler.epoch, args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y, index) in enumerate(loader, sampler.step):
            scale = sampler.loss_scale()
            loss = F.cross_entropy(model(x), y) * scale
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            sampler.commit()
            log.step(epoch, step, index.tolist() if scale else [], loss.item())
            if rank == 0:
                print(f"epoch {epoch} step {step} world {world} loss {loss.item():.4f}", flush=True)
            time.sleep(args.step_time)
            if slurm_elastic.elastic_event_detected():
                slurm_elastic.save(objects, dcp=True)
                slurm_elastic.leave()
        sampler.set_epoch(epoch + 1)
        slurm_elastic.save(objects, dcp=True, background=True)

    # Each worker has a part of the model: all evaluate together.
    accuracy = digits.accuracy(model, held_out)
    if rank == 0:
        print(f"accuracy={accuracy:.4f}", flush=True)
    slurm_elastic.wait_for_save()


if __name__ == "__main__":
    main()
