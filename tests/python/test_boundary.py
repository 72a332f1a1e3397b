#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a torn step has done to a training state, and how it is undone: in one process. Worlds that
are torn: tests/system/live_faults.bats.
"""

import copy
import random
import statistics
import time
import unittest
import warnings

import tap
from slurm_elastic import ElasticSampler

try:
    import torch
    from slurm_elastic import live
    from slurm_elastic._boundary import Standing, Stepping, newest
except ImportError:
    torch = None


@tap.needs_torch
class Newest(unittest.TestCase):
    def test_a_step_that_somebody_has_committed_counts(self):
        table = [
            # (whole, complete) of each rank; from which step, and who has it
            ([(-1, -1)], -1, []),
            ([(-1, -1), (-1, -1)], -1, []),
            ([(0, -1), (-1, -1)], 0, [0]),
            ([(7, -1), (7, -1), (7, -1)], 7, [0, 1, 2]),
            ([(7, -1), (8, -1), (7, -1)], 8, [1]),
            ([(-1, -1), (8, -1), (8, -1)], 8, [1, 2]),
            # Stepped, not committed: only if nobody has anything else.
            ([(7, -1), (-1, 8)], 7, [0]),
            ([(8, -1), (-1, 8)], 8, [0]),
            ([(-1, 8), (-1, 8)], 8, [0, 1]),
            ([(-1, 8), (-1, -1)], 8, [0]),
            ([(-1, 8), (-1, 7)], 8, [0]),
            ([(-1, 8), (0, -1)], 0, [1]),
        ]
        for standings, step, ranks in table:
            with self.subTest(standings=standings):
                self.assertEqual(newest([Standing(*each) for each in standings]), (step, ranks))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)
        )

    def sgd(self, module=None, **options):
        return torch.optim.SGD(
            (module or self.model).parameters(), **{"lr": 0.5, "momentum": 0.9, **options}
        )

    def backward(self):
        self.model(torch.ones(4, 3)).sum().backward()

    def parameters(self):
        return [each.detach().clone() for each in self.model.parameters()]

    def assertTensorsEqual(self, first, second):
        self.assertTrue(all(map(torch.equal, first, second)))


@tap.needs_torch
class Steps(Case):
    def state_of(self, stepping):
        return stepping.none, stepping.all

    def test_they_are_counted(self):
        first, second = self.sgd(self.model[0]), self.sgd(self.model[2])
        stepping = Stepping([first, second])
        self.assertEqual(self.state_of(stepping), (True, False))
        self.backward()
        first.step()
        self.assertEqual(self.state_of(stepping), (False, False))
        second.step()
        self.assertEqual(self.state_of(stepping), (False, True))
        second.step()  # twice in a step: who knows what was still to come
        self.assertEqual(self.state_of(stepping), (False, False))
        stepping.begin()
        self.assertEqual(self.state_of(stepping), (True, False))

    def test_one_that_does_not_come_to_its_end(self):
        optimizer = torch.optim.LBFGS(self.model.parameters(), max_iter=3)
        stepping = Stepping([optimizer])
        losses = []

        def closure():
            if losses:
                raise RuntimeError("torn")
            optimizer.zero_grad()
            losses.append(self.model(torch.ones(4, 3)).square().sum())
            losses[0].backward()
            return losses[0]

        with self.assertRaisesRegex(RuntimeError, "torn"):
            optimizer.step(closure)
        self.assertEqual(self.state_of(stepping), (False, False))

    def test_a_closure_that_does_not_come_to_its_end(self):
        class Perturbing(torch.optim.SGD):
            def step(self, closure=None):
                with torch.no_grad():
                    self.param_groups[0]["params"][0].add_(1)
                return closure()

        class Inheriting(torch.optim.SGD):
            def add_param_group(self, group):
                super().add_param_group({**group, "name": "all"})

        def closure():
            self.backward()
            raise RuntimeError("torn")

        for kind, is_none in (
            (torch.optim.SGD, True),
            (Inheriting, True),
            (Perturbing, False),
        ):
            for arguments, named in (((closure,), {}), ((), {"closure": closure})):
                with self.subTest(kind=kind.__name__, named=bool(named)):
                    self.setUp()
                    optimizer = kind(self.model.parameters(), lr=0.1)
                    stepping = Stepping([optimizer])
                    before = self.parameters()
                    with self.assertRaisesRegex(RuntimeError, "torn"):
                        optimizer.step(*arguments, **named)
                    self.assertEqual(self.state_of(stepping), (is_none, False))
                    self.assertEqual(all(map(torch.equal, before, self.parameters())), is_none)
                    stepping.begin()
                    # What step() returns comes through.
                    self.assertEqual(optimizer.step(lambda: 5), 5)
                    self.assertEqual(self.state_of(stepping), (False, True))

    def test_without_optimizers_nothing_is_complete(self):
        self.assertEqual(self.state_of(Stepping([])), (True, False))

    def test_schedulers_made_before_and_after_see_the_steps(self):
        for before in (True, False):
            with self.subTest(before=before):
                optimizer = self.sgd()
                if before:
                    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1)
                stepping = Stepping([optimizer])
                if not before:
                    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # "lr_scheduler.step() before optimizer.step()"
                    for _ in range(4):
                        self.backward()
                        optimizer.step()
                        scheduler.step()
                        self.assertTrue(stepping.all)
                        stepping.begin()
                self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.005)

    def test_each_kind_of_optimizer(self):
        kinds = [
            torch.optim.SGD,
            torch.optim.Adam,
            torch.optim.AdamW,
            torch.optim.Adagrad,
            torch.optim.RMSprop,
            torch.optim.NAdam,
        ]
        for kind in kinds:
            with self.subTest(kind=kind.__name__):
                self.setUp()
                expected = self.trained(kind, counted=False)
                self.setUp()
                self.assertTensorsEqual(self.trained(kind, counted=True), expected)

    def trained(self, kind, counted):
        optimizer = kind(self.model.parameters(), lr=0.1)
        stepping = Stepping([optimizer] if counted else [])
        for _ in range(3):
            stepping.begin()
            self.backward()
            optimizer.step()
            optimizer.zero_grad()
            self.assertEqual(stepping.all, counted)
        return self.parameters()

    def test_a_closure_of_lbfgs_is_one_step(self):
        optimizer = torch.optim.LBFGS(self.model.parameters(), max_iter=3)
        stepping = Stepping([optimizer])

        def closure():
            optimizer.zero_grad()
            loss = self.model(torch.ones(4, 3)).square().sum()
            loss.backward()
            return loss

        self.assertGreater(float(optimizer.step(closure)), 0)
        self.assertTrue(stepping.all)

    def test_a_scaler_that_leaves_a_step_out(self):
        optimizer = self.sgd()
        stepping = Stepping([optimizer])
        scaler = torch.cuda.amp.GradScaler(enabled=False)  # calls step() all the same
        self.backward()
        scaler.step(optimizer)
        self.assertTrue(stepping.all)
        stepping.begin()
        self.assertTrue(stepping.none)  # infinite gradients: it was not called


class Tally:
    """A part of one's own."""

    def __init__(self):
        self.seen = []

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class Scaler:
    """The tensors of a GradScaler, which without a GPU has none."""

    def __init__(self):
        self._scale, self._growth_tracker = torch.tensor(8.0), torch.tensor(3)
        self._per_optimizer_states = {}

    def state_dict(self):
        return {"scale": self._scale.item(), "growth": self._growth_tracker.item()}

    def load_state_dict(self, state):
        self._scale, self._growth_tracker = (
            torch.tensor(state["scale"]),
            torch.tensor(state["growth"]),
        )

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        self._per_optimizer_states[id(optimizer)] = "unscaled"

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        self._scale *= 2
        self._growth_tracker += 1

    def get_scale(self):
        return self._scale.item()


