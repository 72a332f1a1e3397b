# SPDX-License-Identifier: GPL-2.0-or-later
"""What a training script of an elastic Slurm job calls.

    import slurm_elastic
    from slurm_elastic import ElasticSampler, elastic_event_detected

    slurm_elastic.init()  # after the imports, before a GPU is used: here the next workers wait
    sampler = ElasticSampler(dataset, global_batch=128, seed=1)
    loader = DataLoader(dataset, batch_sampler=sampler)
    state = slurm_elastic.load_latest()
    ...
    for epoch in range(sampler.epoch, epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = loss_function(model(x), y) * sampler.loss_scale()
            ...
            optimizer.step()
            sampler.commit()
            if elastic_event_detected():
                slurm_elastic.save({..., "sampler": sampler.state_dict()})
                slurm_elastic.leave()  # sys.exit(0) does, too, half a second later

It may also ask for nodes (request_nodes, release_nodes), wait for events instead of looking for
them (wait_event) and tell `selastic show` how far it is (report_progress).

The same script runs under srun, torchrun or alone: then no event ever comes, and what asks for
something answers None or False. Nothing here imports torch, except to write or read a checkpoint of
a script that uses it.
"""

from ._events import Event, attach, elastic_event_detected, init, wait_event
from ._mesh import unit_mesh
from ._nodes import (
    ElasticError,
    NodesRefused,
    NodesResult,
    cancel_request,
    checkpoint_done,
    release_nodes,
    report_progress,
    report_step_time,
    request_nodes,
    request_result,
)
from ._snapshot import snapshot, wait_for_snapshot
from ._world import Unit, generation, is_elastic, scale_config, unit
from .batches import EpochOrder, batch_sizes
from .checkpoint import (
    CheckpointError,
    checkpoint_dir,
    latest_checkpoint,
    load_latest,
    new_checkpoint,
    save,
    wait_for_save,
)
from .leaving import leave
from .sampler import ElasticSampler

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "ElasticError",
    "ElasticSampler",
    "EpochOrder",
    "Event",
    "NodesRefused",
    "NodesResult",
    "Unit",
    "batch_sizes",
    "cancel_request",
    "checkpoint_dir",
    "checkpoint_done",
    "elastic_event_detected",
    "generation",
    "init",
    "is_elastic",
    "latest_checkpoint",
    "leave",
    "load_latest",
    "new_checkpoint",
    "release_nodes",
    "report_progress",
    "report_step_time",
    "request_nodes",
    "request_result",
    "save",
    "scale_config",
    "snapshot",
    "unit",
    "unit_mesh",
    "wait_event",
    "wait_for_save",
    "wait_for_snapshot",
]

# At import, not at the first step: from here on Slurm's own SIGTERM, which reaches workers as well
# as elasticrun, does not end this process before the step at which all are to stop.
attach()
