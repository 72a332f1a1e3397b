# SPDX-License-Identifier: GPL-2.0-or-later
"""The private Slurm that is measured on, and jobs in it as the ordinary user."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
TESTBED = TOP / "scripts" / "testbed"


class BenchError(Exception):
    """Something did not come about; the text says what."""


def wait_for(what, condition, limit):
    """Look ten times a second until condition() is true; BenchError after `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise BenchError(f"{what}: not within {limit:g} s")
        time.sleep(0.1)


def free_port():
    """A port that no client of this machine gets by chance, and that is free now."""
    for port in range(28999, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise BenchError("no free port between 28999 and 32000")


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Cluster:
    """A testbed with a directory `work` in which jobs run. Use as a context manager: it is taken
    down when that is left, and for that SIGTERM and SIGHUP become a KeyboardInterrupt, too.
    """

    def __init__(self, nodes, prefix, options=()):
        self._nodes, self._prefix, self._options = nodes, prefix, options
        self._home = None

    def __enter__(self):
        self._handlers = [signal.signal(number, signal.default_int_handler) for number in ENDING]
        self._home = Path(tempfile.mkdtemp(prefix="slurm-elastic-bench."))
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exception):
        self._stop()

    def _start(self):
        self._home.chmod(0o755)
        self.work = self._home / "work"
        self.work.mkdir()
        # In the realistic form nodes are kept to processors, of which this machine has too few.
        command = [TESTBED, "up", "--simple", "--nodes", str(self._nodes)]
        command += ["--dir", self._home / "testbed"]
        if self._prefix:
            command += ["--prefix", self._prefix]
        command += self._options
        up = subprocess.run(command, capture_output=True, text=True)
        if up.returncode:
            raise BenchError(up.stderr.strip() or up.stdout.strip())
        self._environment = self._read_environment()
        self.configuration = self._environment["SLURM_CONF"]
        self._account = pwd.getpwnam(self._environment["TESTBED_USER"])
        os.chown(self.work, self._account.pw_uid, self._account.pw_gid)
        # The log then names each node that has become free, to the millisecond.
        self.administer("scontrol", "setdebug", "debug2")

    def _read_environment(self):
        script = 'eval "$("$0" env --dir "$1")" && exec env -0'
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        answer = subprocess.run(
            ["bash", "-c", script, TESTBED, self._home / "testbed"],
            env=base,
            capture_output=True,
            check=True,
        )
        return dict(
            item.split("=", 1) for item in answer.stdout.decode().split("\0") if "=" in item
        )

    def _stop(self):
        # A second Ctrl-C must not leave half a cluster behind.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        try:
            if (self._home / "testbed").exists():
                subprocess.run(
                    [TESTBED, "down", "--dir", self._home / "testbed"], stdout=subprocess.DEVNULL
                )
            shutil.rmtree(self._home, ignore_errors=True)
        finally:
            for number, handler in zip(ENDING, self._handlers):
                signal.signal(number, handler)

    # ---- files -----------------------------------------------------------------------------------

    def directory(self, name):
        """A new directory of the ordinary user, with what the jobs of all peers run."""
        path = self.work / name
        path.mkdir()
        for source in (
            "train.py",
            "train_sharded.py",
            "train_torchft.py",
            "boundary.py",
            "torchft-node.sh",
            "torchrun-node.sh",
            "torchrun_keep_alive.py",
            "resubmit.sh",
        ):
            shutil.copy(TOP / "bench" / source, path)
        for entry in (path, *path.iterdir()):
            os.chown(entry, self._account.pw_uid, self._account.pw_gid)
        return path

    def controller_log(self):
        with open(self._home / "testbed" / "log" / "slurmctld.log", errors="replace") as file:
            return file.read().splitlines()

    # ---- Slurm, as the ordinary user -------------------------------------------------------------

    def _command(self, argv, cwd):
        account = self._account
        environment = {
            **self._environment,
            "HOME": account.pw_dir,
            "USER": account.pw_name,
            "LOGNAME": account.pw_name,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        identity = {}
        if os.getuid() == 0:
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd or self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **identity,
        )

    def start(self, *argv):
        """Start a command and go on; its process."""
        return self._command(argv, None)

    def run(self, *argv, cwd=None):
        """Run a command to its end; its output. BenchError if it fails."""
        process = self._command(argv, cwd)
        output, errors = process.communicate()
        if process.returncode:
            raise BenchError(f"{argv[0]}: {errors.strip() or process.returncode}")
        return output

    def run_at_once(self, *commands):
        """Run several commands side by side."""
        processes = [self._command(argv, None) for argv in commands]
        for argv, process in zip(commands, processes):
            _, errors = process.communicate()
            if process.returncode:
                raise BenchError(f"{argv[0]}: {errors.strip() or process.returncode}")

    def submit(self, directory, *arguments):
        """sbatch, for whole nodes; the job's id."""
        output = directory / "%j.out"
        answer = self.run(
            "sbatch", "--parsable", "--exclusive", f"--output={output}", *arguments, cwd=directory
        )
        return answer.strip()

    def administer(self, *argv):
        """Run a command of Slurm as its administrator."""
        answer = subprocess.run(
            [str(word) for word in argv], env=self._environment, capture_output=True, text=True
        )
        if answer.returncode:
            raise BenchError(f"{argv[0]}: {answer.stderr.strip() or answer.returncode}")

    def processes_on(self, node):
        """Of the steps of all jobs on one of its nodes: workers and who watches them, but not batch
        scripts.
        """
        found = []
        wanted = {f"SLURMD_NODENAME={node}", f"SLURM_CONF={self.configuration}"}
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                environment = set(path.read_bytes().decode(errors="replace").split("\0"))
            except OSError:
                continue  # it has ended, or is not ours
            if wanted <= environment and any(
                item.startswith("SLURM_STEP_ID=") for item in environment
            ):
                found.append(int(path.parent.name))
        return found

    def queue_is_empty(self):
        return not self.run("squeue", "--noheader", "--format=%A").strip()

    def cancel_all(self):
        """End all jobs and wait until the nodes are free."""
        self.run("scancel", f"--user={self._account.pw_name}", "--quiet")
        wait_for("the end of all jobs", self.queue_is_empty, 60)
