#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A live.State with tensor parallelism in units of several nodes (--elastic-replica), over gloo:
worlds of whole units, against a training by one process that is not sharded.
"""

import importlib.util
import os
import unittest

import processes
import tap

ACCELERATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/accelerate")

# A process of a training. SIZES are those of the worlds, in processes. KIND: "tensor": units of two
# with tensor parallelism; "both": units of four, sharded in two beside that; "anew": all begin each
# world with a new model, and read a checkpoint; "across", "uneven": what cannot be moved;
# "accelerate": Accelerate makes the steps.
TRAIN = """
import os, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from slurm_elastic import ElasticSampler, _membership, live, unit, unit_mesh

torch.set_num_threads(1)
process, directory, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sizes = [int(each) for each in sys.argv[4].split(",")]
STEPS = 3
inside = {"shard": 2 if "both" in kind else 1, "tensor": 2}
PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}

def shard(model, mesh):
    mesh = unit_mesh("cpu", inside)
    parallelize_module(model, mesh["tensor"], PLAN, src_data_rank=None)
    fully_shard(model, mesh=mesh["replicate"] if "across" in kind else mesh["replicate", "shard"])

def build(is_sharded):
    torch.manual_seed(1)
    width = 13 if "uneven" in kind else 16
    model = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 8)).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    sampler = ElasticSampler(50, global_batch=12, seed=3)
    return live.State(model, optimizer, sampler, shard=shard if is_sharded else None)

x = torch.randn(50, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(5))

def train(state, place):
    sampler, model, optimizer = state._samplers[0], state.ddp, None
    backward, step = torch.Tensor.backward, state.step
    if "accelerate" in kind and state is not reference:
        accelerator = new_accelerator(state, cpu=True)
        model, optimizer = accelerator.prepare(state.model, state._optimizers[0])
        backward = accelerator.backward
        def step():
            optimizer.step()
            optimizer.zero_grad()
            state.commit()
    sampler.set_world(*place)
    made = 0
    while made < STEPS:
        sampler.set_epoch(sampler.epoch)
        for drawn in sampler:
            backward(model(x[drawn]).square().sum() * sampler.loss_scale("sum"))
            nn.utils.clip_grad_norm_(state.model.parameters(), 0.3)
            step()
            made += 1
            if made == STEPS:
                return
        sampler.set_epoch(sampler.epoch + 1)

def whole(state):
    found = dict(state.model.named_parameters())
    names = {id(each): name for name, each in found.items()}
    for parameter, entry in state._optimizers[0].state.items():
        found.update({(names[id(parameter)], key): value for key, value in entry.items()})
    return {key: each.full_tensor() if isinstance(each, DTensor) else each for key, each in found.items()}

if "accelerate" in kind:
    sys.path.insert(0, sys.argv[5])
    os.environ.update(LOCAL_RANK=str(process), MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    from elastic_accelerate import new_accelerator
reference, state = build(False), None
for number, size in enumerate(sizes):
    train(reference, (0, 1))
    if process >= size:
        state = None
        continue
    nodes = inside["shard"] * inside["tensor"]
    os.environ.update(RANK=str(process), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE="1", ELASTIC_REPLICA_NODES=str(nodes))
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=process, world_size=size)
    if state is None or "anew" in kind:
        state = build(True)
        if number:
            with torch.no_grad():
                for each in state.model.parameters():
                    each.fill_(7)
    state._progress.watch()
    try:
        _membership.begin(state)
    except TypeError as error:
        if "across" not in kind and "uneven" not in kind:
            raise
        print(error, file=sys.stderr)
        sys.exit(0)
    state._progress.begin_world()
    train(state, (unit().number, unit().units))
    ours, right = whole(state), whole(reference)
    assert list(ours) == list(right), (list(ours), list(right))
    for name, tensor in ours.items():
        error = (tensor - right[name]).abs().max() / right[name].abs().max().clamp(min=1e-30)
        assert error <= 1e-9, (number, name, float(error))
    assert state.steps == STEPS * (number + 1)
    if number + 1 < len(sizes):
        if "anew" in kind:
            state.save()
        else:
            goes_on = process < sizes[number + 1]
            state._sharding.hand_over((process, sizes[number + 1]) if goes_on else None)
        state._sharding.detach()
    _membership.end(state)
"""


@processes.needs_sharding
class TensorParallel(unittest.TestCase):
    def train(self, kind, sizes):
        count = max(map(int, sizes.split(",")))
        return processes.run(self, TRAIN, count, kind, sizes, ACCELERATE)

    def test_units_come_and_go(self):
        self.train("tensor", "2,4,2,6")

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate cannot be imported")
    def test_units_come_and_go_with_accelerate(self):
        self.train("tensor accelerate", "2,4,2")

    def test_beside_fully_shard_in_a_unit(self):
        self.train("both", "4,8,4")

    def test_a_checkpoint_is_read_by_worlds_of_other_sizes(self):
        self.train("tensor anew", "4,2,6")

    def test_what_cannot_be_moved_gets_one_line(self):
        said = self.train("tensor across", "4")[0]
        self.assertRegex(
            said, r"(?m)^0.weight is placed as .*inside a unit \(--elastic-replica=N\)"
        )
        said = self.train("tensor uneven", "2")[0]
        self.assertRegex(
            said, "(?m)^0.weight is placed as .*: live mode moves parts of equal size$"
        )


if __name__ == "__main__":
    tap.main()
