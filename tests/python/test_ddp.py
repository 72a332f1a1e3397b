#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real DistributedDataParallel over gloo: unequal shares count each sample alike."""

import os
import tempfile
import unittest

import fake_agent
import tap

TRAINING = """
import sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from slurm_elastic import ElasticSampler
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(5)
x, y = torch.randn(61, 6, dtype=torch.float64), torch.randn(61, 1, dtype=torch.float64)
results = {}
for how in ("mean", "sum", "parts", "plain"):
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    ddp = DistributedDataParallel(model, find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = ElasticSampler(61, 10, seed=2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for indices in sampler:
            optimizer.zero_grad()
            while how == "parts" and len(indices) > 2:
                part, indices = indices[:2], indices[2:]
                with ddp.no_sync():
                    (((ddp(x[part]) - y[part]) ** 2).sum() * sampler.loss_scale("sum")).backward()
            errors = (ddp(x[indices]) - y[indices]) ** 2
            loss = errors.sum() if how in ("sum", "parts") else errors.mean()
            if how != "plain": loss = loss * sampler.loss_scale("mean" if how == "mean" else "sum")
            loss.backward()
            optimizer.step()
            sampler.commit()
    results[how] = torch.cat([p.detach().flatten() for p in model.parameters()])
if dist.get_rank() == 0:
    torch.save(results, sys.argv[1])
"""


@tap.needs_torch
class Gradients(unittest.TestCase):
    def train(self, directory, size):
        import torch

        path = os.path.join(directory, str(size))
        with fake_agent.World(["-c", TRAINING, path], size, has_torch=True) as world:
            self.assertEqual(world.wait(), [0] * size)
        return torch.load(path)

    def test_unequal_shares_are_exact_and_the_plain_mean_is_not(self):
        with tempfile.TemporaryDirectory() as directory:
            alone = self.train(directory, 1)
            three = self.train(directory, 3)  # 4 + 3 + 3, at the end of an epoch 1 + 0 + 0
        for how in ("mean", "sum", "parts"):
            difference = (alone["mean"] - three[how]).abs().max().item()
            self.assertLess(difference, 1e-10, how)
        self.assertGreater((alone["mean"] - three["plain"]).abs().max().item(), 1e-4)


if __name__ == "__main__":
    tap.main()
