# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on handwritten digits, in a world that grows and shrinks around it.

srun elasticrun python3 train_elastic.py
"""

import argparse
import time

import digits
import slurm_elastic
import torch
import torch.nn.functional as F
from slurm_elastic import live
from torch.utils.data import DataLoader


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--global-batch", type=int, default=128, metavar="SAMPLES")
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--num-workers", type=int, default=0, help="of the data loader")
    parser.add_argument("--log", metavar="FILE", help="append what each step has trained on")
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def main():
    args = parse_arguments()
    dtype = getattr(torch, args.dtype)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

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
    state = live.State(model, optimizer, sampler)

    def train(state):
        rank, world = sampler.rank, sampler.world_size
        log = digits.Log(args.log, rank, world, len(train_set))
        for epoch in range(sampler.epoch, args.epochs):
            sampler.set_epoch(epoch)
            for step, (x, y, index) in enumerate(loader, sampler.step):
                scale = sampler.loss_scale()
                loss = F.cross_entropy(state.ddp(x), y) * scale
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                log.step(epoch, step, index.tolist() if scale else [], loss.item())
                if rank == 0:
                    print(
                        f"epoch {epoch} step {step} world {world} loss {loss.item():.4f}",
                        flush=True,
                    )
                time.sleep(args.step_time)
                state.commit()
            sampler.set_epoch(epoch + 1)
            slurm_elastic.save(state.state_dict())

    live.run(train, state)
    if sampler.rank == 0:
        print(f"accuracy={digits.accuracy(model, held_out):.4f}", flush=True)


if __name__ == "__main__":
    main()
