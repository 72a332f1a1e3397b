#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The latest checkpoint is complete, whatever happens while one is written."""

import contextlib
import io
import itertools
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import slurm_elastic
import tap
from slurm_elastic import checkpoint

SIZE = 20000


def run(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], timeout=280, **options
    )


class Base(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-checkpoint-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def names(self):
        return sorted(os.listdir(self.directory))

    def assert_complete(self, state):
        self.assertEqual(state["data"], list(range(state["n"], state["n"] + SIZE)))


class Saving(Base):
    def test_what_is_saved_is_loaded(self):
        path = slurm_elastic.save({"n": 1, "text": "ä"}, self.directory)
        self.assertEqual(path, self.directory / "00000001")
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1, "text": "ä"})
        self.assertEqual(os.readlink(self.directory / "latest"), "00000001")

    def test_the_last_ones_are_kept(self):
        for n in range(5):
            slurm_elastic.save(n, self.directory)
        self.assertEqual(self.names(), ["00000004", "00000005", "latest"])
        slurm_elastic.save(5, self.directory, keep=1)
        self.assertEqual(self.names(), ["00000006", "latest"])
        with self.assertRaisesRegex(ValueError, "keep=0"):
            slurm_elastic.save(6, self.directory, keep=0)
        self.assertEqual(slurm_elastic.load_latest(self.directory), 5)

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_what_a_stranger_exchanges_after_the_look_is_not_read(self):
        slurm_elastic.save({"step": 1}, self.directory)
        path = slurm_elastic.latest_checkpoint(self.directory)
        slurm_elastic.save({"step": 2}, self.directory)
        with checkpoint.pinned(path) as found:
            os.rename(path, self.directory / "away")
            shutil.copytree(self.directory / "00000002", path)
            self.assertEqual(pickle.loads((found / "state.pickle").read_bytes()), {"step": 1})
        os.chown(path, 54321, 54321)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "belongs to uid 54321"):
            checkpoint.load_from(path)
        os.symlink("00000002", self.directory / "link")
        self.assertEqual(checkpoint.load_from(self.directory / "link"), {"step": 2})
        os.chown(self.directory / "link", 54321, 54321, follow_symlinks=False)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "belongs to uid 54321"):
            checkpoint.load_from(self.directory / "link")

    def test_a_checkpoint_in_which_others_may_write_is_not_read(self):
        slurm_elastic.save({"step": 1}, self.directory)
        path = self.directory / "00000001"
        path.chmod(0o770)
        self.directory.chmod(0o700)
        self.assertEqual(checkpoint.load_from(path), {"step": 1})
        self.directory.chmod(0o750)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "chmod go-w"):
            checkpoint.load_from(path)

    def test_a_manifest_that_is_no_file_is_not_waited_for(self):
        slurm_elastic.save({"step": 1}, self.directory)
        planted = self.directory / "00000000"
        planted.mkdir()
        os.mkfifo(planted / "complete.json")
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"step": 1})
        (planted / "complete.json").unlink()
        with open(planted / "complete.json", "wb") as file:
            file.truncate(1 << 40)
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"step": 1})

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_what_a_stranger_has_put_there_is_not_read(self):
        slurm_elastic.save({"n": 1}, self.directory)
        own, planted = self.directory / "00000001", self.directory / "00000002"
        shutil.copytree(own, planted)
        os.unlink(self.directory / "latest")
        for each in (planted, planted / "complete.json", planted / "state.pickle"):
            os.chown(each, 54321, 54321)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(slurm_elastic.latest_checkpoint(self.directory), own)
            self.assertIn(f"{planted} is not complete: it belongs to uid 54321", said.getvalue())
            os.chown(each, 0, 0)
        # Who goes on in the directory of somebody else trusts him.
        os.chown(self.directory, 54321, 54321)
        os.chown(planted, 54321, 54321)
        self.assertEqual(slurm_elastic.latest_checkpoint(self.directory), planted)

    def test_only_rank_0_writes(self):
        self.assertIsNone(slurm_elastic.save(1, self.directory, rank=3))
        self.assertEqual(self.names(), [])
        self.assertIsNotNone(slurm_elastic.save(1, self.directory, rank=0))
        code = "import slurm_elastic, sys; print(slurm_elastic.save(2, sys.argv[1]))"
        done = run(code, self.directory, env={**os.environ, "RANK": "1"}, stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, b"None\n")
        self.assertEqual(slurm_elastic.load_latest(self.directory), 1)

    def test_nobody_else_may_read_it(self):
        slurm_elastic.save(1, self.directory / "new" / "one")
        for path in ("new/one", "new/one/00000001"):
            self.assertEqual((self.directory / path).stat().st_mode & 0o777, 0o700)

    def test_the_directory_of_the_job(self):
        code = (
            "import slurm_elastic as s\n"
            "print(s.checkpoint_dir(), s.checkpoint_dir('other')); s.save(3); print(s.load_latest())"
        )
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
        for extra, expected in (
            ({}, "checkpoint other\n3\n"),
            ({"ELASTIC_CHECKPOINT_DIR": "jobs/12"}, "jobs/12 jobs/12\n3\n"),
        ):
            done = run(
                code,
                cwd=self.directory,
                env={**environment, **extra},
                stdout=subprocess.PIPE,
                text=True,
            )
            self.assertEqual(done.stdout, expected)

    def test_files_of_any_format(self):
        with slurm_elastic.new_checkpoint(self.directory) as path:
            (path / "shards").mkdir()
            (path / "shards" / "0.bin").write_bytes(b"x" * 1000)
        latest = slurm_elastic.latest_checkpoint(self.directory)
        self.assertEqual((latest / "shards" / "0.bin").read_bytes(), b"x" * 1000)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "not written by save"):
            slurm_elastic.load_latest(self.directory)

    def test_an_exception_or_an_empty_one_leaves_the_old_one(self):
        slurm_elastic.save(1, self.directory)
        with self.assertRaises(KeyError):
            with slurm_elastic.new_checkpoint(self.directory) as path:
                (path / "half").write_text("x")
                raise KeyError
        with self.assertRaisesRegex(ValueError, "without files"):
            with slurm_elastic.new_checkpoint(self.directory):
                pass
        with self.assertRaises((AttributeError, pickle.PicklingError)):
            slurm_elastic.save(lambda: 0, self.directory)
        self.assertEqual(self.names(), ["00000001", "latest"])
        self.assertEqual(slurm_elastic.load_latest(self.directory), 1)

    @tap.needs_torch
    def test_torch_is_used_where_the_script_uses_it(self):
        code = (
            "import sys, torch, slurm_elastic\n"
            "model = torch.nn.Linear(3, 2)\n"
            "path = slurm_elastic.save({'model': model.state_dict()}, sys.argv[1])\n"
            "assert (path / 'state.pt').exists()\n"
            "torch.load(path / 'state.pt')\n"
            "state = slurm_elastic.load_latest(sys.argv[1])\n"
            "assert torch.equal(state['model']['weight'], model.weight)"
        )
        self.assertEqual(run(code, self.directory).returncode, 0)
        # A script without torch can load it, if torch is there.
        code = (
            "import sys, slurm_elastic\n"
            "assert 'torch' not in sys.modules\n"
            "assert slurm_elastic.load_latest(sys.argv[1])['model']['bias'].shape == (2,)"
        )
        self.assertEqual(run(code, self.directory).returncode, 0)


