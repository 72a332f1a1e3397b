#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What another user can do to the rendezvous of a training in PyTorch's own store: all that
doc/admin/others.md says. If this fails, PyTorch asks who connects, and that page is too strict.
"""

import os
import unittest
from datetime import timedelta

import fake_agent
import tap

NOBODY = 65534


def as_nobody(work):
    """What work() prints as another user, as one line."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(writer, 1)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            print(work(), flush=True)
        except Exception as error:
            print(type(error).__name__, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read().strip()
    os.waitpid(child, 0)
    return said


def tcp_store(dist, port, **arguments):
    arguments["timeout"] = timedelta(seconds=250)
    try:
        return dist.TCPStore("127.0.0.1", port, use_libuv=False, **arguments)  # Debian's has none
    except TypeError:
        return dist.TCPStore("127.0.0.1", port, **arguments)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
class Rendezvous(unittest.TestCase):
    @tap.needs_torch
    def test_tcp_store_believes_everybody(self):
        import torch.distributed as dist

        reader, writer = os.pipe()

        def work():
            port = int(os.read(reader, 16))
            store = tcp_store(dist, port, is_master=False)
            found = store.get("secret").decode()
            store.set("where", "at mine")
            return found

        port = fake_agent.free_port()
        pid = os.fork()
        if pid == 0:
            store = tcp_store(dist, port, is_master=True, wait_for_workers=False)
            store.set("secret", "of rank 0")
            os.write(writer, str(port).encode())
            os._exit(0 if store.get("where") == b"at mine" else 1)
        self.assertEqual(as_nobody(work), "of rank 0")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


if __name__ == "__main__":
    tap.main()
