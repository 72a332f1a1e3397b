#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a newcomer has used before its world begins needs no new pages then."""

import os
import subprocess
import sys
import unittest

import preloaded
import tap

# The megabytes of 100 that are new pages, in tensors as a training has them.
NEW = """
import resource, sys
import torch
from slurm_elastic import _touched
room = _touched.Room(int(sys.argv[1]) << 20, kept=True)
room.open()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
tensors = [torch.ones(megabytes << 20, dtype=torch.uint8) for megabytes in [1, 4, 15] * 5]
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults * resource.getpagesize() / (1 << 20))
"""

# Of a worker that joins with this generation: bytes of its room, and whether it is kept.
ASKED = """
import sys
import torch
from slurm_elastic import _memory, _touched, _world
_world.generation = lambda: int(sys.argv[1])
class State:
    model = torch.nn.Linear(1 << 10, 1 << 10, bias=False)  # 4 MB
    _sharding = object() if "sharded" in sys.argv else None
_memory.available = lambda: int(sys.argv[2])
class Room:
    def __init__(self, size, kept=False):
        print(size, kept)
_touched.Room = Room
_touched.of(State)
"""


def say(code, *arguments):
    """In a process of its own: no memory is left of what another one has used."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def say_preloaded(code, *arguments):
    argv = ["-c", code, *map(str, arguments)]
    worker = preloaded.Worker(argv, dict(os.environ), stdout=subprocess.PIPE, text=True)
    with worker.stdout:
        said, _ = worker.communicate(280)
    assert worker.returncode == 0
    return said.split()


@tap.needs_torch
class Touched(unittest.TestCase):
    def test_what_was_touched_needs_no_new_pages(self):
        self.assertGreater(float(say(NEW, 0)[0]), 90)
        self.assertLess(float(say(NEW, 160)[0]), 10)

    def test_how_much(self):
        megabyte, much = 1 << 20, 1 << 40
        for arguments, size, kept in (
            ((1, much), 0, False),
            ((1, much, "sharded"), 0, False),
            ((2, much), 12 * megabyte, False),
            ((2, much, "sharded"), 8 * megabyte, True),
            ((2, 16 * megabyte, "sharded"), 4 * megabyte, True),
        ):
            with self.subTest(arguments):
                self.assertEqual(say_preloaded(ASKED, *arguments), [str(size), str(kept)])


if __name__ == "__main__":
    tap.main()
