#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How live mode guards a step on GPUs, without GPUs: NCCL, CUDA and libelastic are stand-ins. With
them: bench/gpu.
"""

import contextlib
import datetime
import os
import threading
import types
import unittest
from unittest import mock

import tap

try:
    import torch
    import torch.distributed as dist
    from slurm_elastic import _events, _membership, _nccl, _torch_compat, live
except ImportError:
    torch = None

LIMIT = 200  # seconds


@contextlib.contextmanager
def stand_ins(is_lost):
    """Yields the calls, in their order. is_lost: an event, set once a worker is lost."""
    calls = []

    def torn(seconds):
        is_lost.wait(min(seconds, 0.01))
        return is_lost.is_set()

    stream = types.SimpleNamespace(synchronize=lambda: calls.append("wait for stream"))
    with mock.patch.object(_events, "torn", torn), mock.patch.object(
        _torch_compat, "abort_nccl", lambda: calls.append("abort")
    ), mock.patch.object(torch.cuda, "current_stream", lambda: stream), mock.patch.object(
        torch.cuda, "synchronize", lambda: calls.append("wait for GPU")
    ):
        yield calls


@tap.needs_torch
class Guard(unittest.TestCase):
    def setUp(self):
        self.is_lost = threading.Event()
        self.calls = self.enterContext(stand_ins(self.is_lost))
        self.guard = _nccl.Guard()

    def enterContext(self, context):
        found = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return found

    def tearDown(self):
        self.is_lost.set()
        self.guard.end(True)

    def test_a_world_that_ends_as_planned(self):
        self.guard.arrived()
        self.guard.end(False)
        self.assertEqual(self.calls, ["wait for stream", "wait for GPU"])

    def test_a_lost_worker_frees_the_gpu(self):
        self.is_lost.set()
        self.guard._thread.join(LIMIT)
        self.assertEqual(self.calls, ["abort"])
        self.guard.end(True)
        self.assertEqual(self.calls, ["abort"])

    def test_the_host_has_noticed_the_loss_before_the_thread(self):
        self.guard.end(True)
        self.assertEqual(self.calls, ["abort"])

    def test_it_ends_once(self):
        self.guard.end(False)
        self.guard.end(False)
        self.assertEqual(self.calls, ["wait for GPU"])

    def test_sums_count_only_if_nobody_is_lost_after_they_have_arrived(self):
        waits = self.calls.append
        stream = types.SimpleNamespace(synchronize=lambda: (waits("wait"), self.is_lost.set()))
        with mock.patch.object(torch.cuda, "current_stream", lambda: stream):
            with self.assertRaises(ConnectionError):
                self.guard.arrived()


@tap.needs_torch
class Step(unittest.TestCase):
    """The optimizers of a state, where a guard says whether sums are right."""

    def setUp(self):
        torch.manual_seed(1)
        self.model = torch.nn.Linear(3, 2)
        self.optimizers = [torch.optim.Adam(self.model.parameters(), lr=rate) for rate in (1, 2)]
        self.state = live.State(self.model, *self.optimizers)
        self.progress = self.state._progress
        self.progress.watch()
        self.asked, self.error = 0, None
        self.progress.begin_world(self.confirm)
        self.progress.load(7)

    def confirm(self):
        self.asked += 1
        if self.error is not None:
            raise self.error

    def backward(self):
        self.model(torch.ones(4, 3)).sum().backward()

    def test_it_is_asked_once_a_step(self):
        for steps in range(1, 3):
            self.backward()
            self.state.step()
            self.assertEqual(self.asked, steps)

    def test_no_optimizer_sees_a_wrong_sum(self):
        before = self.model.weight.detach().clone()
        self.error = ConnectionError("lost")
        self.backward()
        self.assertRaises(ConnectionError, self.state.step)
        self.assertTrue(torch.equal(self.model.weight, before))
        self.progress.undo()
        self.assertEqual(self.progress.standing, (7, -1))

    def test_a_step_that_a_scaler_leaves_out_is_asked_for_too(self):
        self.error = ConnectionError("lost")
        self.assertRaises(ConnectionError, self.state.commit)
        self.progress.undo()
        self.assertEqual(self.progress.standing, (7, -1))

    def test_without_a_guard(self):
        self.progress.begin_world()
        self.backward()
        self.state.step()
        self.assertEqual(self.asked, 0)


@tap.needs_torch
class World(unittest.TestCase):
    """libelastic forgets a world when the next one is asked for: no thread may be in it then."""

    def test_the_guard_has_ended_before(self):
        order = []
        state = live.State(torch.nn.Linear(3, 2))
        state._sharding = mock.Mock(is_fresh=False)
        world = types.SimpleNamespace(rank=0, size=1, generation=1, attempt=1)
        membership = _membership.Membership(world, state, datetime.timedelta(seconds=LIMIT))
        membership._guard = mock.Mock()
        membership._guard.end = lambda lost: order.append(("guard", lost))
        following = types.SimpleNamespace(rank=0, size=2, save=False)

        def train(state):
            raise live.WorldChanged(types.SimpleNamespace(kind="grow"))

        with mock.patch.object(membership, "enter"), mock.patch.object(
            _events, "next_world", lambda *_: order.append("next world") or following
        ), mock.patch.object(_events, "world_left", lambda: order.append("left")):
            live._train_in(membership, train, state)
        self.assertEqual(order[:2], [("guard", False), "next world"])


@tap.needs_torch
class Backend(unittest.TestCase):
    def test_by_what_there_is(self):
        for has_gpu, by_device, backend in (
            (False, True, "gloo"),
            (True, True, "cpu:gloo,cuda:nccl"),
            (True, False, "gloo"),
        ):
            with self.subTest(gpu=has_gpu, by_device=by_device), mock.patch.object(
                torch.cuda, "is_available", return_value=has_gpu
            ), mock.patch.object(_torch_compat, "has_backends_by_device", return_value=by_device):
                self.assertEqual(_nccl.backend(), backend)

    def test_pytorch_does_not_end_the_process(self):
        with mock.patch.dict(os.environ, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}):
            _nccl.leave_errors_to_us()
            self.assertEqual(os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "0")
            self.assertEqual(os.environ["TORCH_NCCL_ENABLE_MONITORING"], "0")

    def test_a_group_of_gloo_has_no_guard(self):
        store = dist.HashStore()
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            self.assertEqual(_torch_compat.nccl_backends(), [])
            self.assertIsNone(_nccl.guard_if_used())
        finally:
            _torch_compat.destroy_groups(lost=True)
        self.assertFalse(dist.is_initialized())


if __name__ == "__main__":
    tap.main()
