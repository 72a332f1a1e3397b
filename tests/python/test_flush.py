#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Takes 55 s
"""elastic-flush: the newest complete snapshot becomes durable, and nothing else looks as if it were
one, whatever lies in the run directory and whenever the program ends.
"""

import contextlib
import ctypes
import ctypes.util
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import pickle
import random
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import slurm_elastic
import tap
from slurm_elastic import _manifest
from slurm_elastic._opened import open_base

PAGE = os.sysconf("SC_PAGE_SIZE")
FLUSH = pathlib.Path(os.environ.get("top_builddir", "."), "flush/elastic-flush").absolute()
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LARGE = 48 << 20
STRANGER = 54321  # nobody's uid


def digest(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def set_subreaper(value):
    """Whether orphans below this process become its own children."""
    ctypes.CDLL(None).prctl(36, value, 0, 0, 0)


def child_of(process):
    """The process that flushes one directory for it."""
    while process.poll() is None:
        done = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE)
        if done.stdout:
            return int(done.stdout)
    raise AssertionError("it has ended")


def waits_for_lock(pid):
    lines = pathlib.Path("/proc/locks").read_text().splitlines()
    return any(line.split()[1] == "->" and f" {pid} " in line for line in lines)


def manifest(files, generation=3, step=1, incarnation="12.0", **more):
    listed = {name: {"bytes": len(data), "blake2b": digest(data)} for name, data in files.items()}
    text = {"format": 1, "incarnation": incarnation, "generation": generation, "step": step}
    return {**text, "files": listed, **more}


