#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who trains on how many samples, and in which order."""

import collections
import statistics
import unittest

import tap
from slurm_elastic import EpochOrder, batch_sizes


class BatchSizes(unittest.TestCase):
    def test_golden(self):
        self.assertEqual(collections.Counter(batch_sizes(128, 24)), {5: 16, 6: 8})
        self.assertEqual(collections.Counter(batch_sizes(128, 48)), {2: 16, 3: 32})
        self.assertEqual(batch_sizes(128, 4), [32] * 4)
        self.assertEqual(batch_sizes(7, 3), [3, 2, 2])
        self.assertEqual(batch_sizes(8, 6), [2, 1, 1, 2, 1, 1])

    def test_sum_evenness_and_rank_0(self):
        for batch in range(1, 200):
            for world in range(1, batch + 1):
                sizes = batch_sizes(batch, world)
                self.assertEqual((len(sizes), sum(sizes)), (world, batch))
                self.assertLessEqual(max(sizes) - min(sizes), 1)
                self.assertEqual(sizes[0], max(sizes))

    def test_larger_shares_are_spread_over_nodes(self):
        """Whatever the number of workers on a node: any run of ranks differs by one at most."""
        for batch, world in ((128, 24), (128, 48), (100, 64), (31, 30), (500, 96)):
            sizes = batch_sizes(batch, world)
            for workers in (2, 4, 8):
                nodes = [sum(sizes[i : i + workers]) for i in range(0, world, workers)]
                if world % workers == 0:
                    self.assertLessEqual(max(nodes) - min(nodes), 1, (batch, world, workers))

    def test_refused(self):
        for batch, world, part in (
            (4, 5, "a global batch of 4 samples cannot be shared by 5 workers"),
            (0, 1, "global batch 0"),
            (-1, 1, "global batch -1"),
            (1, 0, "world size 0"),
        ):
            with self.assertRaisesRegex(ValueError, part):
                batch_sizes(batch, world)


class Order(unittest.TestCase):
    def test_is_a_permutation(self):
        for samples in [*range(1, 70), 97, 128, 1000, 1437]:
            for epoch in range(3):
                order = EpochOrder(samples, 5, epoch)
                self.assertEqual(sorted(order[:]), list(range(samples)))
                self.assertEqual(list(order), order[:])

    def test_never_changes(self):
        """A checkpoint is only worth something if next year's release has the same order."""
        self.assertEqual(EpochOrder(10, 0, 0)[:], [1, 0, 3, 5, 2, 7, 6, 4, 8, 9])
        far = EpochOrder(10**9, 1, 2)[123456789:123456792]
        self.assertEqual(far, [893449506, 844401051, 337157700])

    def test_depends_on_seed_and_epoch(self):
        orders = {tuple(EpochOrder(50, s, e)[:]) for s in (-1, 0, 1, 2**70) for e in range(20)}
        self.assertEqual(len(orders), 80)

    def test_without_shuffle(self):
        self.assertEqual(EpochOrder(5, 1, 1, shuffle=False)[:], [0, 1, 2, 3, 4])

    def test_indexing(self):
        order = EpochOrder(10, 3, 0)
        self.assertEqual(order[-1], order[9])
        self.assertEqual(order[2:5], [order[2], order[3], order[4]])
        for position in (10, -11):
            with self.assertRaises(IndexError):
                order[position]

    def test_every_place_is_equally_likely(self):
        """Chi square over seeds, for the small sizes in which a Feistel network is weakest."""
        for samples in (2, 3, 4, 5, 7, 12):
            trials = 4000
            counts = collections.Counter()
            for seed in range(trials):
                counts.update(enumerate(EpochOrder(samples, seed, 0)[:]))
            expected = trials / samples
            square = sum(
                (counts[place, index] - expected) ** 2 / expected
                for place in range(samples)
                for index in range(samples)
            )
            freedom = (samples - 1) ** 2
            # Rows and columns both have a fixed sum, unlike in a table of independent trials.
            square *= (samples - 1) / samples
            self.assertLess(square, freedom + 5 * (2 * freedom) ** 0.5, samples)

    def test_looks_random(self):
        """Fixed points, neighbours that stay neighbours, and agreement of successive epochs: one
        of each is expected. The bounds are five standard deviations of the mean over 200 epochs."""
        samples, epochs = 500, 200
        fixed, neighbours, agreeing = [], [], []
        before = EpochOrder(samples, 9, 0)[:]
        for epoch in range(1, epochs + 1):
            order = EpochOrder(samples, 9, epoch)[:]
            fixed.append(sum(place == index for place, index in enumerate(order)))
            neighbours.append(sum(b - a == 1 for a, b in zip(order, order[1:])))
            agreeing.append(sum(a == b for a, b in zip(order, before)))
            before = order
        for what in (fixed, neighbours, agreeing):
            self.assertLess(abs(statistics.mean(what) - 1), 5 / epochs**0.5)

    def test_constant_time_and_memory(self):
        order = EpochOrder(10**15, 1, 1)
        self.assertEqual(len(set(order[10**14 : 10**14 + 1000])), 1000)


if __name__ == "__main__":
    tap.main()
