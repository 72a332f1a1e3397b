# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network that is sharded by fully_shard (FSDP2), in a world that grows and shrinks.

srun elasticrun python3 train_fsdp.py

Needs PyTorch 2.13 or later. What differs from train_elastic.py: shard(), and state.save().
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
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--log", metavar="FILE", help="append what each step has trained on")
    parser.add_argument(
        "--copy-every",
        type=int,
        default=10,
        metavar="STEPS",
        help="copies in the memory of other nodes; 0: none",
    )
    parser.add_argument(
        "--snapshot-every",
        type=int,
        default=0,
        metavar="STEPS",
        help="snapshots in the memory of all nodes, for the loss of all workers at once",
    )
    parser.add_argument(
        "--hybrid",
        action="store_true",
        help="each unit of --elastic-replica=N nodes has all of the model (HSDP)",
    )
    parser.add_argument(
        "--tensor",
        action="store_true",
        help="tensor parallelism inside each unit, whose workers share their samples",
    )
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    return parser.parse_args()


def shard(model, mesh):
    """Called in each world, with a mesh of all its workers, or of its units."""
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def shard_in_units(model, mesh):
    shard(model, slurm_elastic.unit_mesh(mesh.device_type))


def shard_by_tensor(model, mesh):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    inside = {"shard": 1, "tensor": slurm_elastic.unit().size}
    mesh = slurm_elastic.unit_mesh(mesh.device_type, inside)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    # Workers that go on have no values to send: live.State brings them.
    parallelize_module(model, mesh["tensor"], plan, src_data_rank=None)
    fully_shard(model, mesh=mesh["replicate", "shard"])  # sums gradients over the units


def main():
    args = parse_arguments()
    dtype = getattr(torch, args.dtype)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    train_set, held_out = digits.load(dtype)
    sampler = slurm_elastic.ElasticSampler(train_set, args.global_batch, seed=args.seed)
    loader = DataLoader(train_set, batch_sampler=sampler)
    model = digits.build_model(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    copies = {"copy_every": args.copy_every} if args.copy_every else {"copies": 0}

    function = shard_by_tensor if args.tensor else shard_in_units if args.hybrid else shard
    state = live.State(model, optimizer, sampler, shard=function, **copies)

    def train(state):
        rank, world = sampler.rank, sampler.world_size
        log = digits.Log(args.log, rank, world, len(train_set))
        unit = slurm_elastic.unit()
        if args.tensor:
            sampler.set_world(unit.number, unit.units)
        for epoch in range(sampler.epoch, args.epochs):
            sampler.set_epoch(epoch)
            for step, (x, y, index) in enumerate(loader, sampler.step):
                if args.snapshot_every and state.steps % args.snapshot_every == 0:
                    state.snapshot()  # all workers call it; each keeps its part
                scale = sampler.loss_scale()
                loss = F.cross_entropy(model(x), y) * scale
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                is_first = not args.tensor or unit.rank == 0  # of those that share the samples
                log.step(epoch, step, index.tolist() if scale and is_first else [], loss.item())
                if rank == 0:
                    print(
                        f"epoch {epoch} step {step} world {world} loss {loss.item():.4f}",
                        flush=True,
                    )
                time.sleep(args.step_time)
                state.step()
            sampler.set_epoch(epoch + 1)
            state.save()  # all workers write their parts
        # Each worker has a part of the model: all evaluate together.
        return digits.accuracy(model, held_out)

    accuracy = live.run(train, state)
    if slurm_elastic.unit().rank == 0 and sampler.rank == 0:
        print(f"accuracy={accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
