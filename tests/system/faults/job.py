# SPDX-License-Identifier: GPL-2.0-or-later
"""A job on the testbed that is trained while faults happen to it, and what must hold of it.

The environment names the testbed: TESTBED, TB_DIR, TB_WORK, TB_USER.
"""

import collections
import glob
import os
import re
import signal
import subprocess
import time

import live as undisturbed
import live_faults
from live_faults import newest, now
from training import SAVE_EVERY

GRACE = 8  # seconds
# Nodes of the base, which are also the fewest that train; and with the extensions.
BASE, MOST = 3, 5
# With so many as MAX, a training of MOST nodes gets extensions in place of two nodes of the base at
# once. Slurm still counts these, and job_submit/elastic lets no job have more than MAX.
ROOMY = MOST + BASE - 1

# The batch script. An srun that is killed ends the step, not the job. Slurm's mpi/pmix could not
# start the step again on a node that has crashed (doc/admin/faults.md).
AGAIN = """train() { %s; }
train
status=$?
for again in 1 2 3; do
    [ "$status" -eq 137 ] || break
    train
    status=$?
done
exit "$status"
"""


class Failed(Exception):
    """What was promised did not happen."""


def testbed(*words):
    subprocess.run(
        [os.environ["TESTBED"], words[0], "--dir", os.environ["TB_DIR"], *words[1:]],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def as_user(*words, **options):
    user = os.environ["TB_USER"]
    return subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--", *words],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        cwd=os.environ["TB_WORK"],
        # Where loaders that are killed leave something.
        env={**os.environ, "TMPDIR": os.environ["TB_WORK"]},
        **options,
    ).stdout.strip()


def slurm(*words):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def wait(limit, what, condition):
    """Slow machines get three times as long; what is promised is judged by what was measured."""
    until = now() + 3 * limit
    while now() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise Failed(f"not within {3 * limit:.0f} s: {what}")


