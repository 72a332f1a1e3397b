#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What users do wrong first gives one clear line, and what others do on purpose gives none.

In worlds of one process, which look for mistakes as larger ones do.
"""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

import fake_agent
import tap

try:
    import torch
    import torch.distributed as dist
    from slurm_elastic import ElasticSampler, _membership, _mistakes, _torch_compat, live
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler
except ImportError:
    torch = None


ENDS = """
import io, os, sys
import slurm_elastic
from slurm_elastic._final import final
os.environ["TORCHELASTIC_ERROR_FILE"] = sys.argv[1] + os.environ["RANK"]

def keep(_):
    before = sys.excepthook
    def hook(*error):
        stderr, sys.stderr = sys.stderr, io.StringIO()
        before(*error)
        stderr, sys.stderr = sys.stderr, stderr
        print("kept:", stderr.getvalue().splitlines()[-1], file=sys.stderr)
    sys.excepthook = hook

raise {error}
"""


class Case(unittest.TestCase):
    shard = None

    def setUp(self):
        torch.manual_seed(1)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        environment = mock.patch.dict(os.environ, ELASTIC_CHECKPOINT_DIR=directory.name)
        environment.start()
        self.addCleanup(environment.stop)
        for name in ("RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
        dist.init_process_group(
            "gloo", store=dist.FileStore(f"{directory.name}/store", 1), rank=0, world_size=1
        )
        self.addCleanup(lambda: dist.is_initialized() and dist.destroy_process_group())
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.data = TensorDataset(torch.randn(40, 3))
        self.sampler = ElasticSampler(self.data, 4)
        _mistakes._told.clear()

    def begin(self, *parts, **options):
        self.state = live.State(self.model, *parts, shard=self.shard, **options)
        self.state._progress.watch()
        _membership.begin(self.state)
        self.state._progress.begin_world()
        self.addCleanup(_membership.end, self.state)
        return self.state

    def backward(self, model=None):
        (model or self.state.ddp)(torch.ones(2, 3)).square().sum().backward()

    def loader(self, **options):
        return DataLoader(self.data, batch_sampler=self.sampler, **options)

    def usual_step(self, model=None):
        self.backward(model)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.state.commit()

    def says(self, function, *arguments):
        """What is printed."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            function(*arguments)
        return said.getvalue()

    @contextlib.contextmanager
    def refused(self, words):
        """Refused with one line."""
        with self.assertRaisesRegex(RuntimeError, words) as caught:
            yield
        self.assertNotIn("\n", str(caught.exception))

    def quiet(self, function, *arguments):
        self.assertEqual(self.says(function, *arguments), "")


