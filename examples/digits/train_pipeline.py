# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network as a pipeline of two stages inside each unit of two nodes. Units come and
go; each world starts from a checkpoint, into which each stage of the world before has written its
part.

    sbatch --elastic=2:8 --elastic-replica=2 …
    srun elasticrun --mode=restart python3 train_pipeline.py

Needs PyTorch 2.13 or later. What differs from train_dcp.py: the stage, and sums over units.
"""

import argparse
import time

import digits
import slurm_elastic
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.utils.data import DataLoader

MICRO_BATCHES = 4
NO_SAMPLE = -100  # in place of a digit: it adds nothing to the loss


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


def filled_up(x, y, count):
    """Stages send each other tensors of one size: what is missing is no sample."""
    missing = count - len(x)
    return F.pad(x, (0, 0, 0, missing)), F.pad(y, (0, missing), value=NO_SAMPLE)


def average(parameters, units, group):
    """Gradients over the units, as DistributedDataParallel would."""
    for each in parameters:
        dist.all_reduce(each.grad, group=group)
        each.grad /= units


def clip(parameters, norm, group):
    """To this norm of the gradients of all stages."""
    total = torch.stack([each.grad.square().sum() for each in parameters]).sum()
    dist.all_reduce(total, group=group)
    factor = torch.clamp(norm / (total.sqrt() + 1e-6), max=1.0)
    for each in parameters:
        each.grad *= factor


def main():
    args = parse_arguments()
    dtype = getattr(torch, args.dtype)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    slurm_elastic.init()
    dist.init_process_group("gloo")
    rank, world, unit = dist.get_rank(), dist.get_world_size(), slurm_elastic.unit()
    mesh = slurm_elastic.unit_mesh("cpu", {"stage": 2})
    stages, units = mesh.get_group("stage"), mesh.get_group("replicate")
    is_last = unit.rank == 1

    train_set, _ = digits.load(dtype)
    # The workers of a unit have the same samples.
    sampler = slurm_elastic.ElasticSampler(
        train_set, args.global_batch, seed=args.seed, rank=unit.number, world_size=unit.units
    )
    loader = DataLoader(train_set, batch_sampler=sampler)
    whole = digits.build_model(dtype)
    model = whole[2:] if is_last else whole[:2]
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    log = digits.Log(args.log, rank, world, len(train_set))
    stage = PipelineStage(model, unit.rank, 2, torch.device("cpu"), group=stages)
    schedule = ScheduleGPipe(
        stage,
        MICRO_BATCHES,
        lambda output, y: F.cross_entropy(output, y, reduction="sum") * sampler.loss_scale("sum"),
        scale_grads=False,  # losses are sums
    )
    most = -(-args.global_batch // (unit.units * MICRO_BATCHES)) * MICRO_BATCHES

    # A stage has names of its own: others do not read what it writes.
    objects = {f"model{unit.rank}": model, f"optimizer{unit.rank}": optimizer, "sampler": sampler}
    slurm_elastic.load_latest(into=objects, dcp=True)

    for epoch in range(sampler.epoch, args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y, index) in enumerate(loader, sampler.step):
            x, y = filled_up(x, y, most)
            loss, losses = torch.zeros((), dtype=dtype), []
            optimizer.zero_grad()
            if is_last:
                schedule.step(target=y, losses=losses)
                loss = torch.stack(losses).detach().sum()
            else:
                schedule.step(x)
            dist.all_reduce(loss, group=stages)
            average(model.parameters(), unit.units, units)
            clip(list(model.parameters()), 1.0, stages)
            optimizer.step()
            is_first = unit.rank == 0  # of those that share the samples
            log.step(
                epoch,
                step,
                index.tolist() if is_first and sampler.loss_scale() else [],
                loss.item(),
            )
            sampler.commit()
            if rank == 0:
                print(f"epoch {epoch} step {step} world {world} loss {loss.item():.4f}", flush=True)
            time.sleep(args.step_time)
            if slurm_elastic.elastic_event_detected():
                slurm_elastic.save(objects, dcp=True)
                slurm_elastic.leave()
        sampler.set_epoch(epoch + 1)
        slurm_elastic.save(objects, dcp=True, background=True)
    slurm_elastic.wait_for_save()


if __name__ == "__main__":
    main()
