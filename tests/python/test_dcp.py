#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""save(dcp=True) and load_latest(dcp=True): worlds of several processes over gloo, of one process
without a group, and what is refused. With elastic jobs: tests/pypi/frameworks.bats.
"""

import os
import pathlib
import tempfile
import unittest

import processes
import slurm_elastic
import tap

BEGIN = """
import os, sys, threading
import torch, torch.distributed as dist
import slurm_elastic
from slurm_elastic import ElasticSampler, checkpoint
from torch import nn
from torch.distributed.checkpoint import FileSystemWriter
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
process, directory, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def enter(number, size):
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=process, world_size=size)

def build(seed):
    torch.manual_seed(seed)
    width = 8 if kind == "tp" else 7  # tensor parallelism wants an even one
    model = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 3)).double()
    if kind in ("fsdp", "hsdp", "tp"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        size, mesh = dist.get_world_size(), None
        if kind == "hsdp":
            mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copy", "part"))
        if kind == "tp":  # replicas of two processes
            both = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
            parallelize_module(model, both["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
            mesh = both["data"]
        for layer in model[0], model[2]:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif kind == "ddp":
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    sampler = ElasticSampler(40, global_batch=4, seed=1)
    return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "sampler": sampler, "best": 0.0}

def step(objects):
    next(iter(objects["sampler"]))
    objects["model"](torch.ones(2, 5).double()).square().mean().backward()
    objects["optimizer"].step()
    objects["scheduler"].step()
    objects["optimizer"].zero_grad()
    objects["sampler"].commit()

def full(tensor):
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach().clone()

def numbers(objects):
    found = [full(each) for each in objects["model"].parameters()]
    for each in objects["optimizer"].state.values():
        found += [full(value) for value in each.values()]
    return [*found, objects["optimizer"].param_groups[0]["lr"], objects["sampler"].committed, objects["best"]]

def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) if torch.is_tensor(a) else a == b for a, b in zip(left, right))

def names():
    return sorted(os.listdir(os.environ["ELASTIC_CHECKPOINT_DIR"]))

original = FileSystemWriter.write_data
"""

# Each world builds everything anew, with other numbers, and reads what the world before has saved.
WORLDS = (
    BEGIN
    + """
sizes = [int(each) for each in sys.argv[4].split(",")]
expected = None
for number, size in enumerate(sizes):
    if process >= size:
        expected = None
        continue
    enter(number, size)
    objects = build(7 * number + 1)
    found = slurm_elastic.load_latest(into=objects, dcp=True)
    assert (found is None) == (number == 0), (number, found)
    assert found is None or found is objects, "found"
    now = numbers(objects)
    assert expected is None or same(now, expected), (number, now, expected)
    step(objects)
    objects["best"] += 0.5
    expected = numbers(objects)
    if number % 2 == 0:
        path = slurm_elastic.save(objects, dcp=True)
        assert (path is not None) == (process == 0), path
        if process == 0:
            assert sorted(p.name for p in path.iterdir()) == [".metadata", *(f"__{r}_0.distcp" for r in range(size)), "complete.json"]
    else:
        is_free = threading.Event()
        def slowly(*arguments):
            assert is_free.wait(280)
            return original(*arguments)
        FileSystemWriter.write_data = slowly
        dist.barrier()
        before = [each for each in names() if not each.startswith(".new")]
        assert slurm_elastic.save(objects, dcp=True, background=True) is None
        # The training goes on meanwhile, with collectives of its own.
        step(objects)
        assert not same(numbers(objects), expected), "step"
        assert [each for each in names() if not each.startswith(".new")] == before, names()
        dist.barrier()
        is_free.set()
        slurm_elastic.wait_for_save()
        FileSystemWriter.write_data = original
    dist.barrier()
    assert names() == [f"{each:08d}" for each in range(max(1, number), number + 2)] + ["latest"], names()
    dist.destroy_process_group()
"""
)

# Three ranks; the second one cannot write. KIND of failure is the fourth argument.
FAILS = (
    BEGIN
    + """
import errno
how = sys.argv[4]
enter(0, 3)
objects = build(1)
step(objects)
slurm_elastic.save(objects, dcp=True)
open_checkpoint = checkpoint.open_checkpoint
def fail(*arguments):
    if how == "killed":
        os._exit(0)
    error = OSError(errno.ENOSPC, "No space left on device")
    if how == "cannot be pickled":
        error.lock = threading.Lock()
    raise error
if process == 1:
    if how == "elsewhere":
        checkpoint.open_checkpoint = lambda path: open_checkpoint(path.with_name("elsewhere"))
    else:
        FileSystemWriter.write_data = fail
try:
    slurm_elastic.save(objects, dcp=True, background="background" in how)
    slurm_elastic.wait_for_save()
except OSError as error:
    assert how != "killed"
    words = "all nodes must see one" if how == "elsewhere" else "No space left"
    assert str(error).startswith("no checkpoint: rank 1: ") and words in str(error), error
    assert "\\n" not in str(error)
except RuntimeError as error:
    assert how == "killed", error
else:
    sys.exit("no error")
if how != "killed":
    checkpoint.open_checkpoint = open_checkpoint
    FileSystemWriter.write_data = original
    dist.barrier()
    assert names() == ["00000001", "latest"], names()
    dist.barrier()
    slurm_elastic.save(objects, dcp=True)
    dist.barrier()
    assert names() == ["00000001", "00000002", "latest"], names()