class Common:
    """What holds for DistributedDataParallel and for fully_shard()."""

    def test_a_usual_training_says_nothing(self):
        def train():
            state = self.begin(self.optimizer, self.sampler, best=0.0)
            for epoch in range(2):
                self.sampler.set_epoch(epoch)
                for _ in self.loader():
                    with torch.no_grad():
                        self.state.ddp(torch.ones(2, 3))
                    self.backward()
                    state.step()
            state._mistakes.at_end()

        self.quiet(train)
        self.assertEqual(self.state.steps, 20)

    def test_commit_twice_is_found_though_the_loader_draws_ahead(self):
        self.begin(self.optimizer, self.sampler)
        drawn_ahead = iter(self.sampler)
        for _ in range(4):
            next(drawn_ahead)

        def train():
            for _ in range(4):
                next(drawn_ahead)
                self.backward()
                self.state.step()
                self.state.commit()

        with self.refused("^commit.. is called twice for each step.*left out$"):
            train()
        self.assertEqual(self.state.steps, 3)

    def test_commit_twice_is_found_by_a_sampler_that_is_not_drawn_ahead(self):
        self.begin(self.optimizer, self.sampler)
        next(iter(self.sampler))
        self.backward()
        self.state.step()
        with self.refused("^commit.. without a batch: .*once for each step"):
            self.state.commit()

    def test_commit_twice_without_a_sampler_gets_a_line_once(self):
        self.begin(self.optimizer)

        def train():
            for _ in range(6):
                self.backward()
                self.state.step()
                self.state.commit()

        said = self.says(train)
        self.assertEqual(said.count("commit() is called twice for each step"), 1, said)

    def test_steps_that_are_left_out_on_purpose_are_no_mistake(self):
        def train():
            self.begin(self.optimizer, self.sampler)
            for number, _ in enumerate(self.loader()):
                if number % 2 == 0:
                    self.backward()
                    self.state.step()
                else:
                    self.state.commit()  # a batch that is left out

        self.quiet(train)

    def test_a_training_that_waits_is_no_mistake(self):
        def train():
            self.begin(self.optimizer)
            for number in range(8):
                if number in (0, 5, 7):
                    self.backward()
                    self.state.step()
                else:
                    self.state.commit()

        self.quiet(train)

    def test_commit_forgotten_is_an_error_at_the_end(self):
        state = self.begin(self.optimizer)
        for _ in range(2):
            self.backward()
            self.optimizer.step()
        with self.refused("^the training has ended without one commit"):
            state._mistakes.at_end()

    def test_commit_forgotten_is_an_error_at_the_end_of_an_epoch(self):
        self.begin(self.optimizer, self.sampler)
        for _ in self.loader():
            self.backward()
            self.optimizer.step()
        with self.refused("^epoch 0 was drawn to its end without one commit.*state.step"):
            self.sampler.set_epoch(1)

    def test_no_training_needs_no_commit(self):
        state = self.begin(self.optimizer)
        with torch.no_grad():
            for each in self.model.parameters():
                each *= 2  # as load_state_dict() would
        self.state.ddp(torch.ones(2, 3))
        state._mistakes.at_end()

    def test_many_steps_without_commit_get_a_line_once(self):
        self.begin(self.optimizer)

        def train(steps):
            for _ in range(steps):
                self.optimizer.step()

        with mock.patch.object(_mistakes, "FORGOTTEN", 20):
            self.quiet(train, 19)
            said = self.says(train, 30)
        self.assertEqual(said.count("20 steps of an optimizer without commit()"), 1, said)

    def test_the_sampler_is_left_out(self):
        self.begin(self.optimizer)
        with self.refused("^an ElasticSampler gives the batches, and it is not in the state"):
            for _ in self.loader():
                self.backward()
                self.state.step()
        self.assertEqual(self.state.steps, 1)

    def test_a_sampler_that_the_script_commits_itself_gets_a_line_once(self):
        self.begin(self.optimizer)

        def train():
            for _ in self.loader():
                self.backward()
                self.optimizer.step()
                self.sampler.commit()
                self.state.commit()

        said = self.says(train)
        self.assertEqual(said.count("an ElasticSampler gives the batches"), 1, said)
        _membership.unwrap(self.state)
        self.sampler.set_epoch(1)
        self.sampler.set_world(0, 2)  # the world before
        self.state._mistakes.begin_world()
        with self.refused("^an ElasticSampler gives the batches"):
            train()

    def test_a_sampler_for_validation_is_no_mistake(self):
        held_out = ElasticSampler(8, 4, shuffle=False)

        def train():
            self.begin(self.optimizer)
            for _ in range(5):
                for _ in held_out:
                    with torch.no_grad():
                        self.state.ddp(torch.ones(2, 3))
                self.backward()
                self.state.step()

        self.quiet(train)

    def distributed(self, size):
        return DistributedSampler(self.data, num_replicas=size, rank=0)

    def through(self, sampler, parts, also=()):
        self.begin(*parts)
        for _ in DataLoader(self.data, batch_size=2, sampler=sampler):
            for each in also:
                each.indices()
            self.backward()
            self.state.step()

    def test_a_distributed_sampler_gets_a_line_once(self):
        said = self.says(self.through, self.distributed(1), [self.optimizer])
        self.assertEqual(said.count("the batches come from a DistributedSampler"), 1, said)
        self.assertIn("ElasticSampler", said)

    def test_a_distributed_sampler_for_validation_is_no_mistake(self):
        def train():
            self.begin(self.optimizer)
            loader = DataLoader(self.data, batch_size=10, sampler=self.distributed(1))
            for _ in range(5):
                for number, _ in enumerate(loader):
                    if number == 2:
                        break
                self.backward()
                self.state.step()

        self.quiet(train)

    def test_a_distributed_sampler_beside_the_states_own_is_no_mistake(self):
        parts = [self.optimizer, self.sampler]
        self.quiet(self.through, self.distributed(2), parts, [self.sampler])

    def test_a_distributed_sampler_of_another_world(self):
        with self.refused("^the batches come from a DistributedSampler of 2 ranks in a world of 1"):
            self.through(self.distributed(2), [self.optimizer])

    def test_a_newcomer_with_another_global_batch_trains_something_else(self):
        self.begin(self.optimizer, self.sampler)

        def newcomer(global_batch):
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            sampler = ElasticSampler(self.data, global_batch)
            return live.State(model, optimizer, sampler, shard=self.shard)._signature()

        self.assertEqual(newcomer(4), self.state._signature())
        self.assertNotEqual(newcomer(2 * 4), self.state._signature())

    def test_wrapped_twice(self):
        self.begin(self.optimizer)
        words = (
            "^the model is (in a DistributedDataParallel already|sharded by fully_shard).*wrap it"
        )
        with self.refused(words):
            DistributedDataParallel(self.state.ddp)
        outer = torch.nn.Sequential(self.state.ddp)
        with self.refused(words):
            DistributedDataParallel(outer)


