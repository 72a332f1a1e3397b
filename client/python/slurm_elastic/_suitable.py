# SPDX-License-Identifier: GPL-2.0-or-later
"""Which models and parts a live.State can keep: those that each rank has as a whole.

A newcomer gets the state from one rank, and one rank writes checkpoints. If each rank had a part of
the state, all other parts would be lost in silence. Classes are known by their names: to import
them takes long, and fails with some versions (FSDP of 1.13 with Python 3.11).
"""

from __future__ import annotations

import warnings
from typing import Any, Iterable

import torch

from . import _world
from ._final import final
from ._torch_compat import can_shard, is_batch_norm, is_fully_sharded
from ._world import rank_and_size

_SHARDED = {
    "FullyShardedDataParallel": "a model sharded by FSDP",
    "FSDPModule": "a model sharded by FSDP",
    "ZeroRedundancyOptimizer": "an optimizer whose state is sharded",
    "ShardedTensor": "a sharded tensor",
    "DTensor": "a sharded tensor",
}
_INSTEAD = (
    "each rank has a part of it, and live mode gives those that join the whole state of one rank. Use DistributedDataParallel, "
    "live.State(..., shard=...) for fully_shard(), or restart "
    "mode with a checkpoint that all ranks write (slurm_elastic.new_checkpoint, elastic_event_detected)"
)
_SHARD = "give live.State the plain model, and shard=function: function(model, mesh) calls fully_shard() in each world"
_WRAPPERS = ("DistributedDataParallel", "DataParallel")


def _sharding_of(value: Any) -> str:
    """What kind of sharded object this is; "" if it is not sharded."""
    return next(
        (_SHARDED[each.__name__] for each in type(value).__mro__ if each.__name__ in _SHARDED), ""
    )


def refuse_sharded(values: Iterable[Any]) -> None:
    """Raises TypeError if one of the values is sharded, or contains what is sharded."""
    for value in values:
        what = _sharding_of(value)
        if what:
            raise final(TypeError(f"{type(value).__name__} is {what}: {_INSTEAD}"))
        if isinstance(value, dict):
            refuse_sharded(value.values())
        elif isinstance(value, (list, tuple)):
            refuse_sharded(value)


def check(model: torch.nn.Module, parts: Iterable[Any]) -> None:
    """Raises TypeError for a model or parts that a live.State cannot keep.

    Warns of BatchNorm, whose statistics the state cannot keep equal on all ranks.
    """
    if not isinstance(model, torch.nn.Module):
        raise final(
            TypeError(
                f"the first argument of live.State is the model, a torch.nn.Module, not {type(model).__name__}: "
                "optimizers, samplers and other parts come after it"
            )
        )
    if type(model).__name__ in _WRAPPERS:
        raise final(
            TypeError(
                f"give the model, not its {type(model).__name__}: that is made anew in each world, as state.ddp"
            )
        )
    if any(is_fully_sharded(each) for each in model.modules()):
        raise final(TypeError(f"the model is sharded by fully_shard() already: {_SHARD}"))
    refuse_sharded((*model.modules(), *model.parameters(), *parts))
    if rank_and_size()[0] == 0 and any(
        is_batch_norm(each)
        and not isinstance(each, torch.nn.SyncBatchNorm)
        and each.track_running_stats
        for each in model.modules()
    ):
        warnings.warn(
            "the model has BatchNorm: its running statistics differ between ranks, and after a change of the world may be another rank's. "
            "On GPUs torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) keeps them equal",
            stacklevel=3,
        )


def check_sharding(shard: Any, ddp_options: Any) -> None:
    """Raises ValueError or TypeError if a live.State cannot shard its model by this function."""
    if not callable(shard):
        raise final(TypeError(f"shard={shard!r}: must be a function of the model and a mesh"))
    if ddp_options:
        raise final(
            ValueError("ddp_options beside shard: a sharded model has no DistributedDataParallel")
        )
    if not can_shard():
        raise final(
            ValueError(
                f"shard: PyTorch {torch.__version__} has no fully_shard() that runs on the host, PyTorch 2.13 has"
            )
        )
    if _world.value("ELASTIC_CHECKPOINT_URL") and _world.most_nodes() != 1:
        raise final(
            ValueError(
                "shard with --checkpoint-dir=s3://...: each worker writes its part into one directory, which nodes do not share. "
                "Give --checkpoint-dir a directory that all nodes see, or the job one node at most"
            )
        )


def check_copies(shard: Any, copies: Any, copy_every: Any) -> None:
    """Raises ValueError if there are no such copies of a sharded state."""
    if shard is None and (copies is not None or copy_every is not None):
        raise final(
            ValueError(
                "copies and copy_every are for a sharded state, with shard=: with DistributedDataParallel each node has a copy"
            )
        )
    if copies not in (None, 0, 1):
        raise final(ValueError(f"copies={copies!r}: must be 0 or 1"))
    if copy_every is not None and not (isinstance(copy_every, int) and copy_every >= 1):
        raise final(ValueError(f"copy_every={copy_every!r}: must be a number of steps, at least 1"))
