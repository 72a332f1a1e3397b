# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker's part in one world: from when its process group forms until nothing waits in it."""

from __future__ import annotations

import contextlib
import datetime
from typing import TYPE_CHECKING, Any, ContextManager, List, Optional

import torch.distributed as dist

from . import _events, _left_behind, _nccl, _torch_compat, _world
from ._sharing import share
from ._store import AgentStore
from ._wrapper import unwrap, wrap

if TYPE_CHECKING:
    from .live import State

FORGET_SECONDS = 0.5  # for the process groups of a lost world to end


def begin(state: State) -> None:
    """The group has formed: bring the state up to date, wrap the model, call the callbacks."""
    is_shared = share(state)
    for sampler in state._samplers:
        sampler.set_world(dist.get_rank(), dist.get_world_size())
    if state._wrap and any(each.requires_grad for each in state.model.parameters()):
        wrap(state, is_shared)
    elif state._sharding is not None:
        state._clock.watch_sharded(state.model)
    state._mistakes.begin_world()
    for callback in state._callbacks:
        callback(state)


def end(state: State, lost: bool = False) -> List[Any]:
    """Unwrap the model and destroy the process groups. A sharded model is detached before.

    lost  a worker of this world was lost.

    The order matters: the wrapper's reducer holds on to the group, and both must be gone before
    the next world. Returns what does the work of the groups: each ends when nothing refers to it;
    that takes time.
    """
    unwrap(state)
    if not dist.is_initialized():
        _torch_compat.reset_group_count()
        return []
    groups = _torch_compat.group_backends()
    _torch_compat.destroy_groups(lost)
    return groups


def _forget(groups: List[Any]) -> None:
    """End the groups of a lost world: this waits for their threads, at most FORGET_SECONDS.

    A thread of gloo can wait for the rest of a message until the collective's timeout, when the
    connection has ended after a part of the message. Only a thread of its own waits for it then.
    """
    _left_behind.start(groups.clear).join(FORGET_SECONDS)


class Membership:
    """Of one worker in one world. enter() once, then leave() once, even if enter() has failed.

    timeout  for each collective.
    """

    def __init__(self, world: _events.World, state: State, timeout: datetime.timedelta) -> None:
        self._world, self._state, self._timeout = world, state, timeout
        self._store: Optional[AgentStore] = None
        self._guard: Optional[_nccl.Guard] = None

    def enter(self) -> None:
        """Form the process group and bring the state up to date."""
        world, state = self._world, self._state
        _world.enter(world)
        _events.world_forms()
        # No time limit of its own: other workers may have a long step to end first, and the store
        # tells when this world is over.
        self._store = AgentStore(world.generation, world.attempt, timeout=self._timeout)
        _nccl.leave_errors_to_us()
        with _barrier_replaced():
            dist.init_process_group(
                _nccl.backend(),
                store=self._store,
                rank=world.rank,
                world_size=world.size,
                timeout=self._timeout,
            )
        guard = self._guard = _nccl.guard_if_used()
        begin(state)
        if guard is not None:
            guard.arrived()
        _events.world_formed()
        state._progress.begin_world(None if guard is None else guard.arrived)
        state._copies.begin_world()

    def settle(self, lost: bool) -> None:
        """The last step of this world is over. Before the next world is asked for.

        lost  as for leave().
        """
        if self._guard is not None:
            self._guard.end(lost)

    def leave(self, lost: bool) -> None:
        """End the process groups.

        lost  a worker of this world was lost: no other worker waits for this one.
        """
        self._state._copies.end_world(together=False)
        self.settle(lost)
        groups = end(self._state, lost)
        if lost:
            _forget(groups)
        else:
            self._state._former_groups.extend(groups)
        del groups
        _events.world_left()
        if self._store is not None:
            self._store.close()


def _barrier_replaced() -> ContextManager[None]:
    """gloo makes the connections of a group at once: no rank passes init_process_group() alone, and
    the barrier at its end only costs time.
    """
    is_gloo = _nccl.backend() == "gloo"
    return _torch_compat.without_barrier() if is_gloo else contextlib.nullcontext()
