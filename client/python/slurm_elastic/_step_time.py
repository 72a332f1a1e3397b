# SPDX-License-Identifier: GPL-2.0-or-later
"""How long this rank itself needs for a step, without what it waits for others.

Ranks wait for each other when they sum gradients, so all of them make their steps at the same time,
and a slow one is seen only in what it does before: it loads its data and calls the model. That time
is measured from the end of a step to the end of the last forward pass of the next one. On a GPU,
events are recorded, and read when they have come: nothing waits for the GPU.

Not measured: models with buffers that DistributedDataParallel sends around before each forward
pass, sharded models, and models that the script wraps itself.
"""

from __future__ import annotations

import collections
import time
from typing import Any, Deque, Optional, Tuple

import torch

from ._nodes import report_step_time

_WAITING = 16
"""Steps whose events have not come. Beyond that the oldest ones are forgotten."""


class StepClock:
    """The clock of one rank."""

    def __init__(self) -> None:
        self._is_measured = self._on_gpu = False
        self._begin: Any = None
        self._end: Any = None
        self._pairs: Deque[Tuple[Any, Any]] = collections.deque(maxlen=_WAITING)

    def watch(self, wrapper: torch.nn.Module, model: torch.nn.Module) -> None:
        """A world begins: wrapper is the DistributedDataParallel of model in it."""
        self._begin = self._end = None
        self._pairs.clear()
        self._is_measured = False
        if getattr(wrapper, "broadcast_buffers", True) and any(True for _ in model.buffers()):
            return  # it waits for rank 0 in each forward pass
        parameter = next(model.parameters(), None)
        self._on_gpu = parameter is not None and parameter.is_cuda
        self._is_measured = True
        wrapper.register_forward_hook(self._forward_ends)

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _forward_ends(self, *_: Any) -> None:
        self._end = self._now()

    def step_ends(self) -> None:
        """Report what is known. The first step of a world has no beginning."""
        if self._begin is not None and self._end is not None:
            self._pairs.append((self._begin, self._end))
        self._begin = self._end = None
        while self._pairs:
            seconds = self._seconds(*self._pairs[0])
            if seconds is None:
                return
            self._pairs.popleft()
            report_step_time(seconds)

    def _seconds(self, begin: Any, end: Any) -> Optional[float]:
        if not self._on_gpu:
            return float(end - begin)
        return float(begin.elapsed_time(end)) / 1000 if end.query() else None

    def step_begins(self) -> None:
        """The step before has ended, and this worker goes on."""
        self._begin = self._now() if self._is_measured else None
