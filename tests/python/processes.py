# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes of one training, each of which runs the same code with PyTorch."""

import os
import subprocess
import tempfile
import threading
import time
import unittest

import preloaded
import tap


def have_fully_shard():
    if not tap.HAS_TORCH:
        return False
    from slurm_elastic import _torch_compat

    return _torch_compat.can_shard()


needs_sharding = unittest.skipUnless(have_fully_shard(), "no fully_shard() for the host")


def run(test, code, count, *arguments):
    """What each says. It gets its number, a directory of all, and the arguments."""
    with tempfile.TemporaryDirectory() as directory:
        return run_in(test, directory, code, count, *arguments)


def run_in(test, directory, code, count, *arguments):
    """The same in that directory."""
    directory = str(directory)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment["ELASTIC_CHECKPOINT_DIR"] = os.path.join(directory, "checkpoint")
    processes = [
        preloaded.Worker(
            ["-c", code, str(each), directory, *map(str, arguments)],
            environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in range(count)
    ]
    said = [""] * count

    def read(number):
        said[number] = processes[number].stderr.read()

    readers = [threading.Thread(target=read, args=(each,), daemon=True) for each in range(count)]
    for each in readers:
        each.start()
    try:
        failed = wait_for_all(processes, time.monotonic() + 280)
    finally:
        for each in processes:
            each.kill()
            each.wait()
    for each in readers:
        each.join(10)
    for each in processes:
        each.stderr.close()
    if failed is not None:
        code = processes[failed].returncode
        test.fail(f"process {failed} has ended with {code}: {said[failed][-3000:]}")
    return said


def wait_for_all(processes, limit):
    """Until all have ended well. Else the number of the first one that has not: the others may wait
    for it."""
    while True:
        codes = [each.poll() for each in processes]
        for number, code in enumerate(codes):
            if code or (code is None and time.monotonic() > limit):
                return number
        if None not in codes:
            return None
        time.sleep(0.01)
