#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ElasticSampler: every sample of an epoch exactly once, whatever happens in between."""

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import preloaded
import slurm_elastic
import tap
from slurm_elastic import ElasticSampler, EpochOrder, batch_sizes


def make_ranks(samples, batch, world, state=None, **options):
    ranks = [
        ElasticSampler(samples, batch, rank=rank, world_size=world, **options)
        for rank in range(world)
    ]
    if state is not None:
        for sampler in ranks:
            # Through JSON: the state must consist of plain values.
            sampler.load_state_dict(json.loads(json.dumps(state)))
    return ranks


class Model:
    """What must come out, written as plainly as can be: an epoch is a list, and each step takes the
    next `batch` of it."""

    def __init__(self, samples, batch, seed):
        self.samples, self.batch, self.seed = samples, batch, seed
        self.epoch, self.left = -1, []

    def next_step(self):
        if not self.left:
            self.epoch += 1
            self.left = EpochOrder(self.samples, self.seed, self.epoch)[:]
        step, self.left = self.left[: self.batch], self.left[self.batch :]
        return step

    def shares(self, step, world):
        sizes = batch_sizes(self.batch, world) if len(step) == self.batch else None
        if sizes is None:  # the last one: as equal as can be, and the first rank has something
            sizes = [
                -(-(r + 1) * len(step) // world) + (-r * len(step) // world) for r in range(world)
            ]
        shares = []
        for size in sizes:
            shares.append(step[:size])
            step = step[size:]
        return shares


class Resizes(unittest.TestCase):
    def run_history(self, rng, samples, batch):
        """At least ten worlds of random sizes, each some steps long, each with loaders that draw
        ahead by different amounts. Every step of every rank is compared with the model."""
        model = Model(samples, batch, 7)
        state, worlds, epochs = None, 0, 0
        while worlds < 10 or epochs < 2:
            world = rng.randint(1, min(batch, 11))
            ranks = make_ranks(samples, batch, world, state, seed=7)
            iterators = [iter(sampler) for sampler in ranks]
            drawn = [[] for _ in ranks]
            worlds += 1
            for _ in range(rng.randint(0, 7)):
                expected = model.next_step()
                shares = model.shares(expected, world)
                for sampler, iterator, queue, share in zip(ranks, iterators, drawn, shares):
                    while len(queue) < rng.randint(1, 5):
                        batch_of_rank = next(iterator, None)
                        if batch_of_rank is None:
                            break
                        queue.append(batch_of_rank)
                    self.assertEqual(sampler.epoch, model.epoch)
                    self.assertEqual(sampler.indices(), share)
                    got = queue.pop(0)
                    self.assertEqual(got, share if share else [expected[0]])
                    scale = sampler.loss_scale("sum")
                    self.assertEqual(scale, world / len(expected) if share else 0)
                    self.assertAlmostEqual(sampler.loss_scale(), scale * len(share))
                for sampler in ranks:
                    sampler.commit()
                if ranks[0].finished:
                    epochs += 1
                    for sampler in ranks:
                        sampler.set_epoch(sampler.epoch + 1)
                    iterators = [iter(sampler) for sampler in ranks]
                    drawn = [[] for _ in ranks]
            states = [sampler.state_dict() for sampler in ranks]
            self.assertTrue(all(each == states[0] for each in states))
            state = rng.choice(states)

    def test_random_histories_against_the_model(self):
        rng = random.Random(20)
        for samples, batch in ((1, 1), (2, 5), (10, 3), (97, 16), (100, 10), (129, 128), (300, 7)):
            for _ in range(10):
                with self.subTest(samples=samples, batch=batch):
                    self.run_history(rng, samples, batch)

    def test_another_global_batch_from_the_middle_of_an_epoch(self):
        seen = []
        state = None
        for batch, world, steps in ((8, 3, 4), (5, 5, 3), (20, 2, 100)):
            ranks = make_ranks(101, batch, world, state)
            for _ in range(steps):
                if ranks[0].finished:
                    break
                for sampler in ranks:
                    seen += sampler.indices()
                for sampler in ranks:
                    sampler.commit()
            state = ranks[0].state_dict()
        self.assertEqual(sorted(seen), list(range(101)))

    def test_order_does_not_depend_on_the_world(self):
        def order(world):
            ranks = make_ranks(100, 16, world, seed=3)
            steps = []
            while not ranks[0].finished:
                steps.append([i for sampler in ranks for i in sampler.indices()])
                for sampler in ranks:
                    sampler.commit()
            return steps

        self.assertEqual(order(1), order(5))
        self.assertEqual(order(1), order(16))

    def test_the_world_changes_under_a_living_process(self):
        sampler = ElasticSampler(20, 4, rank=0, world_size=2)
        old = iter(sampler)
        next(old), next(old), next(old)  # two of them in flight
        sampler.commit()
        sampler.set_world(1, 4)
        self.assertEqual(sampler.committed, 4)
        with self.assertRaisesRegex(RuntimeError, "iterate anew"):
            next(old)
        self.assertEqual(next(iter(sampler)), [EpochOrder(20, 0, 0)[5]])


class Use(unittest.TestCase):
    """What scripts do, right and wrong."""

    def setUp(self):
        self.sampler = ElasticSampler(10, 4, rank=0, world_size=1)

    def run_epoch(self):
        for _ in self.sampler:
            self.sampler.commit()

    def test_a_checkpoint_without_the_sampler_gets_a_line_once(self):
        def save(state):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                with tempfile.TemporaryDirectory() as directory:
                    slurm_elastic.save(state, directory, rank=0)
            return said.getvalue()

        position = self.sampler.state_dict()
        with mock.patch.object(slurm_elastic.sampler, "_has_told", False):
            self.assertEqual(save({"model": 1}), "")  # before the first step
            self.run_epoch()
            for state in (position, {"a": {"b": position}}, {"parts": [{}, position]}, [position]):
                self.assertEqual(save(state), "")
            self.assertRegex(
                save({"model": {"weight": [1]}}), "^slurm_elastic: an ElasticSampler .*\n$"
            )
            self.assertEqual(save({"model": 1}), "")

    def test_lengths_and_steps(self):
        self.assertEqual(len(self.sampler), 3)
        sizes = []
        for step, batch in enumerate(self.sampler):
            self.assertEqual(self.sampler.step, step)
            self.assertEqual(len(batch), self.sampler.batch_size())
            sizes.append(len(batch))
            self.sampler.commit()
        self.assertEqual(sizes, [4, 4, 2])
        self.assertEqual((self.sampler.step, self.sampler.batch_size()), (3, 0))
        self.assertTrue(self.sampler.finished)

    def test_set_epoch_as_in_a_plain_script(self):
        for epoch in range(3):
            self.sampler.set_epoch(epoch)
            self.run_epoch()
        self.assertEqual(self.sampler.epoch, 2)

    def test_resume_at_the_very_end_of_an_epoch(self):
        """Its loop runs empty once, so that what comes at the end of an epoch is not left out."""
        self.run_epoch()
        resumed = ElasticSampler(10, 4, rank=0, world_size=1)
        resumed.load_state_dict(self.sampler.state_dict())
        resumed.set_epoch(0)
        self.assertEqual(list(resumed), [])
        resumed.set_epoch(1)
        self.assertEqual(len(list(resumed)), 3)

    def test_a_forgotten_set_epoch_is_an_error(self):
        self.run_epoch()
        with self.assertRaisesRegex(RuntimeError, r"set_epoch\(1\)"):
            list(self.sampler)

    def test_a_forgotten_commit_is_an_error(self):
        list(self.sampler)
        with self.assertRaisesRegex(RuntimeError, "without one commit"):
            self.sampler.set_epoch(1)

    def test_a_commit_without_a_batch_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "without a batch"):
            self.sampler.commit()
        next(iter(self.sampler))
        self.sampler.commit()
        with self.assertRaisesRegex(RuntimeError, "without a batch"):
            self.sampler.commit()
        self.assertEqual(self.sampler.committed, 4)

    def test_a_loop_that_is_left_early_resumes_where_it_was(self):
        for _ in self.sampler:
            self.sampler.commit()
            break
        self.assertEqual([len(batch) for batch in self.sampler], [4, 2])

    def test_loss_scale_has_two_reductions(self):
        with self.assertRaisesRegex(ValueError, "reduction 'none'"):
            self.sampler.loss_scale("none")
        self.run_epoch()
        with self.assertRaisesRegex(RuntimeError, "no step in flight"):
            self.sampler.loss_scale()

    def test_refused_values(self):
        for arguments, part in (
            (dict(dataset=0, global_batch=1), "dataset of 0 samples"),
            (dict(dataset=[], global_batch=1), "dataset of 0 samples"),
            (dict(dataset=5, global_batch=0), "global batch 0"),
            (dict(dataset=5, global_batch=4, rank=0), "give both or none"),
            (dict(dataset=5, global_batch=4, rank=2, world_size=2), "rank 2: must be 0 to 1"),
            (dict(dataset=5, global_batch=4, rank=-1, world_size=2), "rank -1"),
            (
                dict(dataset=9, global_batch=4, rank=0, world_size=5),
                "4 samples cannot be shared by 5",
            ),
        ):
            with self.assertRaisesRegex(ValueError, part):
                ElasticSampler(**arguments)
        for epoch in (-1, 1.0, None):
            with self.assertRaises(ValueError):
                self.sampler.set_epoch(epoch)

    def test_rank_and_size_come_from_the_environment(self):
        def child(**environment):
            code = "from slurm_elastic import ElasticSampler as E; s = E(9, 9); print(s.rank, s.world_size)"
            clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
            return subprocess.run(
                [sys.executable, "-c", code],
                env={**clean, **environment},
                capture_output=True,
                text=True,
                timeout=280,
            )

        self.assertEqual(child().stdout, "0 1\n")
        self.assertEqual(child(RANK="2", WORLD_SIZE="5").stdout, "2 5\n")
        self.assertIn("RANK='x'", child(RANK="x", WORLD_SIZE="5").stderr)

    def test_bad_states_are_refused_and_change_nothing(self):
        self.run_epoch()
        good = self.sampler.state_dict()
        for change, part in (
            (dict(samples=11), "samples=11"),
            (dict(shuffle=False), "shuffle=False"),
            (dict(version=2), "version 2"),
            (dict(committed=-1), "committed=-1"),
            (dict(committed=11), "committed=11"),
            (dict(committed="4"), "committed='4'"),
            (dict(committed=True), "committed=True"),
            (dict(epoch=-1), "epoch=-1"),
            (dict(epoch=None), "epoch=None"),
            (dict(seed=1.5), "seed=1.5"),
            (dict(extra=1), "not a state"),
        ):
            with self.assertRaisesRegex(ValueError, part):
                self.sampler.load_state_dict({**good, **change})
            self.assertEqual(self.sampler.state_dict(), good)
        for state in ({}, None, [], {"epoch": 0}):
            with self.assertRaisesRegex(ValueError, "not a state"):
                self.sampler.load_state_dict(state)


