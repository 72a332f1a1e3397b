# SPDX-License-Identifier: GPL-2.0-or-later
"""Live mode on GPUs, whose collectives go over NCCL.

A collective of NCCL returns before the GPU has made it. When a worker is lost, the GPUs of the
others wait for it for ever, and the hosts run on until they need a result. So:

1. A thread aborts NCCL's operations when a worker is lost. The GPUs go on then, with wrong sums.
2. Before the optimizers step, the host waits until the GPU has made all sums of this step, and then
   looks whether a worker is lost. No optimizer ever sees a wrong sum.
3. PyTorch's own watch over NCCL is off: it would end the process. Its monitor is off, too: a
   thread of it looks into the store of a world once a second, even when that world has ended.

The state of a training goes over gloo, from host to host: a broken connection is an error there.
"""

from __future__ import annotations

import os
import threading
from typing import Optional

import torch

from . import _events, _left_behind, _torch_compat

_WATCHES = (
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
)


def backend() -> str:
    """The backend of torch.distributed: on GPUs NCCL for tensors there, and gloo for the rest.

    gloo alone without GPUs, and with PyTorch 1.x, whose groups have one backend.
    """
    if torch.cuda.is_available() and _torch_compat.has_backends_by_device():
        return "cpu:gloo,cuda:nccl"
    return "gloo"


def leave_errors_to_us() -> None:
    """Before a process group forms: PyTorch does not end this process when NCCL has an error."""
    for each in _WATCHES:
        os.environ[each] = "0"


class Guard:
    """Over the operations of NCCL in one world, from when its process group has formed to end()."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._is_aborted = False
        self._thread = _left_behind.start(self._abort_when_lost)

    def _abort_when_lost(self) -> None:
        while not self._over.is_set():
            if _events.torn(_events.SLICE):
                self._abort()
                return

    def _abort(self) -> None:
        self._is_aborted = True
        _torch_compat.abort_nccl()

    def arrived(self) -> None:
        """Wait until the GPU has done what it was told to do.

        Raises ConnectionError if a worker is lost: what the GPU has then may be wrong.
        """
        torch.cuda.current_stream().synchronize()
        if _events.torn(0):
            raise ConnectionError("a worker of this world is lost: its sums are missing")

    def end(self, lost: bool) -> None:
        """No more looks for a lost worker. Before the next world is asked for: libelastic forgets
        this one then, and another thread must not ask about it. What the GPU was told is done, or
        aborted.

        lost  a worker of this world was lost.
        """
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        if not lost:
            torch.cuda.synchronize()
        elif not self._is_aborted:
            self._abort()


def guard_if_used() -> Optional[Guard]:
    """A Guard if the process group has NCCL."""
    return Guard() if _torch_compat.nccl_backends() else None
