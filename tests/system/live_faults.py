#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A live training that loses workers and nodes, and what must hold of it. Uses live.py, which must
lie beside it.

    live_faults.py train LOGDIR STEP_SECONDS
    live_faults.py inject JOB LOGDIR NODES FAULT...
    live_faults.py kill LOGDIR
    live_faults.py check LOGDIR TOLERANCE LIMIT

train: the training of live.py, float64, with a process that loads data, a padding of 40 MB that
newcomers receive, and rank 0 slower than the others, which wait for it. With a file LOGDIR.broken,
workers of later worlds end at once. Each rank writes to LOGDIR/PID a line before a step ("share"),
one when its gradients are there ("loss"), one after it ("state"), and one when it forms a group or
passes the state on ("phase").

inject: a FAULT is WHEN:WHOM:SIGNAL[:NODES], applied to the running job as its user once it has
NODES nodes: WHEN compute, reduce, form, transfer (the job is resized to NODES of its own first),
leave (the same, and it is one that is to leave), any; WHOM worker (of the node that was last to
join; worker0: of the leader's node; workers: of two nodes), agent, member (an agent and all that it
has started), both of an extension; SIGNAL KILL or STOP. Waits after each until the training goes
on, prints how long that took and writes it to LOGDIR.faults; then lets the training end.

kill: kills the worker that was last to join.

check: exit status 0 if each sample of each epoch was trained on once in steps that count, with the
loss of a training that was never disturbed within TOLERANCE, all ranks equal after each step, no
step but the one in flight repeated, and no fault cost more than LIMIT seconds.
"""

import collections
import faulthandler
import functools
import glob
import heapq
import json
import os
import random
import signal
import subprocess
import sys
import time

import live as undisturbed

PADDING = 10_000_000  # float32
# More would tell nothing more of faults, and a step would take twice the processor time.
undisturbed.MODELS = {"float64": "float64"}
undisturbed.LOADERS = 1
REQUEUED = 10**6


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


# ---- training ------------------------------------------------------------------------------------


def generation():
    """Of the worlds of a job that was requeued the later ones have higher numbers, too."""
    import slurm_elastic

    restarts = int(os.environ.get("ELASTIC_INCARNATION", "0.0").split(".")[1])
    return restarts * REQUEUED + slurm_elastic.generation()


def log_of(log_dir):
    """A function that writes a line of this process, with the time and the generation."""
    os.makedirs(log_dir, exist_ok=True)
    log = open(os.path.join(log_dir, str(os.getpid())), "a", buffering=1)

    def write(**line):
        log.write(json.dumps({"time": now(), "generation": generation(), **line}) + "\n")

    return write


def compute(training, batch, epoch, write):
    """Write down what this rank trains on, and with which loss. Returns the number of the step."""
    state, sampler = training.state, training.sampler
    x, y, index = batch
    step = state.steps
    share = index.tolist() if sampler.loss_scale() else []
    write(step=step, epoch=epoch, rank=sampler.rank, size=sampler.world_size, share=share)
    losses = training.gradients(x, y, parts=1)
    write(step=step, loss=losses["float64"])
    state.losses += losses["float64"]
    return step


def loop(training, log_dir, write, pause, before_step, make_step):
    """Train until there is a file LOGDIR.enough: in each step a pause of pause() seconds, and
    make_step(number of the step) after its gradients. Returns how many steps have been made.
    """
    sampler = training.sampler
    for epoch in range(sampler.epoch, 10**6):
        sampler.set_epoch(epoch)
        if sampler.committed == 0 and undisturbed.enough(log_dir):
            break
        for batch in training.loaders[1]:
            before_step()
            if not os.path.exists(log_dir + ".enough"):
                time.sleep(pause())
            make_step(compute(training, batch, epoch, write))
    return training.state.steps


def train(log_dir, seconds, each_step=lambda: None, after_step=lambda state: None):
    if int(os.environ.get("ELASTIC_GENERATION", "1")) > 1 and os.path.exists(log_dir + ".broken"):
        sys.exit("broken")
    faulthandler.register(signal.SIGUSR1)  # where it is, for whoever wonders why it does not go on
    undisturbed.import_torch()
    import torch

    live, slurm_elastic = undisturbed.live, undisturbed.slurm_elastic
    write = log_of(log_dir)

    def announced(function, phase):
        def announce(*args, **kwargs):
            write(phase=phase)
            return function(*args, **kwargs)

        return announce

    from slurm_elastic import _sharing

    live.dist.init_process_group = announced(live.dist.init_process_group, "form")
    _sharing.pass_state = announced(_sharing.pass_state, "transfer")
    training = undisturbed.Training()
    training.models.register_buffer("padding", torch.zeros(PADDING))
    sampler = training.sampler
    parts, options = training.state._parts, training.state._ddp_options
    state = live.State(training.state.model, *parts, ddp_options=options, losses=0.0)
    training.state = state
    snapshot_every = int(os.environ.get("SNAPSHOT_EVERY", "0"))

    def pause():
        return seconds if sampler.rank == 0 else seconds / 5

    def before_step():
        # Not after step(), which does not come back when the world changes.
        if snapshot_every and state.steps % snapshot_every == 0:
            slurm_elastic.snapshot(state.state_dict())
        each_step()

    def make_step(step):
        try:
            state.step()
        finally:
            write(
                step=step,
                state=digest(training),
                losses=round(state.losses, 9) if sampler.world_size == 1 else None,
            )
        after_step(state)

    steps = live.run(lambda _: loop(training, log_dir, write, pause, before_step, make_step), state)
    if sampler.rank == 0:
        print(f"trained {steps} steps", flush=True)


def digest(training):
    """Without the padding."""
    padding, training.models.padding = training.models.padding, undisturbed.torch.zeros(0)
    try:
        return training.digest()
    finally:
        training.models.padding = padding


# ---- faults --------------------------------------------------------------------------------------


def tails(log_dir):
    """(pid, its last whole lines) of those processes that were the last to write something: after
    some hundred faults nearly all are dead.
    """
    logs = os.scandir(log_dir) if os.path.isdir(log_dir) else []
    for entry in heapq.nlargest(40, logs, key=lambda each: each.stat().st_mtime_ns):
        yield int(entry.name), last_lines(entry.path, entry.stat().st_size)


@functools.lru_cache(maxsize=400)
def last_lines(path, size):
    """The whole ones of the last four, of a log of that size, which only grows."""
    with open(path, "rb") as log:
        log.seek(max(0, size - 4000))
        lines = log.read(min(size, 4000)).decode().splitlines()[-4:]
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def newest(log_dir):
    """(generation, step, size) of the newest step that some rank has made."""
    found = (0, -1, 0)
    for _, lines in tails(log_dir):
        sizes = {line["step"]: line["size"] for line in lines if "size" in line}
        made = [line for line in lines if "state" in line and line["step"] in sizes]
        if made:
            found = max(found, (made[-1]["generation"], made[-1]["step"], sizes[made[-1]["step"]]))
    return found


def wait(limit, what, condition, pause=0.1):
    limit *= 3  # the machine may have other work
    until = now() + limit
    while now() < until:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    sys.exit(f"not within {limit} s: {what}")


def parent(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("PPid")).split()[1])


def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")


class Process:
    """A worker with what is around it."""

    def __init__(self, pid):
        self.worker, self.shim = pid, parent(pid)
        self.agent = parent(self.shim)

    def of_job(self, job):
        with open(f"/proc/{self.agent}/environ", "rb") as file:
            return b"SLURM_JOB_ID=" + job.encode() in file.read().split(b"\0")

    def family(self):
        """The agent and all that it has started."""
        found, todo = [], [self.agent]
        children = collections.defaultdict(list)
        for path in glob.glob("/proc/[0-9]*"):
            try:
                children[parent(os.path.basename(path))].append(int(os.path.basename(path)))
            except (OSError, StopIteration):
                pass
        while todo:
            found.append(todo.pop())
            todo += children[found[-1]]
        return found


def alive(log_dir):
    """Those of the present world, the leader's first, the last to join last."""
    generation, _, _ = newest(log_dir)
    found = []
    for pid, lines in tails(log_dir):
        placed = [line for line in lines if "rank" in line]
        if (
            placed
            and placed[-1]["generation"] == generation
            and os.path.exists(f"/proc/{pid}/cmdline")
        ):
            try:
                found.append((placed[-1]["rank"], Process(pid)))
            except (OSError, StopIteration):
                pass  # it ends at this moment
    return [process for _, process in sorted(found, key=lambda each: each[0])]


