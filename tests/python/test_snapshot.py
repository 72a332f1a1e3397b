#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A copy of the state in the node's memory: what is in it, who writes it, and that it is complete
or absent.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import fake_agent
import tap
from slurm_elastic import _flat, _memory, _snapshot

WRITER = """
import json, os, sys, threading, time
import torch, slurm_elastic
slurm_elastic.init()
state = {"n": 0, "model": {"weight": torch.zeros(300, 400), "bias": torch.zeros(7, dtype=torch.bfloat16)}}
written = []
for n in range(1, int(sys.argv[1]) + 1):
    state["n"] = n
    state["model"]["weight"].fill_(n)
    written.append(slurm_elastic.snapshot(state))
    state["model"]["weight"].fill_(-1)  # the training goes on meanwhile
    if len(sys.argv) < 3:
        slurm_elastic.wait_for_snapshot()
    print(n, flush=True)
print(json.dumps(written), flush=True)
"""


def flat(state):
    found = _flat.outline(state, lambda tensor: tensor.clone().contiguous())
    pieces = []
    _flat.write(found, lambda piece: pieces.append(bytes(piece)))
    data = b"".join(pieces)
    assert len(data) == _flat.size(found)
    return data


@tap.needs_torch
class Flat(unittest.TestCase):
    def assert_same(self, state):
        import torch

        found = _flat.read(io.BytesIO(flat(state)))
        self.assertEqual(str(found), str(state))
        for made, right in zip(self.tensors(found), self.tensors(state)):
            self.assertEqual((made.dtype, made.shape), (right.dtype, right.shape))
            self.assertTrue(torch.equal(made, right))
        return found

    def tensors(self, value):
        import torch

        if isinstance(value, torch.Tensor):
            return [value]
        if isinstance(value, dict):
            value = list(value.values())
        return (
            [tensor for each in value for tensor in self.tensors(each)]
            if isinstance(value, (list, tuple))
            else []
        )

    def test_every_type_and_shape(self):
        import torch

        generator = torch.Generator().manual_seed(1)
        types = (
            torch.float64,
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.int32,
            torch.int16,
            torch.int8,
            torch.uint8,
            torch.bool,
            torch.complex64,
        )
        for dtype in types:
            for shape in ((), (0,), (1,), (3, 5), (2, 0, 4), (7, 1, 11)):
                self.assert_same([torch.rand(shape, generator=generator).mul(100).to(dtype)])

    def test_a_training(self):
        import torch

        model = torch.nn.Linear(5, 3)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(2, 5)).sum().backward()
        optimizer.step()
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
            "best": 0.5,
            "names": ("a", None),
        }
        found = self.assert_same(state)
        torch.optim.AdamW(model.parameters()).load_state_dict(found["optimizer"])

    def test_what_is_one_tensor_stays_one(self):
        import torch

        shared = torch.arange(4.0)
        found = _flat.read(io.BytesIO(flat([shared, {"again": shared}])))
        self.assertIs(found[0], found[1]["again"])

    def test_views_and_strides(self):
        import torch

        base = torch.arange(60.0).reshape(5, 12)
        self.assert_same(
            [
                base.t(),
                base[:, ::3],
                base[2:4],
                torch.ones(3).expand(4, 3),
                torch.nn.Parameter(base).detach(),
            ]
        )

    def test_what_is_cut_or_foreign_is_refused(self):
        import torch

        data = flat([torch.ones(100), "text"])
        for end in (0, 7, 15, 20, len(data) - 1):
            with self.assertRaises((pickle.UnpicklingError, EOFError)):
                _flat.read(io.BytesIO(data[:end]))
        with self.assertRaises(pickle.UnpicklingError):
            _flat.read(io.BytesIO(b"PK\3\4" + data))


