# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on handwritten digits; each world starts it from a checkpoint.

    srun elasticrun python3 train_restart.py

For scripts that cannot live on in the next world, as train_elastic.py does.
"""

import argparse
import time

import digits
import slurm_elastic
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--global-batch", type=int, default=128, metavar="SAMPLES")
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--num-workers", type=int, default=0, help="of the data loader")
    parser.add_argument("--checkpoint", metavar="DIR", help="default: the job's own")
    parser.add_argument("--log", metavar="FILE", help="append what each step has trained on")
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def main():
    args = parse_arguments()
    dtype = getattr(torch, args.dtype)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    train_set, held_out = digits.load(dtype)
    sampler = slurm_elastic.ElasticSampler(train_set, args.global_batch, seed=args.seed)
    loader = DataLoader(
        train_set,
        batch_sampler=sampler,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model = digits.build_model(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    log = digits.Log(args.log, rank, world, len(train_set))

    state = slurm_elastic.load_latest(args.checkpoint)
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])

    def save():
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        slurm_elastic.save({**state, "sampler": sampler.state_dict()}, args.checkpoint)

    parallel = DistributedDataParallel(model)
    for epoch in range(sampler.epoch, args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y, index) in enumerate(loader, sampler.step):
            scale = sampler.loss_scale()
            loss = F.cross_entropy(parallel(x), y) * scale
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sampler.commit()
            log.step(epoch, step, index.tolist() if scale else [], loss.item())
            if rank == 0:
                print(f"epoch {epoch} step {step} world {world} loss {loss.item():.4f}", flush=True)
            time.sleep(args.step_time)
            if slurm_elastic.elastic_event_detected():
                save()
                slurm_elastic.leave()
        sampler.set_epoch(epoch + 1)
        save()

    if rank == 0:
        print(f"accuracy={digits.accuracy(model, held_out):.4f}", flush=True)


if __name__ == "__main__":
    main()