def save_on(directory, n, output):
    """Save one after the other, and say which."""
    while True:
        n += 1
        slurm_elastic.save({"n": n, "data": list(range(n, n + SIZE))}, directory)
        os.write(output, b"%d\n" % n)


def save_until(directory, limit):
    """Die at that call that changes the directory."""
    calls = itertools.count(1)

    def dying(function):
        def wrapper(*args, **kwargs):
            if next(calls) == limit:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return wrapper

    for name in ("mkdir", "open", "fsync", "rename", "symlink", "replace", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name)))
    slurm_elastic.save({"n": 2}, directory, keep=1)


class Kills(Base):
    """Forked from the test: an interpreter that starts takes ten times as long as a save."""

    def start(self, target, *arguments):
        checkpoint._verified.clear()  # as in a process that begins
        process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
        process.start()
        return process

    def test_at_random_moments(self):
        """Between two lines of the saver anything may be going on. Across all rounds the number
        never goes back, and what had been reported as saved is never lost."""
        rng = random.Random(3)
        last = 0
        for _ in range(40):
            reader, writer = os.pipe()
            saver = self.start(save_on, self.directory, last, writer)
            os.close(writer)
            with open(reader) as said:
                first = int(said.readline())
                time.sleep(rng.random() * 0.03)
                saver.kill()
                saver.join()
                self.assertEqual(saver.exitcode, -signal.SIGKILL)
                reported = [first, *map(int, said.read().split())][-1]
            state = slurm_elastic.load_latest(self.directory)
            self.assert_complete(state)
            self.assertIn(state["n"], (reported, reported + 1))
            self.assertGreater(state["n"], last)
            last = state["n"]
        slurm_elastic.save({"n": 0}, self.directory)  # removes what the last one left
        self.assertEqual(len(self.names()), 3, self.names())

    def test_at_every_system_call(self):
        """The same without chance: die at the 1st, 2nd, ... call that changes the directory."""
        slurm_elastic.save({"n": 1}, self.directory, keep=1)
        seen = []
        for limit in range(1, 100):
            copy = self.directory.with_name(self.directory.name + "-copy")
            shutil.copytree(self.directory, copy, symlinks=True)
            try:
                saver = self.start(save_until, copy, limit)
                saver.join(280)
                state = slurm_elastic.load_latest(copy)
                self.assertIn(state, ({"n": 1}, {"n": 2}))
                seen.append(state["n"])
                slurm_elastic.save({"n": 3}, copy, keep=1)
                self.assertEqual(slurm_elastic.load_latest(copy), {"n": 3})
                self.assertEqual(len(os.listdir(copy)), 2, os.listdir(copy))
            finally:
                shutil.rmtree(copy)
            if saver.exitcode == 0:
                break
            self.assertEqual(saver.exitcode, -signal.SIGKILL)
        self.assertEqual(saver.exitcode, 0)
        self.assertGreater(len(seen), 8)
        self.assertEqual(seen, sorted(seen))  # once it is the new one, it stays so


