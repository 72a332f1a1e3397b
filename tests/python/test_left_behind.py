#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads in C++ that come back while the interpreter ends (slurm_elastic._left_behind)."""

import os
import subprocess
import sys
import unittest

import tap

# The interpreter begins to end, the thread comes back a second later, and then the interpreter goes
# on with its end. On a very slow machine the thread comes back before, which is no trouble.
PROGRAM = """
import builtins, datetime, sys, threading, time
import torch.distributed as dist
from slurm_elastic import _left_behind

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(2)

builtins.last = Last()
arguments = "127.0.0.1", 0, 1, True, datetime.timedelta(seconds=60), False
try:
    store = dist.TCPStore(*arguments, use_libuv=False)  # that of Debian 13 has none
except TypeError:
    store = dist.TCPStore(*arguments)

def wait():
    waits.set()
    try:
        store.wait(["never"], datetime.timedelta(seconds=1))
    except Exception:
        pass

waits = threading.Event()
_left_behind.start(wait)
waits.wait()
sys.exit(7)
"""


@tap.needs_torch
class LeftBehind(unittest.TestCase):
    def test_the_process_ends_with_its_own_status(self):
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ, timeout=280)
        self.assertEqual(done.returncode, 7)  # -6 with a thread of threading.Thread()


if __name__ == "__main__":
    tap.main()
