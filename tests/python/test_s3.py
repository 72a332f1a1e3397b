#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints on S3, with a `selastic` that keeps buckets in directories. A real server:
tests/system/s3.bats."""

import contextlib
import http.server
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
from unittest import mock

import fuse
import slurm_elastic
import tap
from slurm_elastic import _s3, checkpoint

STATE = pathlib.Path(os.environ.get("top_builddir", ".")) / "state" / "elastic-state"
# s3://bucket/p becomes $BUCKETS/bucket/p.
SELASTIC = """#!/bin/bash
set -- "${@//s3:\\/\\//$BUCKETS/}"
shift
exec "$STATE" "$@"
"""
URL = "s3://bucket/p"
WRITER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from slurm_elastic import _s3
with _s3.new_directory() as path:
    print(path, flush=True)
    time.sleep(600)
"""


EVIL = "a\u009b2J\u202eb"  # a control sequence of C1, and text from right to left


class Server(http.server.BaseHTTPRequestHandler):
    """Lists what it likes, whatever was asked for."""

    keys = ()
    token = ""  # of the next page
    asked = []

    def handle(self):
        with contextlib.suppress(ConnectionError):  # a client gives up in the midst of an answer
            super().handle()

    def log_message(self, *_):
        pass

    def answer(self):
        self.asked.append((self.command, self.path))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        listing = "".join(
            f"<Contents><Key>{urllib.parse.quote(key)}</Key><Size>1</Size></Contents>"
            for key in self.keys
        )
        if self.token:
            listing += "<IsTruncated>true</IsTruncated>"
            listing += f"<NextContinuationToken>{self.token}</NextContinuationToken>"
        text = f"<ListBucketResult>{listing}</ListBucketResult>".encode()
        self.send_response(200 if "list-type" in self.path or self.command != "GET" else 404)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_DELETE = answer


