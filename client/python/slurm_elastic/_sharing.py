# SPDX-License-Identifier: GPL-2.0-or-later
"""How all ranks of a new world come to the same state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, List

import torch
import torch.distributed as dist

from . import _signature, _world
from ._boundary import Standing, newest
from ._transfer import neighbours, pass_state, wire_of

if TYPE_CHECKING:
    from .live import State


class ShapesDiffer(RuntimeError):
    """The model's parameters on this rank are not those of the ranks that have the state."""


def share(state: State) -> bool:
    """Give the newest state to the ranks that lack it. A collective call of all ranks of a world.

    what there is                          all ranks go on from
    a rank with a whole or complete state  the newest such state
    else a checkpoint                      the newest checkpoint
    else a part of a step                  what the rank with the most steps has
    nothing                                the beginning

    Returns True if all ranks now have the parameters and buffers of one of them; False if each rank
    has read the checkpoint itself, or begins.

    Raises ShapesDiffer in a rank whose model has other parameters than the ranks with the state.
    """
    rank, progress = dist.get_rank(), state._progress
    table = _gather(state)
    step, sources = newest([Standing(*row[:2]) for row in table])
    if not sources:
        step, farthest = max((row[2], -each) for each, row in enumerate(table))
        found = state._load_latest()
        if rank == 0 and (_world.generation() or 1) > 1:
            _tell_loss(state, found, step)
        if found or step < 0:
            state._begin_here(rank)
            return False
        sources = [-farthest]
        progress.is_whole = rank in sources
    if table[rank][3] != table[sources[0]][3]:
        raise ShapesDiffer("the model's parameters are not those of the ranks that train")
    if rank in sources:
        progress.go_on_from(step)
    receivers = [each for each in range(len(table)) if each not in sources]
    source, target = neighbours(rank, sources, receivers)
    if source is not None and not progress.is_whole:
        progress.complete = -1  # the state that arrives overwrites it piece by piece
    if source is not None or target is not None:
        pass_state(state, source, target)
    if source is not None:
        state._begin_here(rank)
    return True


def _gather(state: State) -> List[List[int]]:
    """For each rank: its two numbers of Standing, its farthest step, a number for its model."""
    shapes = _signature.digest(_signature.of_model(state.model))
    own = [*state._progress.standing, state._progress.farthest, shapes]
    mine = torch.tensor(own, device=wire_of(state))
    gathered = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, mine)
    return [each.tolist() for each in gathered]


def _tell_loss(state: State, found: bool, step: int) -> None:
    """found: a checkpoint. step: the farthest of any rank, -1: none."""
    if found:
        where = f"the newest checkpoint, step {state.steps}"
    elif step >= 0:
        where = f"step {step}, a part of which is made"
    else:
        where = "the beginning"
    print(
        f"slurm_elastic: no worker has the state any more: goes on from {where}",
        file=sys.stderr,
        flush=True,
    )
