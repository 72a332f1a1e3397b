#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Takes 20 s
"""Live mode's way of a state from ranks that have it to those that lack it, over gloo."""

import os
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import fake_agent
import tap

RANK = """
import sys
import torch, torch.distributed as dist
from slurm_elastic import _sharing, _transfer, _wrapper, live
import torch.nn.parallel.distributed as ddp_module
torch.set_num_threads(1)
_transfer.PARCEL_BYTES, _transfer.PARCELS = 4096, 3
have_it, older, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Conv2d(3, 9, 5), torch.nn.Flatten(), torch.nn.Linear(144, 50), torch.nn.Linear(50, 3).double())
        self.inner[0].to(memory_format=torch.channels_last)
        self.register_buffer("flags", torch.arange(7, dtype=torch.int8) + rank)
        self.register_buffer("none", torch.empty(0))
        self.register_buffer("count", torch.tensor(rank))
    def forward(self, x):
        return self.inner[3](self.inner[2](self.inner[1](self.inner[0](x))).double())

torch.manual_seed(1 if rank < have_it else 2 + rank)
model = Net()
optimizer = torch.optim.AdamW([{"params": list(model.inner[:3].parameters())}, {"params": list(model.inner[3].parameters()), "lr": 0.5}], amsgrad=True)
state = live.State(model, optimizer, best=[0, torch.zeros(2, dtype=torch.bool)])

def step():
    optimizer.zero_grad()
    model(torch.ones(2, 3, 8, 8)).square().mean().backward()
    optimizer.step()
    state._progress.steps += 1

# Those at the end lack any state, others may have an older one.
state._progress.is_whole = rank < have_it + older
for _ in range(5 if rank < have_it else 2 if rank < have_it + older else 0):
    step()
if rank < have_it:
    state.best = [5, torch.ones(2, dtype=torch.bool)]
    model.flags.fill_(3)
    model.count.fill_(7)
assert _sharing.share(state)
assert state.steps == 5 and state._progress.is_whole and model.count == 7, state.steps
assert not any("__deepcopy__" in vars(v) for each in optimizer.state.values() for v in each.values() if torch.is_tensor(v))

calls = []
function = ddp_module._sync_module_states
ddp_module._sync_module_states = lambda *args, **kwargs: calls.append(1) or function(*args, **kwargs)
for is_shared in (True, False):
    _wrapper.wrap(state, is_shared)
    assert calls == ([] if is_shared else [1]), calls
    model_before = model.inner[2].weight.detach().clone()
    state.ddp(torch.ones(2, 3, 8, 8)).square().mean().backward()
    wrapper = state.ddp
    _wrapper.unwrap(state)
    assert state.ddp is model and not hasattr(wrapper, "reducer")
_wrapper.unwrap(state)  # without a wrapper: nothing
model(torch.ones(2, 3, 8, 8)).square().mean().backward()  # no hook of a reducer is left
step()
torch.save(state.state_dict(), f"{directory}/{rank}")
"""

LOST = """
import datetime, os, signal, time
import torch, torch.distributed as dist
from slurm_elastic import _events, _transfer, live
_transfer.PARCELS, _transfer.SENT = 3, datetime.timedelta(seconds=200)
dist.init_process_group("gloo")
state = live.State(torch.nn.Linear(100, 100))
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
begin = time.monotonic()
_events.torn = lambda seconds=None: time.monotonic() > begin + 1
try:
    _transfer.pass_state(state, None, 1)
except Exception as error:
    print(f"sender: {error}", flush=True)
    os._exit(0 if time.monotonic() < begin + _transfer.SENT.total_seconds() / 2 else 1)
os._exit(2)
"""


# Rank 1 says where it listens, which is an address above that of rank 0, and dies: rank 0 waits for
# it to connect.
FORMING = """
import datetime, os, sys
import torch.distributed as dist
from slurm_elastic import _events

HERE, ABOVE = bytes([127, 0, 0, 1]), bytes([127, 255, 255, 254])

class Store(dist.Store):
    def __init__(self):
        super().__init__()
        self._store = dist.FileStore(sys.argv[1], 2)
    def set(self, key, value):
        self.dies = rank == 1 and HERE in value
        self._store.set(key, value.replace(HERE, ABOVE) if self.dies else value)
    def get(self, key):
        self.wait([key])
        return self._store.get(key)
    def wait(self, keys, timeout=None):
        if self.dies:
            os._exit(0)
        self._store.wait(keys, datetime.timedelta(seconds=60))

rank = int(os.environ["RANK"])
_events.init()
_events.world_forms()
try:
    store = Store()
    long = datetime.timedelta(seconds=300)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=long)
except Exception as error:
    print(f"rank 0: {error}", flush=True)
os._exit(0)
"""


