#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What people do with a sharded model besides: torch.compile, activation checkpointing, mixed
precision, float32. Worlds that change their size, against one process that trains the same.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import processes
import tap

# KIND: "compiled": each layer by torch.compile; "whole": the model, "dynamic": for any number of
# samples, "inductor": by PyTorch's own compiler; "ddp": not sharded; "checkpointed", "mixed" or
# "float32"; "forgets": a control, whose optimizer forgets its momentum at each change. Prints
# "compiled N" behind each world, and "error E bound B".
TRAIN = """
import os, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from slurm_elastic import ElasticSampler, _membership, live

torch.set_num_threads(1)
process, directory, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sizes = [int(each) for each in sys.argv[4].split(",")]
STEPS, BATCH, LR, MOMENTUM = 4, 12, 0.05, 0.9
compiled = 0

def backend(graph, inputs):
    global compiled
    compiled += 1
    if "inductor" in kind:
        from torch._inductor.compile_fx import compile_fx
        return compile_fx(graph, inputs)
    return graph.forward

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.there, self.back = nn.Linear(16, 24), nn.Linear(24, 16)
    def forward(self, x):
        return self.back(torch.tanh(self.there(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(16, 5)
    def forward(self, x):
        for layer in self.layers:
            x = x + (checkpoint(layer, x, use_reentrant=False) if "checkpointed" in kind else layer(x))
        return self.head(x)

def shard(model, mesh):
    options = {}
    if "mixed" in kind:
        options = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)

single = "mixed" in kind or "float32" in kind
dtype = torch.float32 if single else torch.float64

def build(is_sharded, dtype):
    torch.manual_seed(1)
    model = Net().double().to(dtype)
    if "compiled" in kind and is_sharded:
        for layer in model.layers:
            layer.compile(backend=backend)
    if "whole" in kind and is_sharded:
        model.compile(backend=backend, dynamic=True if "dynamic" in kind else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    sampler = ElasticSampler(200, global_batch=BATCH, seed=3)
    is_sharded = is_sharded and "ddp" not in kind
    return live.State(model, optimizer, sampler, **({"shard": shard, "copies": 0} if is_sharded else {}))

torch.manual_seed(2)
X, Y = torch.randn(200, 16, dtype=torch.float64), torch.randint(5, (200,))
absolute = 0.0  # the largest sum over the samples of a step of the sizes of an element's gradients

def output_of(state, x, dtype):
    if "mixed" not in kind or state is not reference:
        return state.ddp(x.to(dtype)).to(dtype)
    # What fully_shard() does: gradients come back to the weights that were rounded.
    coarse = {name: each.to(torch.bfloat16) for name, each in state.model.named_parameters()}
    return torch.func.functional_call(state.model, coarse, x.to(torch.bfloat16)).to(dtype)

def train(state, steps, dtype, measures=False):
    global absolute
    sampler = state._samplers[0]
    sampler.set_epoch(0)
    for drawn in sampler:
        scale = sampler.loss_scale("sum")
        if measures:
            sums = None
            for each in drawn:
                loss = nn.functional.cross_entropy(output_of(state, X[each:each+1], dtype), Y[each:each+1]) * scale
                found = [abs(g) for g in torch.autograd.grad(loss, list(state.model.parameters()))]
                sums = found if sums is None else [a + b for a, b in zip(sums, found)]
            absolute = max(absolute, max(float(each.max()) for each in sums))
        loss = nn.functional.cross_entropy(output_of(state, X[drawn], dtype), Y[drawn], reduction="sum")
        (loss * scale).backward()
        if not single:
            nn.utils.clip_grad_norm_(state.model.parameters(), 0.3)
        state.step()
        if state.steps == steps:
            return

def full(value):
    return value.full_tensor() if isinstance(value, DTensor) else value

reference = build(False, torch.float64)
state = build(True, dtype)
state._progress.watch()
for number, size in enumerate(sizes):
    train(reference, STEPS * (number + 1), torch.float64, measures=True)
    if process >= size:
        if state is not None and number:
            state = None
        continue
    if state is None:
        state = build(True, dtype)
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=process, world_size=size)
    _membership.begin(state)
    state._progress.begin_world()
    if "forgets" in kind and number:
        for entry in state._optimizers[0].state.values():
            entry["momentum_buffer"].zero_()
    compiled = 0
    train(state, STEPS * (number + 1), dtype)
    for each in state.model.parameters():
        assert each.dtype == dtype, each.dtype
    error = max(
        float((full(ours).double() - right).abs().max())
        for ours, right in zip(state.model.parameters(), reference.model.parameters())
    )
    # Weights of float32 are rounded once a step, by half a unit of the last place. A gradient is a
    # sum of BATCH samples: in whatever order, its error is at most so many units of the sum of their
    # sizes. For one sample it is a sum of 24 products at most, there and back. With bfloat16 the sum
    # of each rank is rounded once, and what one process has, too. SGD adds LR / (1 - MOMENTUM) of
    # that to a weight. 2: errors of weights return in later gradients.
    unit = 2.0 ** -24
    of_gradients = 2 * 2.0 ** -8 if "mixed" in kind else unit * (BATCH + 2 * 24)
    weights = max(float(each.abs().max()) for each in reference.model.parameters())
    bound = 2 * state.steps * (unit * weights + LR / (1 - MOMENTUM) * absolute * of_gradients)
    if not single:
        bound = 1e-9
    print(f"size {size} compiled {compiled} error {error:.3e} bound {bound:.3e}", file=sys.stderr, flush=True)
    if state._sharding is not None:
        if number + 1 < len(sizes):
            following = sizes[number + 1]
            state._sharding.hand_over((process, following) if process < following else None)
        state._sharding.detach()
    state._progress.end_world()
    _membership.end(state)
"""

