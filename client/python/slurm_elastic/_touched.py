# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a newcomer has used before its world begins, and that is quick to use again then.

The first step of a newcomer needs memory that it never had: its part of the state, gathered
parameters, gradients. The kernel clears each page at its first use, and a virtual machine must get
it from its host before. All other workers wait meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import torch

from . import _memory, _world

if TYPE_CHECKING:
    from .live import State

TIMES = 3  # the bytes of the parameters: for gradients, their buckets and an optimizer
SHARDED_TIMES = 2  # of a sharded model: for a part of all these, and gathered parameters
MOST = 1 << 30  # bytes
SHARE = 1 / 4  # of the memory that is left, at most: other newcomers of the node take some too
BLOCK = 16 << 20  # bytes
LARGEST = (32 << 20) - (64 << 10)  # bytes that malloc of glibc takes from its heap at most


class Room:
    """Memory of the host.

    size  bytes.
    kept  open() gives it to malloc, which keeps it until close(), for all that is smaller than
          LARGEST. Else open() gives it back to the kernel.
    """

    def __init__(self, size: int, kept: bool = False) -> None:
        self._blocks: List[torch.Tensor] = []
        self._above: Optional[torch.Tensor] = None
        if not kept:
            self._blocks.append(torch.ones(size, dtype=torch.uint8))
            return
        # malloc of glibc maps what is larger than all that was freed before: from here on it maps
        # only what is larger than this.
        torch.empty(LARGEST, dtype=torch.uint8)
        for _ in range(size // BLOCK):
            self._blocks.append(torch.ones(BLOCK, dtype=torch.uint8))
        # The heap shrinks only at its top. Nobody writes into this one, so it takes no memory.
        self._above = torch.empty(BLOCK, dtype=torch.uint8)

    def open(self) -> None:
        """The world begins."""
        self._blocks = []

    def close(self) -> None:
        """The first step is over: the heap may shrink again."""
        self._above = None


def of(state: State) -> Room:
    """Room for the first step of a newcomer; none in a worker of the first generation."""
    if (_world.generation() or 1) <= 1:
        return Room(0)
    trained = sum(
        each.numel() * each.element_size()
        for each in state.model.parameters()
        if each.requires_grad and each.device.type == "cpu"
    )
    if state._sharding is None:
        return Room(min(TIMES * trained, MOST))
    left = int(SHARE * _memory.available())
    return Room(min(SHARDED_TIMES * trained, MOST, left), kept=True)
