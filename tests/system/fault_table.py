#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What follows each fault: a real training for each mode, which suffers one row of the table after
another.

    fault_table.py run DIR [--only PATTERN]... [--write FILE]
    fault_table.py train MODE LOGDIR STEP_SECONDS
    fault_table.py load CHECKPOINT_DIR

run: with a testbed of 7 nodes with namespaces, of whose directory and work directory the
environment tells (TB_DIR, TB_WORK, TB_USER). Uses live.py and live_faults.py, which must lie beside
it, in TB_WORK. Prints a line per row, TAP at the end of each; exit status 1 if a row failed.
--only: rows that contain PATTERN. --write: puts the rows that were run into the table between the
marks in FILE.

train: the training of live_faults.py in live mode; in restart mode the same, with a checkpoint
every SAVE_EVERY steps. A worker leaves too early when a file LOGDIR.exit-PID appears.
"""

import argparse
import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import live as undisturbed
import live_faults
from live_faults import newest, now

SAVE_EVERY = 10
GRACE = 8  # seconds
BASE, MOST = 3, 5  # nodes of the base, which are also the fewest that train, and with extensions

# fault, mode, node on which it happens, what follows, seconds and steps allowed. A fault on a node
# of the base that takes its agent loses the node for this training, so these come last.
TABLE = """
worker killed                       live     base       goes-on    5   1
worker killed                       live     extension  goes-on    5   1
worker killed                       live     leader     goes-on    5   1
worker stopped                      live     base       goes-on    8   1
worker stopped                      live     extension  goes-on    8   1
worker stopped                      live     leader     goes-on    8   1
worker exits with 0                 live     base       goes-on    5   1
worker exits with 0                 live     extension  goes-on    5   1
worker exits with 0                 live     leader     goes-on    5   1
worker hangs with its lock held     live     base       goes-on   20   1
worker hangs with its lock held     live     extension  goes-on   20   1
two workers killed                  live     base       goes-on    5   1
slurmctld down, worker killed       live     base       goes-on    5   1
slurmctld down, worker killed       live     extension  goes-on    5   1
slurmctld down 30 s                 live     base       undisturbed 5  0
node drained                        live     base       goes-on    5   0
node drained                        live     extension  goes-on    5   0
node drained                        live     leader     goes-on    5   0
agent killed                        live     extension  goes-on    5   1
slurmstepd killed                   live     extension  undisturbed 5  0
node crashed                        live     extension  goes-on    5   1
node cut off                        live     extension  goes-on    5   1
node stopped in its first step      live     extension  goes-on    5   1
node reclaimed                      live     extension  goes-on    5   0
worker killed, node crashed         live     extension  goes-on    5   1
agent killed                        live     base       goes-on    5   1
node crashed                        live     base       goes-on    5   1
crashed node comes back             live     base       undisturbed 5  0
node cut off                        live     base       goes-on    5   1
cut-off node comes back             live     base       goes-on   15   1
node reclaimed                      live     base       goes-on    5   0
node reclaimed                      live     leader     goes-on    5   0
slurmstepd killed                   live     base       undisturbed 5  0
memory for snapshots full           live     base       undisturbed 5  0
memory full, worker killed          live     base       goes-on    5   1
worker killed                       restart  base       goes-on   40  11
worker killed                       restart  extension  goes-on   40  11
worker killed                       restart  leader     goes-on   40  11
worker stopped                      restart  base       goes-on   60  11
worker stopped                      restart  extension  goes-on   60  11
worker stopped                      restart  leader     goes-on   60  11
worker exits with 0                 restart  base       goes-on   40  11
worker exits with 0                 restart  extension  goes-on   40  11
worker exits with 0                 restart  leader     goes-on   40  11
worker hangs with its lock held     restart  base       goes-on   60  11
worker hangs with its lock held     restart  extension  goes-on   60  11
two workers killed                  restart  base       goes-on   40  11
slurmctld down, worker killed       restart  base       goes-on   40  11
slurmctld down, worker killed       restart  extension  goes-on   40  11
slurmctld down 30 s                 restart  base       undisturbed 5  0
newest checkpoint has flipped bit   restart  base       goes-on   40  22
newest checkpoint is truncated      restart  base       goes-on   40  22
newest checkpoint lacks a file      restart  base       goes-on   40  22
its complete.json is empty          restart  base       goes-on   40  22
checkpoint takes longer than grace  restart  extension  goes-on   40  22
memory for snapshots full           restart  base       undisturbed 5  0
memory full, worker killed          restart  base       goes-on   40  11
disk of the checkpoints full        restart  base       goes-on   60  33
node drained                        restart  base       goes-on   40   1
node drained                        restart  extension  goes-on   40   1
node drained                        restart  leader     goes-on   40   1
agent killed                        restart  extension  goes-on   40  11
slurmstepd killed                   restart  extension  undisturbed 5  0
node crashed                        restart  extension  goes-on   40  11
node cut off                        restart  extension  goes-on   40  11
node reclaimed                      restart  extension  goes-on   40   1
worker killed, node crashed         restart  extension  goes-on   40  11
agent killed                        restart  base       goes-on   40  11
node crashed                        restart  base       goes-on   40  11
crashed node comes back             restart  base       undisturbed 5  0
node cut off                        restart  base       goes-on   40  11
cut-off node comes back             restart  base       goes-on   40   1
node reclaimed                      restart  base       goes-on   40   1
node reclaimed                      restart  leader     goes-on   40   1
slurmstepd killed                   restart  base       undisturbed 5  0
agent killed                        live     leader     goes-on   10   1
slurmstepd killed                   live     leader     undisturbed 5  0
srun killed                         live     leader     started-again 60 11
node crashed                        live     leader     goes-on   10   1
node cut off                        live     leader     goes-on   10   1
node crashed, soon back             live     leader     requeues 240   1
agent killed                        restart  leader     goes-on   60  11
slurmstepd killed                   restart  leader     undisturbed 5  0
srun killed                         restart  leader     started-again 60 11
node crashed                        restart  leader     goes-on   60  11
node cut off                        restart  leader     goes-on   60  11
node crashed, soon back             restart  leader     requeues 240  11
everything killed at once           live     all        requeues 240  11
everything killed at once           restart  all        requeues 240  11
"""

# The batch script. An srun that is killed ends the step, not the job.
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

MARKS = ("<!-- table of scripts/faults: begin -->", "<!-- table of scripts/faults: end -->")
Row = collections.namedtuple("Row", "fault mode where expected seconds steps")


def rows():
    for line in TABLE.strip().splitlines():
        fault, mode, where, expected, seconds, steps = re.match(
            r"(.*?)\s{2,}(\S+)\s+(\S+)\s+(\S+)\s+(\d+)\s+(\d+)$", line
        ).groups()
        yield Row(fault, mode, where, expected, float(seconds), int(steps))


class Failed(Exception):
    pass


# ---- training ------------------------------------------------------------------------------------


def train(mode, log_dir, seconds):
    undisturbed.import_torch()
    early = f"{log_dir}.exit-{os.getpid()}"

    def may_leave():
        if os.path.exists(early):
            os._exit(0)
        if os.path.exists(f"{log_dir}.hang-{os.getpid()}"):
            hang()

    def keep_snapshot(state):
        if state.steps % 5 == 0 and os.path.exists(log_dir + ".snapshots"):
            undisturbed.slurm_elastic.snapshot(state.state_dict())

    if mode == "live":
        live_faults.train(log_dir, seconds, each_step=may_leave, after_step=keep_snapshot)
    else:
        train_anew(log_dir, seconds, may_leave, keep_snapshot)


def hang():
    """In C, with the interpreter's lock."""
    import ctypes

    library = ctypes.PyDLL(None)
    while True:  # the signal for the stacks wakes it up
        library.sleep(1000)