elif process == 0:
    assert names() == ["00000001", "latest"], names()
    os._exit(0)  # the group would be waited for
"""
)


def version():
    if not tap.HAS_TORCH:
        return (0, 0)
    import torch

    return tuple(int(each) for each in torch.__version__.split("+")[0].split(".")[:2])


needs_dcp = unittest.skipUnless(version() >= (2, 6), "needs PyTorch 2.6")


class Base(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-dcp-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)


@needs_dcp
class Processes(Base):
    def run_processes(self, code, count, *arguments):
        return processes.run_in(self, self.directory, code, count, *arguments)

    def test_a_world_of_any_size_reads_it(self):
        self.run_processes(WORLDS, 3, "ddp", "2,3,1")

    @processes.needs_sharding
    def test_a_sharded_model_is_sharded_anew(self):
        self.run_processes(WORLDS, 3, "fsdp", "3,2,1,3")

    @processes.needs_sharding
    def test_replicas_of_parts(self):
        self.run_processes(WORLDS, 4, "hsdp", "4,2,4")

    @processes.needs_sharding
    def test_tensor_parallelism_within_replicas(self):
        self.run_processes(WORLDS, 4, "tp", "2,4,2")

    def failing(self, how):
        self.run_processes(FAILS, 3, "ddp", how)

    def test_one_rank_cannot_write(self):
        self.failing("full")

    def test_one_rank_cannot_write_in_the_background(self):
        self.failing("full, background")

    def test_one_rank_sees_another_directory(self):
        self.failing("elsewhere")

    def test_a_failure_that_cannot_be_pickled(self):
        self.failing("cannot be pickled")

    def test_one_rank_dies_meanwhile(self):
        self.failing("killed")


@needs_dcp
class Alone(Base):
    def objects(self):
        import torch

        model = torch.nn.Linear(2, 2)
        return {
            "model": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        }

    def test_without_a_process_group(self):
        import torch

        objects = self.objects()
        self.assertIsNone(slurm_elastic.load_latest(self.directory, into=objects, dcp=True))
        path = slurm_elastic.save({**objects, "epoch": 3}, self.directory, dcp=True)
        self.assertEqual(path, self.directory / "00000001")
        other = {**self.objects(), "epoch": 0}
        slurm_elastic.load_latest(self.directory, into=other, dcp=True)
        self.assertEqual(other["epoch"], 3)
        self.assertTrue(torch.equal(other["model"].weight, objects["model"].weight))

    def test_a_part_that_is_missing_is_found(self):
        from slurm_elastic import _dcp, checkpoint

        path = slurm_elastic.save(self.objects(), self.directory, dcp=True)
        with checkpoint.open_checkpoint(path) as found:
            self.assertEqual(_dcp._missing_part(found), "")
            (path / "__0_0.distcp").unlink()
            self.assertEqual(_dcp._missing_part(found), "__0_0.distcp")
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "__0_0.distcp"):
            slurm_elastic.load_latest(self.directory, into=self.objects(), dcp=True)

    def test_the_two_kinds_of_checkpoints_are_told_apart(self):
        slurm_elastic.save({"a": 1}, self.directory)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "was not written by save.dcp"):
            slurm_elastic.load_latest(self.directory, into=self.objects(), dcp=True)
        slurm_elastic.save(self.objects(), self.directory, dcp=True)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "into=.*dcp=True"):
            slurm_elastic.load_latest(self.directory)

    def test_other_objects_than_were_saved(self):
        slurm_elastic.save(self.objects(), self.directory, dcp=True)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "epoch"):
            slurm_elastic.load_latest(self.directory, into={**self.objects(), "epoch": 0}, dcp=True)

    def test_an_optimizer_of_another_model(self):
        wrong = {**self.objects(), "model": self.objects()["model"]}
        with self.assertRaisesRegex(
            ValueError, "'optimizer' is an optimizer of parameters that no"
        ):
            slurm_elastic.save(wrong, self.directory, dcp=True)
        self.assertEqual(os.listdir(self.directory), [])

    def test_s3_and_several_nodes(self):
        from unittest import mock

        with mock.patch.dict(os.environ, GROUP_WORLD_SIZE="2"):
            with self.assertRaisesRegex(ValueError, "^dcp=True with s3://a/b: .*one node at most"):
                slurm_elastic.save(self.objects(), "s3://a/b", dcp=True)


@tap.needs_torch
class Arguments(Base):
    def test_what_is_refused(self):
        save, load = slurm_elastic.save, slurm_elastic.load_latest
        for words, call in (
            ("^rank beside dcp=True", lambda: save({}, self.directory, rank=0, dcp=True)),
            ("^background=True goes with dcp", lambda: save({}, self.directory, background=True)),
            ("^load_latest.*dcp=True goes with into=", lambda: load(self.directory, dcp=True)),
            ("^load_latest.*dcp=True goes with into=", lambda: load(self.directory, into={})),
        ):
            with self.assertRaisesRegex(ValueError, words):
                call()

    def test_a_list_or_an_old_torch_is_refused(self):
        kind, words = TypeError, "^dcp=True with list: must be a dictionary"
        if version() < (2, 6):
            kind, words = ValueError, r"^dcp=True needs PyTorch 2.6 or newer, this is [0-9.]+"
        with self.assertRaisesRegex(kind, words):
            slurm_elastic.save([], self.directory, dcp=True)


if __name__ == "__main__":
    tap.main()
