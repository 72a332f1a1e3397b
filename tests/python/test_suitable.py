#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What live.State refuses, and of what it warns."""

import os
import unittest
import warnings

import tap


def class_named(name, base):
    """FSDP and the like cannot be made here: they need a group, a GPU or another Python."""
    return type(name, (base,), {})


class Suitable(unittest.TestCase):
    def setUp(self):
        for name in ("RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)

    def state(self, model, *parts):
        from slurm_elastic import live

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            state = live.State(model, *parts)
        self.warned = [str(each.message) for each in caught]
        return state

    def assert_refused(self, words, model, *parts):
        with self.assertRaises(TypeError) as caught:
            self.state(model, *parts)
        self.assertRegex(str(caught.exception), words)
        self.assertNotIn("\n", str(caught.exception))

    @tap.needs_torch
    def test_sharded_models_are_refused(self):
        import torch

        for name in ("FullyShardedDataParallel", "FSDPModule"):
            kind = class_named(name, torch.nn.Linear)
            words = f"^{name} is a model sharded by FSDP: .*restart mode"
            self.assert_refused(words, kind(2, 2))
            self.assert_refused(words, torch.nn.Sequential(torch.nn.Linear(2, 2), kind(2, 2)))
            self.assert_refused(
                f"^Mine{name} is a model sharded by FSDP", class_named("Mine" + name, kind)(2, 2)
            )

    @tap.needs_torch
    def test_sharded_optimizers_are_refused(self):
        import torch

        model = torch.nn.Linear(2, 2)
        optimizer = class_named("ZeroRedundancyOptimizer", torch.optim.SGD)(
            model.parameters(), lr=0.1
        )
        self.assert_refused(
            "^ZeroRedundancyOptimizer is an optimizer whose state is sharded", model, optimizer
        )

    @tap.needs_torch
    def test_sharded_tensors_are_refused_when_they_come_up(self):
        import torch

        class Part:
            state = {"a": [torch.zeros(1)]}

            def state_dict(self):
                return self.state

            def load_state_dict(self, state):
                self.state = state

        part = Part()
        state = self.state(torch.nn.Linear(2, 2), part)
        state.state_dict()
        part.state = {"a": [{"b": class_named("ShardedTensor", object)()}]}
        with self.assertRaisesRegex(TypeError, "^ShardedTensor is a sharded tensor"):
            state.state_dict()

    @tap.needs_torch
    def test_a_wrapper_is_refused(self):
        import torch

        self.assert_refused(
            "^give the model, not its DataParallel", torch.nn.DataParallel(torch.nn.Linear(2, 2))
        )

    @tap.needs_torch
    def test_batch_norm_is_warned_of_once(self):
        from torch import nn

        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.BatchNorm1d(2))
        self.state(model)
        self.assertEqual(len(self.warned), 1)
        self.assertRegex(self.warned[0], "BatchNorm: .*convert_sync_batchnorm")
        os.environ.update(RANK="1", WORLD_SIZE="2")
        self.state(model)
        self.assertEqual(self.warned, [])

    @tap.needs_torch
    def test_other_models_pass_without_a_word(self):
        from torch import nn

        plain = nn.Sequential(
            nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False), nn.LayerNorm(2)
        )
        for model in (plain, nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2))):
            self.state(model)
            self.assertEqual(self.warned, [])


if __name__ == "__main__":
    tap.main()
