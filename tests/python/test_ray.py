#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoleProvider and RoleCluster, against a stand-in for the job, with Ray's own head."""

import importlib.util
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import fuse
import tap
from fake_agent import free_port
from roles_api import RolesApi
from slurm_elastic import _certificates
from stranger import Stranger

if importlib.util.find_spec("ray"):
    import ray
    from slurm_elastic import roles
    from slurm_elastic.ray import (
        RoleCluster,
        RoleProvider,
        _forget_after,
        _private,
        _read,
        _worker_options,
        _write,
    )

WITHIN = 250  # seconds for what Ray does by itself


@unittest.skipUnless(importlib.util.find_spec("ray"), "ray is not installed")
class Ray(unittest.TestCase):
    def setUp(self):
        self.api = RolesApi()
        self.addCleanup(self.api.close)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        changed = mock.patch.dict(
            os.environ,
            {
                "ELASTIC_API": self.api.url,
                "ELASTIC_ROLE": "program",
                "ELASTIC_REPLICA": "program-0",
                "ELASTIC_START": "1",
                "ELASTIC_SHARED_DIR": directory.name,
                "ELASTIC_READY_FILE": str(self.dir / "ready"),
                "ELASTIC_PORT_HEAD": str(free_port()),
            },
        )
        changed.start()
        self.addCleanup(changed.stop)

    def test_the_directory_of_a_worker_is_its_users(self):
        private = self.dir / "private"
        for _ in range(2):
            self.assertEqual(_private(str(private)), str(private))
            self.assertEqual(stat.S_IMODE(private.stat().st_mode), 0o700)
        os.symlink("private", self.dir / "link")
        os.mkdir(self.dir / "open")
        os.chmod(self.dir / "open", 0o755)
        with mock.patch.object(tempfile, "tempdir", str(self.dir)):
            for name in ("link", "open"):
                own = Path(_private(str(self.dir / name)))
                self.assertNotEqual(own, self.dir / name)
                self.assertEqual(stat.S_IMODE(own.lstat().st_mode), 0o700)
                told = {"address": "a", "has": {"CPU": 1, "GPU": 0}, "object_store_memory": None}
                told.update(own_address="b", directory=own)
                self.assertIn(f"--temp-dir={own}/r", _worker_options(told))

    def provider(self):
        told = self.dir / "ray-worker.json"
        told.touch()
        config = {"role": "worker", "head": "program-0/1", "head_type": "program", "told": told}
        return RoleProvider(config, "worker")

    def test_nodes(self):
        for index, state in enumerate(["ready", "starting", "wanted", "draining", "failed"]):
            self.api.put("worker", index, state, 10 + index)
        provider = self.provider()
        nodes = provider.non_terminated_nodes({})
        self.assertEqual(
            nodes,
            [
                "program-0/1",
                "worker-0/10",
                "worker-1/11",
                "worker-2/12+",
                "worker-3/13",
                "worker-4/14+",
            ],
        )
        self.assertEqual(
            [provider.is_running(each) for each in nodes],
            [True, True, True, False, False, False],
        )
        self.assertEqual(provider.internal_ip("worker-0/10"), "127.0.0.1")
        self.assertIsNone(provider.internal_ip("worker-2/12+"))
        self.assertEqual(provider.non_terminated_nodes({"ray-node-type": "head"}), nodes[:1])
        # It is started anew: another node.
        self.api.put("worker", 0, "ready", 20)
        self.assertIn("worker-0/20", provider.non_terminated_nodes({}))
        self.assertTrue(provider.is_terminated("worker-0/10"))

    def test_create(self):
        self.api.put("worker", 0, "ready", 1)
        provider = self.provider()
        provider.create_node({}, {}, 3)
        self.assertEqual(self.api.asked, ['PATCH /v1/roles/worker {"replicas": 4}'])
        (self.dir / "ray-worker.json").unlink()
        with self.assertRaisesRegex(roles.RolesError, "the cluster is closing"):
            provider.create_node({}, {}, 1)
        (self.dir / "ray-worker.json").touch()
        with self.assertRaisesRegex(roles.RolesError, "13 replicas of worker: allowed"):
            provider.create_node({}, {}, 12)

    def test_terminate(self):
        self.api.put("worker", 0, "ready", 1)
        self.api.put("worker", 1, "wanted", 2)
        self.api.put("worker", 2, "draining", 3)
        provider = self.provider()
        provider.non_terminated_nodes({})
        # Slurm takes it, it is another start by now, or it has gone: the role keeps its size.
        for node in ["worker-2/3", "worker-0/9", "worker-7/1"]:
            provider.terminate_node(node)
        self.assertEqual(self.api.asked, [])
        provider.terminate_nodes(["worker-0/1", "worker-1/2+"])
        self.assertEqual(
            self.api.asked,
            [
                "DELETE /v1/roles/worker/replicas/worker-0",
                "DELETE /v1/roles/worker/replicas/worker-1",
            ],
        )

    def test_refused(self):
        for name, text in [("ELASTIC_SHARED_DIR", "no `shared`"), ("ELASTIC_PORT_HEAD", "`head`")]:
            with mock.patch.dict(os.environ, {name: ""}):
                with self.assertRaisesRegex(roles.RolesError, text):
                    RoleCluster()
        with self.assertRaisesRegex(roles.RolesError, "no role 'none'"):
            RoleCluster("none")
        self.assertFalse((self.dir / "ready").exists())

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_a_stranger_at_the_heads_port(self):
        stranger = Stranger()
        self.addCleanup(stranger.close)
        (self.dir / "ray-worker.json").write_text("of a head that was killed")
        with mock.patch.dict(os.environ, {"ELASTIC_PORT_HEAD": str(stranger.port)}):
            with self.assertRaisesRegex(
                roles.RolesError, f"a program of another user listens on port {stranger.port}"
            ):
                RoleCluster(object_store_memory=80 << 20)
            token = os.environ["RAY_AUTH_TOKEN"]
        self.assertNotIn(token.encode(), stranger.close())
        self.assertFalse((self.dir / "ray-worker.json").exists())
        self.assertFalse((self.dir / "ready").exists())

    def test_what_the_head_tells_is_its_users(self):
        told = str(self.dir / "ray-worker.json")
        previous = os.umask(0)
        self.addCleanup(os.umask, previous)
        part = f"{told}.{os.getpid()}"
        with open(part, "w+", encoding="utf-8") as planted:
            _write(told, {"token": "secret"})
            self.assertEqual(planted.read(), "")
        self.assertFalse(os.path.exists(part))
        self.assertEqual(os.stat(told).st_mode & 0o777, 0o600)
        self.assertEqual(_read(told), {"token": "secret"})
        os.symlink(told, told + ".link")
        with self.assertRaisesRegex(roles.RolesError, "is another user's"):
            _read(told + ".link")
        os.chmod(told, 0o640)
        with self.assertRaisesRegex(roles.RolesError, "others can read it"):
            _read(told)
        if os.geteuid() == 0:
            os.chmod(told, 0o600)
            os.chown(told, 65534, 65534)
            with self.assertRaisesRegex(roles.RolesError, "is another user's"):
                _read(told)

    def test_what_others_put_where_the_head_tells(self):
        """In a directory in which they may write."""
        told = self.dir / "ray-worker.json"
        os.mkfifo(told, 0o600)
        with self.assertRaisesRegex(roles.RolesError, "is another user's"):
            _read(str(told))
        told.unlink()
        told.mkdir()
        with self.assertRaisesRegex(roles.RolesError, f"{told} cannot be removed"):
            RoleCluster()

    @unittest.skipUnless(fuse.is_there(), "FUSE cannot be mounted")
    def test_a_directory_on_which_another_user_has_mounted(self):
        taken = self.dir / "taken"
        taken.mkdir()
        lies = {"others": True, "claims": os.geteuid(), "mode": 0o700}
        with mock.patch.object(tempfile, "tempdir", str(self.dir)):
            for options in ({}, lies):
                mounted = fuse.Fuse(taken, 65534, **options)
                self.addCleanup(mounted.close)
                self.assertNotEqual(_private(str(taken)), str(taken))
                mounted.close()

    def test_tasks_that_wait(self):
        told = self.dir / "ray-worker.json"
        with RoleCluster(object_store_memory=80 << 20) as cluster:
            self.assertTrue((self.dir / "ready").exists())
            self.assertEqual(json.loads(told.read_text())["address"], cluster.address)
            self.assertEqual(stat.S_IMODE(told.stat().st_mode), 0o600)
            # Ray lets all users write into its own: nobody else gets there.
            private = Path(json.loads(told.read_text())["directory"])
            self.assertEqual(stat.S_IMODE(private.stat().st_mode), 0o700)
            self.assertTrue(list((private / "r").glob("session_*")))
            self.no_stranger_gets_in(cluster.address, json.loads(told.read_text())["authority"])
            ray.init(address=cluster.address, log_to_driver=False)
            self.addCleanup(ray.shutdown)
            remote = ray.remote(num_cpus=1)(lambda number: number)
            waiting = [remote.remote(number) for number in range(4)]
            end = time.monotonic() + WITHIN
            while not self.api.asked and time.monotonic() < end:
                time.sleep(0.1)
            self.assertEqual(self.api.asked, ['PATCH /v1/roles/worker {"replicas": 4}'])
            del waiting
            ray.shutdown()
            changed = mock.patch.object(self.api, "answer", self.worker_that_leaves(cluster))
            changed.start()
            self.addCleanup(changed.stop)
        self.assertEqual(self.api.asked[1:], ['PATCH /v1/roles/worker {"replicas": 0}'])
        self.assertEqual(self.with_head, [True, True])
        self.assertFalse(told.exists())
        self.assertFalse(private.exists())
        self.assertNotIn("RAY_USE_TLS", os.environ)

    def worker_that_leaves(self, cluster):
        """An answer of the job: there is one, which is there until it has been seen to drain.

        with_head: whether the head was there each time that somebody asked after the role shrank.
        """
        answer = self.api.answer
        self.with_head = []
        self.api.put("worker", 0, "ready", 1)

        def answer_and_drain(method, path, body):
            found = answer(method, path, body)
            if method == "PATCH":
                self.api.put("worker", 0, "draining", 1)
            elif path == "/v1/roles/worker/replicas" and len(self.api.asked) > 1:
                self.with_head.append(cluster._process.poll() is None)
                self.api.put("worker", 0, None, 1)
            return found

        return answer_and_drain

    def no_stranger_gets_in(self, address, authority):
        """Who has no certificate of the cluster hears nothing of the head."""
        found = {}
        for name, signer in [("none", None), ("another", None), ("right", authority)]:
            for directory in ("authority", "member"):
                (self.dir / name / directory).mkdir(parents=True)
            context = ssl.create_default_context(cadata=authority["crt"])
            context.set_alpn_protocols(["h2"])
            if name != "none":
                made = _certificates.make_authority(str(self.dir / name / "authority"))
                _certificates.make_member(str(self.dir / name / "member"), signer or made, ["a"])
                own = self.dir / name / "member" / "own"
                context.load_cert_chain(own.with_suffix(".crt"), own.with_suffix(".key"))
            host, _, port = address.partition(":")
            with socket.create_connection((host, int(port)), timeout=WITHIN) as plain:
                with context.wrap_socket(plain, server_hostname=host) as one:
                    try:
                        found[name] = one.recv(1) != b""
                    except OSError:
                        found[name] = False
        self.assertEqual(found, {"none": False, "another": False, "right": True})

    def test_a_worker_says_nothing_to_a_stranger(self):
        """Who listens at the port of a head that has ended has no certificate of its cluster."""
        for name in ("authority", "another", "stranger"):
            (self.dir / name).mkdir()
        another = _certificates.make_authority(str(self.dir / "another"))
        with socket.create_server(("", 0)) as stranger:
            told = {
                "address": f"127.0.0.1:{stranger.getsockname()[1]}",
                "token": "secret",
                "authority": _certificates.make_authority(str(self.dir / "authority")),
                "has": {"CPU": 1, "GPU": 0},
                "object_store_memory": 80 << 20,
                "directory": str(self.dir / "private"),
            }
            _write(str(self.dir / "ray-worker.json"), told)
            worker = subprocess.Popen(
                [sys.executable, "-m", "slurm_elastic.ray"],
                env={**os.environ, "ELASTIC_ROLE": "worker", "ELASTIC_REPLICA": "worker-0"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.addCleanup(worker.wait)
            self.addCleanup(os.killpg, worker.pid, signal.SIGKILL)
            stranger.settimeout(WITHIN)
            with stranger.accept()[0] as one:
                one.settimeout(WITHIN)
                where = self.dir / "stranger"
                _certificates.make_member(str(where), another, [one.getsockname()[0]])
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.set_alpn_protocols(["h2"])
                context.load_cert_chain(where / "own.crt", where / "own.key")
                # A handshake (22) of TLS, version 3, which it breaks off.
                self.assertEqual(one.recv(2, socket.MSG_PEEK), bytes([22, 3]))
                with self.assertRaises(OSError):
                    context.wrap_socket(one, server_side=True)

    def test_what_the_head_tells_ends_with_it(self):
        told = self.dir / "ray-worker.json"
        told.touch()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as head:
            watch = _forget_after(head, str(told))
            self.assertTrue(told.exists())
            head.stdin.close()
            watch.join()
        self.assertFalse(told.exists())


if __name__ == "__main__":
    tap.main()