def save_for_ever(torch, slurm_elastic, state):
    """Half of it is written."""
    with slurm_elastic.new_checkpoint() as path:
        torch.save(state, str(path / "state.pt"))
        os.truncate(path / "state.pt", os.path.getsize(path / "state.pt") // 2)
        time.sleep(1000)


def train_anew(log_dir, seconds, each_step, after_step):
    torch, slurm_elastic = undisturbed.torch, undisturbed.slurm_elastic
    os.makedirs(log_dir, exist_ok=True)
    torch.distributed.init_process_group("gloo")
    training = undisturbed.Training()
    state, sampler = training.state, training.sampler
    saved = slurm_elastic.load_latest()
    if saved is not None:
        state.load_state_dict(saved)
    state.ddp = torch.nn.parallel.DistributedDataParallel(state.model, broadcast_buffers=False)
    log = open(os.path.join(log_dir, str(os.getpid())), "a", buffering=1)

    def write(**line):
        log.write(
            json.dumps({"time": now(), "generation": live_faults.generation(), **line}) + "\n"
        )

    for epoch in range(sampler.epoch, 10**6):
        sampler.set_epoch(epoch)
        if sampler.committed == 0 and undisturbed.enough(log_dir):
            break
        for x, y, index in training.loaders[1]:
            each_step()
            if not os.path.exists(log_dir + ".enough"):
                time.sleep(seconds)
            share = index.tolist() if sampler.loss_scale() else []
            line = {
                "step": state.steps,
                "epoch": epoch,
                "rank": sampler.rank,
                "size": sampler.world_size,
            }
            write(**line, share=share)
            losses = training.gradients(x, y, parts=1)
            write(step=line["step"], loss=losses["float64"])
            state.losses += losses["float64"]
            try:
                state.step()
            except undisturbed.live.WorldChanged:
                write(step=line["step"], state=training.digest())
                if sampler.rank == 0 and os.path.exists(log_dir + ".slow"):
                    save_for_ever(torch, slurm_elastic, state.state_dict())
                slurm_elastic.save(state.state_dict())
                slurm_elastic.leave()
            write(step=line["step"], state=training.digest())
            after_step(state)
            if state.steps % SAVE_EVERY == 0:
                slurm_elastic.save(state.state_dict())
    if sampler.rank == 0:
        print(f"trained {state.steps} steps", flush=True)


# ---- the testbed ---------------------------------------------------------------------------------


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
        return dict(each.split("=", 1) for each in file.read().decode().split("\0") if "=" in each)


def send(pids, name):
    for pid in pids:
        try:
            os.kill(pid, getattr(signal, "SIG" + name))
        except ProcessLookupError:
            pass


class Training:
    """A job that is trained, and all that can be done to it."""

    def __init__(self, mode, snapshots=False):
        work = os.environ["TB_WORK"]
        command = f"{'ELASTIC_DEBUG=1 ' if 'FAULTS_DEBUG' in os.environ else ''}{f'SNAPSHOT_EVERY={SAVE_EVERY} ' if snapshots else ''}srun elasticrun --max-restarts=1000 --checkpoint-dir={work}/disk/$SLURM_JOB_ID"
        command += (
            f" /usr/bin/python3 {work}/fault_table.py train {mode} {work}/log-$SLURM_JOB_ID 0.1"
        )
        options = [
            f"--elastic={BASE}:{MOST}",
            "--elastic-grow-delay=0",
            "--elastic-fault-wait=30",
            "--elastic-hang-wait=5",
            f"--elastic-grace={GRACE}",
        ]
        self.mode = mode
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
        self.away = []  # what brings these back, if that has not been tried: when the job has ended
        self.settle()

    def settle(self):
        """Until all are there that can be, and have made some steps."""
        size = MOST  # an extension takes the place of a lost node of the base
        wait(60, f"{size} nodes", lambda: newest(self.log)[2] == size)
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

    def suffer(self, row):
        """The longest pause from its begin until training goes on, and the steps that were made
        twice.
        """
        self.settle()
        member, self.before = self.member(row.where), newest(self.log)
        self.hit = now()  # which a fault may put off
        undo = FAULTS[row.fault](self, row, member) or (lambda: None)
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
                    os.environ["TB_WORK"] + "/fault_table.py",
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


# ---- faults: each does it, and returns what undoes it --------------------------------------------


def node_of(member):
    return environment(member.agent)["SLURMD_NODENAME"]


def kill_worker(training, row, member):
    send([member.worker], "KILL")


def kill_two_workers(training, row, member):
    send([each.worker for each in live_faults.alive(training.log)[-2:]], "KILL")


def stop_worker(training, row, member):
    send([member.worker], "STOP")


def leave_early(training, row, member):
    open(f"{training.log}.exit-{member.worker}", "w").close()


def hang_worker(training, row, member):
    open(f"{training.log}.hang-{member.worker}", "w").close()


def lose_base(training, row):
    training.lost += row.where != "extension"


def kill_agent(training, row, member):
    send([member.agent], "KILL")


def name(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def kill_stepd(training, row, member):
    """Its agent goes on, and Slurm does not notice."""
    pid = member.agent
    while name(pid) != "slurmstepd":
        pid = live_faults.parent(pid)
    send([pid], "KILL")


def kill_srun(training, row, member):
    """The first of its two processes: the second one ends the step then."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        pid = os.path.basename(path)
        try:
            values = environment(pid) if name(pid) == "srun" else {}
            if (
                values.get("SLURM_JOB_ID") == training.job
                and values.get("SLURM_CONF") == os.environ["SLURM_CONF"]
            ):
                found += [int(pid)] if name(live_faults.parent(pid)) != "srun" else []
        except OSError:
            pass
    if len(found) != 1:
        raise Failed(f"{len(found)} sruns")
    send(found, "KILL")


def crash(training, row, member):
    node = node_of(member)
    testbed("crash", node)
    return comes_back(training, row, "boot", node)


def cut(training, row, member):
    node = node_of(member)
    testbed("cut", node)
    return comes_back(training, row, "mend", node)


def newer_world(training):
    """The newest step, if it is of a world after that of the step before the fault."""
    found = newest(training.log)
    return found if found[0] > training.before[0] else None


def stop_node(training, row, member):
    """When a rank has made a step in the world that its node has just joined: it may not have told
    the leader yet.
    """
    for size in (MOST - 1, MOST):
        resize(training, size)
        training.before = wait(60, f"{size} nodes", lambda: newer_world(training))
    member = wait(5, "its worker", lambda: training.member(row.where))
    send([member.agent, member.worker], "STOP")
    training.hit = now()
    return lambda: send([member.agent, member.worker], "CONT")


def resize(training, size):
    as_user("selastic", "resize", training.job, str(size))


def comes_back(training, row, *how):
    """A node of an extension at once, one of the base in a row of its own, or in the end."""
    if row.where == "extension":
        return lambda: testbed(*how)
    lose_base(training, row)
    training.away.append(how)
    return None


def bring_back(training, row, member):
    """Before Slurm has called it down. Is its agent still there it takes the place of an
    extension.
    """
    testbed(*training.away.pop())
    if row.expected == "undisturbed":
        time.sleep(30)  # in which nothing may happen; srun takes its time


def crash_and_boot(training, row, member):
    """Before Slurm has called it down: it finds that the batch script is gone, and requeues the
    job. Meanwhile the others go on.
    """
    begun, before = now(), newest(training.log)
    crash(training, row, member)
    wait(
        30,
        "a step without it",
        lambda: newest(training.log)[0] > before[0] and newest(training.log)[1] > before[1],
    )
    time.sleep(max(0, begun + 20 - now()))
    training.before = newest(training.log)
    testbed(*training.away.pop())
    training.hit = now()
    training.lost = 0  # it begins anew


def processes_of(training):
    """Of Slurm and of the user, on all nodes: what the job and its extensions have there, srun
    among them.
    """
    jobs = {training.job} | {
        environment(each.agent)["SLURM_JOB_ID"] for each in live_faults.alive(training.log)
    }
    found = set()
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(os.path.basename(path))
        try:
            values = environment(pid)
            if (
                values.get("SLURM_JOB_ID") not in jobs
                or values.get("SLURM_CONF") != os.environ["SLURM_CONF"]
            ):
                continue
            found.add(pid)
            above = live_faults.parent(pid)
            if name(above) == "slurmstepd":
                found.add(above)
        except (OSError, UnicodeDecodeError):
            pass
    return found


def kill_everything(training, row, member):
    """In one moment, so that nothing is left that could save anything. Slurm is asked to run it
    again, which it does two minutes later.
    """
    send(processes_of(training), "KILL")
    training.hit = now()
    wait(5, "the end of all", lambda: not live_faults.alive(training.log))
    as_user("scontrol", "requeue", training.job)


def crash_and_kill(training, row, member):
    victims = [each for each in live_faults.alive(training.log)[1:] if each.worker != member.worker]
    undo = crash(training, row, member)
    send([victims[0].worker], "KILL")
    return undo


def drain(training, row, member):
    node = node_of(member)
    slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def resume():
        # Refused while slurmctld has not heard of the node yet, and when it is no longer drained.
        subprocess.run(
            ["scontrol", "update", f"nodename={node}", "state=resume"], stderr=subprocess.DEVNULL
        )
        return "DRAIN" not in slurm("sinfo", "-h", "-n", node, "-o", "%T").upper()

    return lambda: wait(20, f"{node} to be resumed", resume)


def reclaim(training, row, member):
    notice = f"{os.environ['TB_WORK']}/reclaim.{node_of(member)}"
    lose_base(training, row)
    open(notice, "w").close()
    return lambda: os.unlink(notice)


def without_slurmctld(training, row, member):
    testbed("stop-controller")
    time.sleep(30 if row.expected == "undisturbed" else 2)  # how long it is away is what is tried
    if row.expected != "undisturbed":
        send([member.worker], "KILL")
    return lambda: testbed("start-controller")


def damage(training, row, member):
    """The newest checkpoint, when it has just been written."""
    link = training.checkpoints + "/latest"
    before = os.path.realpath(link)
    wait(20, "a checkpoint", lambda: os.path.realpath(link) != before)
    path = os.path.realpath(link)
    state, manifest = path + "/state.pt", path + "/complete.json"
    if "truncated" in row.fault:
        os.truncate(state, os.path.getsize(state) // 2)
    elif "lacks" in row.fault:
        os.unlink(state)
    elif "empty" in row.fault:
        os.truncate(manifest, 0)
    else:
        with open(state, "r+b") as file:
            file.seek(os.path.getsize(state) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
    send([member.worker], "KILL")
    said = (
        r"slurm_elastic: "
        + re.escape(path)
        + (
            r" is not complete: .*: using "
            if "flipped" not in row.fault
            else r" is corrupt: .*: using "
        )
    )
    return lambda: wait(5, "word of it", lambda: training.has_said(said))


def slow_checkpoint(training, row, member):
    """Slurm takes the node, as it does for a preemption, and the one that saves takes longer than
    there is time.
    """
    open(training.log + ".slow", "w").close()
    job = environment(member.agent)["SLURM_JOB_ID"]
    hit = now()
    slurm("scancel", job)
    wait(
        20, "the node to be left", lambda: job not in slurm("squeue", "-h", "-o", "%A").splitlines()
    )
    if now() - hit > GRACE:
        raise Failed(f"the node was left after {now() - hit:.1f} s, its grace time are {GRACE}")
    return lambda: os.unlink(training.log + ".slow")


def fill(directory):
    """To the last byte. Returns what has."""
    ballast = f"{os.environ['TB_WORK']}/{directory}/ballast"
    for size in ("64k", "4k"):
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={ballast}", f"bs={size}", "oflag=append", "conv=notrunc"],
            stderr=subprocess.DEVNULL,
        )
    return ballast


def fill_and_kill(training, row, member):
    """Where the pages of the worlds are."""
    ballast = fill("memory")
    send([member.worker], "KILL")
    return lambda: os.unlink(ballast)


def fill_memory(training, row, member):
    """Where snapshots are, before the first one."""
    ballast = fill("memory")
    complete = f"{os.environ['TB_WORK']}/memory/elastic-*-{training.job}.*/snapshot/?/complete.json"
    generation = newest(training.log)[0]
    open(training.log + ".snapshots", "w").close()
    try:
        wait(10, "word of it", lambda: training.has_said("slurm_elastic: no snapshot: "))
        time.sleep(2)  # in which the next one fails, too
        full = glob.glob(complete)
    finally:
        os.unlink(ballast)
    wait(10, "snapshots of two nodes", lambda: len(glob.glob(complete)) > 1)
    os.unlink(training.log + ".snapshots")
    if full or training.has_said("slurm_elastic: no snapshot: ") > 2:  # of two processes
        raise Failed(
            f"snapshots {full}; said {training.has_said('slurm_elastic: no snapshot: ')} times by two processes"
        )
    if newest(training.log)[0] != generation:
        raise Failed("there is a new world")


def fill_disk(training, row, member):
    ballast = fill("disk")
    generation = newest(training.log)[0]
    time.sleep(3)  # in which a checkpoint fails
    os.unlink(ballast)
    if newest(training.log)[0] == generation:
        send([each.worker for each in live_faults.alive(training.log)[-1:]], "KILL")


FAULTS = {
    "worker killed": kill_worker,
    "two workers killed": kill_two_workers,
    "worker stopped": stop_worker,
    "worker exits with 0": leave_early,
    "worker hangs with its lock held": hang_worker,
    "agent killed": kill_agent,
    "slurmstepd killed": kill_stepd,
    "node crashed": crash,
    "node cut off": cut,
    "node stopped in its first step": stop_node,
    "node crashed, soon back": crash_and_boot,
    "everything killed at once": kill_everything,
    "srun killed": kill_srun,
    "worker killed, node crashed": crash_and_kill,
    "crashed node comes back": bring_back,
    "cut-off node comes back": bring_back,
    "node drained": drain,
    "node reclaimed": reclaim,
    "slurmctld down 30 s": without_slurmctld,
    "slurmctld down, worker killed": without_slurmctld,
    "newest checkpoint has flipped bit": damage,
    "newest checkpoint is truncated": damage,
    "newest checkpoint lacks a file": damage,
    "its complete.json is empty": damage,
    "checkpoint takes longer than grace": slow_checkpoint,
    "memory for snapshots full": fill_memory,
    "memory full, worker killed": fill_and_kill,
    "disk of the checkpoints full": fill_disk,
}
LEADER_STAYS = (
    "worker killed",
    "worker stopped",
    "worker exits with 0",
    "node drained",
    "node reclaimed",
)


# ---- the run -------------------------------------------------------------------------------------


class Run:
    """Rows one after another, in a training per mode as long as it lives."""

    def __init__(self, selected, strict):
        self.rows = selected
        self.strict = strict  # on an idle machine: what is slower than promised has failed
        self.results = []  # (row, what was found, seconds, steps, what is wrong)
        self.training = None
        self.of_training = []
        self.alone = False

    def add(self, row, found, seconds, steps, wrong):
        number = len(self.results) + 1
        self.results.append([row, found, seconds, steps, wrong])
        what = f"{row.fault}, {row.mode}, {row.where}"
        measured = (
            ""
            if seconds is None
            else f": {row.expected}, {seconds:.1f} s without a new step, {steps} steps repeated"
        )
        print(f"{'not ok' if wrong else 'ok'} {number} - {what}{measured}", flush=True)
        if wrong:
            print(f"# {wrong}", flush=True)

    def one(self, row):
        full = (
            self.training
            and row.where == "base"
            and self.training.lost == BASE - 1
            and "comes back" not in row.fault
        )
        # After these the leader is not where it was at first, or there is none.
        fresh = row.where == "all" or (row.where == "leader" and row.fault not in LEADER_STAYS)
        if self.training and (self.training.mode != row.mode or full or fresh or self.alone):
            self.close()
        self.alone = fresh
        try:
            self.training = self.training or Training(row.mode, snapshots=self.alone)
            seconds, steps = self.training.suffer(row)
        except (
            Failed,
            AttributeError,
            IndexError,
            OSError,
            subprocess.CalledProcessError,
        ) as error:
            self.add(
                row, "failed", None, None, f"{type(error).__name__} {error}; {self.last_words()}"
            )
            self.give_up()
            return
        late = seconds > row.seconds
        wrong = f"{steps} steps repeated, {row.steps} are allowed" if steps > row.steps else None
        slow = f"slower than the {row.seconds:.0f} s that are promised" if late else None
        self.add(row, row.expected, seconds, steps, wrong or (slow if self.strict else None))
        if late and not self.strict:
            print(f"# {slow}", flush=True)
        if late or steps > row.steps:
            self.show()
        self.of_training.append(len(self.results))

    def last_words(self):
        return self.training.last_words() if self.training else "no job"

    def show(self):
        print("# " + self.last_words().replace(" | ", "\n# "), flush=True)

    def give_up(self):
        """This training is of no more use."""
        if self.training:
            self.training.cancel()
        self.training, self.of_training = None, []

    def close(self):
        """The end of a training, which is about all its rows."""
        if not self.training:
            return
        number = len(self.results) + 1
        try:
            wrong = self.training.end()
        except Failed as error:
            wrong = [str(error), self.last_words()]
            self.training.cancel()
        row = Row(
            f"(end of a training after {len(self.of_training)} faults)",
            self.training.mode,
            "all",
            "goes-on",
            0,
            0,
        )
        self.results.append([row, "end", None, None, "; ".join(wrong[:5]) or None])
        print(f"{'not ok' if wrong else 'ok'} {number} - {row.fault}, {row.mode}", flush=True)
        for line in wrong[:20]:
            print(f"# {line}", flush=True)
        self.training, self.of_training = None, []

    def all(self):
        for row in self.rows:
            self.one(row)
        self.close()
        print(f"1..{len(self.results)}")
        return any(wrong for *_, wrong in self.results)


def begin_of_line(row):
    return f"| {row.fault} | {row.mode} | {row.where} | "


def line(row, found, seconds, steps, wrong):
    words = row.expected.replace("-", " ")
    if found == "failed":
        return f"{begin_of_line(row)}**not: {words}** | | |"
    late = f", not {row.seconds:.0f} s" if seconds > row.seconds else ""
    measured = f"{seconds:.1f} s{late} | {steps} |"
    return (
        f"{begin_of_line(row)}{words} | {measured}"
        if not wrong
        else f"{begin_of_line(row)}**not as promised** | {measured}"
    )


def write_table(path, results):
    """Lines of rows that were not run now stay as they are."""
    with open(path) as file:
        text = file.read()
    before, rest = text.split(MARKS[0])
    old, after = rest.split(MARKS[1])
    new = {result[0]: line(*result) for result in results if result[1] != "end"}
    lines = [
        "| fault | mode | node | what follows | longest pause | steps repeated |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows():
        kept = [each for each in old.splitlines() if each.startswith(begin_of_line(row))]
        lines += [new[row]] if row in new else kept
    with open(path + ".new", "w") as file:
        file.write(before + MARKS[0] + "\n" + "\n".join(lines) + "\n" + MARKS[1] + after)
    os.rename(path + ".new", path)


def main():
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return 0
    if sys.argv[1:2] == ["load"]:
        undisturbed.import_torch()
        print(undisturbed.slurm_elastic.load_latest(sys.argv[2])["steps"], "steps")
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run"])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument(
        "--strict", action="store_true", help="what is slower than promised has failed"
    )
    args = parser.parse_args()
    chosen = [
        row
        for row in rows()
        if not args.only
        or any(each in f"{row.fault}, {row.mode}, {row.where}" for each in args.only)
    ]
    if not chosen:
        sys.exit(f"no row contains {args.only}")
    run = Run(chosen, args.strict)
    failed = run.all()
    if args.write:
        write_table(args.write, run.results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
