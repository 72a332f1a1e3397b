# SPDX-License-Identifier: GPL-2.0-or-later
"""Stands in for elasticrun in tests: starts workers of one world after the other, with event
pages.
"""

import contextlib
import ctypes
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import preloaded

HOLD_BYTE = 7  # of the word at WORD: bit 63 is its highest
WORD, RUN_TO, STATE, TOLD, KIND, AGENT = 16, 24, 32, 36, 40, 44
DEADLINE, NODES, STEPD, REASON = 48, 56, 60, 64
GATE, PLACE, WAITS, PROGRESS = 256, 260, 264, 268
SIZE, NEXT, NEXT_FILE, TORN, OWN = 316, 340, 344, 416, 440
SYS_FUTEX, FUTEX_WAKE = 202, 1  # of x86-64
VALID = 1 << 63
GROW, SHRINK, FAULT, STOP = 1, 2, 3, 4


class Page:
    """A worker's event page (client/event_page.h)."""

    def __init__(self, path, generation=0):
        self.path = path
        self.generation = generation
        with open(path, "wb") as file:
            file.truncate(4096)
        os.chmod(path, 0o600)
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 4096)
        self._map[0:8] = b"ELASTIC1"
        self.put("II", 8, 1, 4096)
        self.put("Q", WORD, generation << 40)
        self.put("I", AGENT, os.getpid())
        self.put("I", STEPD, os.getpid())

    def put(self, layout, offset, *values):
        struct.pack_into("=" + layout, self._map, offset, *values)

    def get(self, layout, offset):
        return struct.unpack_from("=" + layout, self._map, offset)[0]

    def hold(self, kind=GROW, reason="", nodes=0, deadline=None):
        """Set HOLD. Only the byte that has it is written, so that a step counted at the same moment
        is not lost."""
        self.put("I", KIND, kind)
        self.put("q", DEADLINE, int(deadline * 1000) if deadline else 0)
        self.put("I", NODES, nodes)
        self._map[REASON : REASON + 192] = reason.encode()[:191].ljust(192, b"\0")
        self._map[WORD + HOLD_BYTE] = self._map[WORD + HOLD_BYTE] | 0x80

    def run_to(self, step, generation=None):
        if generation is None:
            generation = self.generation
        self.put("Q", RUN_TO, VALID | generation << 40 | step)

    def tear(self):
        """A part of this world is lost."""
        self.put("I", TORN, 1)
        word = ctypes.c_uint32.from_buffer(self._map, TORN)
        ctypes.CDLL(None).syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAKE, 1)

    def name_next(self, page):
        """The worker goes on with this page, in the same directory."""
        name = os.path.basename(page.path).encode()
        self.put(f"{len(name) + 1}s", NEXT_FILE, name)
        self.put("I", NEXT, 1)  # nobody is woken: for those that come later

    @property
    def step(self):
        return self.get("Q", WORD) & ((1 << 40) - 1)

    @property
    def state(self):
        return self.get("I", STATE)

    def close_gate(self):
        self.put("I", GATE, 1)

    def open_gate(self):
        self.put("I", GATE, 0)  # nobody is woken: they look five times a second

    @property
    def place(self):
        """0 before the gate, 1 at it, 2 passed by a look at checkpoints, 3 by init()."""
        return self.get("I", PLACE)

    @property
    def waits(self):
        return self.get("I", WAITS) == 1

    @property
    def progress(self):
        """(done, total, unit) as last reported, None if nothing was."""
        number, done, total, unit = struct.unpack_from("=Iqq24s", self._map, PROGRESS)
        return (done, total, unit.rstrip(b"\0").decode()) if number else None

    @property
    def own_time(self):
        """(steps, microseconds) that the worker itself has needed."""
        return self.get("Q", OWN + 8), self.get("Q", OWN)

    @property
    def told(self):
        return self.get("I", TOLD) == 1

    def close(self):
        self._map.close()
        os.unlink(self.path)


def descendants(pid):
    """A process and all below it."""
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                found += descendants(int(child))
    return found


def free_port():
    """Below those that the kernel gives to clients: one of them could have it before the worker
    listens that shall.
    """
    for port in random.SystemRandom().sample(range(5000, 10000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


class World:
    """The workers of one generation, each with its page. `with` kills and reaps what is left."""

    def __init__(
        self,
        argv,
        size,
        generation=0,
        environment=None,
        checkpoint=None,
        gated=False,
        has_torch=False,
        **popen,
    ):
        """has_torch: workers have imported PyTorch already (preloaded.py)."""
        self.generation = generation
        self._directory = tempfile.TemporaryDirectory(prefix="elastic-world-")
        self.pages, self.workers = [], []
        port = free_port()
        for rank in range(size):
            page = Page(os.path.join(self._directory.name, f"worker-{rank}.event"), generation)
            env = {**os.environ, **(environment or {})}
            env.update(
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(size),
                LOCAL_WORLD_SIZE=str(size),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
                OMP_NUM_THREADS="1",
                ELASTIC_GENERATION=str(generation),
                ELASTIC_NODES=str(size),
                ELASTIC_EVENT_FILE=page.path,
            )
            if checkpoint:
                env["ELASTIC_CHECKPOINT_DIR"] = str(checkpoint)
            page.put("i", SIZE, size)
            if gated:
                page.close_gate()
            self.pages.append(page)
            if has_torch:
                worker = preloaded.Worker(argv, env, **popen)
            else:
                worker = subprocess.Popen([sys.executable, *argv], env=env, **popen)
            self.workers.append(worker)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            for pipe in (worker.stdout, worker.stderr):
                if pipe:
                    pipe.close()
        for page in self.pages:
            page.close()
        self._directory.cleanup()

    def _ended(self):
        return any(worker.poll() is not None for worker in self.workers)

    def wait_for_step(self, step, timeout=280):
        """Until the slowest worker is in that step, or one has ended. False if one has ended."""
        limit = time.monotonic() + timeout
        while min(page.step for page in self.pages) < step:
            if self._ended():
                return False
            if time.monotonic() > limit:
                raise TimeoutError(f"no step {step}: {[page.step for page in self.pages]}")
            time.sleep(0.002)
        return True

    def stop(self, **event):
        """Let all stop after the same step; returns its number."""
        for page in self.pages:
            page.hold(**event)
        time.sleep(0.005)  # until the stores are seen by all: the words no longer move then
        step = max(page.step for page in self.pages)
        for page in self.pages:
            page.run_to(step)
        return step

    def signal_as_slurm(self, number=signal.SIGTERM):
        """Signal every process of the step, as slurmstepd does. Returns the processes."""
        processes = [pid for worker in self.workers for pid in descendants(worker.pid)]
        for pid in processes:
            os.kill(pid, number)
        return processes

    def wait(self, timeout=280):
        """The exit statuses of all workers."""
        limit = time.monotonic() + timeout
        return [worker.wait(max(0.1, limit - time.monotonic())) for worker in self.workers]
