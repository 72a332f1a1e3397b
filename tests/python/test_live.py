#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""slurm_elastic.live in one process: what a State does. Worlds that change:
tests/system/live.bats.
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fake_agent
import tap
from slurm_elastic import ElasticSampler, _world, generation, scale_config

try:
    import torch
    from slurm_elastic import _generators, live
except ImportError:
    torch = None


class Scaler:
    """What step() needs of a GradScaler, which without a GPU does nothing."""

    def __init__(self, finite=True):
        self.finite, self.value, self.calls = finite, 8.0, []

    def scale(self, loss):
        return loss

    def unscale_(self, optimizer):
        pass

    def get_scale(self):
        return self.value

    def step(self, optimizer):
        self.calls.append("step")
        if self.finite:
            optimizer.step()

    def update(self):
        self.calls.append("update")
        self.value *= 2.0 if self.finite else 0.5

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.model = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)

    def backward(self):
        self.model(torch.ones(4, 3)).sum().backward()

    def draw(self):
        return random.random(), float(torch.rand(1))


@tap.needs_torch
class Gate(unittest.TestCase):
    def run_after(self, call):
        code = f"""
import slurm_elastic, torch
from slurm_elastic import live
try:
    slurm_elastic.{call}
    live.run(lambda state: 7, live.State(torch.nn.Linear(1, 1)))
except RuntimeError as error:
    print(error)
"""
        pipes = dict(stdout=subprocess.PIPE, text=True)
        with fake_agent.World(["-c", code], 1, has_torch=True, **pipes) as world:
            self.assertEqual(world.wait(), [0])
            return world.workers[0].stdout.read()

    def test_a_script_that_waits_before_run_gets_one_line(self):
        for call, named in (
            ("init()", r"init\(\)"),
            ("load_latest()", r"load_latest\(\), or its like,"),
        ):
            words = rf"^slurm_elastic\.{named} is called before live\.run\(\): leave it out.*\n$"
            self.assertRegex(self.run_after(call), words)


@tap.needs_torch
class Step(Case):
    def test_it_makes_the_step_of_everything(self):
        sampler = ElasticSampler(10, 4)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer)
        other = torch.optim.Adam(self.model.parameters(), lr=0.1)
        state = live.State(self.model, self.optimizer, other, self.scheduler, plateau, sampler)
        before = self.model.weight.clone()
        next(iter(sampler))
        self.backward()
        state.step()
        self.assertTrue(torch.allclose(self.model.weight, before - 0.5 * 4 - 0.1))
        self.assertEqual(self.optimizer.param_groups[0]["lr"], 0.25)
        self.assertEqual([each.grad for each in self.model.parameters()], [None, None])
        self.assertEqual((state.steps, sampler.committed), (1, 4))
        self.assertEqual(plateau.last_epoch, 0)

    def test_schedulers_of_epochs_are_left_alone(self):
        state = live.State(self.model, self.optimizer, self.scheduler)
        self.backward()
        state.step(schedulers=False)
        self.assertEqual(self.optimizer.param_groups[0]["lr"], 0.5)

    def test_with_a_scaler(self):
        for finite in (True, False):
            with self.subTest(finite=finite):
                self.setUp()
                scaler = Scaler(finite)
                state = live.State(self.model, self.optimizer, self.scheduler, scaler)
                before = self.model.weight.clone()
                self.backward()
                state.step()
                self.assertEqual(scaler.calls, ["step", "update"])
                self.assertEqual(torch.equal(self.model.weight, before), not finite)
                # A schedule counts the steps that were made.
                self.assertEqual(self.optimizer.param_groups[0]["lr"], 0.25 if finite else 0.5)
                self.assertEqual(state.steps, 1)
                self.assertIsNone(self.model.weight.grad)

    def test_without_an_optimizer_it_says_so(self):
        with self.assertRaisesRegex(RuntimeError, "no optimizer among the parts"):
            live.State(self.model).step()

    def test_accumulated_gradients_are_those_of_the_whole_batch(self):
        sampler = ElasticSampler(8, 8)
        state = live.State(self.model, self.optimizer, sampler)
        x = torch.randn(8, 3)
        drawn = next(iter(sampler))
        scale = sampler.loss_scale("sum")
        parts = x[drawn].split(3)
        with state.no_sync():
            for part in parts[:-1]:
                (state.ddp(part).square().sum() * scale).backward()
        (state.ddp(parts[-1]).square().sum() * scale).backward()
        accumulated = self.model.weight.grad.clone()
        self.optimizer.zero_grad()
        (state.ddp(x).square().sum() / 8).backward()
        self.assertTrue(torch.allclose(accumulated, self.model.weight.grad))


@tap.needs_torch
class FirstStep(Case):
    """Of a world."""

    def test_what_is_trained_by_now_is_told_before_its_boundary(self):
        state = live.State(self.model, self.optimizer)
        state._progress.watch()
        told, at_boundaries = [], []

        def look():
            at_boundaries.append(list(told))

        with mock.patch.multiple(
            live._events, tell_signature=told.append, elastic_event_detected=look
        ):
            for _ in range(2):
                state._progress.begin_world()
                for _ in range(3):
                    self.model.register_buffer(f"mask{state.steps}", torch.ones(3))
                    self.backward()
                    state.step()
                    if state.steps in (1, 4):
                        expected = state._signature()
                        self.assertEqual(told[-1], expected)
        self.assertEqual([len(each) for each in at_boundaries], [1, 1, 1, 2, 2, 2])
        self.assertEqual(len(set(told)), 2)

    def test_a_state_that_has_only_begun_is_nobodys_source_before(self):
        state = live.State(self.model, self.optimizer)
        state._progress.watch()
        with tempfile.TemporaryDirectory() as empty, mock.patch.dict(
            os.environ, ELASTIC_CHECKPOINT_DIR=empty
        ):
            self.assertFalse(state._load_latest())
        for torn in True, False:
            state._progress.begin_world()
            self.assertEqual(state._progress.standing.whole, -1)
            self.backward()
            if torn:
                state._progress.undo()
                self.assertEqual(state._progress.standing, (-1, -1))
        state.step()
        self.assertEqual(state._progress.standing.whole, 1)