def in_phase(log_dir, phase, since):
    """A process that has said so after that moment, as its last word."""
    for pid, lines in tails(log_dir):
        if lines and lines[-1].get("phase") == phase and lines[-1]["time"] > since:
            return pid
    return None


def apply(fault, job, log_dir, nodes, chance):
    when, whom, name, *resized = fault.split(":")
    wait(90, f"{nodes} nodes", lambda: newest(log_dir)[2] == nodes)
    before = newest(log_dir)
    wait(20, "steps", lambda: newest(log_dir)[1] > before[1] + 3)
    processes = alive(log_dir)
    if when in ("form", "transfer", "leave"):
        begun = now()
        subprocess.run(
            ["selastic", "resize", job, resized[0]], check=True, stdout=subprocess.DEVNULL
        )
        victims = (
            processes[-1:]
            if when == "leave"
            else [Process(wait(60, when, lambda: in_phase(log_dir, when, begun), 0.02))]
        )
        time.sleep(chance.uniform(0, 0.05))
    else:
        time.sleep(chance.uniform(0, 0.3))
        if whom in ("agent", "member"):  # the base job's are not replaced, and one of them leads
            processes = [each for each in processes if not each.of_job(job)]
        victims = {"worker0": processes[:1], "workers": processes[-2:]}.get(whom, processes[-1:])
    targets = [
        pid
        for each in victims
        for pid in (
            each.family()
            if whom == "member"
            else [each.agent]
            if whom == "agent"
            else [each.worker]
        )
    ]
    generation, step, _ = newest(log_dir)
    hit = now()
    for pid in targets:
        try:
            os.kill(pid, getattr(signal, "SIG" + name))
        except ProcessLookupError:
            pass
    wait(
        60,
        f"steps after {fault}",
        lambda: newest(log_dir)[0] > generation and newest(log_dir)[1] > step,
    )
    took = now() - hit
    print(
        f"{fault}: hit {len(targets)} processes in step {step} of world {generation}, {took:.2f} s until the next step",
        flush=True,
    )
    if name == "STOP":  # what was stopped is dead for all others, and not ours to leave behind
        for pid in targets:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
    if resized:
        subprocess.run(
            ["selastic", "resize", job, str(nodes)], check=True, stdout=subprocess.DEVNULL
        )
    with open(log_dir + ".faults", "a") as file:
        file.write(json.dumps({"fault": fault, "seconds": took}) + "\n")