class Room(Base):
    def full(self, directory, size):
        code = (
            "import sys, slurm_elastic\n"
            "try: slurm_elastic.save({'n': 2, 'data': 'x' * int(sys.argv[2])}, sys.argv[1])\n"
            "except OSError as error: print(error.errno); sys.exit(7)\n"
        )
        return run(code, directory, size, stdout=subprocess.PIPE, text=True)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small tmpfs takes root")
    def test_a_full_file_system_keeps_the_old_one(self):
        mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(self.directory)]
        if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mounting is not allowed here")
        try:
            slurm_elastic.save({"n": 1}, self.directory)
            for size in (300_000, 10_000_000):
                done = self.full(self.directory, size)
                self.assertEqual((done.returncode, done.stdout), (7, "28\n"))  # ENOSPC
                self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1})
                self.assertEqual(self.names(), ["00000001", "latest"])
            self.assertEqual(self.full(self.directory, 1000).returncode, 0)
            self.assertEqual(slurm_elastic.load_latest(self.directory)["n"], 2)
        finally:
            subprocess.run(["umount", str(self.directory)], check=True)

    def test_a_limit_of_the_file_size_keeps_the_old_one(self):
        slurm_elastic.save({"n": 1}, self.directory)
        code = (
            "import resource, signal, sys, slurm_elastic\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
            "try: slurm_elastic.save({'n': 2, 'data': 'x' * 100000}, sys.argv[1])\n"
            "except OSError: sys.exit(7)\n"
        )
        self.assertEqual(run(code, self.directory).returncode, 7)
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1})
        self.assertEqual(self.names(), ["00000001", "latest"])


