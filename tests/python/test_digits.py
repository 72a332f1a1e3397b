#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Time limit: 900 s
# Takes 25 s
"""examples/digits, through worlds of several sizes."""

import os
import subprocess
import sys
import tempfile
import unittest

import fake_agent
import tap

EXAMPLE = os.path.join(
    os.environ.get("top_srcdir") or os.path.join(os.path.dirname(__file__), "..", ".."),
    "examples",
    "digits",
)


class Digits(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-digits-")
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name

    def world(self, script, size, generation, *arguments):
        command = [os.path.join(EXAMPLE, script), "--log", self.path("log"), *arguments]
        return fake_agent.World(
            command,
            size,
            generation,
            checkpoint=self.path("checkpoint"),
            has_torch=True,
            stdout=subprocess.PIPE,
            text=True,
        )

    def path(self, name):
        return os.path.join(self.directory, name)

    def parameters(self):
        import slurm_elastic
        import torch

        model = slurm_elastic.load_latest(self.path("checkpoint"))["model"]
        return torch.cat([value.flatten() for value in model.values()])

    def check_log(self, *arguments):
        command = [sys.executable, os.path.join(EXAMPLE, "check_log.py"), *arguments]
        return subprocess.run(
            [*command, self.path("log")], capture_output=True, text=True, timeout=280
        )

    @tap.needs_torch
    def test_a_resized_run_is_the_run_of_one_process(self):
        """Float64, with data loader processes: each sample once, and the same parameters."""
        exact = ("--dtype", "float64", "--epochs", "3")
        with self.world("train_restart.py", 1, 0, *exact) as world:
            self.assertEqual(world.wait(), [0])
        alone = self.parameters()
        self.assertEqual(
            self.check_log("--epochs", "3").stdout.splitlines()[-1], "lost=0 repeated=0"
        )
        for name in os.listdir(self.directory):
            os.rename(self.path(name), self.path("alone-" + name))

        slow = (*exact, "--step-time", "0.02", "--num-workers", "1")
        for generation, (size, steps) in enumerate(((2, 7), (3, 10), (4, 1000))):
            with self.world("train_restart.py", size, generation, *slow) as world:
                if world.wait_for_step(steps):
                    world.stop()
                self.assertEqual(world.wait(), [0] * size)
        checked = self.check_log("--epochs", "3")
        self.assertEqual(checked.stdout.splitlines()[-1], "lost=0 repeated=0", checked.stdout)
        self.assertLess((alone - self.parameters()).abs().max().item(), 1e-10)

    @tap.needs_torch
    def test_it_learns(self):
        with self.world("train_restart.py", 3, 0, "--epochs", "8") as world:
            output = world.workers[0].stdout.read()
            self.assertEqual(world.wait(), [0, 0, 0])
        self.assertRegex(output.splitlines()[-1], r"^accuracy=0\.9[5-9]")

    @tap.needs_torch
    def test_the_plain_script_trains_and_resumes(self):
        arguments = ("--checkpoint", self.path("checkpoint.pt"), "--epochs")
        for epochs, lines in (("1", 13), ("2", 13), ("2", 1)):
            with self.world("train_ddp.py", 2, 0, *arguments, epochs) as world:
                output = world.workers[0].stdout.read()
                self.assertEqual(world.wait(), [0, 0])
            self.assertEqual(len(output.splitlines()), lines, output)
        # Its sampler pads the epoch: one sample twice, so that both ranks have as many.
        self.assertEqual(self.check_log().stdout.splitlines()[-1], "lost=0 repeated=2")

    def test_the_checker_finds_what_is_wrong(self):
        record = '{"generation": 0, "world": 1, "rank": 0, "samples": 3, "epoch": %d, "step": 0, "indices": %s}\n'

        def check(text, *arguments):
            with open(self.path("log"), "w") as log:
                log.write(text)
            done = self.check_log(*arguments)
            return done.returncode, done.stdout.splitlines()[-1:]

        good = record % (0, "[0, 1, 2]")
        self.assertEqual(check(good), (0, ["lost=0 repeated=0"]))
        self.assertEqual(check(good + '{"cut off'), (0, ["lost=0 repeated=0"]))
        self.assertEqual(check(good, "--epochs", "2"), (1, ["lost=3 repeated=0"]))
        self.assertEqual(check(record % (0, "[0, 2]")), (1, ["lost=1 repeated=0"]))
        self.assertEqual(check(good + record % (0, "[1, 1]")), (1, ["lost=0 repeated=2"]))
        self.assertEqual(check(good + record % (1, "[3, 1]"))[0], 2)
        self.assertEqual(check(good + record % (1, "[-1, 1]"))[0], 2)
        self.assertEqual(check("x\n" + good)[0], 1)
        self.assertEqual(check("")[0], 2)
        with open(self.path("log.1"), "w") as log:
            log.write(record % (0, "[0]"))
        self.assertEqual(check(good), (1, ["lost=0 repeated=1"]))


if __name__ == "__main__":
    tap.main()
