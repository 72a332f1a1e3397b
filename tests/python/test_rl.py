#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""examples/rl: whom the coordinator listens to, and whose secret is believed."""

import importlib.util
import os
import socket
import sys
import tempfile
import threading
import unittest
from contextlib import suppress
from pathlib import Path
from unittest import mock

import tap

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES / "rl"))

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
needs_numpy = unittest.skipUnless(HAS_NUMPY, "there is no numpy")
if HAS_NUMPY:
    import cartpole
    import coordinator


@needs_numpy
class Secret(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        environment = {"ELASTIC_SHARED_DIR": directory.name, "SLURM_JOB_ID": "7"}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        self.path = Path(directory.name) / "secret-7"

    def test_each_start_of_the_coordinator_has_the_same(self):
        secret = cartpole.make_secret()
        self.assertEqual(len(secret), 32)
        self.assertEqual(cartpole.make_secret(), secret)
        self.assertEqual(cartpole.read_secret(), secret)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])

    def test_one_that_others_may_read_is_none(self):
        cartpole.make_secret()
        for mode in (0o644, 0o620):
            self.path.chmod(mode)
            self.assertRaises(PermissionError, cartpole.make_secret)
            self.assertRaises(PermissionError, cartpole.read_secret)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file away")
    def test_one_of_another_user_is_none(self):
        cartpole.make_secret()
        os.chown(self.path, 65534, 65534)
        self.assertRaises(PermissionError, cartpole.make_secret)
        self.assertRaises(PermissionError, cartpole.read_secret)

    def test_a_link_is_none(self):
        other = self.path.with_name("other")
        other.touch(0o600)
        self.path.symlink_to(other)
        self.assertRaises(OSError, cartpole.make_secret)
        self.assertRaises(OSError, cartpole.read_secret)


@needs_numpy
class Strangers(unittest.TestCase):
    def serve(self, atonce):
        training = coordinator.Training(8, 475)
        for name, value in (("training", training), ("secret", "right")):
            patch = mock.patch.object(coordinator.Handler, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        with mock.patch.object(coordinator, "ATONCE", atonce):
            server = coordinator.Server(("127.0.0.1", 0), coordinator.Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(training.end)
        self.addCleanup(server.shutdown)
        return server.server_address

    def connect(self, address):
        connection = socket.create_connection(address, 60)
        self.addCleanup(connection.close)
        return connection

    @staticmethod
    def answer(connection, secret, request="GET /batch?update=0"):
        """The status; "" if the connection is closed."""
        try:
            connection.sendall(
                f"{request} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n"
                f"Content-Length: {1 << 24}\r\n\r\n".encode()
            )
            return b" ".join(connection.recv(64).split()[1:2]).decode()
        except ConnectionError:
            return ""

    def test_what_a_stranger_sends_is_not_read(self):
        """Else this would wait for the rest of the request."""
        address = self.serve(8)
        connection = self.connect(address)
        connection.settimeout(5)
        self.assertEqual(self.answer(connection, "wrong", "POST /learned?update=0"), "401")

    def test_there_is_room_for_so_many_connections(self):
        address = self.serve(3)
        held = [self.connect(address) for _ in range(3)]
        self.assertEqual(self.answer(self.connect(address), "right"), "")
        held.pop().close()
        status = ""
        while status == "":
            status = self.answer(self.connect(address), "right")
        self.assertEqual(status, "409")  # no learner has come yet
        self.assertEqual(self.answer(held[0], "wrong"), "401")

    def test_who_is_slow_to_show_the_secret_keeps_no_place(self):
        """However often it sends something."""
        with mock.patch.object(coordinator.Server, "proof", 0.5):
            address = self.serve(3)
            held = [self.connect(address) for _ in range(3)]
            status = ""
            while status == "":
                for connection in held:
                    with suppress(OSError):
                        connection.sendall(b"x")
                status = self.answer(self.connect(address), "right")
        self.assertEqual(status, "409")


if __name__ == "__main__":
    tap.main()