@tap.needs_torch
class DataParallel(Common, Case):
    def test_the_model_is_called_instead_of_the_wrapper(self):
        self.begin(self.optimizer)
        with self.refused(r"^the model has trained, and not through state.ddp.*wrap=False"):
            self.usual_step(self.model)

    def test_a_wrapper_of_the_scripts_own(self):
        self.begin(self.optimizer)
        with self.refused("^the model has trained, and not through state.ddp"):
            self.usual_step(DistributedDataParallel(self.model))

    def test_validation_through_the_wrapper_is_not_training(self):
        self.begin(self.optimizer)
        with torch.no_grad():
            self.state.ddp(torch.ones(2, 3))
        with self.refused("^the model has trained, and not through state.ddp"):
            self.usual_step(self.model)

    def test_a_step_left_out_and_validation_with_the_model_are_no_mistake(self):
        def train():
            self.begin(self.optimizer)
            self.model.load_state_dict(self.model.state_dict())
            self.state.commit()
            self.model(torch.ones(2, 3))
            self.usual_step()

        self.quiet(train)

    def test_a_script_that_sums_gradients_itself_is_no_mistake(self):
        def train():
            self.begin(self.optimizer, wrap=False)
            for _ in range(3):
                self.usual_step(self.model)

        self.quiet(train)

    def test_an_optimizer_is_left_out(self):
        for parts in ((), (self.sampler,)):
            with self.subTest(parts=parts):
                self.begin(*parts)
                next(iter(self.sampler))
                with self.refused(r"^0.weight is trained by an optimizer \(SGD\) that is not in"):
                    self.usual_step()
                _membership.unwrap(self.state)

    def test_one_of_two_optimizers_is_left_out(self):
        del self.optimizer
        first = torch.optim.SGD(self.model[0].parameters(), lr=0.1)
        second = torch.optim.AdamW(self.model[1].parameters(), lr=0.1)
        self.begin(first)
        self.backward()
        first.step()
        second.step()
        with self.refused(r"^1.weight is trained by an optimizer \(AdamW\)"):
            self.state.commit()

    def test_parameters_that_change_without_an_optimizer_are_no_mistake(self):
        def train():
            self.begin()
            for _ in range(5):
                self.backward()
                with torch.no_grad():
                    for each in self.model.parameters():
                        each -= 0.1 * each.grad
                self.state.commit()

        del self.optimizer
        self.quiet(train)

    def test_an_optimizer_within_another_part_is_no_mistake(self):
        class Bundle:
            state_dict = self.optimizer.state_dict
            load_state_dict = self.optimizer.load_state_dict

        class Wrapper:
            """Such as Accelerate has."""

            param_groups, zero_grad = self.optimizer.param_groups, self.optimizer.zero_grad
            state_dict, load_state_dict = Bundle.state_dict, Bundle.load_state_dict

            def step(_):
                self.optimizer.step()

        def train(part):
            self.begin(part)
            for _ in range(5):
                self.usual_step()
            _membership.unwrap(self.state)

        for part in (Bundle(), Wrapper()):
            self.quiet(train, part)

    def test_fully_shard_without_a_function(self):
        self.begin(self.optimizer)
        with mock.patch.object(_torch_compat, "is_fully_sharded", lambda module: True):
            with self.refused("^the script has called fully_shard.*shard=function"):
                self.usual_step()

    def test_the_next_world_is_looked_at_again(self):
        self.begin(self.optimizer)
        for _ in range(8):
            self.usual_step()
        _membership.unwrap(self.state)
        _membership.begin(self.state)
        with self.refused("^the model has trained, and not through state.ddp"):
            self.usual_step(self.model)


