# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on numbers that it makes itself, with transformers.Trainer, in live mode.

srun elasticrun python3 train_live.py
"""

import argparse
import json
import os
import tempfile
import time

import slurm_elastic
import torch
import torch.distributed as dist
from elastic_trainer import new_trainer
from slurm_elastic import ElasticSampler, live
from transformers import TrainerCallback


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, x, labels, index):
        self.indices = index.tolist()
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


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


def cut_in_units(model, mesh):
    """The two workers of each unit of --elastic-replica=2 have one half of each layer each."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = slurm_elastic.unit_mesh(mesh.device_type, {"shard": 1, "tensor": 2})
    plan = {"layers.0": ColwiseParallel(), "layers.2": RowwiseParallel()}
    parallelize_module(model, mesh["tensor"], plan, src_data_rank=None)
    fully_shard(model, mesh=mesh["replicate", "shard"])


def total(model):
    """The same on all ranks."""
    values = (each.detach().sum() for each in model.parameters())
    return float(sum(v.full_tensor() if hasattr(v, "full_tensor") else v for v in values))


class Log(TrainerCallback):
    """A JSON line for each step of this process. Each step lasts step_time. Of each `shared`
    workers, which have the same samples, the first one writes them down.
    """

    def __init__(self, directory, step_time, shared, sampler, model, optimizer):
        self._directory, self._step_time, self._shared = directory, step_time, shared
        self._sampler, self._model, self._optimizer = sampler, model, optimizer

    def on_step_begin(self, args, state, control, **kwargs):
        time.sleep(self._step_time)

    def on_step_end(self, args, state, control, **kwargs):
        if self._directory is None:
            return
        sampler = self._sampler
        alone = not dist.is_initialized()
        first = self._shared == 1 or dist.get_rank() % self._shared == 0
        record = {
            "epoch": sampler.epoch,
            "step": sampler.step,
            "rank": 0 if alone else dist.get_rank(),
            "world": 1 if alone else dist.get_world_size(),
            "generation": slurm_elastic.generation(),
            "indices": self._model.indices if first and sampler.loss_scale() else [],
            "global_step": state.global_step,
            "total": total(self._model),
            "rate": self._optimizer.param_groups[0]["lr"],
        }
        with open(os.path.join(self._directory, str(os.getpid())), "a") as file:
            file.write(json.dumps(record) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--global-batch", type=int, default=32, metavar="SAMPLES")
    parser.add_argument("--clip", type=float, default=1.0, metavar="NORM", help="of the gradients")
    parser.add_argument("--fsdp", action="store_true", help="shard the model by fully_shard()")
    parser.add_argument("--hybrid", action="store_true", help="shard it inside each unit (HSDP)")
    parser.add_argument("--tensor", action="store_true", help="tensor parallelism in units of two")
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
    dataset = [
        {"x": each, "labels": int(each[0] + each[1] > 0), "index": number}
        for number, each in enumerate(x)
    ]
    sampler = ElasticSampler(dataset, args.global_batch, seed=3)
    model = Net().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 40, gamma=0.9)
    function = shard_in_units if args.hybrid else shard if args.fsdp else None
    function = cut_in_units if args.tensor else function
    state = live.State(model, optimizer, scheduler, sampler, shard=function)
    log = Log(args.log, args.step_time, 2 if args.tensor else 1, sampler, model, optimizer)

    def train(state):
        if args.tensor:  # the workers of a unit have the same samples
            unit = slurm_elastic.unit()
            sampler.set_world(unit.number, unit.units)
        with tempfile.TemporaryDirectory() as output:
            trainer = new_trainer(
                state,
                sampler,
                dataset,
                (optimizer, scheduler),
                callbacks=[log],
                output_dir=output,
                num_train_epochs=args.epochs,
                max_grad_norm=args.clip,
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                logging_strategy="no",
            )
            trainer.train()
        return total(model)

    parameters = live.run(train, state)
    if sampler.rank == 0:
        print(f"trained {state.steps} steps, parameters {parameters:.9f}", flush=True)


if __name__ == "__main__":
    main()
