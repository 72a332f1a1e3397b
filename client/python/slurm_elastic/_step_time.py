# SPDX-License-Identifier: GPL-2.0-or-later
"""How long this rank itself needs for a step, without what it waits for others.

Ranks wait for each other when they sum gradients, so all of them make their steps at the same time,
and a slow one is seen only in what it does before: it loads its data and calls the model. That time
is measured from the end of a step to the end of the last forward pass of the next one. On a GPU,
events are recorded, and read when they have come: nothing waits for the GPU.

DistributedDataParallel sends buffers around before each forward pass, in which a rank waits for
rank 0. That time is left out: it lies between the calls of the wrapper and of the model.

A rank of a sharded model waits for the parts of the others before the forward pass of each module
that fully_shard() was called for. That time is left out: it lies between two hooks around that of
fully_shard(). A backward pass waits as well, so only the first forward pass of a step counts.

Not measured: models that the script wraps itself, and scripted ones with buffers. Of what
torch.compile() has made, the waits are not seen.
"""

from __future__ import annotations

import collections
import time
from typing import Any, Deque, List, NamedTuple, Optional, Tuple

import torch

from . import _torch_compat
from ._nodes import report_step_time

_WAITING = 16
"""Steps whose events have not come. Beyond that the oldest ones are forgotten."""


class _Step(NamedTuple):
    """Moments, or events of the GPU."""

    begin: Any
    end: Any
    waits: List[Tuple[Any, Any]]
    """From when to when the rank has waited for others in between."""


class StepClock:
    """The clock of one rank."""

    def __init__(self) -> None:
        self._is_measured = self._is_sharded = self._on_gpu = False
        self._begin: Any = None
        self._end: Any = None
        self._called: Any = None  # what the rank may wait in now
        self._waits: List[Tuple[Any, Any]] = []
        self._steps: Deque[_Step] = collections.deque(maxlen=_WAITING)
        self._hooks: List[Any] = []  # on the model, which outlives a world

    def _forget(self) -> None:
        """Of the world before."""
        self._begin = self._end = self._called = None
        self._waits = []
        self._steps.clear()
        self._is_measured = False
        while self._hooks:
            self._hooks.pop().remove()

    def watch(self, wrapper: torch.nn.Module, model: torch.nn.Module) -> None:
        """A world begins: wrapper is the DistributedDataParallel of model in it."""
        self._forget()
        if getattr(wrapper, "broadcast_buffers", True) and any(True for _ in model.buffers()):
            if isinstance(model, torch.jit.ScriptModule):
                return  # it takes no hook
            wrapper.register_forward_pre_hook(self._wait_begins)
            self._hooks = [model.register_forward_pre_hook(self._wait_ends)]
        self._begin_world(model, is_sharded=False)
        wrapper.register_forward_hook(self._forward_ends)

    def watch_sharded(self, model: torch.nn.Module) -> None:
        """A world begins, in which fully_shard() has been called for modules of model.

        The hooks of fully_shard() come first, so the first of ours is put before them.
        """
        self._forget()
        modules = [each for each in model.modules() if _torch_compat.is_fully_sharded(each)]
        if not modules:
            return
        for each in modules:
            self._hooks += [
                each.register_forward_pre_hook(self._wait_begins, prepend=True),
                each.register_forward_pre_hook(self._wait_ends),
            ]
        self._begin_world(model, is_sharded=True)
        self._hooks.append(model.register_forward_hook(self._forward_ends))

    def _begin_world(self, model: torch.nn.Module, is_sharded: bool) -> None:
        parameter = next(model.parameters(), None)
        self._on_gpu = parameter is not None and parameter.is_cuda
        self._is_sharded = is_sharded
        self._is_measured = True

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _ignores(self) -> bool:
        """Whether a hook has nothing to do: the compiler shall not see what reads a clock."""
        if self._is_sharded:
            return _torch_compat.is_compiling() or self._end is not None
        return False

    def _wait_begins(self, *_: Any) -> None:
        if not self._ignores():
            self._called = self._now()

    def _wait_ends(self, *_: Any) -> None:
        """Not for a call of the model itself, past the wrapper."""
        if not self._ignores() and self._called is not None:
            self._waits.append((self._called, self._now()))
            self._called = None

    def _forward_ends(self, *_: Any) -> None:
        if not self._ignores():
            self._end = self._now()

    def step_ends(self) -> None:
        """Report what is known. The first step of a world has no beginning."""
        if self._begin is not None and self._end is not None:
            self._steps.append(_Step(self._begin, self._end, self._waits))
        self._begin = self._end = self._called = None
        self._waits = []
        while self._steps:
            seconds = self._own_seconds(self._steps[0])
            if seconds is None:
                return
            self._steps.popleft()
            report_step_time(seconds)

    def _own_seconds(self, step: _Step) -> Optional[float]:
        """None: the GPU has not come to its end."""
        if self._on_gpu and not step.end.query():
            return None
        waited = sum(self._between(*each) for each in step.waits)
        return max(0.0, self._between(step.begin, step.end) - waited)

    def _between(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) / 1000 if self._on_gpu else float(end - begin)

    def step_begins(self) -> None:
        """The step before has ended, and this worker goes on."""
        self._begin = self._now() if self._is_measured else None