class Ends(unittest.TestCase):
    """Workers that nobody keeps from ending by an error."""

    def end(self, error):
        """Of two ranks: exit statuses, what they have written, what they have told the leader."""
        told = []
        with tempfile.TemporaryDirectory() as directory:
            place = os.path.join(directory, "error-")
            code = ENDS.format(error=error)
            with fake_agent.World(
                ["-c", code, place], 2, stderr=subprocess.PIPE, text=True
            ) as world:
                said = [each.communicate(timeout=280)[1] for each in world.workers]
                status = world.wait()
            for rank in range(2):
                with contextlib.suppress(FileNotFoundError), open(f"{place}{rank}") as file:
                    told.append(json.load(file)["message"])
        return status, said, told

    def test_a_mistake_says_that_another_start_is_of_no_use(self):
        status, said, told = self.end("final(TypeError('give the model'))")
        self.assertEqual(status, [93, 93])
        self.assertRegex(said[0], "(?s)^Traceback .*\nTypeError: give the model\n$")
        self.assertEqual(said[1], "")
        self.assertEqual(told, ["give the model"] * 2)

    def test_a_hook_that_keeps_what_is_written(self):
        """As torch.distributed has one, which may come after ours."""
        status, said, _ = self.end("keep(final(TypeError('caught'))) or final(TypeError('again'))")
        self.assertEqual(status, [93, 93])
        self.assertEqual(said[0], "kept: TypeError: again\n")

    def test_an_error_after_a_mistake_that_was_caught_is_any_other_error(self):
        status, said, told = self.end("(final(TypeError('caught')), KeyError('lost'))[1]")
        self.assertEqual(status, [1, 1])
        for each in said:
            self.assertRegex(each, "(?s)^Traceback .*\nKeyError: 'lost'\n$")
        self.assertEqual(told, [])


def can_shard():
    return torch is not None and _torch_compat.can_shard()


@unittest.skipUnless(can_shard(), "no fully_shard() for the host")
class FullyShard(Common, Case):
    @staticmethod
    def shard(model, mesh):
        from torch.distributed.fsdp import fully_shard

        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)

    def test_an_optimizer_is_left_out(self):
        with self.assertRaisesRegex(TypeError, "^0.weight is trained, and no optimizer"):
            self.begin(self.sampler)


@tap.needs_torch
class Arguments(unittest.TestCase):
    def test_the_first_one_is_the_model(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for first, name in (
            (ElasticSampler(8, 2), "ElasticSampler"),
            (optimizer, "SGD"),
            ([model], "list"),
            (None, "NoneType"),
        ):
            words = f"^the first argument of live.State is the model, a torch.nn.Module, not {name}"
            for options in ({}, {"shard": lambda model, mesh: None}):
                with self.assertRaisesRegex(TypeError, words):
                    live.State(first, optimizer, **options)

    def test_alone_nothing_is_looked_at(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train(state):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            return 7

        with tempfile.TemporaryDirectory() as directory:
            with mock.patch.dict(os.environ, ELASTIC_CHECKPOINT_DIR=directory):
                os.environ.pop("RANK", None)
                self.assertEqual(live.run(train, live.State(model, optimizer)), 7)

    def test_a_process_group_before_run(self):
        model = torch.nn.Linear(2, 2)

        def run():
            return live.run(lambda state: 7, live.State(model))

        with tempfile.TemporaryDirectory() as directory:
            store = dist.FileStore(f"{directory}/store", 1)
            dist.init_process_group("gloo", store=store, rank=0, world_size=1)
            self.addCleanup(lambda: dist.is_initialized() and dist.destroy_process_group())
            with mock.patch.dict(os.environ, RANK="0", ELASTIC_CHECKPOINT_DIR=directory):
                with self.assertRaisesRegex(
                    RuntimeError, "^there is a process group before live.run.*out init_"
                ):
                    run()
                del os.environ["RANK"]
                self.assertEqual(run(), 7)

    def test_a_wrapped_model_is_refused(self):
        with self.assertRaisesRegex(TypeError, "^give the model, not its DataParallel"):
            live.State(torch.nn.DataParallel(torch.nn.Linear(2, 2)))


if __name__ == "__main__":
    tap.main()
