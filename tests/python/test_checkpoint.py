#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The latest checkpoint is complete, whatever happens while one is written."""

import contextlib
import functools
import io
import itertools
import multiprocessing
import os
import pathlib
import pickle
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import fuse
import slurm_elastic
import tap
from slurm_elastic import _mounts, _opened, checkpoint

SIZE = 20000


def read(path):
    with checkpoint.open_checkpoint(path) as found:
        return checkpoint.read_state(found)


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

    def test_how_often_a_manifest_is_read(self):
        """Each for its world, and then once more where it counts."""
        read = checkpoint._manifest.read
        for n in range(4):
            with mock.patch.object(checkpoint._manifest, "read", side_effect=read) as reads:
                slurm_elastic.save({"n": n}, self.directory, keep=3)
        names = [call.args[0].path.name for call in reads.call_args_list]
        self.assertEqual(sorted(names), sorted([f"0000000{n}" for n in (1, 2, 2, 3, 3, 4, 4)]))

    def test_how_often_the_maker_of_a_name_is_asked_for(self):
        for n in range(3):
            slurm_elastic.save({"n": n}, self.directory)
        stranger = checkpoint.Directory.stranger
        with mock.patch.object(
            checkpoint.Directory, "stranger", autospec=True, side_effect=stranger
        ) as asked:
            slurm_elastic.load_latest(self.directory)
        self.assertEqual(sorted(call.args[1] for call in asked.call_args_list), self.names())

    def test_a_manifest_that_is_no_file_is_not_waited_for(self):
        slurm_elastic.save({"step": 1}, self.directory)
        os.unlink(self.directory / "latest")
        planted = self.directory / "planted"
        planted.mkdir()
        manifest = planted / "complete.json"
        for make in (
            lambda: os.mkfifo(manifest),
            lambda: manifest.touch() or os.truncate(manifest, 1 << 40),
            lambda: manifest.write_text("[" * 100000),
            lambda: manifest.write_text("[]"),
        ):
            make()
            for name in ("00000000", "00000002"):
                os.rename(planted, self.directory / name)
                with contextlib.redirect_stderr(io.StringIO()):
                    self.assertEqual(slurm_elastic.load_latest(self.directory), {"step": 1})
                os.rename(self.directory / name, planted)
            manifest.unlink()

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


STRANGER, USER = 54321, 54322  # nobody's uids