# A planned change: rank 1 has come out of it by the loss of another, and its group is still there.
LEAVING = """
import os, time
import torch.distributed as dist
from slurm_elastic import _events, _transfer

_events.live(5)
_events.init()
_events.world_forms()
dist.init_process_group("gloo")
_events.world_formed()
_transfer.meet()
if dist.get_rank() == 1:
    time.sleep(1000)
assert _events.next_world(280).generation == 1
try:
    _transfer.meet()
except Exception as error:
    print(f"rank 0: {error}", flush=True)
    os._exit(0)
os._exit(2)
"""


ANEW = """
import torch, torch.distributed as dist
from slurm_elastic import _membership, live
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
state = live.State(torch.nn.Linear(3, 2))
state._progress.watch()

def lost(state, is_shared):
    raise ConnectionError

wrap, _membership.wrap = _membership.wrap, lost
try:
    _membership.begin(state)
except ConnectionError:
    state._progress.undo()
_membership.wrap = wrap
_membership.begin(state)
weights = [torch.empty(2, 3), torch.empty(2, 3)]
dist.all_gather(weights, state.model.weight.data)
assert torch.equal(*weights)
"""


BETWEEN = """
import torch, torch.distributed as dist
from slurm_elastic import _sharing, live
dist.init_process_group("gloo")
rank = dist.get_rank()
models = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)])
optimizers = [torch.optim.Adam(each.parameters()) for each in models]
state = live.State(models, *optimizers)
state._progress.watch()
state._progress.begin_world()
if rank == 1:  # the other one is a newcomer
    models[0](torch.ones(1, 3)).sum().backward()
    optimizers[0].step()
    state._progress.undo()
assert _sharing.share(state)
assert state.steps == 0 and len(optimizers[0].state) == 2 and len(optimizers[1].state) == 0
"""


PART = """
import torch, torch.distributed as dist
from slurm_elastic import _sharing, live
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
state = live.State(torch.nn.Linear(3, 2), rank=rank)
state._progress.steps = [0, 7, 7][rank]  # none of which is whole
assert _sharing.share(state)
assert (state.steps, state.rank, state._progress.standing) == (7, 1, (7, -1))
weights = [torch.empty(2, 3) for _ in range(3)]
dist.all_gather(weights, state.model.weight.data)
assert torch.equal(weights[0], weights[1]) and torch.equal(weights[1], weights[2])
"""


@tap.needs_torch
class Anew(unittest.TestCase):
    def test_parameters_are_made_equal_again_if_the_world_was_lost_meanwhile(self):
        with tempfile.TemporaryDirectory() as directory, fake_agent.World(
            ["-c", ANEW], 2, checkpoint=directory, has_torch=True
        ) as world:
            self.assertEqual(world.wait(), [0, 0])

    def test_so_are_optimizers_if_the_first_step_was_torn_between_two(self):
        with tempfile.TemporaryDirectory() as directory, fake_agent.World(
            ["-c", BETWEEN], 2, checkpoint=directory, has_torch=True
        ) as world:
            self.assertEqual(world.wait(), [0, 0])

    def test_all_go_on_from_one_ranks_part_of_a_step_if_nothing_else_is_left(self):
        with tempfile.TemporaryDirectory() as directory, fake_agent.World(
            ["-c", PART], 3, checkpoint=directory, has_torch=True
        ) as world:
            self.assertEqual(world.wait(), [0, 0, 0])


@tap.needs_torch
class Lost(unittest.TestCase):
    def test_a_sender_does_not_wait_for_a_receiver_that_does_not_take_it_once_the_world_is_torn(
        self,
    ):
        with fake_agent.World(["-c", LOST], 2, has_torch=True) as world:
            self.assertEqual(world.workers[0].wait(280), 0)

    def test_a_rank_does_not_wait_for_a_lost_one_to_connect_once_the_world_is_torn(self):
        with tempfile.TemporaryDirectory() as directory, fake_agent.World(
            ["-c", FORMING, os.path.join(directory, "store")],
            2,
            environment={"GLOO_SOCKET_IFNAME": "lo"},
            has_torch=True,
        ) as world:
            self.assertEqual(world.workers[1].wait(280), 0)
            world.pages[0].tear()
            self.assertEqual(world.workers[0].wait(280), 0)

    def test_who_gives_parts_away_does_not_wait_once_the_next_world_is_torn(self):
        with fake_agent.World(["-c", LEAVING], 2, has_torch=True) as world:
            page = fake_agent.Page(world.pages[0].path + "-next", 1)
            page.put("i", fake_agent.SIZE, 2)
            world.pages.append(page)
            page.tear()
            world.pages[0].name_next(page)
            self.assertEqual(world.workers[0].wait(280), 0)


