# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on numbers that it makes itself, with Lightning.

srun elasticrun python3 train.py
"""

import argparse
import json
import os
import time

import slurm_elastic
import torch
from elastic_lightning import new_trainer
from slurm_elastic import ElasticSampler, live
from torch.utils.data import DataLoader, TensorDataset

try:
    from lightning.pytorch import Callback, LightningModule
except ImportError:
    from pytorch_lightning import Callback, LightningModule


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def prepare(self, sampler):
        """The optimizer and its schedule are made once, and stay from world to world."""
        self.sampler = sampler
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 40, gamma=0.9)

    def configure_optimizers(self):
        return {
            "optimizer": self.optimizer,
            "lr_scheduler": {"scheduler": self.scheduler, "interval": "step"},
        }

    def training_step(self, batch, batch_idx):
        x, y, index = batch
        loss = torch.nn.functional.cross_entropy(self.layers(x), y)
        scale = self.sampler.loss_scale()  # uneven batches, every sample weighs the same
        self.indices = index.tolist() if scale else []
        return loss * scale


def shard(module, mesh):
    """Called in each world, with a mesh of all its workers.

    Lightning calls training_step(): what that calls is sharded, and not the module itself.
    """
    from torch.distributed.fsdp import fully_shard

    for each in module.layers:
        if isinstance(each, torch.nn.Linear):
            fully_shard(each, mesh=mesh)
    fully_shard(module.layers, mesh=mesh)


def shard_in_units(module, mesh):
    """Each unit of --elastic-replica=N nodes has all of the model (HSDP)."""
    shard(module, slurm_elastic.unit_mesh(mesh.device_type))


def total(module):
    """The same on all ranks."""
    values = (each.detach().sum() for each in module.parameters())
    return float(sum(v.full_tensor() if hasattr(v, "full_tensor") else v for v in values))


class Log(Callback):
    """A JSON line for each step of this process. Each step lasts step_time."""

    def __init__(self, directory, step_time):
        self._path = directory and os.path.join(directory, str(os.getpid()))
        self._step_time = step_time

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        time.sleep(self._step_time)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if not self._path:
            return
        sampler = module.sampler
        record = {
            "epoch": sampler.epoch,
            "step": sampler.step,
            "rank": sampler.rank,
            "world": sampler.world_size,
            "generation": slurm_elastic.generation(),
        }
        record.update(indices=module.indices, global_step=trainer.global_step, total=total(module))
        record["rate"] = module.optimizer.param_groups[0]["lr"]
        with open(self._path, "a") as file:
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
    module = Net().double()
    module.prepare(sampler)
    function = shard_in_units if args.hybrid else shard if args.fsdp else None
    parts = [module.optimizer, module.scheduler, sampler]
    state = live.State(module, *parts, wrap=False, shard=function)

    def train(state):
        options = {"max_epochs": args.epochs, "accelerator": "cpu", "logger": False}
        options["gradient_clip_val"] = args.clip
        options.update(
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
        )
        trainer = new_trainer(state, sampler, callbacks=[Log(args.log, args.step_time)], **options)
        trainer.fit(module, loader)
        return trainer.global_step, total(module)

    steps, parameters = live.run(train, state)
    if sampler.rank == 0:
        print(f"trained {steps} steps, parameters {parameters:.9f}", flush=True)


if __name__ == "__main__":
    main()
