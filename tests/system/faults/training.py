# SPDX-License-Identifier: GPL-2.0-or-later
"""The program that suffers the faults, and a look at the checkpoints that it has left.

    training.py train MODE LOGDIR STEP_SECONDS
    training.py load CHECKPOINT_DIR

train, live mode: the training of live_faults.py. Restart mode: the same, with a checkpoint every
SAVE_EVERY steps. A worker exits with 0 when a file LOGDIR.exit-PID appears, and hangs when a file
LOGDIR.hang-PID appears.

load: prints the number of steps of the newest checkpoint. Exit status 0 if there is a good one.
"""

import os
import sys
import time

import live as undisturbed
import live_faults

SAVE_EVERY = 10


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
    torch.distributed.init_process_group("gloo")
    training = undisturbed.Training()
    state, sampler = training.state, training.sampler
    saved = slurm_elastic.load_latest()
    if saved is not None:
        state.load_state_dict(saved)
    state.ddp = torch.nn.parallel.DistributedDataParallel(state.model, broadcast_buffers=False)
    write = live_faults.log_of(log_dir)

    def make_step(step):
        try:
            state.step()
        except undisturbed.live.WorldChanged:
            write(step=step, state=training.digest())
            if sampler.rank == 0 and os.path.exists(log_dir + ".slow"):
                save_for_ever(torch, slurm_elastic, state.state_dict())
            slurm_elastic.save(state.state_dict())
            slurm_elastic.leave()
        write(step=step, state=training.digest())
        after_step(state)
        if state.steps % SAVE_EVERY == 0:
            slurm_elastic.save(state.state_dict())

    steps = live_faults.loop(training, log_dir, write, lambda: seconds, each_step, make_step)
    if sampler.rank == 0:
        print(f"trained {steps} steps", flush=True)


def main():
    if sys.argv[1] == "train":
        train(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        undisturbed.import_torch()
        print(undisturbed.slurm_elastic.load_latest(sys.argv[2])["steps"], "steps")


if __name__ == "__main__":
    main()