class Shared(Base):
    """A directory in which others may write."""

    def setUp(self):
        super().setUp()
        self.parent = self.directory
        self.parent.chmod(0o755)
        self.share("shared")

    def share(self, name):
        self.directory = self.parent / name
        self.directory.mkdir()
        self.directory.chmod(0o1777)
        checkpoint._said.clear()

    def as_user(self, function):
        """In a process of the user who saves and loads. Returns what the function does, as text."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setgroups([])
                os.setresgid(USER, USER, USER)
                os.setresuid(USER, USER, USER)
                os.chdir("/")
                signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a handler would not end a wait
                signal.alarm(30)
                with open(writer, "w") as said, contextlib.redirect_stderr(said):
                    print(repr(function()), file=said)
                status = 0
            except BaseException as error:
                os.write(writer, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(status)
        os.close(writer)
        with open(reader) as file:
            said = file.read()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, said)
        return said

    def save(self, n):
        return self.as_user(lambda: slurm_elastic.save({"n": n}, self.directory).name)

    def load(self):
        return self.as_user(lambda: slurm_elastic.load_latest(self.directory))

    def plant(self, name, uid=STRANGER):
        path = self.directory / name
        path.mkdir()
        (path / "file").mkdir()
        os.chown(path, uid, uid)
        return path

    def copy(self, path, to, uid):
        shutil.copytree(path, to, symlinks=True)
        for each in (to, *to.rglob("*")):
            os.chown(each, uid, uid, follow_symlinks=False)
        return to


@unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
class Strangers(Shared):
    """In a directory in which others may write, and below one."""

    def test_what_they_have_put_there_is_not_read(self):
        self.save(1)
        own = self.directory / "00000001"
        planted = self.copy(own, self.directory / "00000002", STRANGER)
        os.unlink(self.directory / "latest")
        said = self.load()
        self.assertIn("{'n': 1}", said)
        self.assertIn(f"{planted} of uid {STRANGER} is left aside", said)
        shutil.rmtree(planted)
        planted = self.copy(own, planted, USER)
        for each in (planted / "complete.json", planted / "state.pickle"):
            os.chown(each, STRANGER, STRANGER)
            said = self.load()
            self.assertIn("{'n': 1}", said)
            self.assertIn(f"{planted} is not complete: {each} belongs to uid {STRANGER}", said)
            os.chown(each, USER, USER)

    def test_what_only_they_have_put_there_is_as_nothing(self):
        self.save(1)
        self.copy(self.directory / "00000001", self.directory / "00000002", STRANGER)
        shutil.rmtree(self.directory / "00000001")
        os.unlink(self.directory / "latest")
        self.assertIn("None\n", self.load())

    def test_the_owner_of_the_directory_counts_where_nobody_else_can_have_put_it(self):
        self.save(1)
        theirs = self.parent / "theirs"
        self.copy(self.directory, theirs, STRANGER)
        theirs.chmod(0o755)
        for each in (theirs / "00000001").rglob("*"):
            each.chmod(0o644)
        (theirs / "00000001").chmod(0o755)

        def load(path=theirs):
            try:
                return slurm_elastic.load_latest(path)
            except slurm_elastic.CheckpointError as error:
                return str(error)

        self.assertIn("{'n': 1}", self.as_user(load))
        self.parent.chmod(0o1777)
        said = self.as_user(load)
        self.assertIn(f"{theirs / '00000001'} of uid {STRANGER} is left aside", said)
        self.assertIn("others can have put it there. Copy it to go on from it", said)
        self.parent.chmod(0o755)
        # A link of somebody else's may lead anywhere.
        os.symlink(theirs, self.directory / "link")
        by_link = functools.partial(load, self.directory / "link")
        self.assertIn("{'n': 1}", self.as_user(by_link))
        self.directory.chmod(0o777)
        self.assertIn("is left aside", self.as_user(by_link))
        # What is the user's own there is gone on from.
        self.parent.chmod(0o1777)
        self.copy(theirs / "00000001", theirs / "00000002", USER)
        self.assertIn("{'n': 1}", self.as_user(load))

    def test_what_is_exchanged_after_the_look_is_not_read(self):
        path = slurm_elastic.save({"n": 1}, self.directory)
        with checkpoint.open_latest(self.directory) as found:
            os.rename(path, self.directory / "away")
            self.copy(self.directory / "away", path, STRANGER)
            os.truncate(path / "state.pickle", 0)
            self.assertEqual(checkpoint.read_state(found), {"n": 1})
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, f"belongs to uid {STRANGER}"):
            read(path)

    def test_load_reads_what_was_compared(self):
        """The other one is of the same user, but nobody has looked at it."""
        slurm_elastic.save({"n": 1}, self.directory)
        path = slurm_elastic.save({"n": 2}, self.directory)
        compare = checkpoint._corrupt

        def exchange(found):
            damage = compare(found)
            os.rename(path, self.directory / "away")
            os.rename(self.directory / "00000001", path)
            return damage

        with mock.patch.object(checkpoint, "_corrupt", exchange):
            self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 2})

    def test_links(self):
        path = slurm_elastic.save({"n": 1}, self.directory)
        link = self.directory / "link"
        os.symlink(path.name, link)
        self.assertEqual(read(link), {"n": 1})
        os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, f"belongs to uid {STRANGER}"):
            read(link)
        os.rename(path / "state.pickle", path / "other")
        os.symlink("other", path / "state.pickle")
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1})
        os.chown(path / "state.pickle", STRANGER, STRANGER, follow_symlinks=False)
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, f"belongs to uid {STRANGER}"):
            slurm_elastic.load_latest(self.directory)

    def test_links_that_they_have_renamed(self):
        """A rename keeps the owner: what the link leads to has to be the user's, too."""
        for n in (1, 2):
            self.save(n)
        newest = self.directory / "00000002"
        planted = self.copy(newest, self.directory / "copy", STRANGER)
        planted.chmod(0o755)
        for each in planted.iterdir():
            each.chmod(0o644)
        os.rename(newest, self.directory / "away")
        os.rename(self.directory / "copy", newest)
        os.rename(self.directory / "latest", self.directory / "00000003")
        said = self.load()
        self.assertIn("{'n': 1}", said)
        self.assertIn("00000003 is not complete", said)
        self.assertIn(f"belongs to uid {STRANGER}", said)

    def test_links_of_theirs_on_the_way(self):
        self.save(1)
        way = self.parent / "way"
        os.symlink(self.directory, way)
        self.assertIn("{'n': 1}", self.as_user(lambda: slurm_elastic.load_latest(way)))
        os.chown(way, STRANGER, STRANGER, follow_symlinks=False)
        self.assertIn("{'n': 1}", self.as_user(lambda: slurm_elastic.load_latest(way)))
        for each in (lambda: slurm_elastic.load_latest(way), lambda: slurm_elastic.save(1, way)):
            self.parent.chmod(0o1777)

            def says(each=each):
                with self.assertRaisesRegex(OSError, f"on the way belongs to uid {STRANGER}"):
                    each()

            self.as_user(says)

    def test_whom_an_acl_lets_write(self):
        path = slurm_elastic.save({"n": 1}, self.directory)
        for each in (self.directory, path, path / "state.pickle"):
            os.chown(each, 0, 0)
            each.chmod(0o770)
        self.parent.chmod(0o755)
        self.directory.chmod(0o755)
        path.chmod(0o755)
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1})
        entries = [(1, 7, -1), (2, 7, STRANGER), (4, 7, -1), (16, 7, -1), (32, 0, -1)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *each) for each in entries)
        try:
            os.setxattr(path / "state.pickle", "system.posix_acl_access", acl)
        except OSError as error:
            self.skipTest(f"no access control lists here: {error}")
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "other users may write in it"):
            slurm_elastic.load_latest(self.directory)

    def test_where_owners_and_modes_are_not_kept(self):
        """As on NFS with all_squash, below a directory in which all may write."""
        os.chown(self.directory, STRANGER, STRANGER)
        self.directory.chmod(0o777)
        self.parent.chmod(0o777)
        made = os.mkdir

        def mkdir(path, mode=0o777, *, dir_fd=None):
            made(path, mode, dir_fd=dir_fd)
            os.chown(path, STRANGER, STRANGER, dir_fd=dir_fd)
            os.chmod(path, 0o777, dir_fd=dir_fd)

        with mock.patch.object(os, "mkdir", mkdir):
            with self.assertRaisesRegex(OSError, f"belongs to uid {STRANGER}"):
                slurm_elastic.save({"n": 1}, self.directory)
            with mock.patch.object(_opened, "_given_to", lambda _: STRANGER):
                self.assertEqual(slurm_elastic.save({"n": 1}, self.directory).name, "00000001")
        self.assertEqual({*self.names()} & {"00000001", "latest"}, {"00000001", "latest"})

    def test_to_whom_a_file_system_gives_what_is_made(self):
        fd = os.open(self.directory, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertIsNone(_opened._given_to(fd))
        with mock.patch.object(_opened, "_file_system", lambda _: "nfs4"):
            self.assertEqual(_opened._given_to(fd), os.geteuid())
        self.assertEqual(self.names(), [])
        self.assertNotEqual(_opened._file_system(fd), "")

    def test_what_they_have_made_deep_hinders_nothing(self):
        deep = self.plant(".new-x", USER)
        at = os.open(deep, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=at)
            os.chown("d", USER, USER, dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.addCleanup(subprocess.run, ["rm", "-rf", str(deep)], check=True)
        self.assertIn("'00000001'", self.save(1))

    def test_where_others_may_write_nothing_is_read(self):
        path = slurm_elastic.save({"n": 1}, self.directory)
        for each, mode in ((path, 0o707), (path / "state.pickle", 0o666)):
            path.chmod(0o705)
            each.chmod(mode)
            self.directory.chmod(0o700)
            self.assertEqual(read(path), {"n": 1})
            self.directory.chmod(0o705)
            with self.assertRaisesRegex(slurm_elastic.CheckpointError, f"chmod go-w {each}"):
                read(path)

    def test_a_link_latest_of_theirs_says_nothing_and_hinders_nothing(self):
        for n in (1, 2):
            self.save(n)
        os.unlink(self.directory / "latest")
        os.symlink("00000001", self.directory / "latest")
        os.chown(self.directory / "latest", STRANGER, STRANGER, follow_symlinks=False)
        self.assertIn("{'n': 2}", self.load())
        said = self.save(3)
        self.assertIn("'00000003'", said)
        self.assertIn(f"latest is left aside: uid {STRANGER} has put it there", said)
        self.assertIn("{'n': 3}", self.load())
        self.assertEqual(self.names(), ["00000002", "00000003", "latest"])

    def test_names_that_they_have_taken_hinder_nothing(self):
        self.save(1)
        taken = ["00000002", "9" * 18, "9" * 19, "9" * 255, "٣" * 100]
        for name in taken:
            self.plant(name)
        (self.directory / "00000003").touch()
        (self.directory / "00000004").mkdir()
        for name in ("00000003", "00000004"):
            os.chown(self.directory / name, STRANGER, STRANGER)

        def save():
            for name in ("", "latest-"):
                name = f".new-{name}{os.uname().nodename}-{os.getpid()}"
                os.mkdir(self.directory / name)
                # As if a stranger had: it is not removed.
                strange.append(name)
            return slurm_elastic.save({"n": 2}, self.directory).name

        strange = []
        stranger = checkpoint.Directory.stranger
        with mock.patch.object(
            checkpoint.Directory,
            "stranger",
            lambda self, name: STRANGER if name in strange else stranger(self, name),
        ):
            self.assertIn("'00000005'", self.as_user(save))
        self.assertIn("{'n': 2}", self.load())
        self.save(3)
        self.assertEqual(os.readlink(self.directory / "latest"), "00000006")
        self.assertLessEqual({*taken, "00000003", "00000004"}, {*self.names()})

    def test_own_numbers_have_a_bound_too(self):
        self.save(1)
        for name in ("9" * 19, "9" * 255, "0000000٣", "7"):
            self.plant(name, USER)
        self.assertIn("'00000002'", self.save(2))
        self.assertIn("{'n': 2}", self.load())

    def test_the_largest_number(self):
        most = "9" * 17
        self.plant(most)
        self.save(1)
        self.assertIn("'00000002'", self.save(2))
        os.rename(self.directory / "00000002", self.directory / f"{most[1:]}8")
        os.unlink(self.directory / "latest")

        def too_large():
            with self.assertRaisesRegex(
                OSError, f"number {most[1:]}8, and larger ones than {most}"
            ):
                slurm_elastic.save({"n": 3}, self.directory)

        self.as_user(too_large)
        os.rename(self.directory / f"{most[1:]}8", self.directory / f"{most[1:]}7")
        self.assertIn(most[1:] + "8", self.save(3))
        self.as_user(too_large)
        self.assertIn("{'n': 3}", self.load())
        self.assertEqual([each for each in self.names() if each.startswith(".new-")], [])

    def test_a_directory_that_is_exchanged_while_it_is_written_is_none(self):
        slurm_elastic.save({"n": 1}, self.directory)
        with self.assertRaisesRegex(OSError, "is another directory than the one that was written"):
            with slurm_elastic.new_checkpoint(self.directory) as path:
                (path / "state.pickle").write_bytes(pickle.dumps({"n": 2}))
                os.rename(path, self.directory / "away")
                self.copy(self.directory / "away", path, STRANGER)
        self.assertEqual(slurm_elastic.load_latest(self.directory), {"n": 1})

    def test_the_directory_may_be_renamed_meanwhile(self):
        """What somebody else puts in its place gets nothing."""
        with slurm_elastic.new_checkpoint(self.directory) as path:
            (path / "state.pickle").write_bytes(pickle.dumps({"n": 1}))
            away = self.directory.with_name("away")
            os.rename(self.directory, away)
            victim = self.directory / ".new-mine"
            victim.mkdir(parents=True)
        self.assertEqual(slurm_elastic.load_latest(away), {"n": 1})
        self.assertEqual(os.listdir(self.directory), [victim.name])

    def test_who_may_write_is_said_once(self):
        for mode, parent, line in (
            (0o700, 0o755, None),
            (0o1777, 0o755, None),
            (0o700, 0o1777, None),
            (0o777, 0o755, f"other users may write in {self.directory}, and so remove"),
            (0o770, 0o755, f"other users may write in {self.directory}, and so remove"),
            (0o700, 0o777, f"other users may write in {self.parent}, and so rename or remove"),
        ):
            with self.subTest(mode=oct(mode), parent=oct(parent)):
                os.chown(self.directory, USER, STRANGER)
                os.chmod(self.directory, mode)
                os.chmod(self.parent, parent)

                def save():
                    for n in (1, 2):
                        slurm_elastic.save({"n": n}, self.directory)
                    slurm_elastic.load_latest(self.directory)

                said = self.as_user(save).splitlines()[:-1]
                self.assertEqual(len(said), 0 if line is None else 1, said)
                self.assertIn(line or "", "".join(said))
                self.assertTrue(line is None or f"chmod +t {line.split()[5][:-1]}" in said[0])
        os.chmod(self.parent, 0o755)
        # A group with nobody else in it.
        import grp
        import pwd

        user = pwd.struct_passwd(("u", "x", USER, USER, "", "/", "/bin/sh"))
        group = grp.struct_group(("u", "x", USER, []))
        os.chown(self.directory, USER, USER)
        os.chmod(self.directory, 0o770)
        with mock.patch("pwd.getpwuid", lambda uid: user), mock.patch(
            "grp.getgrgid", lambda gid: group
        ):
            self.assertEqual(self.as_user(save), "None\n")
            group = grp.struct_group(("u", "x", USER, ["v"]))
            self.assertIn("other users may write", self.as_user(save))


MOUNTINFO = b"""\
21 1 254:1 / / rw,noatime - ext4 /dev/root rw
36 21 0:40 / /home rw shared:1 - fuse.sshfs host:/a rw,user_id=1001,group_id=1001
37 21 0:41 / /a\r38\\04021 rw - fuse.user_id=0 ,user_id=0 rw,user_id=1002,group_id=0,allow_other
38 21 0:42 / /fuse\x0b39 rw master:1 propagate_from:2 - fuse /dev/fuse rw,user_id=0,group_id=0
40 21 0:43 / /data rw - nfs4 host:/user_id=7 rw,vers=4.2,user_id=7
41 21 8:1 / /win rw - fuseblk /dev/sda1 rw,user_id=1003,group_id=0,blksize=4096
"""


class Mounts(unittest.TestCase):
    def test_who_has_mounted(self):
        for number, kind, user in (
            (21, "ext4", None),
            (36, "fuse.sshfs", 1001),
            (37, "fuse.user_id=0", 1002),
            (38, "fuse", None),
            (40, "nfs4", None),
            (41, "fuseblk", 1003),
        ):
            self.assertEqual(_mounts.parse(MOUNTINFO, number), (number, kind, user))
        self.assertIsNone(_mounts.parse(MOUNTINFO, 39))
        with mock.patch.object(os, "geteuid", lambda: 1001):
            self.assertEqual(_mounts.parse(MOUNTINFO, 36).user, None)

    def test_one_that_is_not_listed(self):
        """After chroot() that of "/" is not. Any other one may be gone, and was anybody's."""
        fd = os.open("/proc", os.O_PATH)
        self.addCleanup(os.close, fd)
        with mock.patch.object(_mounts, "parse", lambda *_: None):
            self.assertEqual(_mounts.of(fd).user, _mounts.UNKNOWN)
            with mock.patch.object(_mounts, "_number", lambda _: 7):
                self.assertIsNone(_mounts.of(fd).user)


@unittest.skipUnless(fuse.is_there(), "FUSE cannot be mounted")
class Mounted(Shared):
    """Others mount there what answers nobody else, or never, or lies of whose it is."""

    KINDS = ({}, {"others": True}, {"others": True, "claims": USER})

    def mount(self, name, uid=STRANGER, **options):
        path = self.directory / name
        path.mkdir(exist_ok=True)
        os.chown(path, uid, uid)
        mounted = fuse.Fuse(path, uid, **options)
        self.addCleanup(mounted.close)
        return path

    def test_names_on_which_they_have_mounted_hinder_nothing(self):
        for number, kind in enumerate(self.KINDS):
            with self.subTest(**kind):
                self.share(str(number))
                names = ["latest", "00000001", "9" * 18, ".new-x"]
                for name in names:
                    self.mount(name, **kind)
                said = self.load()
                self.assertIn("None\n", said)
                self.assertIn(f"00000001 of uid {STRANGER} is left aside, and 1 more", said)
                said = self.save(2)
                self.assertIn("'00000002'", said)
                self.assertIn(f"latest is left aside: uid {STRANGER} has put it there", said)
                self.assertIn("{'n': 2}", self.load())
                self.assertLessEqual({*names}, {*self.names()})

    def test_what_lies_of_its_owner_is_theirs(self):
        base = self.mount("base", others=True, claims=USER)

        def load():
            with _opened.open_base(base) as found:
                self.assertEqual(found.status.st_uid, USER)
                self.assertEqual((found.owner, found.trusted), (STRANGER, {0, USER}))
            with self.assertRaisesRegex(OSError, f"uid {STRANGER}"):
                _opened.open_base(self.directory).directory("base")
            return _opened.is_private(base)

        self.parent.chmod(0o1777)
        self.assertIn("False", self.as_user(load))
        self.assertIn(
            f"belongs to uid {STRANGER}, who can remove",
            self.as_user(lambda: slurm_elastic.load_latest(base)),
        )

    def test_ones_own_and_those_of_an_admin_are_as_any(self):
        for uid in (USER, 0):
            base = self.mount(f"of-{uid}", uid, others=True, claims=USER, mode=0o700)

            def look(base=base):
                with _opened.open_base(self.directory) as above:
                    with above.directory(base.name) as found:
                        return found.owner, _opened.is_private(base)

            self.assertIn(f"({USER}, True)", self.as_user(look))

    def test_one_that_is_gone_was_anybodys(self):
        """Its owner may unmount it while it is looked at."""
        path = self.directory / "gone"
        path.mkdir()
        mounted = fuse.Fuse(path, STRANGER)
        fd = os.open(path, os.O_PATH)
        self.addCleanup(os.close, fd)
        self.assertEqual(_mounts.of(fd).user, STRANGER)
        mounted.close()
        self.assertEqual(_mounts.of(fd).user, _mounts.UNKNOWN)

    def test_a_file_of_ones_own(self):
        path = self.directory / "file"
        path.write_bytes(b"x")
        path.chmod(0o600)
        with _opened.private_file(path) as file:
            self.assertEqual(file.read(), b"x")
        path.chmod(0o640)
        others = self.directory / "others"
        others.touch(0o600)
        os.chown(others, STRANGER, STRANGER)
        os.symlink("others", self.directory / "link")
        os.mkfifo(self.directory / "fifo", 0o600)
        self.mount("mounted", others=True, claims=0, mode=0o600)
        for name in ("file", "others", "link", "fifo", "mounted"):
            with self.assertRaises(_opened.NotTrustedError, msg=name):
                _opened.private_file(self.directory / name)
            self.assertTrue(_opened.is_there(self.directory / name))
        with self.assertRaises(FileNotFoundError):
            _opened.private_file(self.directory / "none")
        self.assertFalse(_opened.is_there(self.directory / "none"))


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

    def test_a_new_one_with_the_inode_of_a_bad_one_counts_as_kept(self):
        self.flip(self.directory / "00000003/state.pickle")
        self.assertEqual(self.load()[0], 2)
        good = self.directory.with_name("good")
        slurm_elastic.save({"n": 3}, good)
        for name in ("state.pickle", "complete.json"):
            os.replace(good / "00000001" / name, self.directory / "00000003" / name)
        shutil.rmtree(good)
        slurm_elastic.save({"n": 4}, self.directory, keep=2)
        self.assertEqual(self.names(), ["00000003", "00000004", "latest"])

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