class HostileServer(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        Server.asked, Server.token = [], ""

    def states(self, *arguments, host="127.0.0.1"):
        return subprocess.run(
            [str(STATE), *arguments],
            env={
                "AWS_ENDPOINT_URL": f"http://{host}:{self.server.server_port}",
                "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )

    def test_a_server_without_encryption_is_noted(self):
        for host, noted in (("127.0.0.1", False), ("127.0.0.2", True)):
            done = self.states("list", "s3://bucket/p", "--tries=1", host=host)
            self.assertEqual(b"is not encrypted: whoever is on the way" in done.stderr, noted)

    def test_keys_that_were_not_asked_for_are_not_deleted(self):
        Server.keys = ("p/000001.partial", "p/000002/a", "q/of others")
        done = self.states("rm", "s3://bucket/p", "000001", "--force")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the server lists what was not asked for: q/of others", done.stderr)
        self.assertEqual([path for command, path in self.asked() if command == "DELETE"], [])
        # A server that is right at first, so that a state is chosen.
        Server.keys = ("p/000001.partial", "p/000002/a")
        done = self.states("rm", "s3://bucket/p", "000001", "--force")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"not asked for: p/000001.partial", done.stderr)
        deleted = {path for command, path in self.asked() if command == "DELETE"}
        self.assertEqual(deleted, {"/bucket/p/000001/complete.json"})

    def asked(self):
        return [(command, path.split("?")[0]) for command, path in Server.asked]

    def test_a_listing_without_an_end(self):
        Server.keys = [f"p/{n:06d}.partial" for n in range(1, 9001)]
        Server.token = "more"
        done = self.states("list", "s3://bucket/p")
        self.assertIn(b"the listing of s3 has more than 1000000 keys", done.stderr)
        self.assertEqual(len(Server.asked), 112)

    def test_a_listing_of_too_many_states(self):
        start = 0

        class Keys:
            def __iter__(self):
                nonlocal start
                start += 9000
                return (f"p/{n:06d}.partial" for n in range(start, start + 9000))

        Server.keys, Server.token = Keys(), "more"
        done = self.states("list", "s3://bucket/p")
        self.assertIn(b"there are more than 100000 states", done.stderr)

    def test_a_listing_ends_with_its_time(self):
        Server.keys, Server.token = (), "more"
        done = self.states("list", "s3://bucket/p", "--timeout=1")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"out of time", done.stderr)

    def test_what_a_server_says_does_not_steer_a_terminal(self):
        Server.keys = (EVIL,)
        done = self.states("list", "s3://bucket/p")
        self.assertIn(rb"not asked for: a??2J\xe2\x80\xaeb", done.stderr)
        self.assertTrue(done.stderr.decode().strip().isprintable())


class S3(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / "bin").mkdir()
        (self.top / "tmp").mkdir()
        program = self.top / "bin" / "selastic"
        program.write_text(SELASTIC)
        program.chmod(0o755)
        self.set(
            PATH=f"{self.top / 'bin'}:{os.environ['PATH']}",
            BUCKETS=str(self.top),
            STATE=str(STATE.absolute()),
        )
        patch = mock.patch.object(tempfile, "tempdir", str(self.top / "tmp"))
        patch.start()
        self.addCleanup(patch.stop)

    def set(self, **values):
        patch = mock.patch.dict(os.environ, values)
        patch.start()
        self.addCleanup(patch.stop)

    def states(self):
        return sorted(p.name for p in (self.top / "bucket" / "p").iterdir() if p.is_dir())

    def elastic(self, generation, step=None):
        """As in a job whose checkpoints are on S3; what is flushed lies in `flushed`."""
        self.set(
            ELASTIC_EVENT_FILE=str(self.top / "event"),
            ELASTIC_JOB_ID="12",
            SLURM_JOB_ID="12",
            ELASTIC_INCARNATION="12.0",
            ELASTIC_GENERATION=str(generation),
            ELASTIC_CHECKPOINT_DIR=str(self.top / "flushed"),
            ELASTIC_CHECKPOINT_URL=URL,
        )
        patch = mock.patch.object(checkpoint._events, "step", lambda: step)
        patch.start()
        self.addCleanup(patch.stop)
        for name in ("loading", "training"):
            patch = mock.patch.object(checkpoint._events, name, lambda: None)
            patch.start()
            self.addCleanup(patch.stop)

    def test_what_was_saved_is_loaded(self):
        self.assertIsNone(slurm_elastic.load_latest(URL))
        self.assertIsNone(slurm_elastic.latest_checkpoint(URL))
        for n in range(1, 5):
            path = slurm_elastic.save({"n": n}, URL, rank=0, keep=2)
            self.assertEqual(path, str(self.top / f"bucket/p/{n:06d}"))
            self.assertEqual(slurm_elastic.load_latest(URL), {"n": n})
        self.assertEqual(self.states(), ["000003", "000004", "current"])
        self.assertIsNone(slurm_elastic.save({}, URL, rank=1))

    def test_nothing_is_left_where_temporary_files_are_but_one_copy(self):
        slurm_elastic.save(1, URL, rank=0)
        slurm_elastic.load_latest(URL)
        slurm_elastic.save(2, URL, rank=0)
        slurm_elastic.load_latest(URL)
        (mine,) = (self.top / "tmp").iterdir()
        (copies,) = (path for path in mine.iterdir() if path.is_dir())
        self.assertEqual([p.name for p in copies.iterdir() if p.name != ".lock"], ["000002"])
        self.assertEqual(mine.stat().st_mode & 0o777, 0o700)

    def test_files_of_ones_own_and_a_writer_that_fails(self):
        with slurm_elastic.new_checkpoint(URL) as path:
            (path / "sub").mkdir()
            (path / "sub" / "model").write_text("x")
        with self.assertRaises(KeyError), slurm_elastic.new_checkpoint(URL) as path:
            (path / "half").write_text("x")
            raise KeyError("of the script")
        found = slurm_elastic.latest_checkpoint(URL)
        self.assertEqual((found / "sub" / "model").read_text(), "x")
        self.assertEqual(len(list((self.top / "tmp").glob("*/new-*"))), 0)

    def test_a_damaged_copy_is_made_again(self):
        slurm_elastic.save("x" * 1000, URL, rank=0)
        copy = slurm_elastic.latest_checkpoint(URL)
        data = bytearray((copy / "state.pickle").read_bytes())
        data[500] ^= 1
        (copy / "state.pickle").write_bytes(data)
        manifest = copy / "complete.json"
        os.utime(manifest, ns=(1, 1))  # for another process it is a manifest that it has not seen
        self.assertEqual(slurm_elastic.load_latest(URL), "x" * 1000)

    def test_faults_are_one_line_each(self):
        slurm_elastic.save(1, URL, rank=0)
        manifest = self.top / "bucket/p/000001/complete.json"
        manifest.write_text("{")
        with self.assertRaisesRegex(slurm_elastic.CheckpointError, "no complete state; 000001"):
            slurm_elastic.load_latest(URL)
        with self.assertRaisesRegex(ValueError, "a URL of S3 is text"):
            slurm_elastic.save(1, pathlib.Path(URL), rank=0)
        with mock.patch.dict(os.environ, PATH="/nonexistent"):
            with self.assertRaisesRegex(OSError, "not in PATH"):
                slurm_elastic.save(1, URL, rank=0)
            with self.assertRaisesRegex(slurm_elastic.CheckpointError, "not in PATH"):
                slurm_elastic.load_latest(URL)

    def test_a_taken_name_does_no_harm(self):
        usual = self.top / "tmp" / f"slurm-elastic-{os.geteuid()}"
        run = self.top / "run"
        run.mkdir(mode=0o700)
        link = self.top / "tmp" / f"{usual.name}-a"  # before the name of one's own
        link.symlink_to(self.top)
        for taken in (lambda: usual.mkdir(), lambda: usual.symlink_to(self.top), usual.touch):
            taken()
            if usual.is_dir() and not usual.is_symlink():
                usual.chmod(0o777)
            for environment in ({"ELASTIC_RUN_DIR": str(run)}, {}):
                with mock.patch.dict(os.environ, environment):
                    slurm_elastic.save(environment, URL, rank=0)
                    self.assertEqual(slurm_elastic.load_latest(URL), environment)
            # All processes of a node share one copy.
            (spare,) = set((self.top / "tmp").iterdir()) - {usual, link}
            self.assertEqual(spare.stat().st_mode & 0o777, 0o700)
            self.assertEqual(len(list(spare.glob("*/0*"))), 1)
            usual.rmdir() if usual.is_dir() and not usual.is_symlink() else usual.unlink()
        self.assertEqual(list(self.top.glob("new-*")), [])

    @unittest.skipUnless(fuse.is_there(), "FUSE cannot be mounted")
    def test_a_name_on_which_another_user_has_mounted_does_no_harm(self):
        usual = self.top / "tmp" / f"slurm-elastic-{os.geteuid()}"
        usual.mkdir()
        lies = {"others": True, "claims": os.geteuid(), "mode": 0o700}
        for n, options in enumerate(({}, lies)):
            mounted = fuse.Fuse(usual, 65534, **options)
            self.addCleanup(mounted.close)
            slurm_elastic.save(n, URL, rank=0)
            self.assertEqual(slurm_elastic.load_latest(URL), n)
            mounted.close()

    def test_what_a_killed_writer_has_left_is_removed(self):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(self.top / "tmp")],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
        )
        self.addCleanup(writer.kill)
        self.addCleanup(writer.stdout.close)
        theirs = pathlib.Path(writer.stdout.readline().decode().strip())
        slurm_elastic.save(1, URL, rank=0)
        self.assertTrue(theirs.is_dir())  # it lives
        writer.kill()
        writer.wait()
        slurm_elastic.save(2, URL, rank=0)
        self.assertEqual(list((self.top / "tmp").glob("*/new-*")), [])

    def test_what_others_have_left_is_removed_by_a_reader(self):
        slurm_elastic.save(1, URL, rank=0)
        slurm_elastic.load_latest(URL)
        (scratch,) = (self.top / "tmp").iterdir()
        (copies,) = (path for path in scratch.iterdir() if path.is_dir())
        left = [scratch / "new-killed", scratch / "old"]
        for path in [*left, scratch / "young"]:
            path.mkdir()
            (path / ("lock" if path == left[0] else ".lock")).touch()
        for path in (left[1], copies):
            os.utime(path / ".lock", (1, 1))
        self.assertEqual(slurm_elastic.load_latest(URL), 1)
        self.assertEqual([path for path in left if path.exists()], [])
        self.assertTrue((scratch / "young").is_dir())
        self.assertGreater((copies / ".lock").stat().st_mtime, 1)

    def test_a_note_is_passed_on_once(self):
        program = self.top / "bin" / "selastic"
        program.write_text("#!/bin/sh\necho 'elastic-state: note: it is open' >&2\nexit $CODE\n")
        for number, code in enumerate(("3", "1", "3")):
            self.set(CODE=code)
            with mock.patch.object(sys, "stderr", io.StringIO()) as said:
                if code == "3":
                    self.assertIsNone(slurm_elastic.latest_checkpoint(URL))
                else:
                    with self.assertRaisesRegex(slurm_elastic.CheckpointError, "status 1"):
                        slurm_elastic.latest_checkpoint(URL)
            self.assertEqual(said.getvalue().count("it is open"), int(number == 0))

    def test_names_do_not_steer_a_terminal(self):
        files = self.top / "files"
        files.mkdir()
        (files / EVIL).write_text("x")
        place = str(self.top / "place")

        def states(*arguments):
            return subprocess.run(
                [str(STATE), *arguments], stdout=subprocess.PIPE, check=True
            ).stdout.decode()

        states("push", place, str(files), f"--run={EVIL}")
        for arguments in (["list", place], ["show", place]):
            for locale in ("C.UTF-8", "C"):
                with mock.patch.dict(os.environ, LC_ALL=locale):
                    text = states(*arguments)
                    self.assertIn(r"a\xc2\x9b2J\xe2\x80\xaeb", text)
                    self.assertTrue(text.replace("\n", "").isprintable())
                    text = states(*arguments, "--json")
                    self.assertTrue(text.isascii())
                    self.assertIn(EVIL, json.dumps(json.loads(text), ensure_ascii=False))
        # Such names are files as any.
        states("pull", place, str(self.top / "copy"))
        self.assertEqual((self.top / "copy" / "000001" / EVIL).read_text(), "x")

    @unittest.skipIf(os.geteuid(), "only root can give a directory away")
    def test_root_leaves_a_state_of_another_user_whole(self):
        slurm_elastic.save(1, URL, rank=0)
        state = self.top / "bucket/p/000001"
        (self.top / "bucket/p/current").unlink()
        os.chown(state, 4711, 4711)
        done = subprocess.run(
            [str(STATE), "rm", str(state.parent), "000001"], stderr=subprocess.PIPE, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"000001: it belongs to uid 4711, not to uid 0", done.stderr)
        self.assertTrue((state / "complete.json").exists())

    def flush(self, n, generation, step):
        """As elasticrun does, from the memory of nodes."""
        with mock.patch.object(checkpoint._events, "step", lambda: step), mock.patch.dict(
            os.environ, ELASTIC_GENERATION=str(generation)
        ):
            slurm_elastic.save(n, self.top / "flushed", rank=0)

    def test_of_s3_and_what_was_flushed_the_newer_one_is_loaded(self):
        self.elastic(2, step=40)
        self.assertIsNone(slurm_elastic.load_latest())
        self.flush("flushed", 1, 30)
        self.assertEqual(slurm_elastic.load_latest(), "flushed")
        slurm_elastic.save("s3", rank=0)
        self.assertEqual(slurm_elastic.load_latest(), "s3")
        self.assertEqual([p.name for p in (self.top / "flushed").glob("0*")], [])
        self.flush("later", 2, 50)
        self.assertEqual(slurm_elastic.load_latest(), "later")
        self.assertEqual(slurm_elastic.load_latest(URL), "s3")

    def test_a_world_that_was_given_up_removes_nothing_newer(self):
        self.elastic(2, step=40)
        self.flush("newer", 3, 60)
        slurm_elastic.save("late", rank=0)
        self.assertEqual(slurm_elastic.load_latest(), "newer")

    def test_what_another_job_has_left_is_used_only_if_nothing_is_on_s3(self):
        self.elastic(1, step=1)
        with mock.patch.dict(os.environ, ELASTIC_INCARNATION="11.0"):
            self.flush("of another job", 9, 90)
        self.assertEqual(slurm_elastic.load_latest(), "of another job")
        with mock.patch.dict(os.environ, ELASTIC_INCARNATION="10.0"):
            slurm_elastic.save("s3", rank=0)
        self.assertEqual(slurm_elastic.load_latest(), "s3")

    def test_the_manifest_tells_who_wrote(self):
        self.elastic(3, step=7)
        slurm_elastic.save("x", rank=0)
        manifest = json.loads((self.top / "bucket/p/000001/complete.json").read_text())
        self.assertEqual(
            [manifest[key] for key in ("incarnation", "generation", "step")], ["12.0", 3, 7]
        )


if __name__ == "__main__":
    subprocess.run([str(STATE), "--help"], stdout=subprocess.DEVNULL, check=True)
    assert _s3.is_url(URL)
    tap.main()
