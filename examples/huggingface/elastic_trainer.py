# SPDX-License-Identifier: GPL-2.0-or-later
"""transformers.Trainer as an elastic job.

In live mode a Trainer for each world, the model and its optimizer for all:

    state = live.State(model, optimizer, scheduler, sampler)
    live.run(lambda state: new_trainer(state, sampler, dataset, output_dir=...).train(), state)

In restart mode the script is started anew from a checkpoint of the Trainer in each world:

    training = TrainingArguments(..., per_device_train_batch_size=share_of(64))
    fit(Trainer(..., args=training))
"""

import json
import os
import tempfile

import slurm_elastic
from accelerate.state import AcceleratorState, GradientState
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

# ---- live mode -----------------------------------------------------------------------------------


class Loader(DataLoader):
    """Takes its ElasticSampler through the epochs."""

    def set_epoch(self, epoch):
        self.batch_sampler.set_epoch(epoch)


class Commit(TrainerCallback):
    """Commits each step. A change of worlds leaves the Trainer from here, so this is the last one
    of the callbacks.
    """

    def __init__(self, state):
        self._state = state

    def on_step_end(self, args, state, control, **kwargs):
        self._state.commit()


class LiveTrainer(Trainer):
    """For one world. The state has wrapped or sharded the model."""

    def __init__(self, state, sampler, **options):
        self._elastic, self._sampler = state, sampler
        super().__init__(model=state.model, **options)
        # Each batch is weighed by compute_loss().
        self.model_accepts_loss_kwargs = False
        self.accelerator.prepare_model = lambda model, *_, **__: (
            state.ddp if model is state.model else model
        )
        self.add_callback(Commit(state))

    def get_train_dataloader(self):
        # Not prepared: ElasticSampler gives each rank its share.
        return Loader(
            self.train_dataset, batch_sampler=self._sampler, collate_fn=self.data_collator
        )

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        loss = loss * self._sampler.loss_scale()
        return (loss, outputs) if return_outputs else loss

    # The state is in place already.

    def _load_from_checkpoint(self, *args, **kwargs):
        pass

    def _load_optimizer_and_scheduler(self, *args, **kwargs):
        pass

    def _load_rng_state(self, *args, **kwargs):
        pass

    def train(self):
        """From where the state is."""
        if self._elastic.steps == 0:
            return super().train()
        if self._sampler.finished:
            self._sampler.set_epoch(self._sampler.epoch + 1)
        # Where the Trainer looks for the number of its step.
        with tempfile.TemporaryDirectory() as place:
            with open(os.path.join(place, "trainer_state.json"), "w") as file:
                json.dump(
                    {
                        "global_step": self._elastic.steps,
                        "train_batch_size": self.args.train_batch_size,
                    },
                    file,
                )
            return super().train(resume_from_checkpoint=place)


def new_trainer(state, sampler, dataset, optimizers, callbacks=(), **arguments):
    """A Trainer for the world that this process is in.

    optimizers  (optimizer, scheduler), which are parts of the state.
    arguments   of TrainingArguments. Batches are not accumulated: the global batch is the
                sampler's.
    """
    for name in ("per_device_train_batch_size", "gradient_accumulation_steps"):
        if name in arguments:
            raise ValueError(f"{name}: the global batch is the sampler's, in worlds of all sizes")
    for name in ("fsdp", "deepspeed"):
        if arguments.get(name):
            raise ValueError(
                f"{name}: the state shards the model, by live.State(..., shard=function)"
            )
    # Accelerate keeps the number of processes, and its group, for the life of a process.
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    training = TrainingArguments(
        save_strategy="no", ignore_data_skip=True, remove_unused_columns=False, **arguments
    )
    return LiveTrainer(
        state,
        sampler,
        args=training,
        train_dataset=dataset,
        optimizers=optimizers,
        callbacks=list(callbacks),
    )


# ---- restart mode --------------------------------------------------------------------------------


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
