#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of a sharded state: each rank writes its part, elastic-flush brings the parts to the
checkpoints, and a world of another size reads them.
"""

import hashlib
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import processes
import tap
from slurm_elastic import _sharded_snapshot, checkpoint
from slurm_elastic._opened import open_base

FLUSH = pathlib.Path(os.environ.get("top_builddir", "."), "flush/elastic-flush").absolute()

# Processes on a node each. SIZES of the first world and of the second one, whose processes begin
# anew. A step is made before each snapshot. KIND:
#   full      rank 1 cannot write the second snapshot
#   missing   what one node has is not flushed
#   damaged   a part is not what was flushed
#   saved     there is a checkpoint, of the first step
#   newer     there is one, of a step behind the snapshots
#   survived  only the last process is lost, and what its node has is flushed: the others go on
TRAIN = """
import os, pathlib, subprocess, sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from slurm_elastic import _events, _membership, _snapshot, _world, live

torch.set_num_threads(1)
process, directory, kind, flush = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[6]
sizes = [int(each) for each in sys.argv[4:6]]
goes_on = "survived" in kind and process < sizes[1]
may_flush = not goes_on and ("missing" not in kind or process > 0)
base = pathlib.Path(directory)
run_dirs = [base / f"elastic-{os.getuid()}-12.0-n{each}" for each in range(sizes[0])]

def build():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 7), torch.nn.Linear(7, 2)).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    return live.State(model, optimizer, shard=lambda model, mesh: fully_shard(model, mesh=mesh))

def enter(state, number):
    os.environ.update(ELASTIC_GENERATION=str(number), ELASTIC_INCARNATION="12.0")
    _world.is_elastic = lambda: True
    _events.step = lambda: state.steps
    size = sizes[number - 1]
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=process, world_size=size)
    state._progress.watch()
    _membership.begin(state)
    state._progress.begin_world()
    state._copies.begin_world()

def leave(state):
    state._copies.end_world(True)
    state._sharding.detach()
    _membership.end(state)

def step(state):
    state.model(torch.ones(2, 4, dtype=torch.float64)).square().mean().backward()
    state._step_optimizers()
    state._optimizers[0].zero_grad()
    state._progress.end_step()

