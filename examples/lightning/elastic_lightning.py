# SPDX-License-Identifier: GPL-2.0-or-later
"""Lightning's Trainer in worlds that grow and shrink around it: a Trainer for each world, the
module and its optimizer for all.

    state = live.State(module, optimizer, sampler, wrap=False)   # the Trainer wraps the module
    live.run(lambda state: new_trainer(state, sampler, max_epochs=10).fit(module, loader), state)
"""

import os

# First, since Lightning takes long: elasticrun waits for a script that has begun to import this.
import slurm_elastic  # noqa: F401
import torch.distributed as dist

try:
    from lightning.pytorch import Callback, Trainer
    from lightning.pytorch.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy
except ImportError:
    from pytorch_lightning import Callback, Trainer
    from pytorch_lightning.plugins.environments import TorchElasticEnvironment
    from pytorch_lightning.strategies import DDPStrategy


class Strategy(DDPStrategy):
    """DistributedDataParallel; a module that the state has sharded stays as it is."""

    def _setup_model(self, model):
        is_sharded = any(hasattr(each, "placements") for each in model.parameters())
        return model if is_sharded else super()._setup_model(model)


class Elastic(Callback):
    """Takes the sampler through its epochs and commits each step. Give it last: a change of worlds
    leaves the Trainer from here.
    """

    def __init__(self, state, sampler):
        self._state = state
        self._sampler = sampler

    def on_train_epoch_start(self, trainer, module):
        self._sampler.set_epoch(trainer.current_epoch)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self._state.commit()


def new_trainer(state, sampler, callbacks=(), **options):
    """A Trainer for the world that this process is in, which goes on where the sampler is.

    options  of the Trainer. Batches are not accumulated: the global batch is the sampler's,
             whatever the world's size. strategy, devices and num_nodes are those of the world.
    """
    for name in ("strategy", "devices", "num_nodes", "use_distributed_sampler"):
        if name in options:
            raise ValueError(f"{name}: new_trainer() knows the world. Leave it out")
    if "accumulate_grad_batches" in options:
        raise ValueError(
            "accumulate_grad_batches: the global batch is the sampler's, in worlds of all sizes"
        )
    local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if dist.is_initialized():
        options["strategy"] = Strategy(cluster_environment=TorchElasticEnvironment())
    trainer = Trainer(
        devices=local,
        num_nodes=dist.get_world_size() // local if dist.is_initialized() else 1,
        use_distributed_sampler=False,
        callbacks=[*callbacks, Elastic(state, sampler)],
        **options,
    )
    # Slurm's SIGTERM reaches every process of a node that it takes. slurm_elastic lets it pass, for
    # all to stop after the same step; Lightning would leave with its next one, and take the others
    # down.
    trainer._signal_connector.register_signal_handlers = lambda: None
    go_on(trainer.fit_loop, sampler.epoch, sampler.step, state.steps)
    return trainer


def go_on(loop, epoch, step, steps):
    """Tell a new Trainer's loop that so many steps of this epoch, and of all, have been made."""
    place(loop.epoch_progress.current, begun=epoch + (step > 0), done=epoch)
    place(loop.epoch_loop.batch_progress.current, begun=step, done=step)
    loop.epoch_loop._batches_that_stepped = steps
    loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total.completed = steps
    loop.restarting = step > 0


def place(progress, begun, done):
    progress.ready = progress.started = begun
    progress.processed = progress.completed = done