LOADER = """
import multiprocessing, random, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
from slurm_elastic import ElasticSampler

# It makes many loaders. Processes that are not forked import torch anew, each for itself.
multiprocessing.set_start_method("fork")
workers, mode = int(sys.argv[1]), sys.argv[2]
data = TensorDataset(torch.arange(103))
rng = random.Random(1)
# One living process per rank in mode "persistent", new ones for each world otherwise.
seen, state, ranks, loaders = {0: [], 1: []}, None, [], []

def loader_of(sampler):
    if mode == "bulk":
        return DataLoader(data, sampler=sampler, batch_size=None, num_workers=workers)
    return DataLoader(data, batch_sampler=sampler, num_workers=workers, persistent_workers=mode == "persistent")

while True:
    world = rng.randint(1, 3)
    if mode != "persistent":
        ranks, loaders = [], []
    for rank in range(len(ranks), world):
        ranks.append(ElasticSampler(data, 10, seed=1, rank=rank, world_size=world))
        loaders.append(loader_of(ranks[-1]))
        if state: ranks[-1].load_state_dict(state)
    del ranks[world:], loaders[world:]
    for rank, sampler in enumerate(ranks):
        sampler.load_state_dict(state or sampler.state_dict())
        sampler.set_world(rank, world)
    for _, *batches in zip(range(rng.randint(1, 5)), *loaders):
        for sampler, (batch,) in zip(ranks, batches):
            assert batch.tolist() == sampler.indices() or not sampler.indices(), (batch, sampler.indices())
            if sampler.loss_scale(): seen[sampler.epoch] += batch.tolist()
        for sampler in ranks: sampler.commit()
    if ranks[0].finished:
        if ranks[0].epoch == 1: break
        for sampler in ranks: sampler.set_epoch(1)
    state = ranks[0].state_dict()
for epoch in seen:
    assert sorted(seen[epoch]) == list(range(103)), sorted(seen[epoch])
assert seen[0] != seen[1]
"""


@tap.needs_torch
class Loader(unittest.TestCase):
    """Through PyTorch's DataLoader, whose processes draw ahead, and random worlds."""

    def check(self, workers, mode="new"):
        loader = preloaded.Worker(["-c", LOADER, str(workers), mode], dict(os.environ))
        self.assertEqual(loader.wait(280), 0)

    def test_no_workers(self):
        self.check(0)

    def test_4_workers(self):
        self.check(4)

    def test_2_persistent_workers(self):
        self.check(2, "persistent")

    def test_lists_of_indices_without_collation(self):
        self.check(0, "bulk")
        self.check(2, "bulk")


if __name__ == "__main__":
    tap.main()
