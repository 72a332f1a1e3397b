#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads in C++ that come back while the interpreter ends (slurm_elastic._left_behind)."""

import os
import subprocess
import sys
import tempfile
import unittest

import preloaded
import tap

# The interpreter begins to end, the thread comes back a second later, and then the interpreter goes
# on with its end. On a very slow machine the thread comes back before, which is no trouble. All
# that start such threads do so here.
PROGRAM = """
import builtins, datetime, pathlib, sys, threading, time
import torch.distributed as dist
from slurm_elastic import _events, _left_behind, _nccl, _snapshot

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(2)

builtins.last = Last()
def new_store():
    arguments = "127.0.0.1", 0, 1, True, datetime.timedelta(seconds=60), False
    try:
        return dist.TCPStore(*arguments, use_libuv=False)  # that of Debian 13 has none
    except TypeError:
        return dist.TCPStore(*arguments)

stores = [new_store() for _ in range(3)]  # one has a lock, which a thread that is halted keeps

def wait(*_):
    store = stores.pop()
    waits.release()
    try:
        store.wait(["never"], datetime.timedelta(seconds=1))
    except Exception:
        pass

waits = threading.Semaphore(0)
_left_behind.start(wait)
_snapshot._Writer._fill = _events.torn = wait
assert _snapshot._Writer(pathlib.Path("/nowhere")).write({"step": 1})
guard = _nccl.Guard()
for _ in range(3):
    waits.acquire()
sys.exit(7)
"""

# The last operation's tensor is freed by gloo's thread, for which it needs the interpreter. A
# snapshot that is being written is no reason to leave the groups as they are.
GROUPS = """
import sys, time
import torch, torch.distributed as dist
import slurm_elastic
from slurm_elastic import _left_behind

destroy = dist.destroy_process_group
dist.destroy_process_group = lambda: print("destroyed", flush=True) or destroy()
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
dist.all_reduce(torch.ones(3))
_left_behind.start_outside(time.sleep, 60)
if sys.argv[2] == "leave":
    slurm_elastic.leave(7)
sys.exit(7)
"""

# Something else refers to the group, as DDP's wrapper does. A thread of gloo still sums up, which
# takes it some tenths of a second, and needs the interpreter then.
KEPT = """
import builtins, sys, time
import torch, torch.distributed as dist
from slurm_elastic import _left_behind

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(2)

_left_behind.GROUPS = 250
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
builtins.last = Last(), dist.GroupMember.WORLD
torch.set_num_threads(1)
tensor = torch.sparse_coo_tensor(torch.randint(0, 10**6, (1, 10**6)), torch.ones(10**6))
work = dist.all_reduce(tensor, async_op=True)
work.get_future().then(lambda _: print("summed up", flush=True))
sys.exit(7)
"""


@tap.needs_torch
class LeftBehind(unittest.TestCase):
    def test_the_process_ends_with_its_own_status(self):
        worker = preloaded.Worker(["-c", PROGRAM], dict(os.environ))
        self.assertEqual(worker.wait(280), 7)  # -6 with a thread of threading.Thread()

    def said(self, how, elastic=True, program=GROUPS):
        env = {**os.environ, "ELASTIC_EVENT_FILE": "/dev/null"} if elastic else os.environ
        with tempfile.TemporaryDirectory() as directory:
            argv = ["-c", program, f"{directory}/store", how]
            worker = preloaded.Worker(argv, dict(env), stdout=subprocess.PIPE, text=True)
            with worker.stdout:
                said, _ = worker.communicate(280)
        self.assertEqual(worker.returncode, 7)
        return said

    @unittest.skipIf(sys.version_info >= (3, 14), "no thread is ended while the interpreter ends")
    def test_groups_end_before_the_interpreter_does(self):
        self.assertEqual(self.said("exit"), "destroyed\n")

    @unittest.skipIf(sys.version_info >= (3, 14), "no thread is ended while the interpreter ends")
    def test_the_interpreter_ends_when_threads_of_gloo_rest(self):
        self.assertEqual(self.said("exit", program=KEPT), "summed up\n")

    def test_who_leaves_waits_for_nothing(self):
        self.assertEqual(self.said("leave"), "")

    def test_other_programs_are_left_alone(self):
        self.assertEqual(self.said("exit", elastic=False), "")


if __name__ == "__main__":
    tap.main()