class Damage(Base):
    """Directories that no crash of ours leaves: copied in part, on a broken disk, edited by
    hand.
    """

    def setUp(self):
        super().setUp()
        for n in (1, 2, 3):
            slurm_elastic.save({"n": n}, self.directory, keep=3)

    def load(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            state = slurm_elastic.load_latest(self.directory)
        return state["n"], said.getvalue()

    def test_a_torn_newest_one_is_never_loaded(self):
        for name, damage in (
            ("state.pickle", lambda file: os.truncate(file, 3)),
            ("state.pickle", os.unlink),
            ("complete.json", lambda file: os.truncate(file, 20)),
            ("complete.json", lambda file: os.truncate(file, 0)),
            ("complete.json", os.unlink),
        ):
            with self.subTest(name=name, damage=damage):
                slurm_elastic.save({"n": 4}, self.directory, keep=3)
                newest = self.directory / os.readlink(self.directory / "latest")
                damage(newest / name)
                number, said = self.load()
                self.assertIn(number, (3, 4))
                self.assertIn(f"{newest} is not complete", said)
                shutil.rmtree(newest)

    def flip(self, file, at=None):
        data = bytearray(file.read_bytes())
        data[len(data) // 2 if at is None else at] ^= 4
        file.write_bytes(data)

    def test_a_bit_that_is_another_is_noticed(self):
        for at in (0, 5, -1, None):
            with self.subTest(at=at):
                slurm_elastic.save({"n": 4, "data": list(range(SIZE))}, self.directory, keep=3)
                newest = self.directory / os.readlink(self.directory / "latest")
                self.flip(newest / "state.pickle", at)
                number, said = self.load()
                self.assertEqual(number, 3)
                self.assertIn(f"{newest} is corrupt: state.pickle is not what was written", said)
                self.assertIn("using", said)
                shutil.rmtree(newest)
                os.unlink(self.directory / "latest")

    def test_what_cannot_be_used_does_not_count_as_kept(self):
        self.flip(self.directory / "00000003/state.pickle")
        self.assertEqual(self.load()[0], 2)
        slurm_elastic.save({"n": 4}, self.directory, keep=2)
        self.assertEqual(self.names(), ["00000002", "00000003", "00000004", "latest"])
        os.unlink(self.directory / "00000004/complete.json")
        slurm_elastic.save({"n": 5}, self.directory, keep=2)
        self.assertEqual(self.names(), ["00000002", "00000003", "00000004", "00000005", "latest"])
        slurm_elastic.save({"n": 6}, self.directory, keep=2)
        self.assertEqual(self.names(), ["00000005", "00000006", "latest"])

    def test_all_files_are_looked_at(self):
        with slurm_elastic.new_checkpoint(self.directory) as path:
            (path / "parts").mkdir()
            for name in ("a", "parts/b"):
                (path / name).write_bytes(b"12345678")
        newest = slurm_elastic.latest_checkpoint(self.directory)
        self.assertEqual(newest.name, "00000004")
        self.flip(newest / "parts/b")
        checkpoint._verified.clear()  # as in another process
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(slurm_elastic.latest_checkpoint(self.directory).name, "00000003")

    def test_without_digests_only_sizes_count(self):
        with mock.patch.dict(os.environ, ELASTIC_CHECKPOINT_DIGEST="0"):
            path = slurm_elastic.save({"n": 1234567}, self.directory, keep=3)
        # As packages before this one wrote them.
        self.assertNotIn("blake2b", (path / "complete.json").read_text())
        self.assertEqual(self.load(), (1234567, ""))
        path = slurm_elastic.save({"n": 4, "data": "x" * 100}, self.directory, keep=3)
        self.flip(path / "state.pickle")
        with mock.patch.dict(os.environ, ELASTIC_CHECKPOINT_DIGEST="0"):
            self.assertEqual(self.load(), (4, ""))

    def test_none_that_is_complete_is_an_error(self):
        for name in ("00000001", "00000002", "00000003"):
            os.unlink(self.directory / name / "complete.json")
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "00000001 is not complete"):
            slurm_elastic.load_latest(self.directory)

    def test_without_the_link_the_newest_is_taken(self):
        os.unlink(self.directory / "latest")
        self.assertEqual(self.load(), (3, ""))

    def test_the_link_may_be_put_back_by_hand(self):
        os.unlink(self.directory / "latest")
        os.symlink("00000002", self.directory / "latest")
        self.assertEqual(self.load(), (2, ""))
        slurm_elastic.save({"n": 9}, self.directory)
        self.assertEqual(self.load(), (9, ""))

    def test_other_names_are_left_alone(self):
        (self.directory / "notes.txt").write_text("mine")
        slurm_elastic.save({"n": 4}, self.directory, keep=1)
        self.assertEqual(self.names(), ["00000004", "latest", "notes.txt"])

    def test_nothing_yet(self):
        self.assertIsNone(slurm_elastic.load_latest(self.directory / "none"))
        (self.directory / "empty").mkdir()
        self.assertIsNone(slurm_elastic.load_latest(self.directory / "empty"))


class Order(Base):
    """Who writes last need not be the newest: a world that was believed dead may come back, and
    save.
    """

    def save(self, n, incarnation, generation, keep=9):
        with mock.patch.object(checkpoint, "incarnation", lambda: incarnation), mock.patch.object(
            checkpoint, "generation", lambda: generation
        ):
            slurm_elastic.save({"n": n}, self.directory, keep=keep)

    def assert_newest(self, n):
        self.assertEqual(slurm_elastic.load_latest(self.directory)["n"], n)

    def test_a_later_world_is_newer(self):
        self.save(1, "12.0", 3)
        self.save(2, "12.0", 5)
        self.save(3, "12.0", 4)
        self.assert_newest(2)
        self.save(4, "12.0", 5)
        self.assert_newest(4)

    def test_a_later_run_of_the_job_is_newer(self):
        self.save(1, "12.1", 1)
        self.save(2, "12.0", 9)
        self.assert_newest(1)

    def test_another_job_begins_its_own_count(self):
        self.save(1, "12.0", 9)
        self.save(2, "13.0", 1)
        self.assert_newest(2)
        self.save(3, None, None)  # without elasticrun
        self.assert_newest(3)
        self.save(4, "12.0", 1)
        self.assert_newest(3)

    def test_the_newest_is_not_removed_for_a_late_one(self):
        self.save(1, "12.0", 5)
        for n in (2, 3, 4):
            self.save(n, "12.0", 4, keep=2)
        self.assert_newest(1)
        self.save(5, "12.0", 5, keep=2)
        self.assertEqual(self.names(), ["00000001", "00000005", "latest"])

    def test_two_that_write_at_once_get_a_number_each(self):
        numbers = checkpoint._numbers
        with mock.patch.object(
            checkpoint, "_numbers", lambda base: [n for n in numbers(base) if n != 1]
        ):
            self.save(1, None, None)
            self.save(2, None, None)
        self.assertEqual(self.names(), ["00000001", "00000002", "latest"])
        self.assert_newest(2)


if __name__ == "__main__":
    tap.main()
