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
    def testbed(self, command):
        """`stop-controller`, `start-controller`, …"""
        path = f"{self._home / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [TESTBED, command, "--dir", self._home / "testbed"],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": path},
        )
        if done.returncode:
            raise BenchError(done.stderr.strip() or done.stdout.strip())

    def run_under(self, *command):
        """From the next start on."""
        programs = self._home / "bin"
        programs.mkdir()
        # The testbed finds this slurmctld first.
        script = programs / "slurmctld"
        script.write_text(
            f'#!/bin/sh\nexec {" ".join(map(str, command))} /usr/sbin/slurmctld "$@"\n'
        )
        script.chmod(0o755)

    def process(self):
        """slurmctld's, below /proc."""
        status = subprocess.run(
            [TESTBED, "status", "--dir", self._home / "testbed"], capture_output=True, text=True
        ).stdout
        return Path("/proc") / re.search(r"^slurmctld +(\d+)", status, flags=re.M)[1]

    def memory(self):
        """Resident, of slurmctld, in kB."""
        return int(re.search(r"VmRSS:\s*(\d+)", (self.process() / "status").read_text())[1])