@tap.needs_torch
class LeftBehind(unittest.TestCase):
    """Threads that nobody waits for any more, when the world has changed."""

    def begun(self, exchange, arrives):
        """Operations of an exchange that fails: before its end, and in all."""
        import torch
        from slurm_elastic import _events, _transfer

        begun, ends = [], threading.Event()

        def depart(*_):
            begun.append(1)
            return types.SimpleNamespace(wait=lambda _: ends.wait(280))

        def receive(*_):
            begun.append(1)
            return types.SimpleNamespace(wait=arrives or (lambda _: ends.wait(280)))

        group = types.SimpleNamespace(
            isend=depart, irecv=receive, get_rank=lambda: 0, get_world_size=lambda: 3
        )
        tensors = [torch.zeros(20 * 4096, dtype=torch.uint8)]
        with mock.patch.multiple(
            _transfer, dist=group, PARCEL_BYTES=4096, LATE=0.0
        ), mock.patch.object(_events, "torn", lambda _: len(begun) >= _transfer.PARCELS):
            with self.assertRaises(ConnectionError):
                getattr(_transfer, exchange)({1: tensors}, {2: tensors})
            before = len(begun)
            ends.set()
            while threading.active_count() > 1:  # one of them may be about to start another
                time.sleep(0.001)
            return before, len(begun)

    def test_they_begin_nothing_in_the_next_world(self):
        def fails(_):
            raise ConnectionError

        for exchange, arrives in (("exchange_apart", None), ("exchange", fails)):
            with self.subTest(exchange):
                before, later = self.begun(exchange, arrives)
                self.assertGreater(before, 0)
                self.assertEqual(later, before)

    def test_nor_does_a_thread_that_copies(self):
        from slurm_elastic import _buddy_copies

        begun = []
        group = types.SimpleNamespace(
            isend=lambda *_, **__: begun.append(1),
            irecv=lambda *_, **__: begun.append(1),
            get_rank=lambda: 0,
            get_world_size=lambda: 2,
        )
        with mock.patch.object(_buddy_copies, "dist", group):
            copying = _buddy_copies.Copying(None, [1, 0])
            copying._departure(None, 1, 0)
            copying.end(0)
            for message in (copying._departure, copying._receive_into):
                self.assertRaises(ConnectionError, message, None, 1, 0)
        self.assertEqual(begun, [1])


@tap.needs_torch
class Share(unittest.TestCase):
    def share(self, size, have_it, older):
        import torch

        with tempfile.TemporaryDirectory() as directory:
            argv = ["-c", RANK, str(have_it), str(older), directory]
            with fake_agent.World(argv, size, has_torch=True) as world:
                self.assertEqual(world.wait(), [0] * size)
            return [torch.load(f"{directory}/{rank}") for rank in range(size)]

    def flat(self, value):
        """Leaves of a structure, tensors as lists with their type."""
        if isinstance(value, dict):
            return [(key, self.flat(each)) for key, each in value.items()]
        if isinstance(value, (list, tuple)):
            return [self.flat(each) for each in value]
        return (str(value.dtype), value.tolist()) if hasattr(value, "dtype") else value

    def assert_alike(self, states):
        first = self.flat(states[0])
        for rank, state in enumerate(states):
            self.assertEqual(self.flat(state), first, f"rank {rank}")

    def test_one_has_it_and_it_is_handed_on(self):
        self.assert_alike(self.share(4, have_it=1, older=0))

    def test_several_have_it_and_some_have_an_older_one(self):
        self.assert_alike(self.share(5, have_it=2, older=1))


class Parcels(unittest.TestCase):
    @tap.needs_torch
    def test_only_small_tensors_are_copied_into_a_parcel(self):
        import torch
        from slurm_elastic import _transfer

        large, small = torch.ones(1 << 20, dtype=torch.uint8), torch.ones(5, dtype=torch.uint8)
        places = {each.bytes.data_ptr(): each for each in _transfer._parcels([small, large])}
        self.assertEqual(len(places), 2)
        self.assertFalse(places[large.data_ptr()].before or places[large.data_ptr()].after)
        self.assertNotIn(small.data_ptr(), places)


class Lines(unittest.TestCase):
    @tap.needs_torch
    def test_each_receiver_has_one_source_and_each_rank_at_most_one_target(self):
        from slurm_elastic import _transfer

        for sources, receivers in (
            ([0], [1, 2, 3]),
            ([0, 1], [2, 3, 4]),
            ([0, 2, 3], [1]),
            ([1], []),
        ):
            pairs = {
                rank: _transfer.neighbours(rank, sources, receivers) for rank in sources + receivers
            }
            for rank, (source, target) in pairs.items():
                self.assertEqual(source is None, rank in sources)
                if source is not None:
                    self.assertEqual(pairs[source][1], rank)
                if target is not None:
                    self.assertEqual(pairs[target][0], rank)


if __name__ == "__main__":
    tap.main()