@tap.needs_torch
class Undone(Case):
    """A step is begun by step(), and torn before its optimizers step."""

    def begin(self, *parts, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BatchNorm's
            state = live.State(self.model, *parts, **options)
        state._progress.watch()
        state._progress.is_whole = True
        state._progress.begin_world()
        return state

    def test_buffers(self):
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
        )
        self.model.register_buffer("constant", torch.arange(5.0))
        self.model.register_buffer("average", torch.zeros(3))
        optimizer = self.sgd()
        state = self.begin(optimizer)
        for _ in range(2):
            self.model(torch.randn(8, 3)).sum().backward()
            self.model.average.add_(1)
            state.step()
        kept = [each.clone() for each in self.model.buffers()]
        version = self.model.constant._version
        self.model(torch.randn(8, 3)).sum().backward()
        self.model.average.add_(1)
        self.assertFalse(all(map(torch.equal, kept, self.model.buffers())))
        state._progress.undo()
        self.assertTensorsEqual(kept, self.model.buffers())
        self.assertEqual(float(self.model.average[0]), 2)
        self.assertEqual(int(self.model[1].num_batches_tracked), 2)
        self.assertEqual(state._progress.standing, Standing(2, -1))
        self.assertGreaterEqual(self.model.constant._version, version)
        # The next world begins from there, with a boundary of its own.
        state._progress.begin_world()
        self.model.average.add_(1)
        state._progress.undo()
        self.assertEqual(float(self.model.average[0]), 2)

    def test_a_buffer_that_only_a_view_or_data_of_it_is_written_to(self):
        self.model.register_buffer("table", torch.zeros(4))
        state = self.begin(self.sgd())
        self.model.table[1:3].fill_(1)
        self.model.table.view(2, 2).add_(1)
        state._progress.undo()
        self.assertEqual(self.model.table.tolist(), [0] * 4)

    def test_buffers_that_are_replaced(self):
        self.model.register_buffer("center", torch.zeros(3))
        self.model.register_buffer("later", None)
        state = self.begin(self.sgd())
        for _ in range(2):
            self.backward()
            self.model.center = self.model.center + 1
            state.step()
        self.model.center = self.model.center + 1
        self.model.later = torch.ones(2)
        state._progress.undo()
        self.assertEqual(self.model.center.tolist(), [2] * 3)
        self.assertIsNone(self.model.later)
        self.assertEqual(state._progress.standing, Standing(2, -1))
        state._progress.begin_world()
        del self.model.later
        self.backward()
        state.step()
        del self.model.center
        state._progress.undo()
        self.assertEqual([name for name, _ in self.model.named_buffers()], ["center"])

    def test_a_buffer_of_which_there_is_no_copy(self):
        state = self.begin(self.sgd())
        self.model.register_buffer("mask", torch.ones(3))
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(-1, -1))
        state._progress.is_whole = True  # received
        state._progress.begin_world()
        self.model.mask.zero_()
        state._progress.undo()
        self.assertEqual(
            (self.model.mask.tolist(), state._progress.standing), ([1] * 3, Standing(0, -1))
        )

    def averaging(self, average, as_part):
        """A training that has a moving average of the model, which no optimizer has: state, and a
        step without its optimizer's.
        """
        self.setUp()
        optimizer = self.sgd()
        teacher = copy.deepcopy(self.model[2])
        if not as_part:
            self.model[0].teacher = teacher
        state = self.begin(optimizer, *([teacher] if as_part else []))

        def step():
            self.backward()
            for slow, fast in zip(teacher.parameters(), self.model[2].parameters()):
                average(slow, fast)

        return state, teacher, step

    def each_average(self, check):
        def counted(slow, fast):
            with torch.no_grad():
                slow.mul_(0.9).add_(fast, alpha=0.1)

        def silent(slow, fast):
            slow.data.mul_(0.9).add_(fast.data, alpha=0.1)

        def replaced(slow, fast):
            slow.data = slow.data * 0.9 + fast.data * 0.1

        for average in counted, silent, replaced:
            for as_part in False, True:
                with self.subTest(average=average.__name__, as_part=as_part):
                    check(*self.averaging(average, as_part))

    def test_parameters_that_no_optimizer_has(self):
        def check(state, teacher, step):
            for _ in range(3):
                step()
                state.step()
            for steps in 3, 4:
                kept = [each.detach().clone() for each in teacher.parameters()]
                step()
                state._progress.undo()
                self.assertTensorsEqual(kept, teacher.parameters())
                self.assertEqual(state._progress.standing, Standing(steps, -1))
                state._progress.begin_world()  # and in the next world from the first step on
                step()
                state.step()

        self.each_average(check)

    def test_parameters_that_no_optimizer_has_and_of_which_there_is_no_copy(self):
        def check(state, teacher, step):
            with torch.no_grad():
                teacher.weight.add_(1)
            state._progress.begin_world()
            step()
            state._progress.undo()
            self.assertEqual(state._progress.standing, Standing(-1, -1))

        self.each_average(check)

    def test_buffers_of_scripted_modules_and_those_that_several_names_have(self):
        self.model[0].scripted = torch.jit.script(torch.nn.BatchNorm1d(3))
        self.model[0].frozen = torch.nn.Linear(3, 3)
        self.model[0].register_buffer("weight_of_it", self.model[0].frozen.weight.detach())
        mask = torch.ones(3)
        for part in self.model[0], self.model[2]:
            part.register_buffer("mask", mask)
        state = self.begin(torch.optim.SGD(self.model[2].parameters(), lr=0.5))
        self.assertEqual(
            len(
                {
                    id(each._copy)
                    for each in state._progress._boundary._copies._copied
                    if each._name == "mask"
                }
            ),
            1,
        )
        self.backward()
        state.step()
        mask.zero_()
        self.model[0].scripted.running_mean.add_(1)
        self.backward()
        state._progress.undo()
        self.assertEqual(
            (mask.tolist(), self.model[0].scripted.running_mean.tolist()), ([1] * 3, [0] * 3)
        )
        self.assertEqual(state._progress.standing, Standing(1, -1))

    def test_buffers_that_a_later_step_registers_and_parameters_that_one_moves(self):
        self.model[0].frozen = torch.nn.Linear(3, 3)
        state = self.begin(torch.optim.SGD(self.model[2].parameters(), lr=0.5))
        for number in range(6):
            self.backward()
            if number == 4:  # no time to look at everything
                self.model.register_buffer("mask", torch.ones(3))
            state.step()
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(6, -1))
        state._progress.begin_world()
        self.model[0].frozen.double()
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(-1, -1))

    def test_parameters_that_never_change_are_not_copied(self):
        self.model[0].frozen = torch.nn.Linear(3, 3)
        late = self.model[2]
        optimizer = torch.optim.SGD(self.model[0].parameters(), lr=0.5)
        state = self.begin(optimizer)
        for number in range(4):
            self.backward()
            state.step()
            if number == 1:
                optimizer.add_param_group({"params": list(late.parameters())})
        self.assertEqual(state._progress._boundary._copies._copied, [])
        self.model(torch.ones(4, 3))
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(4, -1))

    def test_gradients_are_dropped_when_the_next_world_begins(self):
        state = self.begin(self.sgd())
        self.backward()
        state._progress.undo()
        state._progress.begin_world()
        self.assertTrue(all(each.grad is None for each in self.model.parameters()))

    def test_the_position_in_the_data(self):
        sampler = ElasticSampler(10, 4)
        optimizer = self.sgd()
        state = self.begin(optimizer, sampler)
        batches = iter(sampler)
        drawn = next(batches)
        self.backward()
        state.step()
        second = next(batches)
        state._progress.undo()
        self.assertEqual((sampler.epoch, sampler.committed), (0, 4))
        sampler.set_world(0, 1)
        self.assertEqual(next(iter(sampler)), second)
        self.assertEqual(len(drawn), 4)

    def test_an_epoch_that_has_begun_in_the_torn_step(self):
        sampler = ElasticSampler(4, 4)
        state = self.begin(self.sgd(), sampler)
        for _ in sampler:
            self.backward()
            state.step()
        self.assertTrue(sampler.finished)
        sampler.set_epoch(1)
        next(iter(sampler))
        self.backward()
        state._progress.undo()
        self.assertEqual((sampler.epoch, sampler.committed), (0, 4))
        # train() is called anew, and so is what lies between the epochs.
        sampler.set_epoch(1)
        self.assertEqual(sampler.committed, 0)

    def test_param_groups_and_schedulers(self):
        optimizer = self.sgd()
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=20)
        epochs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        state = self.begin(optimizer, scheduler, epochs)
        self.backward()
        state.step()
        before = ({**optimizer.param_groups[0]}, scheduler.state_dict(), epochs.state_dict())
        epochs.step(1.0)
        epochs.step(2.0)
        optimizer.param_groups[0]["lr"] *= 3
        optimizer.param_groups[0]["weight_decay"] = 0.7
        state._progress.undo()
        group = optimizer.param_groups[0]
        self.assertEqual(
            {k: v for k, v in group.items() if k != "params"},
            {k: v for k, v in before[0].items() if k != "params"},
        )
        self.assertIs(group["params"], before[0]["params"])
        self.assertEqual(scheduler.state_dict(), before[1])
        self.assertEqual({key: epochs.state_dict()[key] for key in before[2]}, before[2])

    def test_a_learning_rate_that_is_a_tensor(self):
        optimizer = self.sgd()
        optimizer.param_groups[0]["lr"] = torch.tensor(0.5)
        state = self.begin(optimizer)
        rate = optimizer.param_groups[0]["lr"]
        rate.mul_(3)  # in its place, as graphs of CUDA need it
        state._progress.undo()
        self.assertEqual(float(rate), 0.5)
        self.assertIs(optimizer.param_groups[0]["lr"], rate)

    def test_a_scaler(self):
        optimizer, scaler = self.sgd(), Scaler()
        state = self.begin(optimizer, scaler)
        self.backward()
        state.step()
        self.assertEqual(scaler.get_scale(), 16)
        scaler.unscale_(optimizer)
        scaler.update()
        state._progress.undo()
        self.assertEqual((scaler.get_scale(), int(scaler._growth_tracker)), (16, 4))
        self.assertEqual(scaler._per_optimizer_states, {})

    def test_values(self):
        state = self.begin(self.sgd(), best=0.0, seen=[1], table={"a": [2]}, tensor=torch.zeros(2))
        state.best = 0.5
        state.seen.append(7)
        state.table["a"].append(8)
        state.tensor.add_(1)
        state._progress.undo()
        self.assertEqual((state.best, state.seen, state.table), (0.0, [1], {"a": [2]}))
        self.assertEqual(state.tensor.tolist(), [0, 0])

    def test_values_of_the_last_boundary_and_not_of_the_first(self):
        state = self.begin(self.sgd(), seen=[])
        for number in range(3):
            self.backward()
            state.seen.append(number)
            state.step()
        state.seen.append(99)
        state._progress.undo()
        self.assertEqual(state.seen, [0, 1, 2])
        state.seen.append(5)  # it is nobody else's copy
        state._progress.begin_world()
        state.seen.append(6)
        state._progress.undo()
        self.assertEqual(state.seen, [0, 1, 2, 5])

    def test_a_part_of_ones_own(self):
        tally = Tally()
        state = self.begin(self.sgd(), tally)
        self.backward()
        tally.seen.append(1)
        state.step()
        tally.seen.append(2)
        state._progress.undo()
        self.assertEqual(tally.seen, [1])

    def draw(self):
        return float(torch.rand(1))

    def test_random_numbers_of_ones_own(self):
        state = self.begin(self.sgd(), rng="own")
        self.backward()
        state.step()
        drawn = self.draw()
        state._progress.undo()
        self.assertEqual(self.draw(), drawn)

    def test_random_numbers_that_all_share(self):
        state = self.begin(self.sgd(), rng="shared")
        drawn = self.draw(), random.random()
        state._progress.undo()
        self.assertEqual((self.draw(), random.random()), drawn)

    def test_random_numbers_that_are_left_alone(self):
        state = self.begin(self.sgd(), rng=None)
        drawn = self.draw()
        state._progress.undo()
        self.assertNotEqual(self.draw(), drawn)

    # ---- when optimizers have stepped ------------------------------------------------------------

    def test_nothing_has_stepped(self):
        state = self.begin(self.sgd())
        before = self.parameters()
        self.backward()
        state._progress.undo()
        self.assertTensorsEqual(self.parameters(), before)
        self.assertEqual(state._progress.standing, Standing(0, -1))
        state._progress.undo()  # it had not begun: in the next world, say, while the state was passed on
        self.assertEqual(state._progress.standing, Standing(0, -1))

    def test_all_have_stepped(self):
        sampler = ElasticSampler(10, 4)
        optimizer = self.sgd()
        state = self.begin(optimizer, sampler)
        next(iter(sampler))
        self.backward()
        optimizer.step()
        after = self.parameters()
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(-1, 1))
        # Nobody has anything else: it counts.
        state._progress.go_on_from(1)
        self.assertTensorsEqual(self.parameters(), after)
        self.assertEqual((state.steps, sampler.committed), (1, 4))
        self.assertEqual(state._progress.standing.whole, 1)

    def test_one_of_two_has_stepped(self):
        first, second = self.sgd(self.model[0]), self.sgd(self.model[2])
        state = self.begin(first, second)
        self.backward()
        first.step()
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(-1, -1))
        self.assertEqual(second.param_groups[0]["lr"], 0.5)

    def test_it_is_torn_after_commit(self):
        state = self.begin(self.sgd())
        self.backward()
        state.step()
        state._progress.undo()
        self.assertEqual(state._progress.standing, Standing(1, -1))

    def test_what_is_received_is_whole_again(self):
        giver = live.State(torch.nn.Linear(2, 2), best=3)
        giver._progress.steps = 9
        state = live.State(torch.nn.Linear(2, 2), best=0)
        state._progress.watch()
        self.assertEqual(state._progress.standing, Standing(-1, -1))
        state.load_state_dict(giver.state_dict())
        self.assertEqual((state._progress.standing, state.best), (Standing(9, -1), 3))

    # ---- what it costs ---------------------------------------------------------------------------

    def test_a_boundary_is_cheap(self):
        self.model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(20)))
        self.model.register_buffer("mask", torch.ones(1000, 1000))  # only read
        optimizer = self.sgd()
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
        sampler = ElasticSampler(10**6, 4)
        state = live.State(self.model, optimizer, scheduler, sampler, best=0.0)
        batches = iter(sampler)

        def seconds(count=2000):
            taken = []
            for _ in range(count):
                next(batches)
                begun = time.perf_counter()
                state.commit()
                taken.append(time.perf_counter() - begun)
            return statistics.median(taken)

        alone = seconds()
        state._progress.watch()
        state._progress.begin_world()
        watched = seconds()
        print(
            f"# commit(): {alone * 1e6:.1f} µs, with a boundary to go back to {watched * 1e6:.1f} µs"
        )
        self.assertLess(watched - alone, 0.0005)  # a copy of the mask would be more


if __name__ == "__main__":
    tap.main()