def environment(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(
            each.split("=", 1)
            for each in file.read().decode(errors="replace").split("\0")
            if "=" in each
        )


def send(pids, name):
    for pid in pids:
        try:
            os.kill(pid, getattr(signal, "SIG" + name))
        except ProcessLookupError:
            pass


class TrainingJob:
    """A job that is trained, and all that can be done to it."""

    def __init__(self, mode, snapshots=False, roomy=False):
        work = os.environ["TB_WORK"]
        command = f"{'ELASTIC_DEBUG=1 ' if 'FAULTS_DEBUG' in os.environ else ''}{f'SNAPSHOT_EVERY={SAVE_EVERY} ' if snapshots else ''}srun --mpi=none elasticrun --max-restarts=1000 --checkpoint-dir={work}/disk/$SLURM_JOB_ID"
        command += f" /usr/bin/python3 {work}/training.py train {mode} {work}/log-$SLURM_JOB_ID 0.1"
        options = [
            f"--elastic={BASE}:{ROOMY if roomy else MOST}",
            "--elastic-grow-delay=0",
            "--elastic-fault-wait=30",
            "--elastic-hang-wait=5",
            f"--elastic-grace={GRACE}",
        ]
        self.mode, self.is_roomy = mode, roomy
        self.job = as_user(
            "sbatch",
            "--parsable",
            *options,
            f"-N{BASE}",
            "--exclusive",
            "-t60",
            f"--output={work}/%j.out",
            "--open-mode=append",
            "--wrap",
            AGAIN % command,
        )
        self.log, self.output, self.checkpoints = (
            f"{work}/log-{self.job}",
            f"{work}/{self.job}.out",
            f"{work}/disk/{self.job}",
        )
        self.lost = 0  # nodes of the base, for good
        self.kept = 0  # of these: they still are the job's for Slurm, and count for its MAX
        self.away = []  # what brings these back, if that has not been tried: when the job has ended
        if roomy:
            wait(60, "the first step", lambda: newest(self.log)[1] > 0)
            self.resize(MOST)
        self.settle()

    def resize(self, size):
        as_user("selastic", "resize", self.job, str(size))

    def settle(self):
        """Until all are there that can be, and have made some steps."""
        # An extension takes the place of a lost node of the base. At MAX, Slurm allows that once it
        # has called the node down, after SlurmdTimeout (120 s); a roomy job is not at MAX.
        size = MOST - self.kept
        wait(30 if self.is_roomy else 130, f"{size} nodes", lambda: newest(self.log)[2] == size)
        generation, step, _ = newest(self.log)
        wait(
            20,
            "steps",
            lambda: (
                (newest(self.log)[0] == generation and newest(self.log)[1] > step + 3)
                or newest(self.log)[0] > generation
            ),
        )
        if newest(self.log)[0] != generation or newest(self.log)[2] != size:
            self.settle()

    def member(self, where):
        """The last of its kind, None without any."""
        kinds = collections.defaultdict(list)
        for each in live_faults.alive(self.log):
            of_base = each.of_job(self.job)
            kinds[
                "extension"
                if not of_base
                else "leader"
                if environment(each.agent)["SLURM_PROCID"] == "0"
                else "base"
            ].append(each)
        return kinds[where][-1] if kinds[where] else None

    def wait_for_step(self, row, before):
        """Until a step counts that none had made before. Returns when."""
        generation, step, _ = before
        last = None  # of that world, which has gone on after `before`

        def made():
            nonlocal last
            found = newest(self.log)
            if row.expected == "undisturbed":
                return found[1] > step
            if (
                row.expected == "requeues"
                and found[0] // live_faults.REQUEUED == generation // live_faults.REQUEUED
            ):
                return False
            if found[0] > generation and last is None:
                last = max(
                    line["step"]
                    for lines in undisturbed.read(self.log).values()
                    for line in lines
                    if "state" in line and line["generation"] <= generation
                )
            return found[0] > generation and found[1] > last

        wait(max(20, row.seconds), "a step after it", made)
        when = now()
        if row.expected == "undisturbed" and newest(self.log)[0] != generation:
            raise Failed("there is a new world")
        return when

    def repeated(self, generation):
        """Steps begun before that world was torn, and again after it."""
        before, after = set(), set()
        for lines in undisturbed.read(self.log).values():
            for line in lines:
                if "share" in line:
                    (before if line["generation"] <= generation else after).add(line["step"])
        return len(before & after)

    def pause(self, begin, end):
        """The longest time between two steps that none had made before, of which the later was made
        from begin to end.
        """
        first = {}
        for lines in undisturbed.read(self.log).values():
            for line in lines:
                if "state" in line:
                    first[line["step"]] = min(line["time"], first.get(line["step"], line["time"]))
        newest_step, times = -1, []
        for when, step in sorted((when, step) for step, when in first.items()):
            if step > newest_step:
                newest_step = step
                times.append(when)
        return max(
            (later - earlier for earlier, later in zip(times, times[1:]) if begin <= later <= end),
            default=0.0,
        )

    def suffer(self, row, fault):
        """The longest pause from its begin until training goes on, and the steps that were made
        twice.
        """
        self.settle()
        member, self.before = self.member(row.where), newest(self.log)
        self.hit = now()  # which a fault may put off
        undo = fault(self, row, member) or (lambda: None)
        try:
            end = self.wait_for_step(row, self.before)
        finally:
            undo()
        return self.pause(self.hit, end), self.repeated(self.before[0])

    def end(self):
        """What must hold of the whole of it; lines about what does not."""
        self.settle()
        open(self.log + ".enough", "w").close()
        wait(40, "the end of the training", lambda: self.state() != "RUNNING")
        self.repair()  # Slurm waits for a lost batch node, or until it takes it for down
        wait(40, "the end of the job", lambda: self.state() != "COMPLETING")
        wrong = [] if self.state() == "COMPLETED" else [f"the job ends as {self.state()}"]
        wrong += live_faults.differences(self.log, 1e-10)[0]
        wrong += [f"{path} is left" for path in glob.glob(self.checkpoints + "/.new-*")]
        if glob.glob(self.checkpoints + "/*"):
            try:
                as_user(
                    "/usr/bin/python3",
                    os.environ["TB_WORK"] + "/training.py",
                    "load",
                    self.checkpoints,
                )
            except subprocess.CalledProcessError:
                wrong.append("the checkpoint directory does not load")
        return wrong + self.remains()

    def repair(self):
        while self.away:
            testbed(*self.away.pop())

    def state(self):
        return re.search(r"JobState=(\S+)", slurm("scontrol", "-o", "show", "job", self.job))[1]

    def remains(self):
        """Jobs, processes and files that should have gone with it: at once, or when Slurm has run
        the epilogs. On a node that had crashed it finds a minute or two later that there is nothing
        to wait for.
        """
        limit = now() + 150
        while True:
            left = [
                f"job {line}"
                for line in slurm("squeue", "-h", "-o", "%A %k %T").splitlines()
                if f"elastic-extension-of={self.job}." in line
            ]
            for path in glob.glob("/proc/[0-9]*"):
                try:
                    values = environment(os.path.basename(path))
                except OSError:
                    continue
                if (
                    values.get("ELASTIC_JOB_ID") == self.job
                    and values.get("SLURM_CONF") == os.environ["SLURM_CONF"]
                ):
                    left.append(
                        f"process {os.path.basename(path)} on {values.get('SLURMD_NODENAME')}"
                    )
            left += glob.glob(f"{os.environ['TB_DIR']}/snapshots/elastic-*-{self.job}.*")
            if not left or now() > limit:
                return left
            time.sleep(0.5)

    def last_words(self):
        """What elasticrun has said of late."""
        try:
            with open(self.output) as file:
                lines = [
                    line
                    for line in file.read().splitlines()
                    if line.startswith(("elasticrun:", "srun:"))
                ]
            return " | ".join(lines[-12:])
        except OSError:
            return "no output"

    def has_said(self, pattern):
        """How often."""
        with open(self.output, errors="replace") as file:
            return len(re.findall(pattern, file.read()))

    def cancel(self):
        slurm("scancel", self.job)
        self.repair()
        wait(60, "the job to end", lambda: self.state() not in ("RUNNING", "COMPLETING", "PENDING"))