def inject(job, log_dir, nodes, faults):
    chance = random.Random(job)
    wait(60, "steps", lambda: newest(log_dir)[1] > 0)
    subprocess.run(["selastic", "resize", job, str(nodes)], check=True, stdout=subprocess.DEVNULL)
    for fault in faults:
        apply(fault, job, log_dir, nodes, chance)
    wait(90, f"{nodes} nodes", lambda: newest(log_dir)[2] == nodes)
    open(log_dir + ".enough", "w").close()


# ---- checking ------------------------------------------------------------------------------------


def differences(log_dir, tolerance):
    """From a training that was never disturbed: (lines about them, steps, steps repeated, steps of
    which not all have written a loss, largest difference).
    """
    wrong = []
    begun, ended, losses = (collections.defaultdict(list) for _ in range(3))
    for lines in undisturbed.read(log_dir).values():
        for line in lines:
            if "share" in line:
                begun[line["step"]].append(line)
            elif "state" in line:
                ended[line["step"]].append(line)
            elif "loss" in line:
                losses[line["step"]].append(line)
    repeated, seen = 0, collections.defaultdict(collections.Counter)
    counted = {}
    for number, lines in begun.items():
        last = max(line["generation"] for line in lines)
        repeated += len({line["generation"] for line in lines}) - 1
        counted[number] = [line for line in lines if line["generation"] == last]
        for line in counted[number]:
            seen[line["epoch"]].update(line["share"])
    expected = undisturbed.reference(max(seen) + 1, log_dir)
    if sorted(counted) != list(range(len(expected))):
        wrong.append(f"{len(counted)} steps, {len(expected)} would be right")
    largest, unheard = 0, 0
    for number, lines in sorted(counted.items()):
        samples = sum(len(line["share"]) for line in lines)
        ranks, sizes = sorted(line["rank"] for line in lines), {line["size"] for line in lines}
        if len(sizes) != 1 or ranks != list(range(max(sizes))):
            wrong.append(f"step {number}: ranks {ranks} of worlds of {sorted(sizes)}")
            continue
        states = {
            line["state"] for line in ended[number] if line["generation"] == lines[0]["generation"]
        }
        if len(states) != 1:
            wrong.append(f"step {number}: {len(states)} different states")
        heard = [
            line["loss"] for line in losses[number] if line["generation"] == lines[0]["generation"]
        ]
        if len(heard) < len(lines):
            # Some were through, and the step counts; the others got the state from them.
            unheard += 1
        elif number < len(expected):
            difference = abs(sum(heard) - expected[number]["loss"]["float64"]) / max(1, samples)
            largest = max(largest, difference)
            if difference > tolerance:
                wrong.append(f"step {number}: a loss that differs by {difference:.1e}")
    for epoch, samples in sorted(seen.items()):
        if samples != collections.Counter(range(undisturbed.SAMPLES)):
            wrong.append(
                f"epoch {epoch}: {sum(samples.values())} samples, {len(samples)} different ones"
            )
    return wrong, len(expected), repeated, unheard, largest


def check(log_dir, tolerance, limit):
    wrong, steps, repeated, unheard, largest = differences(log_dir, tolerance)
    with open(log_dir + ".faults") as file:
        faults = [json.loads(line) for line in file]
    wrong += (
        f"{each['fault']}: {each['seconds']:.1f} s" for each in faults if each["seconds"] > limit
    )
    if unheard > len(faults):
        wrong.append(f"{unheard} steps without the losses of all, for {len(faults)} faults")
    if repeated > 2 * len(faults):  # a world that follows may be torn as well
        wrong.append(f"{repeated} steps were repeated, for {len(faults)} faults")
    print(
        f"{steps} steps, {len(faults)} faults, {repeated} steps repeated, largest difference {largest:.1e}"
    )
    print("\n".join(wrong[:20]) if wrong else "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "train":
        train(rest[0], float(rest[1]))
    elif command == "inject":
        inject(rest[0], rest[1], int(rest[2]), rest[3:])
    elif command == "kill":
        os.kill(alive(rest[0])[-1].worker, signal.SIGKILL)
    elif command == "check":
        sys.exit(check(rest[0], float(rest[1]), float(rest[2])))
    else:
        sys.exit(__doc__)
