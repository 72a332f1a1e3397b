# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes of one training, each of which runs the same code with PyTorch."""

import os
import subprocess
import tempfile
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
        try:
            said = [each.communicate(timeout=280)[1] for each in processes]
        finally:
            for each in processes:
                if each.poll() is None:
                    each.kill()
                each.wait()
                each.stderr.close()
        for number, (process, text) in enumerate(zip(processes, said)):
            test.assertEqual(process.returncode, 0, f"process {number}: {text[-3000:]}")
        return said
