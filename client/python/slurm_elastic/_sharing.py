# SPDX-License-Identifier: GPL-2.0-or-later
"""How all ranks of a new world come to the same state."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

from . import _buddy, _packed, _signature, _world
from ._boundary import Standing, newest
from ._reshard import Missing, Range, plan
from ._sharding import Sharding
from ._transfer import neighbours, pass_state

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
    if state._sharding is not None:
        return _share_parts(state, state._sharding)
    rank, progress = dist.get_rank(), state._progress
    table = _gather(state)
    step, sources = newest([Standing(*row[:2]) for row in table])
    if not sources:
        step, farthest = max((row[2], -each) for each, row in enumerate(table))
        found = bool(state._load_latest())
        if rank == 0 and (_world.generation() or 1) > 1:
            _tell_loss("no worker has the state any more", state, found, step)
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


class _Row(NamedTuple):
    """What a rank tells of a sharded state."""

    standing: Standing
    farthest: int
    shapes: int
    held: Dict[int, List[Range]]
    cut: Tuple[int, int]
    is_fresh: bool
    local_rank: int
    copies: List[_buddy.Held]


def _newest_held(table: List[_Row]) -> Tuple[int, List[int]]:
    """The newest step of which the ranks together have all parts, and the ranks that are there;
    (-1, []) if there is none.
    """
    steps = {each for row in table for each in row.standing if each >= 0}
    for step in sorted(steps, reverse=True):
        ranks = [rank for rank, row in enumerate(table) if step in row.standing]
        have = [table[rank].held for rank in ranks]
        classes = {rows for each in have for rows in each}
        if classes and all(
            _is_whole(rows, [each.get(rows, []) for each in have]) for rows in classes
        ):
            return step, ranks
    return -1, []


def _is_whole(rows: int, have: List[List[Range]]) -> bool:
    try:
        plan([*have, []], [*([] for _ in have), [(0, rows)]])
    except Missing:
        return False
    return True


def _share_parts(state: State, sharding: Sharding) -> bool:
    """The same of a sharded state. The parts of a step count only together. If some are lost, the
    copies come before a checkpoint.

    Raises RuntimeError if parts are lost, and there are neither copies nor a checkpoint.
    """
    rank, progress = dist.get_rank(), state._progress
    is_fresh = sharding.is_fresh
    sharding.apply()
    shapes = _signature.digest(_signature.of_model(state.model))
    row = _Row(
        progress.standing,
        progress.farthest,
        shapes,
        sharding.held(),
        sharding.cut,
        is_fresh,
        int(os.environ.get("LOCAL_RANK", 0)),
        state._copies.holdings(),
    )
    table: List[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(table, row)
    state._copies.nodes = _buddy.nodes_of([each.local_rank for each in table])
    step, sources = _newest_held(table)
    if sources:
        state._copies.keep(_buddy.newest_whole([each.copies for each in table])[0])
    else:
        farthest = max(each.farthest for each in table)
        if _go_back_to_copies(state, sharding, [each.copies for each in table], farthest):
            return True
        found = state._load_latest()
        is_new = all(each.is_fresh for each in table)
        if rank == 0 and found:
            where = f"the newest {found}, step {state.steps}"
            if not is_new:
                _tell_lost_part(where, farthest - state.steps)
            elif (_world.generation() or 1) > 1:
                _say(f"no worker has the state any more: goes on from {where}")
        if not found and not is_new:
            raise RuntimeError(
                "a part of the sharded state is lost with its worker, and there is no checkpoint: "
                "the training has to begin anew"
            )
        if not found:
            sharding.begin()
            _begin_alike(state)
        state._begin_here(rank)
        return bool(found)
    if table[rank].shapes != table[sources[0]].shapes:
        raise ShapesDiffer("the model's parameters are not those of the ranks that train")
    receivers = [each for each in range(len(table)) if each not in sources]
    if rank in sources:
        progress.go_on_from(step)
    else:
        sharding.drop()
    source, target = neighbours(rank, sources, receivers)
    if source is not None or target is not None:
        pass_state(state, source, target)
    have = [each.held if number in sources else {} for number, each in enumerate(table)]
    sharding.move(have, [each.cut for each in table])
    if source is not None:
        state._begin_here(rank)
    return True


def _go_back_to_copies(
    state: State, sharding: Sharding, holdings: List[List[_buddy.Held]], farthest: int
) -> bool:
    """Go on from the newest copies of which there are all parts. False: there are none."""
    rank, copies = dist.get_rank(), state._copies
    round, _ = _buddy.newest_whole(holdings)
    table: List[Any] = [None] * dist.get_world_size()
    ranks: List[int] = []
    wanted: Optional[_buddy.Round] = round
    while wanted is not None:  # only what is wanted is read, to see whether it is damaged
        copies.check(wanted)
        dist.all_gather_object(table, copies.holdings())
        round, ranks = _buddy.newest_whole(table)
        wanted = round if round != wanted else None
    copies.keep(round)
    if round is None:
        return False
    if rank in ranks:
        _packed.load(state, sharding, copies.contents(round))
    else:
        sharding.drop()
    source, target = neighbours(
        rank, ranks, [each for each in range(len(table)) if each not in ranks]
    )
    if source is not None or target is not None:
        pass_state(state, source, target)
    dist.all_gather_object(table, (sharding.held(), sharding.cut))
    sharding.move([each[0] for each in table], [each[1] for each in table])
    state._begin_here(rank)
    if rank == 0:
        where = f"copies in the memory of other nodes, step {state.steps}"
        _tell_lost_part(where, farthest - state.steps)
    return True


def _tell_lost_part(where: str, steps: int) -> None:
    """steps: that are lost."""
    _say(
        f"a part of the sharded state is lost with its worker: goes on from {where}: "
        f"{max(0, steps)} step{'' if steps == 1 else 's'} lost"
    )


def _begin_alike(state: State) -> None:
    """Parameters and buffers that are not sharded become those of rank 0."""
    for tensor in state._model_tensors():
        dist.broadcast(tensor, 0)


def _gather(state: State) -> List[List[int]]:
    """For each rank: its two numbers of Standing, its farthest step, a number for its model."""
    shapes = _signature.digest(_signature.of_model(state.model))
    own = [*state._progress.standing, state._progress.farthest, shapes]
    mine = torch.tensor(own)
    gathered = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, mine)
    return [each.tolist() for each in gathered]


def _tell_loss(what: str, state: State, found: bool, step: int) -> None:
    """what: has happened. found: a checkpoint. step: the farthest of any rank, -1: none."""
    if found:
        where = f"the newest checkpoint, step {state.steps}"
    elif step >= 0:
        where = f"step {step}, a part of which is made"
    else:
        where = "the beginning"
    _say(f"{what}: goes on from {where}")


def _say(text: str) -> None:
    print(f"slurm_elastic: {text}", file=sys.stderr, flush=True)
