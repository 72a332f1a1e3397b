# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints of a sharded state: each rank writes its part, and reads what it needs.

    state.pt     what all ranks have alike
    part-00003   what rank 3 has of each sharded tensor

A world of any size reads the parts. load_latest() finds the newest as it finds any checkpoint.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import torch
import torch.distributed as dist

from . import _events, _packed, _sharded_snapshot, _torch_compat, checkpoint
from ._opened import Directory
from ._sharding import Sharding, replicated

if TYPE_CHECKING:
    from .live import State

_PARTS = "sharded_parts"  # in state.pt: how many there are


def _part(rank: int) -> str:
    return f"part-{rank:05d}"


def save(state: State, sharding: Sharding, keep: int) -> None:
    """Write a checkpoint. A collective call of all ranks of a world.

    Raises OSError on all ranks if one of them cannot write.
    """
    rank, outcome = dist.get_rank(), [""]
    if rank == 0:
        try:
            outcome[0] = _write(state, sharding, keep)
        except Exception as error:  # the others wait to hear of it; torch.save(): as below
            outcome[0] = str(error) or type(error).__name__
    else:
        _write_part(sharding, None, rank)
    dist.broadcast_object_list(outcome, 0)
    if outcome[0]:
        raise OSError(f"no checkpoint: {outcome[0]}")


def _write(state: State, sharding: Sharding, keep: int) -> str:
    """On rank 0. Returns what is wrong, "" if all is well."""
    is_told = False
    try:
        with checkpoint.new_directory(checkpoint.place_of(None), keep) as new:
            whole = {
                "model": replicated(state.model),
                **state._beside_the_model(),
                _PARTS: dist.get_world_size(),
            }
            with new.create("state.pt") as file:
                _torch_compat.save(whole, file)
            is_told = True
            failure = _write_part(sharding, new.path, 0)
            if failure:
                raise OSError(failure)
        newest = checkpoint.open_latest()
        if newest is not None:
            with newest:
                _sharded_snapshot.drop_older(newest)
    except BaseException:
        if not is_told:
            _write_part(sharding, None, 0)
        raise
    return ""


def _write_part(sharding: Sharding, path: Optional[Path], rank: int) -> str:
    """Write this rank's part to where rank 0 says. Returns what has failed on any rank.

    path  of the checkpoint, on rank 0; None: it has none.
    """
    place = [path]
    dist.broadcast_object_list(place, 0)
    failure = ""
    if place[0] is not None:
        try:
            with checkpoint.open_checkpoint(place[0]) as new, new.create(_part(rank)) as file:
                _torch_compat.save(sharding.parts(), file)
        except Exception as error:  # torch.save() raises RuntimeError for a full disk
            failure = f"rank {rank}: {error}"
    failures = [""] * dist.get_world_size()
    dist.all_gather_object(failures, failure)
    return next((each for each in failures if each), "")


def load_latest(state: State, sharding: Sharding) -> str:
    """Read the newest snapshot or checkpoint into a state that has been sharded. A collective call.

    Returns "snapshot" or "checkpoint", "" if there is none.

    Raises ValueError for a checkpoint of a state that was not sharded.
    """
    newest = checkpoint.open_latest()
    with contextlib.ExitStack() as stack:
        if newest is not None:
            stack.enter_context(newest)
        contents = _sharded_snapshot.choose(newest)
        if contents is not None:
            _packed.read(state, sharding, contents)
        elif newest is not None:
            _read(state, sharding, newest)
    _events.training()
    return "snapshot" if contents is not None else "checkpoint" if newest is not None else ""


def _read(state: State, sharding: Sharding, found: Directory) -> None:
    saved = checkpoint.read_state(found)
    if _PARTS not in saved:
        raise ValueError(f"{found.path} is of a state that was not sharded: this one is")
    with torch.no_grad():
        for name, tensor in replicated(state.model).items():
            tensor.copy_(saved["model"][name])
        state._load_beside_the_model(saved)
        sharding.read([_mapped(found, rank) for rank in range(saved[_PARTS])])


def _mapped(found: Directory, rank: int) -> Any:
    with found.file(_part(rank)) as file:
        return _torch_compat.load_mapped(file)


def refuse(saved: Any) -> None:
    """Raises ValueError if a checkpoint is of a sharded state: this one is not sharded."""
    if isinstance(saved, dict) and _PARTS in saved and "steps" in saved:
        raise ValueError(
            "the newest checkpoint is of a sharded state: live.State needs shard=, and a world of "
            "elasticrun or torchrun"
        )