@tap.needs_torch
class RandomNumbers(Case):
    def test_a_snapshot_brings_them_back(self):
        taken = _generators.snapshot()
        first = self.draw()
        self.assertNotEqual(self.draw(), first)
        _generators.restore(taken)
        self.assertEqual(self.draw(), first)

    def test_seeds_are_as_different_as_their_numbers(self):
        drawn = set()
        for numbers in (1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3), (12, 3), (1, 23):
            _generators.seed(*numbers)
            drawn.add(self.draw())
        self.assertEqual(len(drawn), 6)
        _generators.seed(1, 2, 3)
        self.assertIn(self.draw(), drawn)

    def received(self, rng, rank):
        """What a rank draws first that has received the state."""
        state = live.State(self.model, self.optimizer, rng=rng)
        self.backward()
        state.step()
        taken = _generators.snapshot()
        sent = state.state_dict()
        torch.manual_seed(77)
        random.seed(77)
        state.load_state_dict(sent)
        state._begin_here(rank)
        drawn = self.draw()
        _generators.restore(taken)
        return drawn, self.draw()

    def test_own(self):
        first, of_the_sender = self.received("own", 0)
        second, _ = self.received("own", 1)
        self.assertEqual(len({first, second, of_the_sender}), 3)
        self.assertEqual(self.received("own", 1)[0], second)

    def test_shared(self):
        self.assertEqual(*self.received("shared", 3))

    def test_none(self):
        torch.manual_seed(77)
        random.seed(77)
        expected = self.draw()
        self.assertEqual(self.received(None, 0)[0], expected)

    def test_anything_else_is_refused(self):
        with self.assertRaisesRegex(ValueError, '\'global\'.*"own", "shared" or None'):
            live.State(self.model, rng="global")


@tap.needs_torch
class Outline(Case):
    def digest(self, model, *parts, **values):
        return live.State(model, *parts, **values)._signature()

    def test_it_tells_what_cannot_take_over_each_others_state(self):
        model, optimizer = self.model, self.optimizer
        renamed = torch.nn.Sequential(torch.nn.Linear(3, 2))
        groups = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}], lr=1)
        others = {
            "shape": self.digest(torch.nn.Linear(3, 3), optimizer),
            "name": self.digest(renamed, optimizer),
            "type": self.digest(torch.nn.Linear(3, 2).double(), optimizer),
            "part": self.digest(model),
            "optimizer": self.digest(model, torch.optim.Adam(model.parameters())),
            "groups": self.digest(model, groups),
            "data": self.digest(model, optimizer, ElasticSampler(10, 2)),
            "batch": self.digest(model, optimizer, ElasticSampler(10, 5)),
            "more data": self.digest(model, optimizer, ElasticSampler(11, 2)),
            "value": self.digest(model, optimizer, best=0),
            "the same": self.digest(model, optimizer),
        }
        self.assertEqual(len(set(others.values())), len(others))

    def test_it_does_not_depend_on_numbers(self):
        first = self.digest(self.model, self.optimizer, ElasticSampler(10, 2, seed=1), best=0)
        self.backward()
        self.optimizer.step()
        again = torch.optim.SGD(self.model.parameters(), lr=7)
        self.assertEqual(
            self.digest(self.model, again, ElasticSampler(10, 2, seed=5), best=1), first
        )

    def test_it_is_the_same_in_another_process(self):
        code = (
            "import torch; from slurm_elastic import live; m = torch.nn.Linear(3, 2); "
            "print(live.State(m, torch.optim.SGD(m.parameters(), lr=1))._signature())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": "5"},
            capture_output=True,
            text=True,
            timeout=280,
        )
        self.assertEqual(done.stdout, f"{self.digest(self.model, self.optimizer)}\n", done.stderr)


class Environment(unittest.TestCase):
    def test_it_is_that_of_the_world_entered(self):
        world = mock.Mock(
            generation=3, attempt=9, rank=2, size=4, local_rank=0, local_size=2, nodes=2
        )
        before = {
            "ELASTIC_EVENT_FILE": "/page",
            "ELASTIC_GENERATION": "1",
            "ELASTIC_SCALE_CONFIG": '{"lr": 1}',
            "ELASTIC_SCALE_CONFIGS": '{"2": {"lr": 1}, "4": {"lr": 2}}',
            "RANK": "0",
        }
        with mock.patch.dict(os.environ, before):
            self.assertEqual((generation(), scale_config()), (1, {"lr": 1}))
            _world.enter(world)
            self.assertEqual((generation(), scale_config()), (3, {"lr": 2}))
            self.assertEqual(_world.rank_and_size(), (2, 4))
            self.assertEqual(os.environ["LOCAL_WORLD_SIZE"], "2")
            self.assertEqual(os.environ["ELASTIC_ATTEMPT"], "9")
            world.size = 3
            _world.enter(world)
            self.assertEqual(scale_config(), {})  # nothing is said about three
            # There is no policy, or the agent is older: what it has said stands.
            del os.environ["ELASTIC_SCALE_CONFIGS"]
            os.environ["ELASTIC_SCALE_CONFIG"] = '{"lr": 7}'
            _world.enter(world)
            self.assertEqual(scale_config(), {"lr": 7})


if __name__ == "__main__":
    tap.main()
