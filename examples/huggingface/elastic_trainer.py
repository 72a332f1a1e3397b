# SPDX-License-Identifier: GPL-2.0-or-later
"""transformers.Trainer as an elastic job, started anew from a checkpoint in each world.

training = TrainingArguments(..., per_device_train_batch_size=share_of(64),
save_strategy="epoch") fit(Trainer(..., args=training))
"""

import os

import slurm_elastic
from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint


class Elastic(TrainerCallback):
    """Saves and stops after the step that the job's leader names, the same on all ranks."""

    def __init__(self):
        self.has_stopped = False

    def on_step_end(self, args, state, control, **kwargs):
        if slurm_elastic.elastic_event_detected():
            control.should_save = control.should_training_stop = True
            self.has_stopped = True
        return control


def share_of(global_batch):
    """This rank's part of a batch of all ranks, which must have one of equal size in each world: or
    steps would be counted otherwise in the next.
    """
    world = int(os.environ.get("WORLD_SIZE", 1))
    if global_batch % world:
        raise ValueError(
            f"a batch of {global_batch} samples cannot be shared evenly by {world} workers: allow other sizes of the job"
        )
    return global_batch // world


def fit(trainer):
    """trainer.train() from the last checkpoint in its output_dir. Does not return in a world that
    ends before the training.
    """
    callback = Elastic()
    trainer.add_callback(callback)
    output = trainer.args.output_dir
    slurm_elastic.init()  # the world before has ended, and written its checkpoint
    result = trainer.train(
        resume_from_checkpoint=get_last_checkpoint(output) if os.path.isdir(output) else None
    )
    if callback.has_stopped:
        slurm_elastic.leave()
    return result
