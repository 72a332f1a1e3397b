#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training without a model, for system tests: makes steps, saves when told, writes down what
happened.

Usage: steps.py LOGDIR STEPS STEP_SECONDS [unaware | samples]

It ends after that many steps, or when there is a file LOGDIR.enough.

Each rank appends to LOGDIR/rank-GENERATION-RANK lines "WORD TIME key=value...": start when it
begins, step for each step made, told when it has been told of a change, end when it leaves. What
the job as a whole has done is the checkpoint: the number of steps. Like those of a real training,
ranks begin together; from then on they are not synchronised, so that they are at different steps
when a change comes. "unaware": knows nothing of slurm_elastic, saves every step in a file of its
own and is ended by SIGTERM. "samples": each worker makes one sample in each step, the training has
so many samples in place of steps, and it reports them.
"""

import json
import os
import sys
import time

log_dir, steps, step_seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
unaware = "unaware" in sys.argv[4:]
by_samples = "samples" in sys.argv[4:]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
generation = int(os.environ["ELASTIC_GENERATION"])
os.makedirs(log_dir, exist_ok=True)
if not unaware:
    import slurm_elastic

log = open(os.path.join(log_dir, f"rank-{generation}-{rank}"), "a", buffering=1)


def note(word, **values):
    fields = " ".join(f"{key}={value}" for key, value in values.items())
    log.write(f"{word} {time.time():.3f} {fields}\n")


def load_own(path):
    try:
        with open(path) as file:
            return json.load(file)["step"]
    except FileNotFoundError:
        return 0


def save_own(path, step):
    with open(f"{path}.{os.getpid()}", "w") as file:
        json.dump({"step": step}, file)
    os.rename(file.name, path)


def wait_for_all():
    """As init_process_group would: until every rank of this generation has begun."""
    while not all(
        os.path.exists(os.path.join(log_dir, f"rank-{generation}-{other}"))
        for other in range(world)
    ):
        time.sleep(0.02)


note(
    "start",
    node=os.environ["SLURMD_NODENAME"],
    world=world,
    job=os.environ["SLURM_JOB_ID"],
    pid=os.getpid(),
)
state = None
own = os.path.join(log_dir, f"own-{rank}")
if unaware:
    step = load_own(own)
else:
    state = slurm_elastic.load_latest()
    step = state["step"] if state is not None else 0
samples = state["samples"] if by_samples and state is not None else 0

wait_for_all()
while (samples if by_samples else step) < steps and not os.path.exists(log_dir + ".enough"):
    time.sleep(step_seconds * (1 + rank % 3 / 10))
    step += 1
    samples += world
    note("step", step=step)
    if unaware:
        save_own(own, step)
        continue
    if by_samples:
        slurm_elastic.report_progress(min(samples, steps), steps, "samples")
    event = slurm_elastic.elastic_event_detected()
    if event:
        note("told", step=step, kind=event.kind)
        if rank == 0:
            slurm_elastic.save({"step": step, "samples": samples})
        break
note("end", step=step)
print(f"rank {rank} of {world} generation {generation} at step {step}")
