#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Units of several nodes (--elastic-replica): which one a process is of, and meshes of them."""

import os
import types
import unittest
from unittest import mock

import tap
from slurm_elastic import _world, unit, unit_mesh


def world_of(**names):
    return mock.patch.dict(os.environ, {key: str(each) for key, each in names.items()}, clear=True)


class Units(unittest.TestCase):
    def test_unit_of_a_process(self):
        cases = (
            (dict(RANK=0, WORLD_SIZE=1), (0, 1, 0, 1)),
            (dict(RANK=3, WORLD_SIZE=4, LOCAL_WORLD_SIZE=2), (1, 2, 1, 2)),
            (dict(RANK=5, WORLD_SIZE=8, LOCAL_WORLD_SIZE=1, ELASTIC_REPLICA_NODES=2), (2, 4, 1, 2)),
            (
                dict(RANK=9, WORLD_SIZE=12, LOCAL_WORLD_SIZE=2, ELASTIC_REPLICA_NODES=3),
                (1, 2, 3, 6),
            ),
        )
        for names, expected in cases:
            with self.subTest(names), world_of(**names):
                self.assertEqual(unit(), expected)

    def test_unequal_nodes_are_refused(self):
        with world_of(RANK=0, WORLD_SIZE=5, LOCAL_WORLD_SIZE=2):
            with self.assertRaisesRegex(ValueError, "5 processes are no whole units of 2"):
                unit()

    def test_a_live_worker_enters_another_world(self):
        world = types.SimpleNamespace(
            rank=5, size=6, local_rank=0, local_size=1, nodes=6, generation=3, attempt=4
        )
        with world_of(ELASTIC_REPLICA_NODES=2, ELASTIC_UNIT=0, ELASTIC_UNITS=1):
            _world.enter(world)
            found = [os.environ[f"ELASTIC_UNIT{each}"] for each in ("", "S", "_RANK", "_SIZE")]
            self.assertEqual(found, ["2", "3", "1", "2"])
            world.size = 5  # nodes with unequal numbers of workers
            _world.enter(world)
            self.assertNotIn("ELASTIC_UNIT", os.environ)

    def test_dimensions_that_do_not_make_up_a_unit(self):
        with world_of(RANK=0, WORLD_SIZE=8, LOCAL_WORLD_SIZE=4):
            with self.assertRaisesRegex(
                ValueError, "unit_mesh: shard 2 \\* tensor 3 is 6, and a unit has 4 processes"
            ):
                unit_mesh("cpu", {"shard": 2, "tensor": 3})


if __name__ == "__main__":
    tap.main()
