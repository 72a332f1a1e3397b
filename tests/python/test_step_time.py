#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Takes 25 s
"""What a rank reports as its own time of a step, in a real DistributedDataParallel over gloo."""

import json
import tempfile
import unittest
from pathlib import Path

import fake_agent
import processes
import tap

# Rank 0 sleeps before each forward pass. DistributedDataParallel sends its buffers then, so that
# rank 1 waits for it in the forward pass.
TRAINING = """
import json, statistics, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from slurm_elastic import _step_time
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, kind, pause = dist.get_rank(), sys.argv[2], float(sys.argv[3])
own = []
_step_time.report_step_time = own.append
clock = _step_time.StepClock()
layers = [torch.nn.Linear(6, 8), torch.nn.Linear(8, 1)]
if kind != "plain":
    layers.insert(1, torch.nn.BatchNorm1d(8))
model = torch.nn.Sequential(*layers)
if kind == "scripted":
    model = torch.jit.script(model)
for world in range(2):  # the second one has another wrapper of the same model
    ddp = DistributedDataParallel(model)
    clock.watch(ddp, model)
    for step in range(6):
        if rank == 0:
            time.sleep(pause)
        ddp(torch.randn(4, 6)).sum().backward()
        clock.step_ends()
        clock.step_begins()
    clock.step_ends()
with open(f"{sys.argv[1]}/{rank}", "w") as file:
    json.dump({"steps": len(own), "own": statistics.median(own) if own else None}, file)
"""

# Rank 0 sleeps before each forward pass, or in that of the first layer. Rank 1 waits for its parts
# of the model then, in the forward and in the backward pass.
SHARDED = """
import json, statistics, sys, time
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from slurm_elastic import _step_time, _torch_compat
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, kind, pause = dist.get_rank(), sys.argv[2], float(sys.argv[3])
own = []
_step_time.report_step_time = own.append
clock = _step_time.StepClock()

class First(torch.nn.Linear):
    def forward(self, x):
        time.sleep(pause if rank == 0 and kind == "inside" else 0)
        return super().forward(x)

model = torch.nn.Sequential(First(6, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
clock.watch_sharded(model)  # nothing of it is sharded
clock.step_begins()
assert clock._begin is None
for world in range(2):
    skeleton = _torch_compat.Skeleton(model)
    whole = {name: each.detach().clone() for name, each in model.named_parameters()}
    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    clock.watch_sharded(model)
    for step in range(6):
        for batch in range(2 if kind == "accumulates" else 1):
            time.sleep(pause if rank == 0 and kind != "inside" else 0)
            model(torch.randn(4, 6)).sum().backward()
        clock.step_ends()
        clock.step_begins()
    clock.step_ends()
    skeleton.restore()
    for name, each in whole.items():
        layer, _, weight = name.rpartition(".")
        setattr(model.get_submodule(layer), weight, torch.nn.Parameter(each))
with open(f"{sys.argv[1]}/{rank}", "w") as file:
    json.dump({"steps": len(own), "own": statistics.median(own) if own else None}, file)
"""

PAUSE = 0.5  # seconds


@tap.needs_torch
class OwnTime(unittest.TestCase):
    def reports(self, kind, training=TRAINING):
        """Of both ranks: the number of steps, and the median of their times."""
        with tempfile.TemporaryDirectory() as directory:
            words = ["-c", training, directory, kind, str(PAUSE)]
            with fake_agent.World(words, 2, has_torch=True) as world:
                self.assertEqual(world.wait(), [0, 0])
            return [json.loads(Path(directory, str(rank)).read_text()) for rank in range(2)]

    def check(self, kind, training=TRAINING):
        slow, other = self.reports(kind, training)
        self.assertEqual((slow["steps"], other["steps"]), (10, 10))
        self.assertGreaterEqual(slow["own"], PAUSE)
        self.assertLess(other["own"], PAUSE / 2)

    def test_without_buffers(self):
        self.check("plain")

    def test_waiting_for_the_buffers_of_rank_0_is_left_out(self):
        self.check("buffers")

    def test_a_scripted_model_with_buffers_is_not_measured(self):
        self.assertEqual([each["steps"] for each in self.reports("scripted")], [0, 0])

    @processes.needs_sharding
    def test_waiting_for_the_parts_of_a_sharded_model_is_left_out(self):
        for kind in ("before", "inside", "accumulates"):
            with self.subTest(kind):
                self.check(kind, SHARDED)


if __name__ == "__main__":
    tap.main()