class Base(unittest.TestCase):
    where = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="elastic-flush-", dir=self.where)
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        self.run_dir = self.directory / f"elastic-{os.getuid()}-12.0-n1"
        self.run_dir.mkdir(0o700)
        self.checkpoint = self.directory / "checkpoint"

    def buffer(self, index, files=None, **more):
        """Write a complete buffer, instead of what it was."""
        path = self.run_dir / "snapshot" / str(index)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(0o700, parents=True)
        files = {"state.pt": b"state"} if files is None else files
        for name, data in files.items():
            (path / name).write_bytes(data)
        text = manifest(files, **{"checkpoint": str(self.checkpoint), **more})
        (path / "complete.json").write_text(json.dumps(text))
        return path

    def existing(self, name, files=None, **more):
        """Write a checkpoint."""
        files = {"state.pt": b"xy"} if files is None else files
        path = self.checkpoint / name
        path.mkdir(0o700, parents=True)
        text = {"format": 1, "incarnation": "12.0", "generation": 3, **more}
        text["files"] = {file: len(data) for file, data in files.items()}
        for file, data in files.items():
            (path / file).write_bytes(data)
        (path / "complete.json").write_text(json.dumps(text))
        return path

    def flush(self, *options, status=0, says="", run_dir=None, **more):
        """Run it; what it says is one line, to the right stream."""
        done = subprocess.run(
            [str(FLUSH), *options, str(run_dir or self.run_dir)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=280,
            **more,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, status, out + err)
        line, other = (out, err) if status == 0 else (err, out)
        self.assertEqual(other, "")
        self.assertRegex(line, r"\A[^\x00-\x1f\x7f]+\n\Z")
        self.assertIn(says, line)
        return line

    def names(self):
        try:
            return sorted(os.listdir(self.checkpoint))
        except FileNotFoundError:
            return []

    def content(self, name):
        path = self.checkpoint / name
        return {
            file.name: file.read_bytes() for file in path.iterdir() if file.name != "complete.json"
        }

    def assert_flushed(self, name, files):
        self.assertIn(name, self.names())
        self.assertEqual(self.content(name), files)
        text = json.loads((self.checkpoint / name / "complete.json").read_text())
        self.assertEqual(text["files"], {file: len(data) for file, data in files.items()})


class Flushing(Base):
    def test_what_is_flushed_is_a_checkpoint(self):
        state = pickle.dumps({"n": 7})
        self.buffer(0, {"state.pickle": b"older"}, step=6)
        self.buffer(1, {"state.pickle": state, "empty": b""}, step=7)
        line = self.flush(says="flushed: snapshot/1 of 12.0, generation 3, step 7: ")
        self.assertIn(f" {len(state)} bytes in {self.checkpoint}/.flushed-12.0.3.7-n1\n", line)
        self.assertEqual(self.names(), [".flushed-12.0.3.7-n1"])
        self.assert_flushed(".flushed-12.0.3.7-n1", {"state.pickle": state, "empty": b""})
        path = self.checkpoint / ".flushed-12.0.3.7-n1"
        self.assertEqual(self.checkpoint.stat().st_mode & 0o777, 0o700)
        self.assertEqual(path.stat().st_mode & 0o777, 0o700)
        self.assertEqual({f.stat().st_mode & 0o777 for f in path.iterdir()}, {0o600})
        text = json.loads((path / "complete.json").read_text())
        files = {"state.pickle": len(state), "empty": 0}
        expected = {"format": 1, "incarnation": "12.0", "generation": 3, "step": 7, "files": files}
        expected["blake2b"] = {"state.pickle": digest(state), "empty": digest(b"")}
        self.assertEqual(text, expected)
        # The package reads it, under a checkpoint's name.
        path.rename(self.checkpoint / "00000001")
        latest = slurm_elastic.latest_checkpoint(self.checkpoint)
        self.assertEqual(latest, self.checkpoint / "00000001")
        self.assertEqual(slurm_elastic.load_latest(self.checkpoint), {"n": 7})

    def test_the_run_directory_stays(self):
        self.buffer(0)
        before = sorted(self.run_dir.rglob("*"))
        self.flush(says="flushed")
        self.flush(says="dropped: snapshot/0 of 12.0, generation 3, step 1: ")
        self.flush(says=f"{self.checkpoint}/.flushed-12.0.3.1-n1 is as new or newer")
        self.assertEqual(sorted(self.run_dir.rglob("*")), before)

    def test_the_newest(self):
        keys = [("12.0", 1, 9), ("12.0", 2, 0), ("12.0", 2, 10), ("12.1", 0, 3), ("12.10", 0, 0)]
        for old, new in itertools.combinations(keys, 2):
            for index in (0, 1):
                with self.subTest(old=old, new=new, index=index):
                    shutil.rmtree(self.checkpoint, ignore_errors=True)
                    for which, key in ((index, new), (1 - index, old)):
                        names = ("incarnation", "generation", "step")
                        self.buffer(which, **dict(zip(names, key)))
                    self.flush(says=f"flushed: snapshot/{index}")
                    restarts = new[0].split(".")[1]
                    name = f".flushed-12.{restarts}.{new[1]}.{new[2]}-n1"
                    self.assertEqual(self.names(), [name])

    def test_of_the_base_on_a_node_of_an_extension(self):
        self.buffer(0, incarnation="11.2")
        self.flush(says="flushed: snapshot/0 of 11.2")
        self.assertEqual(self.names(), [".flushed-11.2.3.1-n1"])

    def test_the_newest_of_one_step(self):
        for index in (0, 1):
            for seconds, nanoseconds in ((1, 0), (0, 10**7)):
                shutil.rmtree(self.checkpoint, ignore_errors=True)
                for each in (0, 1):
                    path = self.buffer(each, {"state.pt": b"%d" % each})
                    time_ns = 10**18 + (seconds * 10**9 + nanoseconds) * (each == index)
                    os.utime(path / "complete.json", ns=(time_ns, time_ns))
                self.flush(says=f"flushed: snapshot/{index}")

    def test_nothing(self):
        nothing = "nothing to flush: there is no complete snapshot"
        self.flush(says=nothing)
        (self.run_dir / "snapshot").mkdir()
        self.flush(says=nothing)
        # Being written.
        (self.buffer(0) / "complete.json").unlink()
        self.flush(says=nothing)
        self.assertFalse(self.checkpoint.exists())

    def test_many_and_strange_names(self):
        strange = ["two\nlines", "-rf", "ä", "a b", "$(touch x)", "*", "x" * 255, "\x1b[31m", "\\"]
        files = {
            name: name.encode() for name in strange + [f"f{i}" for i in range(64 - len(strange))]
        }
        path = self.buffer(0, files)
        # Of what is not listed nothing is touched.
        os.mkfifo(path / "fifo")
        (path / "link").symlink_to("/etc/passwd")
        (path / "\n").write_text("x")
        self.flush(says="flushed")
        self.assert_flushed(".flushed-12.0.3.1-n1", files)

    def test_the_checkpoint_directory(self):
        self.checkpoint = self.directory / "a" / "b b" / "c"
        self.buffer(0)
        self.flush(says="flushed")
        for path in (self.checkpoint, *self.checkpoint.parents[:2]):
            self.assertEqual(path.stat().st_mode & 0o777, 0o700)
        # The user's own links are meant.
        (self.directory / "link").symlink_to("other")
        (self.directory / "other").mkdir()
        self.checkpoint = self.directory / "link"
        self.buffer(0)
        self.flush(says="flushed")
        self.assertTrue((self.directory / "other" / ".flushed-12.0.3.1-n1").is_dir())
        for path in (self.run_dir / "snapshot/0/state.pt", self.run_dir / "snapshot/0/state.pt/x"):
            self.checkpoint = path
            self.buffer(0)
            self.flush(status=1, says="Not a directory")

    @unittest.skipUnless(MEMORY, "there is no /dev/shm")
    def test_to_disk(self):
        with tempfile.TemporaryDirectory(prefix="elastic-flush-", dir=MEMORY) as memory:
            (self.directory / "link").symlink_to(memory)
            for path in (pathlib.Path(memory), pathlib.Path(memory) / "a", self.directory / "link"):
                self.checkpoint = path
                self.buffer(0)
                self.flush("--to-disk", status=1, says="it is in memory (tmpfs)")
                self.assertEqual(os.listdir(memory), [])
            self.flush(says="flushed")
        self.checkpoint = pathlib.Path(tempfile.mkdtemp(prefix="elastic-flush-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.checkpoint)
        self.buffer(0)
        self.flush("--to-disk", says="flushed")


class Existing(Base):
    """Whether a snapshot of generation 3, step 5, is needed beside what is there."""

    def check(self, needed, *remaining):
        self.buffer(0, step=5)
        self.flush(says="flushed" if needed else "dropped")
        expected = [".flushed-12.0.3.5-n1"] if needed else []
        self.assertEqual(self.names(), sorted([*remaining, *expected]))
        shutil.rmtree(self.checkpoint)

    def test_which_covers_it(self):
        for dropped, key in (
            (True, {}),  # without a step
            (True, {"step": 5}),
            (True, {"step": 6}),
            (False, {"step": 4}),
            (False, {"generation": 2}),
            (False, {"generation": 2, "step": 99}),
            (True, {"generation": 4, "step": 0}),
            (True, {"incarnation": "12.1", "generation": 0, "step": 0}),
            (False, {"incarnation": "13.0", "generation": 9}),
            (False, {"incarnation": None}),
            (False, {"format": 2, "step": 9}),
            (False, {"step": "9"}),
        ):
            for name in ("00000007", ".flushed-12.0.1.1-n9"):
                with self.subTest(key=key, name=name):
                    self.existing(name, **key)
                    self.check(not dropped, name)

    def test_what_is_not_complete_does_not_count(self):
        (self.existing("00000001") / "state.pt").unlink()
        (self.existing("00000002") / "state.pt").write_bytes(b"x")
        (self.existing("00000003") / "complete.json").write_text("{")
        (self.existing("00000004") / "complete.json").unlink()
        fifo = self.existing("00000005") / "complete.json"
        fifo.unlink()
        os.mkfifo(fifo)
        elsewhere = self.existing("elsewhere")
        (self.checkpoint / "00000006").symlink_to(elsewhere)
        link = self.existing("00000007") / "complete.json"
        link.unlink()
        link.symlink_to(elsewhere / "complete.json")
        (self.checkpoint / "00000008").write_text("x")
        os.mkfifo(self.checkpoint / "00000009")
        with open(self.existing("00000010") / "complete.json", "w") as file:
            file.truncate(1 << 40)
        self.check(True, "elsewhere", *(f"{n:08d}" for n in range(1, 11)))

    def test_what_was_never_announced_does_not_count(self):
        """What is above `latest` nobody reads."""
        for latest, needed in (
            ("00000001", True),
            ("00000002", False),
            ("00000009", False),
            ("x", False),
            ("0" * 40, False),
        ):
            with self.subTest(latest):
                self.existing("00000001", step=4)
                self.existing("00000002", step=5)
                (self.checkpoint / "latest").symlink_to(latest)
                self.check(needed, "00000001", "00000002", "latest")

    def test_files_in_directories(self):
        path = self.existing("00000001", {})
        (path / "shards").mkdir()
        (path / "shards/0").write_bytes(b"xy")
        text = {"format": 1, "incarnation": "12.0", "generation": 3, "files": {"shards/0": 2}}
        (path / "complete.json").write_text(json.dumps(text))
        self.check(False, "00000001")

    def is_read(self, name):
        """Whether the package takes it."""
        try:
            with open_base(self.checkpoint) as base, base.directory(name) as found:
                return _manifest.incomplete(found) is None
        except OSError:
            return False

    def test_it_is_judged_as_the_package_does(self):
        """By modes, of all that lies on the way."""
        path = self.existing("00000001")
        (path / "shards").mkdir()
        (path / "shards/0").write_bytes(b"xy")
        files = {"state.pt": 2, "shards/0": 2}
        text = {"format": 1, "incarnation": "12.0", "generation": 3, "files": files}
        (path / "complete.json").write_text(json.dumps(text))
        inner = [path, *path.rglob("*")]
        self.buffer(0, step=5)
        seen = set()
        for base, own, name, mode in itertools.product(
            (0o755, 0o700), (0o755, 0o700), inner, (0o700, 0o755, 0o775, 0o757)
        ):
            for each in inner:
                each.chmod(0o755)
            for each, bits in ((self.checkpoint, base), (path, own), (name, mode)):
                each.chmod(bits)
            with self.subTest(base=oct(base), own=oct(own), name=name.name, mode=oct(mode)):
                counts = self.is_read("00000001")
                self.flush(says="dropped" if counts else "flushed")
                shutil.rmtree(self.checkpoint / ".flushed-12.0.3.5-n1", ignore_errors=True)
                seen.add(counts)
        self.assertEqual(seen, {True, False})

    def test_half_of_what_was_flushed_is_replaced(self):
        (self.existing(".flushed-12.0.3.5-n1", step=5) / "state.pt").unlink()
        self.check(True)

    def test_another_job_has_flushed_to_the_same_name(self):
        self.existing(".flushed-12.0.3.5-n1", step=5, incarnation="11.0")
        self.buffer(0, step=5)
        self.flush(status=1, says=".flushed-12.0.3.5-n1 is there, of job 11")
        self.assertEqual(self.names(), [".flushed-12.0.3.5-n1"])
        self.assertEqual(self.content(".flushed-12.0.3.5-n1"), {"state.pt": b"xy"})

    def test_leftovers(self):
        with subprocess.Popen([sys.executable, "-c", ""]) as dead:
            dead.wait()
        alive = os.getpid()
        for name in (f"n1-{dead.pid}", f"n2-{dead.pid}", f"n1-{alive}", f"n1-{dead.pid}x"):
            (self.checkpoint / f".flushing-12.0.3.1-{name}").mkdir(parents=True)
            (self.checkpoint / f".flushing-12.0.3.1-{name}" / "state.pt").write_text("x")
        # It can be removed by hand only; it is in nobody's way.
        (self.checkpoint / f".flushing-12.0.1.1-n1-{dead.pid}" / "sub").mkdir(parents=True)
        victim = self.directory / "victim"
        victim.mkdir()
        (victim / "file").write_text("x")
        (self.checkpoint / f".flushing-12.0.2.1-n1-{dead.pid}").symlink_to(victim)
        self.check(
            True,
            f".flushing-12.0.1.1-n1-{dead.pid}",
            f".flushing-12.0.2.1-n1-{dead.pid}",
            f".flushing-12.0.3.1-n2-{dead.pid}",
            f".flushing-12.0.3.1-n1-{alive}",
            f".flushing-12.0.3.1-n1-{dead.pid}x",
        )
        self.assertTrue((victim / "file").exists())


def edit(change):
    """Something that changes the manifest of a buffer."""

    def do(path):
        file = path / "complete.json"
        text = json.loads(file.read_text())
        change(text)
        file.write_text(json.dumps(text))

    return do


def instead(make, name="state.pt"):
    """Something that puts another kind of file in the place of one."""

    def do(path):
        (path / name).rename(path / "moved")
        make(path / name)

    return do


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 43)


def sparse_of_its_size(path):
    with open(path / "state.pt", "wb") as file:
        file.truncate(1 << 30)
    edit(lambda text: text["files"]["state.pt"].update(bytes=1 << 30))(path)


def listen(path):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        directory = os.open(path.parent, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{directory}/{path.name}")
        os.close(directory)


def append(path):
    with open(path / "state.pt", "ab") as file:
        file.write(b"x")


TORN = {
    "another byte": (lambda p: (p / "state.pt").write_bytes(b"Xewer"), "BLAKE2b is not that"),
    "shorter": (lambda p: (p / "state.pt").write_bytes(b"newe"), "4 bytes of 5"),
    "longer": (append, "6 bytes of 5"),
    "missing": (lambda p: (p / "state.pt").unlink(), "No such file"),
    "symlink": (instead(lambda f: f.symlink_to("moved")), "it is a symlink"),
    "FIFO": (instead(os.mkfifo), "no regular file"),
    "socket": (instead(listen), "state.pt: "),
    "directory": (instead(os.mkdir), "no regular file"),
    "terabytes": (instead(sparse), "8796093022208 bytes of 5"),
    "holes": (sparse_of_its_size, "there are holes in it"),
    "path": (edit(lambda t: t["files"].update({"../x": t["files"]["state.pt"]})), "not allowed"),
    "manifest in it": (
        edit(lambda t: t["files"].update({"complete.json": t["files"]["state.pt"]})),
        "not allowed",
    ),
    "no files": (edit(lambda t: t.update(files={})), "1 to 64"),
    "too many files": (
        edit(lambda t: t.update(files={f"{i}": t["files"]["state.pt"] for i in range(65)})),
        "1 to 64",
    ),
    "relative": (edit(lambda t: t.update(checkpoint="checkpoint")), "absolute"),
    "no JSON": (lambda p: (p / "complete.json").write_bytes(b"\x00\xff{"), "complete.json: "),
    "half a manifest": (lambda p: os.truncate(p / "complete.json", 100), "ends too early"),
    "empty manifest": (lambda p: os.truncate(p / "complete.json", 0), "nothing in it"),
    "huge manifest": (lambda p: os.truncate(p / "complete.json", 1 << 43), "more than 65536 bytes"),
    "manifest is a FIFO": (instead(os.mkfifo, "complete.json"), "no regular file"),
    "manifest is a link": (
        instead(lambda f: f.symlink_to("moved"), "complete.json"),
        "it is a symlink",
    ),
}


class Torn(Base):
    def test_the_other_one_is_taken(self):
        for name, (tear, says) in TORN.items():
            with self.subTest(name):
                shutil.rmtree(self.checkpoint, ignore_errors=True)
                self.buffer(0, {"state.pt": b"older"}, step=1)
                tear(self.buffer(1, {"state.pt": b"newer"}, step=2))
                line = self.flush(says="flushed: snapshot/0 of 12.0")
                self.assertIn("; not used: snapshot/1: ", line)
                self.assertIn(says, line)
                self.assertEqual(self.names(), [".flushed-12.0.3.1-n1"])
                self.assert_flushed(".flushed-12.0.3.1-n1", {"state.pt": b"older"})

    def test_alone_it_is_an_error(self):
        for name, (tear, says) in TORN.items():
            with self.subTest(name):
                tear(self.buffer(1, {"state.pt": b"newer"}, step=2))
                line = self.flush(status=1, says="no snapshot can be used: snapshot/1: ")
                self.assertIn(says, line)
                self.assertEqual(self.names(), [])

    def test_both(self):
        for index in (0, 1):
            TORN["another byte"][0](self.buffer(index, {"state.pt": b"newer"}, step=index))
        line = self.flush(status=1, says="snapshot/1: state.pt: its BLAKE2b")
        self.assertIn("snapshot/0: state.pt: its BLAKE2b", line)
        self.assertEqual(self.names(), [])

    def test_the_other_one_is_not_needed(self):
        self.existing("00000001", step=1)
        self.buffer(0, step=1)
        TORN["shorter"][0](self.buffer(1, {"state.pt": b"newer"}, step=2))
        self.assertIn("not used: snapshot/1", self.flush(says="dropped: snapshot/0"))

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_a_checkpoint_of_a_stranger_covers_nothing(self):
        self.buffer(0, step=1)
        path = self.existing("00000001", step=2)
        for each in (path, path / "state.pt", path / "complete.json"):
            os.chown(each, STRANGER, STRANGER)
            self.flush(says="flushed")
            shutil.rmtree(self.checkpoint / ".flushed-12.0.3.1-n1")
            os.chown(each, 0, 0)
        self.flush(says="dropped")

    def plant(self, path):
        """A directory of somebody else's, which root's flush does not remove either."""
        (path / "there").mkdir(parents=True)
        os.chown(path, STRANGER, STRANGER)

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_names_that_strangers_have_taken_hinder_nothing(self):
        self.buffer(0)
        self.checkpoint.mkdir(0o1777)
        self.plant(self.checkpoint / ".flushed-12.0.3.1-n1")

        def take():
            self.plant(self.checkpoint / f".flushing-12.0.3.1-n1-{os.getpid()}")

        line = self.flush(says="flushed", preexec_fn=take)
        name = re.search(r"/(\.flushed-12\.0\.3\.1-n1\+[0-9a-f]{8})\n", line)[1]
        self.assert_flushed(name, {"state.pt": b"state"})
        self.flush(says=f"{name} is as new or newer")
        self.assertEqual(sum(each.startswith(".flushing-") for each in self.names()), 1)
        # A link `latest` of theirs says nothing of what counts.
        (self.checkpoint / name).rename(self.checkpoint / "00000001")
        os.symlink("00000000", self.checkpoint / "latest")
        self.flush(says="flushed")
        shutil.rmtree(self.checkpoint / ".flushed-12.0.3.1-n1", ignore_errors=True)
        for path in self.checkpoint.glob(".flushed-*"):
            shutil.rmtree(path)
        os.chown(self.checkpoint / "latest", STRANGER, STRANGER, follow_symlinks=False)
        self.flush(says="00000001 is as new or newer")

    @tap.needs_torch
    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_parts_of_a_stranger_cover_nothing(self):
        parts = self.checkpoint / ".parts"
        self.buffer(0, {"part-00000-of-00001": b"abc"}, checkpoint=str(parts / "n1"))
        self.flush(says=f"in {parts}/n1/.flushed-12.0.3.1-n1")
        self.flush(says="as new or newer")
        self.assertEqual(parts.stat().st_mode & 0o777, 0o700)
        # With all that the stranger has put there.
        for path in (parts, *parts.rglob("*")):
            os.chown(path, STRANGER, STRANGER)
        line = self.flush(says=f"in {parts}-")
        spare = pathlib.Path(re.search(r" in (.*)/n1/.flushed-12.0.3.1-n1\n", line)[1])
        self.assertRegex(spare.name, r"^\.parts-[0-9a-f]{8}$")
        self.flush(says=f"dropped: snapshot/0 of 12.0, generation 3, step 1: {spare}/n1/")
        from slurm_elastic import _sharded_snapshot  # with PyTorch

        with open_base(self.checkpoint) as base:
            found = _sharded_snapshot.find(base, "12")
        self.assertEqual(
            [list(map(str, each.paths)) for each in found],
            [[f"{spare.name}/n1/.flushed-12.0.3.1-n1/part-00000-of-00001"]],
        )
        # In a directory of one's own in which others may write, too; and beside a link.
        os.chown(parts, 0, 0)
        parts.chmod(0o777)
        self.flush(says=f"dropped: snapshot/0 of 12.0, generation 3, step 1: {spare}/n1/")
        shutil.rmtree(parts)
        parts.symlink_to(self.directory)
        self.flush(says=f"dropped: snapshot/0 of 12.0, generation 3, step 1: {spare}/n1/")

    def test_links_in_the_place_of_directories(self):
        elsewhere = self.directory / "elsewhere"
        for path in ("snapshot/0", "snapshot"):
            self.buffer(0)
            (self.run_dir / path).rename(elsewhere)
            (self.run_dir / path).symlink_to(elsewhere)
            self.flush(status=1, says="no snapshot can be used")
            (self.run_dir / path).unlink()
            shutil.rmtree(elsewhere)
        self.buffer(0)
        self.run_dir.rename(elsewhere)
        self.run_dir.symlink_to(elsewhere)
        for slashes in ("", "/", "//"):
            self.flush(status=1, says="cannot open", run_dir=f"{self.run_dir}{slashes}")
        self.assertEqual(self.names(), [])


class Removing(Base):
    """--remove, --sweep, --max-age, --background."""

    def lock(self):
        path = self.run_dir / "agent.lock"
        path.touch()
        return path

    @contextlib.contextmanager
    def held(self, job):
        """The lock is held by a process of that job, as far as its environment tells."""
        code = (
            "import fcntl, time; fcntl.flock(0, fcntl.LOCK_EX); print(flush=True); time.sleep(1000)"
        )
        with open(self.lock()) as lock:
            holder = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=lock,
                stdout=subprocess.PIPE,
                env={"SLURM_JOB_ID": job},
            )
        try:
            self.assertEqual(holder.stdout.readline(), b"\n")
            yield holder
        finally:
            holder.kill()
            holder.communicate()

    def test_a_lock_that_another_job_holds_keeps_nothing(self):
        for option in ("--sweep", "--remove", "--kill"):
            self.run_dir.mkdir(0o700, exist_ok=True)
            self.buffer(0)
            with self.held("13"):
                self.flush("--remove", option, says="")
            self.assertFalse(self.run_dir.exists())

    def test_after_success(self):
        self.buffer(0)
        self.flush("--remove", says="flushed")
        self.assertFalse(self.run_dir.exists())
        self.run_dir.mkdir(0o700)
        self.flush("--remove", says="nothing to flush")
        self.assertFalse(self.run_dir.exists())

    def test_whatever_lies_there(self):
        victim = self.directory / "victim"
        victim.mkdir()
        (victim / "file").write_text("x")
        self.buffer(0)
        deep = self.run_dir / "a" / "b\n" / "-rf"
        deep.mkdir(parents=True)
        for path in (self.run_dir, deep):
            os.mkfifo(path / "fifo")
            (path / "link").symlink_to(victim)
            (path / "dangling").symlink_to("nowhere")
            listen(path / "socket")
            os.link(victim / "file", path / "file")
        for path in (deep, deep.parent, self.run_dir / "snapshot"):
            path.chmod(0o500)
        deep.chmod(0)
        self.flush("--remove", says="flushed")
        self.assertFalse(self.run_dir.exists())
        self.assertEqual([file.name for file in victim.iterdir()], ["file"])
        self.assertEqual((victim / "file").read_text(), "x")

    def test_what_is_no_directory(self):
        victim = self.run_dir.rename(self.directory / "victim")
        self.run_dir.symlink_to(victim)
        self.flush("--remove", status=1, says="cannot open")
        self.assertFalse(self.run_dir.is_symlink())
        self.assertTrue(victim.is_dir())

    def test_what_others_may_have_moved_there(self):
        """A directory of the user in which others may write, where others may write."""
        self.buffer(0)
        for above, own in ((0o1777, 0o777), (0o1777, 0o750)):
            self.directory.chmod(above)
            self.run_dir.chmod(own)
            line = self.flush("--remove", status=1, says="it is no run directory")
            self.assertIn("not removed: ", line)
            self.assertTrue((self.run_dir / "snapshot/0/state.pt").exists())
        for above, own in ((0o1777, 0o700), (0o755, 0o777)):
            self.run_dir.mkdir(0o700, exist_ok=True)
            self.buffer(0)
            self.directory.chmod(above)
            self.run_dir.chmod(own)
            self.flush("--remove", says="")
            self.assertFalse(self.run_dir.exists())

    def test_not_after_an_error(self):
        self.buffer(0)
        self.checkpoint.write_text("no directory")
        self.flush(
            "--remove", "--max-age=5000", status=1, says="cannot use the checkpoint directory"
        )
        self.assertTrue((self.run_dir / "snapshot/0/complete.json").exists())
        for path in (self.run_dir, *self.run_dir.rglob("*")):
            os.utime(path, (0, 0))  # its user may say so, and nobody believes it
        self.flush(
            "--remove", "--max-age=5000", status=1, says="cannot use the checkpoint directory"
        )
        self.assertTrue((self.run_dir / "snapshot/0/complete.json").exists())
        time.sleep(2.1)
        self.flush("--remove", "--max-age=1", status=1, says="; given up after 1 s")
        self.assertFalse(self.run_dir.exists())

    def test_what_can_never_be_flushed(self):
        """Nobody keeps the memory of the node with half a snapshot."""
        TORN["another byte"][0](self.buffer(0, {"state.pt": b"newer"}))
        (self.run_dir / "large").write_bytes(b"x" * 1000)
        self.flush("--remove", "--max-age=5000", status=1, says="no snapshot can be used")
        self.assertFalse(self.run_dir.exists())

    def test_deep_trees(self):
        """A directory that lies deeper than a process has descriptors, and closed ones in
        between.
        """
        self.buffer(0)
        fds = [os.open(self.run_dir, os.O_RDONLY)]
        for n in range(3500):
            os.mkdir("d", dir_fd=fds[-1])
            fds.append(os.open("d", os.O_RDONLY, dir_fd=fds[-1]))
            if n % 99 == 0:
                with open(f"/proc/self/fd/{fds[-1]}/file", "w") as file:
                    file.write("x")
            if n % 70 == 0:
                os.fchmod(fds[-2], 0o500)
            os.close(fds.pop(0))
        self.flush("--remove", says="flushed")
        self.assertFalse(self.run_dir.exists())

    def test_its_agent_lives(self):
        self.buffer(0)
        with self.held("12") as holder:
            self.flush("--remove", says="nothing to flush: it is in use")
            self.assertTrue((self.run_dir / "snapshot/0/complete.json").exists())
            # One that was killed may take a moment to end.
            timer = threading.Timer(0.3, holder.kill)
            timer.start()
            self.flush("--remove", says="flushed")
            timer.join()
        self.assertFalse(self.run_dir.exists())

    def test_processes_that_are_left(self):
        def start(run_dir, **more):
            own = {"ELASTIC_JOB_ID": "12", "SLURM_JOB_ID": "12", "ELASTIC_RUN_DIR": run_dir}
            environment = {"X": "y" * 10000, **own, **more}
            process = subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            return process

        mine = [start(str(self.run_dir)), start(str(self.run_dir), A="z" * 4090)]
        # A worker on a node that has joined: the run directory is that of another job.
        mine.append(start(str(self.run_dir), ELASTIC_JOB_ID="7", SLURM_JOB_ID="7"))
        others = [start(f"{self.run_dir}{end}") for end in ("x", "/", "-ib")]
        others.append(
            start("", X_ELASTIC_RUN_DIR=str(self.run_dir), N=f"\nELASTIC_RUN_DIR={self.run_dir}")
        )
        # Jobs that a worker has submitted, which have its environment beside their own.
        others += [start(str(self.run_dir), SLURM_JOB_ID=job) for job in ("13", "1", "")]
        others.append(start(str(self.run_dir), ELASTIC_JOB_ID="", SLURM_JOB_ID=""))
        self.buffer(0)
        self.flush("--remove", says="flushed")
        self.assertEqual([each.poll() for each in mine], [None] * 3)
        self.run_dir.mkdir(0o700)
        self.flush("--remove", "--kill", says="nothing to flush")
        self.assertEqual([each.wait(timeout=280) for each in mine], [-signal.SIGKILL] * 3)
        self.assertEqual([each.poll() for each in others], [None] * len(others))

    def test_out_of_time_and_old(self):
        self.buffer(0)
        fd = os.open(self.run_dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.flush(
            "--remove", "--keep-time=1", "--max-age=5000", status=3, says="out of time after 1 s"
        )
        self.assertTrue(self.run_dir.exists())
        time.sleep(1.1)
        self.flush(
            "--remove", "--keep-time=1", "--max-age=1", status=3, says="; given up after 1 s"
        )
        self.assertFalse(self.run_dir.exists())

    def test_sweep(self):
        self.buffer(0)
        self.flush("--sweep", says="nothing to flush: it is in use")
        for option in ("--sweep", "--remove", "--kill"):
            with self.held("12"):
                self.flush("--remove", option, says="nothing to flush: it is in use")
                self.assertEqual(self.names(), [])
        self.flush("--sweep", says="flushed")
        self.assertFalse(self.run_dir.exists())
        self.assertEqual(self.names(), [".flushed-12.0.3.1-n1"])

    def test_sweep_is_not_held_up(self):
        kinds = (
            os.mkfifo,
            os.mkdir,
            lambda path: path.symlink_to("/dev/zero"),
            listen,
            lambda path: None,
        )
        for make in kinds:
            make(self.run_dir / "agent.lock")
            self.flush("--sweep", "--max-age=5000", says="it is in use")
            if make is not kinds[-1]:
                os.rename(self.run_dir / "agent.lock", self.directory / f"moved-{time.monotonic()}")
        # What no agent has used belongs to nobody after a while.
        for make in kinds:
            self.run_dir.mkdir(0o700, exist_ok=True)
            make(self.run_dir / "agent.lock")
            (self.run_dir / "large").write_bytes(b"x")
            time.sleep(2.1)
            self.flush(
                "--sweep", "--max-age=1", says="nothing to flush: there is no complete snapshot"
            )
            self.assertFalse(self.run_dir.exists())

    def cannot_flush(self, job, size):
        """Make a run directory with a snapshot of that size, which cannot be saved, and more."""
        self.run_dir = self.directory / f"elastic-{os.getuid()}-{job}.0-n1"
        self.run_dir.mkdir(0o700)
        self.lock()
        (self.directory / "file").touch()
        self.buffer(0, {"state.pt": b"o" * 9000}, step=1)
        self.buffer(1, {"state.pt": b"s" * size}, checkpoint="/dev/null/x", step=2)
        (self.run_dir / "snapshot/1/more").write_bytes(b"x" * 9000)
        (self.run_dir / "snapshot/2").mkdir()
        (self.run_dir / "more/deep").mkdir(parents=True)
        (self.run_dir / "agent.lock").write_bytes(b"x" * 9000)
        return self.run_dir

    def test_what_cannot_be_flushed_stays_alone(self):
        path = self.cannot_flush(13, 5000)
        keep = f"--keep-bytes={3 * PAGE}"
        self.flush("--remove", keep, status=1, says="not flushed: snapshot/1")
        left = sorted(str(one.relative_to(path)) for one in path.rglob("*"))
        self.assertEqual(
            left,
            [
                "agent.lock",
                "snapshot",
                "snapshot/1",
                "snapshot/1/complete.json",
                "snapshot/1/state.pt",
            ],
        )
        self.assertEqual((path / "agent.lock").stat().st_size, 0)
        # It stays the same with the next try.
        self.flush("--sweep", keep, status=1, says="not flushed: snapshot/1")
        self.assertEqual(len(list(path.rglob("*"))), 5)

    def test_what_stays_has_a_lock_so_that_a_sweep_counts_it(self):
        path = self.cannot_flush(13, 1)
        for make in (os.unlink, lambda path: (os.unlink(path), os.mkfifo(path))):
            make(path / "agent.lock")
            self.flush("--remove", f"--keep-bytes={2 * PAGE}", status=1, says="not flushed")
            self.assertTrue(stat.S_ISREG((path / "agent.lock").stat().st_mode))
        self.flush("--sweep", "--keep-bytes=0", status=1, says="given up: 0 bytes")
        self.assertFalse(path.exists())

    def test_a_user_keeps_no_more_than_is_allowed(self):
        # The file and the manifest take a page each, however small they are.
        paths = [self.cannot_flush(job, 1) for job in (13, 14, 15)]
        done = subprocess.run(
            [str(FLUSH), "--sweep", f"--keep-bytes={5 * PAGE}", *map(str, paths)],
            stderr=subprocess.PIPE,
            timeout=280,
        )
        lines = done.stderr.decode().splitlines()
        self.assertEqual([path.exists() for path in paths], [True, True, False])
        self.assertEqual(len(lines), 3)
        self.assertIn(f"given up: {PAGE} bytes more may be kept", lines[2])
        self.run_dir = paths[0]
        self.flush("--sweep", "--keep-bytes=0", status=1, says="given up: 0 bytes")
        self.assertFalse(paths[0].exists())

    def test_a_user_keeps_no_more_directories_than_are_allowed(self):
        paths = [self.cannot_flush(job, 1) for job in (13, 14, 15)]
        done = subprocess.run(
            [str(FLUSH), "--sweep", "--keep-runs=2", *map(str, paths)],
            stderr=subprocess.PIPE,
            timeout=280,
        )
        self.assertEqual([path.exists() for path in paths], [True, True, False])
        self.assertIn(b"given up: no more directories", done.stderr.splitlines()[2])

    def later(self, seconds):
        """The environment in which it is so much later."""
        source = self.directory / "later.c"
        source.write_text(
            "#include <sys/time.h>\n#include <time.h>\n"
            "time_t time(time_t *at) { struct timeval now; gettimeofday(&now, NULL);"
            f" now.tv_sec += {seconds}; if (at) *at = now.tv_sec; return now.tv_sec; }}\n"
        )
        library = self.directory / "later.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=280)
        return {**os.environ, "LD_PRELOAD": str(library)}

    def test_space_behind_the_end_of_a_file_counts(self):
        libc = ctypes.CDLL(None, use_errno=True)
        for name in ("state.pt", "complete.json"):
            path = self.cannot_flush(13, 1)
            with open(path / "snapshot/1" / name, "r+b") as file:
                kept = ctypes.c_int(1)  # FALLOC_FL_KEEP_SIZE
                length = ctypes.c_long(100 * PAGE)
                if libc.fallocate(file.fileno(), kept, ctypes.c_long(0), length) != 0:
                    self.skipTest(os.strerror(ctypes.get_errno()))
            keep = f"--keep-bytes={100 * PAGE}"
            self.flush("--remove", keep, status=1, says=f"given up: {100 * PAGE} bytes")
            self.assertFalse(path.exists())

    @contextlib.contextmanager
    def waiting(self, *options):
        """elastic-flush, and its process for the first directory, which waits for another one."""
        fd = os.open(self.run_dir, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [str(FLUSH), "--remove", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            pid = child_of(process)
            while not waits_for_lock(pid):
                time.sleep(0.01)
            yield process, pid
        finally:
            os.close(fd)
            process.kill()
            process.wait()
            process.stdout.close()

    def test_whoever_ends_what_reads_manifests_keeps_no_more_than_is_allowed(self):
        for number, says in ((signal.SIGKILL, b"killed"), (signal.SIGSTOP, b"stopped by another")):
            for pages in (0, 3):
                path = self.cannot_flush(13, 5000)
                with self.waiting(f"--keep-bytes={pages * PAGE}", str(path)) as (process, pid):
                    os.kill(pid, number)
                    said = process.communicate(timeout=280)[0]
                self.assertEqual(process.returncode, 1)
                self.assertIn(b"not flushed: its process was " + says, said)
                self.assertEqual(path.exists(), pages > 0)
            # What stays is the newest snapshot alone.
            self.assertEqual(len(list(path.rglob("*"))), 5)
            shutil.rmtree(path)

    def test_one_that_takes_all_its_time_takes_none_of_others(self):
        later = [self.cannot_flush(job, 1) for job in (14, 15)]
        first = self.cannot_flush(13, 1)
        options = ("--keep-time=6", f"--keep-bytes={3 * PAGE}")
        with self.waiting(*options, str(first), *map(str, later)) as (process, _):
            lines = process.communicate(timeout=280)[0].splitlines()
        self.assertIn(b"out of time after", lines[0])
        self.assertIn(b"not flushed: snapshot/1", lines[1])
        self.assertIn(b"given up: ", lines[1])
        self.assertEqual(len(lines), 3)
        # All are judged: the first stays, for others nothing is left.
        self.assertEqual([path.exists() for path in (first, *later)], [True, False, False])

    def test_without_a_lock_nothing_stays_for_long(self):
        self.flush("--sweep", "--max-age=50000", says="it is in use", env=self.later(700))
        self.buffer(0)
        self.flush("--sweep", "--max-age=50000", says="it is in use", env=self.later(500))
        self.flush("--sweep", "--max-age=50000", says="flushed", env=self.later(700))
        self.assertFalse(self.run_dir.exists())

    def is_locked(self, path):
        with open(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def test_background(self):
        self.buffer(0)
        lock = self.lock()
        fd = os.open(self.run_dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        command = [str(FLUSH), "--background", "--remove", "--keep-time=500", str(self.run_dir)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            self.assertEqual(process.wait(timeout=280), 0)
            self.assertEqual(self.names(), [])
            while not self.is_locked(lock):
                time.sleep(0.01)
            # Another waits for that one, and finds what it has left: nothing.
            with subprocess.Popen(
                [str(FLUSH), "--sweep", str(self.run_dir)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as other:
                fcntl.flock(fd, fcntl.LOCK_UN)
                said = other.communicate(timeout=280)[0]
            self.assertRegex(said, b"nothing to flush|flushed|dropped|cannot open")
            self.assertRegex(process.stdout.read() + said, b"flushed: snapshot/0")
        self.assertFalse(self.run_dir.exists())


class Options(Base):
    def test_help(self):
        done = subprocess.run([str(FLUSH), "--help"], stdout=subprocess.PIPE, timeout=280)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Usage: elastic-flush [OPTION]... RUN_DIR...\n", done.stdout)

    def test_wrong_usage(self):
        for options, says in (
            (["--limit=0"], "--limit=0"),
            (["--limit=1k"], "--limit=1k"),
            (["--limit=-1"], "--limit=-1"),
            (["--limit=99999999999999999999"], "--limit=999"),
            (["--keep-time=0"], "--keep-time=0"),
            (["--keep-time=1.5"], "1 to 86400"),
            (["--keep-time=99999999"], "1 to 86400"),
            (["--max-age=0"], "1 to 8640000"),
            (["--colour"], "unknown option"),
            (["other"], "elastic-UID-JOB.RESTARTS-NODE"),
            (["--keep-bytes=-1"], "--keep-bytes=-1"),
            (["--keep-runs=-1"], "--keep-runs=-1"),
        ):
            with self.subTest(options):
                self.flush(*options, status=2, says=says)
        for name in ("elastic-0-12.0", "other", "elastic-0-12.0-n\n1", "/", "."):
            self.flush(status=2, says="elastic-UID-JOB.RESTARTS-NODE", run_dir=name)
        self.flush(status=1, says="No such file", run_dir=self.directory / "elastic-0-12.0-n9")

    def test_the_name_says_whose_it_is(self):
        other = self.directory / f"elastic-{os.getuid() + 1}-12.0-n1"
        other.mkdir()
        self.flush(status=1, says="not to that of its name", run_dir=other)

    def test_limit(self):
        self.buffer(0, {"a": b"x" * 60, "b": b"x" * 40}, step=1)
        self.buffer(1, {"a": b"x" * 61, "b": b"x" * 40}, step=2)
        self.flush("--limit=99", status=1, says="101 bytes, and 99 are allowed")
        self.flush("--limit=100", says="flushed: snapshot/0")
        self.flush("--limit=101", says="flushed: snapshot/1")


class Users(Base):
    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can be somebody else")
        self.directory.chmod(0o755)
        # The directory that it was built in may be root's only.
        self.program = shutil.copy(FLUSH, self.directory)
        self.run_dir = self.directory / f"elastic-{STRANGER}-12.0-n1"
        self.run_dir.mkdir(0o700)
        self.checkpoint.mkdir(0o700)
        os.chown(self.checkpoint, STRANGER, STRANGER)

    def give(self, owner):
        for path in (self.run_dir, *self.run_dir.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)

    @staticmethod
    def become_stranger():
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)

    def flush_as_stranger(self, **expected):
        return self.flush(executable=self.program, preexec_fn=self.become_stranger, **expected)

    def test_root_does_nothing_for_others(self):
        self.buffer(0)
        self.give(STRANGER)
        self.flush(status=1, says=f"belongs to uid {STRANGER}: run this as that user, not as uid 0")
        self.assertEqual(self.names(), [])
        self.flush_as_stranger(says="flushed")
        self.assertEqual(
            (self.checkpoint / ".flushed-12.0.3.1-n1/state.pt").stat().st_uid, STRANGER
        )

    def test_other_processes_of_the_user_cannot_trace_it(self):
        if b"__asan_init" in FLUSH.read_bytes():
            self.skipTest("the sanitizer has to trace it")
        self.buffer(0)
        self.give(STRANGER)
        fd = os.open(self.run_dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        command = [self.program, "--keep-time=500", str(self.run_dir)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, preexec_fn=self.become_stranger
        ) as process:
            self.addCleanup(process.kill)
            end = time.monotonic() + 250
            # What may be traced belongs to its user.
            while os.stat(f"/proc/{process.pid}/environ").st_uid != 0 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertIn(
                f"Uid:\t{STRANGER}\t", pathlib.Path(f"/proc/{process.pid}/status").read_text()
            )
            self.assertEqual(os.stat(f"/proc/{process.pid}/environ").st_uid, 0)
            fcntl.flock(fd, fcntl.LOCK_UN)
            self.assertIn(b"flushed", process.stdout.read())

    def test_nobody_does_it_for_root(self):
        self.buffer(0)
        self.run_dir.chmod(0o755)
        self.flush_as_stranger(status=1, says="belongs to uid 0")

    def test_files_of_others(self):
        for name in ("state.pt", "complete.json", ".", ".."):
            with self.subTest(name):
                path = self.buffer(0)
                self.give(STRANGER)
                path.chmod(0o755)
                os.chown(path / name, 0, 0)
                (path / name).chmod(0o755)
                self.flush_as_stranger(status=1, says=f"belongs to uid 0, not to uid {STRANGER}")
        self.assertEqual(self.names(), [])

    def test_a_checkpoint_directory_of_others(self):
        self.buffer(0)
        self.give(STRANGER)
        os.chown(self.checkpoint, 0, 0)
        self.flush_as_stranger(status=1, says="Permission denied")

    def test_full_disk(self):
        """On a file system of its own that only the children of this test see."""
        self.run_dir = self.directory / "elastic-0-12.0-n1"
        mount = f"mount -t tmpfs -o size=1m none {self.checkpoint}"
        if subprocess.run(
            ["unshare", "--mount", "sh", "-c", mount], stderr=subprocess.DEVNULL
        ).returncode:
            self.skipTest("no file system can be mounted here")
        self.buffer(0, {"small": b"x" * 1000, "large": b"x" * (2 << 20)})
        code = f'{mount} && "$@"; echo $? "$(ls -A {self.checkpoint})"'
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", code, "sh", str(FLUSH), str(self.run_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=280,
        )
        self.assertEqual(done.stdout, b"1 \n")
        self.assertIn(
            b"not flushed: snapshot/0 of 12.0, generation 3, step 1: cannot write in ", done.stderr
        )
        self.assertIn(b"No space left on device\n", done.stderr)


class Interrupted(Base):
    where = MEMORY

    def start(self, *options):
        return subprocess.Popen(
            [str(FLUSH), *options, str(self.run_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def temporaries(self):
        return [name for name in self.names() if name.startswith(".flushing-")]

    def stopped_while_it_writes(self, *options):
        """A process that was stopped in the middle, and the one that writes for it; a fast one may
        be through before.
        """
        for _ in range(500):
            shutil.rmtree(self.checkpoint, ignore_errors=True)
            process = self.start(*options)
            self.addCleanup(process.kill)
            while process.poll() is None:
                if self.temporaries():
                    # The parent first: it kills a child that is stopped.
                    process.send_signal(signal.SIGSTOP)
                    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                    child = self.stopped_child(process)
                    if child is not None:
                        return process, child
                    process.send_signal(signal.SIGCONT)
            process.communicate()
        self.fail("it is always through before it can be stopped")

    def stopped_child(self, process):
        """None: it is through."""
        names = self.temporaries()
        if process.poll() is not None or not names:
            return None
        child = int(names[0].rsplit("-", 1)[1])
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGSTOP)
            status = pathlib.Path(f"/proc/{child}/status")
            while (state := re.search("State:\t(.)", status.read_text())[1]) not in "TZX":
                time.sleep(0.001)
            if state == "T" and self.temporaries():
                return child
            os.kill(child, signal.SIGCONT)
        return None

    @staticmethod
    def go_on(process, child):
        os.kill(child, signal.SIGCONT)
        process.send_signal(signal.SIGCONT)

    def finish(self, process):
        out, err = process.communicate(timeout=280)
        return process.returncode, out, err

    def test_sigterm(self):
        self.buffer(0, {"state.pt": b"x" * LARGE})
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process, child = self.stopped_while_it_writes()
            process.send_signal(number)
            self.go_on(process, child)
            line = b"elastic-flush: ended by signal %d; nothing was flushed\n" % number
            self.assertEqual(self.finish(process), (1, b"", line))
            self.assertEqual(self.names(), [])

    def test_out_of_time(self):
        self.buffer(0, {"state.pt": b"x" * LARGE})
        process, child = self.stopped_while_it_writes("--keep-time=1")
        status = pathlib.Path(f"/proc/{child}/status")
        pending = 0
        while not pending & 1 << (signal.SIGALRM - 1):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            pending = int(fields["ShdPnd"], 16) | int(fields["SigPnd"], 16)
            time.sleep(0.01)
        self.go_on(process, child)
        line = b"elastic-flush: out of time after 1 s; nothing was flushed\n"
        self.assertEqual(self.finish(process), (3, b"", line))
        self.assertEqual(self.names(), [])

    def test_out_of_time_behind_another(self):
        self.buffer(0)
        fd = os.open(self.run_dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.flush("--keep-time=1", status=3, says="out of time after 1 s")
        self.assertEqual(self.names(), [])

    def test_two_at_once(self):
        self.buffer(0, {"state.pt": b"x" * (4 << 20)})
        for _ in range(5):
            done = [self.finish(each) for each in [self.start() for _ in range(4)]]
            self.assertEqual([status for status, _, _ in done], [0] * 4, done)
            said = sorted(out.split(b":")[0] for _, out, _ in done)
            self.assertEqual(said, [b"dropped"] * 3 + [b"flushed"])
            self.assertEqual(self.names(), [".flushed-12.0.3.1-n1"])
            shutil.rmtree(self.checkpoint)

    def test_file_size_limit(self):
        self.buffer(0, {"state.pt": b"x" * (2 << 20)})

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.flush(status=1, says="File too large", preexec_fn=limit)
        self.assertEqual(self.names(), [])

    def test_killed_at_random_moments(self):
        """What looks complete is; what was left goes with the next one."""
        set_subreaper(1)
        self.addCleanup(set_subreaper, 0)
        rng = random.Random(5)
        files = {"a": b"a" * (6 << 20), "b": b"b" * (2 << 20)}
        self.buffer(0, files)
        usual = float("inf")
        for _ in range(3):
            began = time.monotonic()
            self.flush()
            usual = min(usual, time.monotonic() - began)
            shutil.rmtree(self.checkpoint / ".flushed-12.0.3.1-n1")
        left = complete = 0
        for n in itertools.count():
            if (n >= 60 and left > 0) or n >= 600:
                break
            shutil.rmtree(self.checkpoint / ".flushed-12.0.3.1-n1", ignore_errors=True)
            process = self.start()
            time.sleep(rng.random() * usual)
            process.kill()
            self.finish(process)
            self.wait_for_orphans()
            left += len(self.temporaries())
            self.assertLessEqual(len(self.temporaries()), 1)
            if ".flushed-12.0.3.1-n1" in self.names():
                complete += 1
                self.assert_flushed(".flushed-12.0.3.1-n1", files)
        self.assertGreater(left, 0, "it was never killed while it wrote")
        shutil.rmtree(self.checkpoint / ".flushed-12.0.3.1-n1", ignore_errors=True)
        self.flush(says="flushed")
        self.assertEqual(self.names(), [".flushed-12.0.3.1-n1"])

    @staticmethod
    def wait_for_orphans():
        """What has been killed leaves a process, which the kernel kills."""
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)

    def meanwhile(self, change):
        """Flush again and again while somebody changes the newest buffer: what is flushed is what
        one of the manifests says.
        """
        older, newer = {"state.pt": b"o" * 1000}, {"state.pt": b"n" * (3 << 20)}
        self.buffer(0, older, step=1)
        path = self.buffer(1, newer, step=2)
        through = threading.Event()
        changes = 0

        def changing():
            nonlocal changes
            while not through.is_set():
                change(path)
                changes += 1

        thread = threading.Thread(target=changing)
        thread.start()
        try:
            for n in itertools.count():
                if n >= 40 and changes >= 40:
                    break
                self.flush(says="flushed")
                (name,) = self.names()
                self.assert_flushed(name, older if name == ".flushed-12.0.3.1-n1" else newer)
                shutil.rmtree(self.checkpoint)
        finally:
            through.set()
            thread.join()

    def test_growing_and_shrinking(self):
        def change(path):
            os.truncate(path / "state.pt", 4 << 20)
            os.truncate(path / "state.pt", 3 << 20)
            os.truncate(path / "state.pt", 2 << 20)
            (path / "state.pt").write_bytes(b"n" * (3 << 20))

        self.meanwhile(change)

    def test_content_changing(self):
        def change(path):
            with open(path / "state.pt", "r+b", buffering=0) as file:
                file.seek(1 << 20)
                file.write(b"X")
                file.seek(1 << 20)
                file.write(b"n")

        self.meanwhile(change)

    def test_exchanged(self):
        """The file with a link to a secret, its directory, and the manifest with one of other
        files.
        """
        libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
        secret = self.directory / "secret"
        secret.write_bytes(b"s" * (3 << 20))
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "state.pt").symlink_to(secret)
        (elsewhere / "complete.json").write_text("{}")

        def exchange(one, other):
            if libc.renameat2(-100, bytes(one), -100, bytes(other), 2) != 0:  # RENAME_EXCHANGE
                raise OSError(ctypes.get_errno(), "renameat2")

        def change(path):
            for name in ("state.pt", "complete.json", ""):
                exchange(path / name, elsewhere / name)
                exchange(path / name, elsewhere / name)

        self.meanwhile(change)


if __name__ == "__main__":
    tap.main()