state, reference = build(), build()
if process < sizes[0]:
    os.environ["ELASTIC_RUN_DIR"] = str(run_dirs[process])
    run_dirs[process].mkdir(0o700)
    enter(state, 1)
    for number in range(1, 4):
        step(state)
        if number == 1 and "saved" in kind:
            state.save()
        if number == 2 and "full" in kind and process == 1:
            def fail(*args):
                raise OSError("no space left")
            _snapshot.write_file = fail
        if number < 3:
            assert state.snapshot()
            state._copies.wait()
    if "newer" in kind:
        state.save()
    leave(state)
    for path in [run_dirs[process]] if may_flush else []:
        said = subprocess.run([flush, path], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(said, file=sys.stderr)
    if "damaged" in kind and process == 0:
        part = next(base.glob("checkpoint/.parts/n0/.flushed-*/part-*"))
        part.write_bytes(part.read_bytes()[:-1] + bytes([255]))
open(base / f"done-{process}", "w").close()
while len(list(base.glob("done-*"))) < max(sizes):
    pass
if process < sizes[1]:
    if not goes_on:
        state = build()
    enter(state, 2)
    print("goes on from step", state.steps, file=sys.stderr)
    for _ in range(state.steps + 1):
        step(reference)
    step(state)
    for ours, right in zip(state.model.parameters(), reference.model.parameters()):
        assert (ours.full_tensor() - right).abs().max() <= 1e-12
    state.save()
    dist.barrier()
    assert not list(base.glob("checkpoint/.parts/*/.flushed-*")), "what is older stays"
    leave(state)
"""


@processes.needs_sharding
@unittest.skipUnless(os.access(FLUSH, os.X_OK), f"no {FLUSH}")
class Flushed(unittest.TestCase):
    def train(self, kind, sizes=(3, 2)):
        said = processes.run(self, TRAIN, max(sizes), kind, *sizes, FLUSH)
        self.assertEqual(sum("goes on from step" in each for each in said), sizes[1])
        return said[0]

    def test_by_a_smaller_world(self):
        self.assertIn("goes on from step 2", self.train("saved"))

    def test_by_a_larger_world(self):
        self.assertIn("goes on from step 2", self.train("plain", (2, 3)))

    def test_one_that_not_all_could_write_leaves_the_one_before(self):
        self.assertIn("goes on from step 1", self.train("full"))

    def test_a_part_is_missing(self):
        self.assertIn("goes on from step 1", self.train("saved missing"))

    def test_a_part_is_damaged(self):
        said = self.train("saved damaged")
        self.assertRegex(said, r"part-00000-of-00003 is damaged: its snapshot is not used")
        self.assertIn("goes on from step 1", said)

    def test_none_counts_while_workers_live(self):
        said = self.train("saved survived")
        self.assertIn("goes on from the newest checkpoint, step 1: 2 steps lost", said)

    def test_a_checkpoint_is_newer(self):
        self.assertIn("goes on from step 3", self.train("newer"))


class Sets(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.base = pathlib.Path(temporary.name)

    def part(self, node, name, *ranks, size=3, complete=True):
        path = self.base / ".parts" / node / name
        path.mkdir(parents=True)
        files = {f"part-{rank:05d}-of-{size:05d}": 3 for rank in ranks}
        for each in files:
            (path / each).write_bytes(b"abc")
        if complete:
            (path / "complete.json").write_text(json.dumps({"format": 1, "files": files}))

    def find(self):
        with open_base(self.base) as base:
            return _sharded_snapshot.find(base, "12")

    def test_the_newest_whole_set_comes_first(self):
        for name in (".flushed-12.0.1.5-n", ".flushed-12.0.1.10-n", ".flushed-12.1.1.2-n"):
            self.part("n1", name + "1", 0, 1)
            self.part("n2", name + "2", 2)
        self.part("n1", ".flushed-12.2.1.1-n1", 0, 1)  # the other node's part is not there
        self.part("n2", ".flushed-12.2.1.1-n2", 2, complete=False)
        self.part("n1", ".flushed-13.0.1.1-n1", 0, 1, 2)  # of another job
        self.part("n1", ".flushed-12.3.1.1-n1", 0, 1, size=2)  # of another number of ranks
        self.part("n2", ".flushed-12.3.1.1-n2", 2, size=3)
        found = self.find()
        self.assertEqual(
            [each.key for each in found], [(3, 1, 1), (1, 1, 2), (0, 1, 10), (0, 1, 5)]
        )
        names = [path.name for path in found[1].paths]
        self.assertEqual(names, [f"part-0000{rank}-of-00003" for rank in range(3)])

    def test_strange_names_are_passed_over(self):
        for name in (".flushed-12.0.1-n1", ".flushed-12.0.1.5", ".flushed-12.x.1.5-n1", "flushed"):
            self.part("n1", name, 0, size=1)
        self.part("n2", ".flushed-12.0.1.5-n2", size=1)
        (self.base / ".parts" / "n2" / ".flushed-12.0.1.5-n2" / "part-1-of-1").write_bytes(b"")
        (self.base / ".parts" / "file").touch()
        os.mkfifo(self.base / ".parts" / "n2" / ".flushed-12.0.1.6-n2")
        self.assertEqual(self.find(), [])
        # Of so many ranks nobody makes a list.
        self.part("n1", ".flushed-12.0.1.7-n1", 0, size=999999999)
        self.part("n1", ".flushed-" + "9" * 200 + ".0.1.7-n1", 0, size=1)
        self.part("n1", ".flushed-12.0.1." + "9" * 200 + "-n1", 0, size=1)
        self.assertEqual(self.find(), [])

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_what_strangers_have_made_is_passed_over(self):
        self.part("n1", ".flushed-12.0.1.1-n1", 0, size=1)
        for at, key in (("", 2), ("/{}", 3), ("/{}/part-00000-of-00001", 4)):
            name = f".flushed-12.0.1.{key}-n1"
            self.part(f"n{key}", name, 0, size=1)
            os.chown(f"{self.base}/.parts/n{key}{at.format(name)}", 54321, 54321)
        self.part("n1", ".flushing-12.0.1.9-n1-1", 0)
        self.assertEqual([each.key for each in self.find()], [(0, 1, 1)])
        with open_base(self.base) as base:
            self.assertNotEqual(_sharded_snapshot._is_being_written(base, "12", 1), 0)
            os.chown(self.base / ".parts/n1/.flushing-12.0.1.9-n1-1", 54321, 54321)
            self.assertEqual(_sharded_snapshot._is_being_written(base, "12", 1), 0)
        os.chown(self.base / ".parts", 54321, 54321)
        self.assertEqual(self.find(), [])
        # elastic-flush has taken another name.
        os.rename(self.base / ".parts", self.base / ".parts-0123abcd")
        self.assertEqual(self.find(), [])
        os.chown(self.base / ".parts-0123abcd", 0, 0)
        self.assertEqual([each.key for each in self.find()], [(0, 1, 1)])

    def test_what_is_read_is_what_was_compared(self):
        """Another part, of which the manifest knows nothing, is put in its place in between."""
        self.part("n1", ".flushed-12.0.1.1-n1", 0, size=1)
        directory = self.base / ".parts/n1/.flushed-12.0.1.1-n1"
        part = directory / "part-00000-of-00001"
        text = json.loads((directory / "complete.json").read_text())
        text["blake2b"] = {part.name: hashlib.blake2b(b"abc", digest_size=32).hexdigest()}
        (directory / "complete.json").write_text(json.dumps(text))
        is_damaged = _sharded_snapshot._is_damaged

        def exchange(*arguments):
            damaged = is_damaged(*arguments)
            (self.base / "other").write_bytes(b"xyz")
            os.replace(self.base / "other", part)
            return damaged

        with mock.patch.object(checkpoint, "checkpoint_dir", lambda: self.base), mock.patch.object(
            _sharded_snapshot, "_is_damaged", exchange
        ):
            mapped, said = _sharded_snapshot._map_all(self.find()[0], 0, 1)
            self.assertEqual(([bytes(each.numpy()) for each in mapped], said), ([b"abc"], ""))
            mapped, said = _sharded_snapshot._map_all(self.find()[0], 0, 1)
        self.assertEqual((mapped, said), ([], f"{part} is damaged"))

    def test_an_earlier_run_is_waited_for(self):
        self.part("n1", ".flushing-12.0.1.5-n1-4711", 0)
        looks = []

        def sleep(seconds):
            looks.append(seconds)
            if len(looks) == 3:
                os.rename(
                    self.base / ".parts" / "n1" / ".flushing-12.0.1.5-n1-4711",
                    self.base / ".parts" / "n1" / ".flushed-12.0.1.5-n1",
                )

        with mock.patch("time.sleep", sleep), open_base(self.base) as base:
            _sharded_snapshot._wait_for_flushes(base, "12", 0)
            self.assertEqual(looks, [])
            _sharded_snapshot._wait_for_flushes(base, "12", 1)
        self.assertEqual(len(looks), 3)
        # Whoever writes is dead.
        self.part("n2", ".flushing-12.0.1.5-n2-4711", 1)
        with mock.patch("time.sleep", looks.append), open_base(self.base) as base:
            _sharded_snapshot._wait_for_flushes(base, "12", 1)
        self.assertLess(len(looks), 3 + _sharded_snapshot.IDLE + 2)

    def test_a_checkpoint_removes_older_sets(self):
        for name in (".flushed-12.0.1.5-n", ".flushed-12.0.2.7-n", ".flushed-13.0.1.5-n"):
            self.part("n1", name + "1", 0)
        (self.base / "00000001").mkdir()
        with mock.patch.object(
            checkpoint, "key_of", lambda found: ("12", 0, 2, 6.0)
        ), checkpoint.open_checkpoint(self.base / "00000001") as newest:
            _sharded_snapshot.drop_older(newest)
        left = {path.name for path in self.base.glob(".parts/*/*")}
        self.assertEqual(left, {".flushed-12.0.2.7-n1", ".flushed-13.0.1.5-n1"})


if __name__ == "__main__":
    tap.main()
