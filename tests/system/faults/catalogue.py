# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults, by their name in table.txt.

Each is a function (training, row, member): it does the fault to a TrainingJob, and returns the
function that undoes it, or None.
"""

import glob
import os
import re
import subprocess
import time

import live_faults
from job import GRACE, MOST, Failed, as_user, environment, send, slurm, testbed, wait
from live_faults import newest, now


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
        training.resize(size)
        training.before = wait(60, f"{size} nodes", lambda: newer_world(training))
    member = wait(5, "its worker", lambda: training.member(row.where))
    send([member.agent, member.worker], "STOP")
    training.hit = now()
    return lambda: send([member.agent, member.worker], "CONT")


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
    training.lost = training.kept = 0  # it begins anew


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
    training.kept += row.where != "extension"
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


MEMORY = os.environ["TB_HOME"] + "/memory"


def fill(directory):
    """To the last byte. Returns what has."""
    ballast = f"{directory}/ballast"
    for size in ("64k", "4k"):
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={ballast}", f"bs={size}", "oflag=append", "conv=notrunc"],
            stderr=subprocess.DEVNULL,
        )
    return ballast


def fill_and_kill(training, row, member):
    """Where the pages of the worlds are."""
    ballast = fill(MEMORY)
    send([member.worker], "KILL")
    return lambda: os.unlink(ballast)


def fill_memory(training, row, member):
    """Where snapshots are, before the first one."""
    ballast = fill(MEMORY)
    complete = f"{MEMORY}/elastic-*-{training.job}.*/snapshot/?/complete.json"
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
    ballast = fill(f"{os.environ['TB_WORK']}/disk")
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
# On a node of the base: the rows after them need another node in its place before Slurm has called
# it down.
NEEDS_ROOM = (
    "node crashed",
    "crashed node comes back",
    "node cut off",
    "cut-off node comes back",
)
LEADER_STAYS = (
    "worker killed",
    "worker stopped",
    "worker exits with 0",
    "node drained",
    "node reclaimed",
)
