#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program of a job with roles asks and says."""

import json
import os
import socket
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import tap
from roles_api import RolesApi
from slurm_elastic import _listeners, roles
from stranger import Stranger

ENVIRONMENT = {
    "ELASTIC_ROLE": "web-shop",
    "ELASTIC_REPLICA": "web-shop-12",
    "ELASTIC_REPLICA_INDEX": "12",
    "ELASTIC_TASK": "3",
    "ELASTIC_TASKS": "4",
    "ELASTIC_START": "77",
    "ELASTIC_PORT": "20001",
    "ELASTIC_PORT_HTTP": "20001",
    "ELASTIC_PORT_DATA_IN": "20002",
}


def replica(role, index, tasks=1):
    return {
        "role": role,
        "name": f"{role}-{index}",
        "tasks": [
            {"task": i, "node": f"n{i}", "address": f"10.0.0.{i}", "ports": {"http": 2000 + i}}
            for i in range(tasks)
        ],
    }


class Roles(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        changed = mock.patch.dict(os.environ, {"ELASTIC_STATE_DIR": directory.name})
        changed.start()
        self.addCleanup(changed.stop)

    def write(self, *replicas):
        (self.dir / "new").write_text(json.dumps({"epoch": 1, "replicas": replicas}))
        (self.dir / "new").rename(self.dir / "endpoints.json")

    def test_me(self):
        self.assertIsNone(roles.me())
        with mock.patch.dict(os.environ, ENVIRONMENT):
            me = roles.me()
        ports = {"http": 20001, "data-in": 20002}
        self.assertEqual(me, roles.Task("web-shop", "web-shop-12", 12, 3, 4, 77, ports))

    def test_ready(self):
        roles.ready()  # nobody looks
        path = self.dir / "ready"
        with mock.patch.dict(os.environ, {"ELASTIC_READY_FILE": str(path)}):
            roles.ready()
            roles.ready()
        self.assertTrue(path.exists())

    def test_endpoints(self):
        self.assertEqual(roles.endpoints(), [])
        self.write(replica("server", 0), replica("pair", 0, 2), replica("server", 7))
        self.assertEqual([e.replica for e in roles.endpoints("server")], ["server-0", "server-7"])
        self.assertEqual(
            roles.endpoints("pair")[1],
            roles.Endpoint("pair", "pair-0", 1, "n1", "10.0.0.1", {"http": 2001}),
        )
        self.assertEqual(len(roles.endpoints()), 4)
        self.assertEqual(roles.endpoints("none"), [])

    def test_wait(self):
        with self.assertRaisesRegex(TimeoutError, "0 of 1 replicas of server are ready"):
            roles.wait("server", timeout=0)
        self.write(replica("pair", 0, 2))
        with self.assertRaisesRegex(TimeoutError, "1 of 2 replicas of pair are ready"):
            roles.wait("pair", 2, timeout=0.3)
        later = threading.Timer(0.5, self.write, [replica("server", 0), replica("server", 1)])
        later.start()
        self.assertEqual(len(roles.wait("server", 2, timeout=280)), 2)
        later.join()


class Api(unittest.TestCase):
    def setUp(self):
        self.api = RolesApi()
        self.addCleanup(self.api.close)
        # A proxy of the site does not reach the loopback of this node.
        changed = mock.patch.dict(
            os.environ, {"ELASTIC_API": self.api.url, "http_proxy": "http://127.0.0.1:9"}
        )
        changed.start()
        self.addCleanup(changed.stop)

    def test_looks(self):
        self.api.put("worker", 3, "draining", 77)
        self.api.put("worker", 4, "wanted", 0)
        self.assertEqual([role.name for role in roles.status()], ["worker", "program"])
        expected = roles.Role("worker", "replicas", 0, 2, 0, 12, False, "so many", "")
        self.assertEqual(roles.status("worker"), [expected])
        self.assertEqual(
            roles.replicas("worker"),
            [
                roles.Replica("worker", "worker-3", "draining", 77, "", ["n1"], ["127.0.0.1"]),
                roles.Replica("worker", "worker-4", "wanted", 0, "", [], []),
            ],
        )

    def test_changes(self):
        self.api.put("worker", 3, "ready", 77)
        self.assertEqual(roles.scale("worker", 5), "worker: 5 replicas")
        self.assertEqual(roles.fail("worker-3"), "worker-3 is replaced")
        roles.fail("worker-3", "it hangs")
        self.assertEqual(roles.remove("worker-3"), "worker-3 goes")
        self.assertEqual(
            self.api.asked,
            [
                'PATCH /v1/roles/worker {"replicas": 5}',
                "POST /v1/roles/worker/replicas/worker-3/failed {}",
                'POST /v1/roles/worker/replicas/worker-3/failed {"reason": "it hangs"}',
                "DELETE /v1/roles/worker/replicas/worker-3",
            ],
        )

    def test_reports(self):
        with mock.patch.dict(os.environ, ENVIRONMENT):
            number = roles.report("/scratch/b 7", size=4, loss=0.5, tags=["é"])
            self.assertEqual(number, 7)
        with mock.patch.dict(os.environ, {"ELASTIC_ROLE": "learner"}):
            roles.report("model")
        self.assertEqual(
            self.api.asked,
            [
                "POST /v1/roles/web-shop/replicas/web-shop-12/report "
                '{"path": "/scratch/b 7", "size": 4, "loss": 0.5, "tags": ["\\u00e9"]}',
                'POST /v1/roles/learner/replicas/learner/report {"path": "model"}',
            ],
        )
        with self.assertRaisesRegex(roles.RolesError, "this is no task of a job with roles"):
            roles.report("model")
        found = roles.reports()
        self.assertEqual(
            found,
            [
                roles.Report(5, 1.5, "worker", "worker-3", "/d", 4, {"loss": 0.5, "tags": ["x"]}),
                roles.Report(6, 1.5, "worker", "worker-3", "/e", None, {}),
            ],
        )
        self.assertEqual((found.missed, found.last), (4, 6))
        found = roles.reports(after=5)
        self.assertEqual(([each.number for each in found], found.missed, found.last), ([6], 0, 6))
        found = roles.reports(after=6)
        self.assertEqual((found, found.missed, found.last), ([], 0, 6))
        self.refused(409, "the last report has number 6, not 7", roles.reports, 7)

    def refused(self, status, message, function, *arguments):
        with self.assertRaisesRegex(roles.RolesError, message) as caught:
            function(*arguments)
        self.assertEqual(caught.exception.status, status)

    def test_refusals(self):
        self.refused(409, "^13 replicas of worker: allowed are 0 to 12$", roles.scale, "worker", 13)
        self.refused(404, "^there is no role 'none'$", roles.status, "none")
        self.refused(0, "^'worker' is not the name of a replica", roles.remove, "worker")
        self.api.broken = b"<html>"
        self.refused(404, "^HTTP status 404", roles.status, "none")
        self.refused(0, "^no answer of http://127.0.0.1", roles.status)
        self.api.broken = b"{}"
        self.refused(0, "^no answer of http://127.0.0.1", roles.status)
        with mock.patch.dict(os.environ, {"ELASTIC_API": "http://127.0.0.1:9"}):
            self.refused(0, "^no answer of http://127.0.0.1:9: ", roles.status)
        del os.environ["ELASTIC_API"]
        self.refused(0, "^there is no ELASTIC_API: .* needs `api: yes`", roles.status)

    def test_its_socket_comes_first(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "api")
            with mock.patch.dict(os.environ, {"ELASTIC_API_SOCKET": path}):
                self.assertEqual(roles.scale("worker", 4), "worker: 4 replicas")  # it is not there
                self.assertEqual(len(self.api.asked), 1)
                local = RolesApi(path)
                self.addCleanup(local.close)
                self.assertEqual(roles.scale("worker", 5), "worker: 5 replicas")
                self.refused(404, "^there is no role 'none'$", roles.status, "none")
        self.assertEqual(len(self.api.asked), 1)
        self.assertEqual(len(local.asked), 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_a_stranger_is_not_asked(self):
        stranger = Stranger()
        self.addCleanup(stranger.close)
        with mock.patch.dict(os.environ, {"ELASTIC_API": f"http://127.0.0.1:{stranger.port}"}):
            self.refused(0, "it is not of this user's job$", roles.scale, "worker", 5)
        self.assertEqual(stranger.close(), b"")


class Listeners(unittest.TestCase):
    def test_ours(self):
        for family, own, other, everywhere in [
            (socket.AF_INET, "127.0.0.1", "127.0.0.2", "0.0.0.0"),
            (socket.AF_INET6, "::1", "127.0.0.1", "::"),
        ]:
            with socket.create_server((own, 0), family=family) as server:
                port = server.getsockname()[1]
                self.assertTrue(_listeners.is_ours(own, port))
                self.assertIsNone(_listeners.is_ours(other, port))
            self.assertIsNone(_listeners.is_ours(own, port))
            with socket.create_server((everywhere, 0), family=family) as server:
                self.assertTrue(_listeners.is_ours(own, server.getsockname()[1]))
                self.assertTrue(_listeners.is_ours("127.0.0.1", server.getsockname()[1]))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_a_stranger(self):
        stranger = Stranger()
        self.addCleanup(stranger.close)
        self.assertIs(_listeners.is_ours("127.0.0.1", stranger.port), False)
        with socket.create_server(("127.0.0.2", stranger.port)):
            self.assertIs(_listeners.is_ours("127.0.0.2", stranger.port), True)
            self.assertIs(_listeners.is_ours("127.0.0.1", stranger.port), False)


if __name__ == "__main__":
    tap.main()