# Debian's PyTorch 2.14 has a gloo that does not know it.
GATHER = """
import sys
import torch, torch.distributed as dist

dist.init_process_group("gloo", store=dist.FileStore(sys.argv[2] + "/0", 1), rank=0, world_size=1)
part = torch.ones(2, dtype=torch.bfloat16)
try:
    dist.all_gather_into_tensor(torch.empty_like(part), part)
except RuntimeError as error:
    print(error, file=sys.stderr)
"""


def compiles(compiler):
    """A compiler may be there without the library of C++."""
    return (
        shutil.which(compiler) is not None
        and subprocess.run(
            [compiler, "-x", "c++", "-fsyntax-only", "-"],
            input=b"#include <vector>\n",
            stderr=subprocess.DEVNULL,
        ).returncode
        == 0
    )


@processes.needs_sharding
class Kinds(unittest.TestCase):
    def skip_without_bfloat16(self):
        if "Invalid scalar type" in processes.run(self, GATHER, 1)[0]:
            self.skipTest("this PyTorch's gloo cannot gather bfloat16")

    def train(self, kind, sizes="2,3,1"):
        """(size, number of graphs compiled, error, bound) of each world, of the first process."""
        said = processes.run(self, TRAIN, max(map(int, sizes.split(","))), kind, sizes)[0]
        found = re.findall(r"size (\d+) compiled (\d+) error (\S+) bound (\S+)", said)
        self.assertEqual(len(found), len(sizes.split(",")), said)
        return [(int(s), int(c), float(e), float(b)) for s, c, e, b in found]

    def assert_exact(self, found):
        for size, _, error, bound in found:
            self.assertLessEqual(error, bound, size)

    def test_activation_checkpointing(self):
        self.assert_exact(self.train("checkpointed"))

    def test_compiled(self):
        found = self.train("compiled", "2,2,3,2")
        self.assert_exact(found)
        counts = [each[1] for each in found]
        self.assertGreater(counts[0], 0)
        # What depends on the world's size are the samples of a rank: the third world compiles for
        # another number of them, once.
        self.assertEqual((counts[1], counts[3]), (0, 0))

    def count_compiled(self, kind):
        """Graphs that are compiled in each world. The third one has another number of samples."""
        found = self.train(kind, "2,2,3,2")
        self.assert_exact(found)
        counts = [each[1] for each in found]
        print(f"# {kind}: graphs compiled: {counts}")
        self.assertGreater(counts[0], 0)
        self.assertEqual((counts[1], counts[3]), (0, 0))
        return counts

    def test_a_whole_model_compiled(self):
        for kind in ("whole", "whole ddp"):
            with self.subTest(kind):
                first, _, third, _ = self.count_compiled(kind)
                self.assertEqual(third, first)
            with self.subTest(kind, dynamic=True):
                self.assertEqual(self.count_compiled(f"{kind} dynamic")[2], 0)

    def by_inductor(self, kind):
        if not compiles("g++"):
            self.skipTest("inductor needs g++, and what C++ includes")
        with tempfile.TemporaryDirectory() as cache:
            with mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache):
                self.assertEqual(self.count_compiled(f"whole dynamic inductor {kind}")[2], 0)

    def test_a_whole_model_compiled_by_inductor(self):
        self.by_inductor("")

    def test_a_whole_model_compiled_by_inductor_with_ddp(self):
        self.by_inductor("ddp")

    def test_float32_within_the_bound_of_its_sums(self):
        self.assert_exact(self.train("float32"))

    def test_mixed_precision_keeps_weights_of_float32(self):
        self.skip_without_bfloat16()
        self.assert_exact(self.train("mixed"))

    def test_control_a_lost_momentum_is_outside_of_the_bound(self):
        for kind in ("float32", "mixed"):
            with self.subTest(kind):
                if kind == "mixed":
                    self.skip_without_bfloat16()
                _, _, error, bound = self.train(f"{kind} forgets")[-1]
                self.assertGreater(error, bound)


if __name__ == "__main__":
    tap.main()
