# SPDX-License-Identifier: GPL-2.0-or-later
"""DeepSpeed with ZeRO 1 or 2 as an elastic job in restart mode, by its universal checkpoint, which
worlds of all sizes read.

    slurm_elastic.init()
    engine = initialize(model, optimizer, config)
    load(engine, sampler=sampler)
    ...
        engine.step()
        sampler.commit()
        if slurm_elastic.elastic_event_detected():
            save(engine, sampler=sampler)
            slurm_elastic.leave()
"""

import argparse
import contextlib
import os

import deepspeed
import slurm_elastic
import torch.distributed as dist
from deepspeed.checkpoint import ds_to_universal

WRITTEN, UNIVERSAL = "written", "universal"  # in a checkpoint of slurm_elastic


def initialize(model, optimizer, config):
    """An engine for the world that this process is in. The global batch is the sampler's, whatever
    the world's size: the sizes of DeepSpeed's configuration only count.
    """
    # Shared memory between workers of one node. It is compiled first, for a minute.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_init_required=not dist.is_initialized())
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "checkpoint": {"load_universal": True},
        "zero_allow_untested_optimizer": True,
        **config,
    }
    return deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]


def save(engine, sampler, **parts):
    """Write the latest checkpoint. All ranks call it after the same step.

    sampler  the ElasticSampler: without it the next world would begin the epoch anew.
    parts    other objects with state_dict().
    """
    path = [None]
    with contextlib.ExitStack() as stack:
        if dist.get_rank() == 0:
            path[0] = str(stack.enter_context(slurm_elastic.new_checkpoint()))
        dist.broadcast_object_list(path)
        parts["sampler"] = sampler
        state = {name: part.state_dict() for name, part in parts.items()}
        engine.save_checkpoint(path[0], WRITTEN, client_state=state)
        dist.barrier()
        if dist.get_rank() == 0:
            convert(os.path.join(path[0], WRITTEN), os.path.join(path[0], UNIVERSAL))
    dist.barrier()


def convert(source, target):
    """As the program ds_to_universal does it, in this process."""
    ds_to_universal.main(
        argparse.Namespace(
            input_folder=source,
            output_folder=target,
            num_extract_workers=1,
            num_merge_workers=1,
            keep_temp_folder=False,
            strict=True,
            inject_missing_state=True,
        )
    )


def load(engine, sampler, **parts):
    """Read the latest checkpoint. Returns whether there is one. All ranks call it."""
    path = slurm_elastic.latest_checkpoint()
    if path is None:
        return False
    state = engine.load_checkpoint(str(path), UNIVERSAL)[1]
    for name, part in {"sampler": sampler, **parts}.items():
        part.load_state_dict(state[name])
    return True
