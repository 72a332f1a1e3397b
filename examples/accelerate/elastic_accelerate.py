# SPDX-License-Identifier: GPL-2.0-or-later
"""Accelerate in worlds that grow and shrink around it: an Accelerator for each world, the model and
its optimizer for all.

    def train(state):
        accelerator = new_accelerator(state)
        model, optimizer = accelerator.prepare(state.model, the_optimizer)
"""

# First, since Accelerate takes long: elasticrun waits for a script that has begun to import this.
import slurm_elastic  # noqa: F401
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from slurm_elastic import ElasticSampler


def new_accelerator(state, **options):
    """An Accelerator for the world that this process is in. prepare() gives the model that the
    state has wrapped or sharded already.
    """
    # Accelerate keeps the number of processes, and its group, for the life of a process.
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    accelerator = Accelerator(**options)
    use_model_of(state, accelerator)
    keep_elastic_loaders(accelerator)
    return accelerator


def use_model_of(state, accelerator):
    prepare = accelerator.prepare_model

    def prepare_model(model, device_placement=None, evaluation_mode=False):
        if model is not state.model:
            return prepare(model, device_placement, evaluation_mode)
        # What is prepared for evaluation is not wrapped again; mixed precision is taken care of.
        return prepare(state.ddp, device_placement, evaluation_mode=True)

    accelerator.prepare_model = prepare_model


def keep_elastic_loaders(accelerator):
    """An ElasticSampler gives each rank its share: Accelerate must not take a share of that."""
    prepare = accelerator.prepare_data_loader

    def prepare_data_loader(loader, *arguments, **options):
        if isinstance(loader.batch_sampler, ElasticSampler):
            return loader
        return prepare(loader, *arguments, **options)

    accelerator.prepare_data_loader = prepare_data_loader
