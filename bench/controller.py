# SPDX-License-Identifier: GPL-2.0-or-later
"""A private Slurm whose slurmctld is looked at: restarted, in another configuration, under
valgrind.
"""

import os
import re
import subprocess
from pathlib import Path

from cluster import TESTBED, BenchError, Cluster


class Controlled(Cluster):
    _under = ()

    def testbed(self, command):
        """`stop-controller`, `start-controller`, …"""
        done = subprocess.run(
            [TESTBED, command, "--dir", self._home / "testbed"],
            capture_output=True,
            text=True,
            env={**os.environ, "ELASTIC_SLURMCTLD_UNDER": " ".join(self._under)},
        )
        if done.returncode:
            raise BenchError(done.stderr.strip() or done.stdout.strip())

    def run_under(self, *command):
        """From the next start on."""
        self._under = [str(word) for word in command]

    def process(self):
        """slurmctld's, below /proc."""
        status = subprocess.run(
            [TESTBED, "status", "--dir", self._home / "testbed"], capture_output=True, text=True
        ).stdout
        return Path("/proc") / re.search(r"^slurmctld +(\d+)", status, flags=re.M)[1]

    def memory(self):
        """Resident, of slurmctld, in kB."""
        return int(re.search(r"VmRSS:\s*(\d+)", (self.process() / "status").read_text())[1])