@tap.needs_torch
class Snapshot(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-snapshot-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        self.checkpoint = self.directory / "checkpoint"

    def world(self, size, *arguments, environment=None, **options):
        places = {
            "ELASTIC_RUN_DIR": str(self.directory),
            "ELASTIC_INCARNATION": "12.1",
            **(environment or {}),
        }
        return fake_agent.World(
            ["-c", WRITER, *map(str, arguments)],
            size,
            generation=3,
            environment=places,
            checkpoint=self.checkpoint,
            has_torch=True,
            **options,
        )

    def buffers(self):
        """What is complete, checked: manifests with their state, by name."""
        found = {}
        for buffer in sorted((self.directory / "snapshot").glob("*")):
            if (buffer / "complete.json").exists():
                manifest = json.loads((buffer / "complete.json").read_text())
                data = (buffer / "state.flat").read_bytes()
                entry = manifest["files"]["state.flat"]
                self.assertEqual(list(manifest["files"]), ["state.flat"])
                self.assertEqual(entry["bytes"], len(data))
                self.assertEqual(
                    entry["blake2b"], hashlib.blake2b(data, digest_size=32).hexdigest()
                )
                found[buffer.name] = (manifest, _flat.read(io.BytesIO(data)))
        return found

    def test_it_has_the_state_of_that_moment(self):
        with self.world(1, 3) as world:
            self.assertEqual(world.wait(), [0])
        found = self.buffers()
        self.assertEqual({name: state["n"] for name, (_, state) in found.items()}, {"0": 3, "1": 2})
        manifest, state = found["0"]
        self.assertTrue(bool((state["model"]["weight"] == 3).all()))
        self.assertEqual(
            (manifest["format"], manifest["incarnation"], manifest["generation"], manifest["step"]),
            (1, "12.1", 3, 0),
        )
        self.assertEqual(manifest["checkpoint"], str(self.checkpoint))
        for path in self.directory.rglob("*"):
            if "snapshot" in path.parts:
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_a_process_that_follows_leaves_the_newer_one_alone(self):
        self.assertEqual(_snapshot._older_of(self.directory / "snapshot"), 0)
        for count in (3, 1):
            with self.world(1, count) as world:
                self.assertEqual(world.wait(), [0])
        self.assertEqual(
            {name: state["n"] for name, (_, state) in self.buffers().items()}, {"0": 3, "1": 1}
        )
        self.assertEqual(_snapshot._older_of(self.directory / "snapshot"), 0)
        (self.directory / "snapshot/1/complete.json").unlink()
        self.assertEqual(_snapshot._older_of(self.directory / "snapshot"), 1)

    def test_what_does_not_fit_is_not_begun(self):
        writer = _snapshot._Writer(self.directory / "snapshot")
        said = io.StringIO()
        with mock.patch.object(
            _snapshot._memory, "available", return_value=1000
        ), contextlib.redirect_stderr(said):
            self.assertFalse(writer.write({"data": b"x" * 600}))
            self.assertFalse(writer.write({"data": b"x" * 600}))
        self.assertEqual(said.getvalue().count("no snapshot: twice"), 1)
        self.assertFalse((self.directory / "snapshot").exists())

    def test_who_writes(self):
        with self.world(3, 1, stdout=subprocess.PIPE, text=True) as world:  # all on one node
            said = [worker.communicate(timeout=280)[0].splitlines()[-1] for worker in world.workers]
        self.assertEqual(said, ["[true]", "[false]", "[false]"])
        for size, slots, writers in (
            (1, 1, [0]),
            (2, 1, [0, 1]),
            (6, 2, [0, 4]),
            (8, 1, [0, 7]),
            (4, 4, [0]),
        ):
            found = []
            for rank in range(size):
                place = {
                    "RANK": rank,
                    "WORLD_SIZE": size,
                    "LOCAL_RANK": rank % slots,
                    "LOCAL_WORLD_SIZE": slots,
                }
                with mock.patch.dict(
                    os.environ, {name: str(value) for name, value in place.items()}
                ):
                    found += [rank] if _snapshot._node_writes() else []
            self.assertEqual(found, writers)

    def test_one_at_a_time(self):
        with self.world(1, 50, "at once", stdout=subprocess.PIPE, text=True) as world:
            said = world.workers[0].communicate(timeout=280)[0].splitlines()[-1]
        written = json.loads(said)
        self.assertTrue(written[0])
        self.assertIn(False, written)

    def test_killed_at_random_moments(self):
        chance = random.Random(4)
        for _ in range(6):
            with self.world(1, 100000, stdout=subprocess.PIPE, text=True) as world:
                worker = world.workers[0]
                for _ in range(2):
                    worker.stdout.readline()  # the first one is there
                time.sleep(chance.random() * 0.05)
                worker.kill()
                worker.wait()
            found = self.buffers()
            self.assertTrue(found)
            for _, state in found.values():
                self.assertTrue(bool((state["model"]["weight"] == state["n"]).all()))

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small tmpfs takes root")
    def test_one_that_does_not_fit_is_said_once_and_does_no_harm(self):
        mount = ["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(self.directory)]
        if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mounting is not allowed here")
        try:
            with self.world(1, 5, stderr=subprocess.PIPE, text=True) as world:
                said = world.workers[0].communicate(timeout=280)[1]
                self.assertEqual(world.workers[0].returncode, 0)
            self.assertEqual(said.count("no snapshot: [Errno 28]"), 1, said)
            self.assertEqual([state["n"] for _, state in self.buffers().values()], [1])
        finally:
            subprocess.run(["umount", "-l", str(self.directory)], check=True)

    def test_without_elasticrun_nothing_is_written(self):
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ELASTIC_")
        }
        code = "import slurm_elastic; print(slurm_elastic.snapshot({'n': 1}), slurm_elastic.wait_for_snapshot())"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=280,
        )
        self.assertEqual(done.stdout, "False None\n")


class Memory(unittest.TestCase):
    """The same cases as tests/unit/test_memory.c has."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-memory-")
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def put(self, path, text):
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_the_node(self):
        self.put("proc/meminfo", "MemTotal:       8000 kB\nMemAvailable:   1000 kB\n")
        self.assertEqual(_memory.available(self.root), 1000 * 1024)

    def test_the_least_of_all_groups(self):
        self.put("proc/meminfo", "MemAvailable:   1000 kB\n")
        self.put("proc/self/cgroup", "0::/job_7/step_0\n")
        group = "sys/fs/cgroup/job_7"
        self.put(f"{group}/step_0/memory.max", "max\n")
        self.put(f"{group}/step_0/memory.current", "5\n")
        self.put(f"{group}/memory.max", "500000\n")
        self.put(f"{group}/memory.current", "400000\n")
        self.put(f"{group}/memory.stat", "active_file 7\ninactive_file 50000\n")
        self.assertEqual(_memory.available(self.root), 150000)

    def test_version_1(self):
        self.put("proc/meminfo", "MemAvailable:   1000 kB\n")
        self.put("proc/self/cgroup", "9:cpu,cpuacct:/other\n7:memory:/uid_1/job_7\n")
        group = "sys/fs/cgroup/memory/uid_1"
        self.put(f"{group}/job_7/memory.limit_in_bytes", "3000\n")
        self.put(f"{group}/job_7/memory.usage_in_bytes", "4000\n")
        self.assertEqual(_memory.available(self.root), 0)

    def test_of_this_machine(self):
        self.assertGreater(_memory.available(), 1 << 20)


if __name__ == "__main__":
    tap.main()
