# SPDX-License-Identifier: GPL-2.0-or-later
"""Who trains on which samples: arithmetic only, the same for PyTorch, JAX or numpy."""

from __future__ import annotations

import hashlib
import math
from typing import List, Sequence, Union, overload

_MASK = (1 << 64) - 1
_ROUNDS = 8


def split(samples: int, world_size: int) -> List[int]:
    """Shares of `samples` for each of `world_size` ranks, as equal as can be.

    The larger shares are spread evenly over the ranks and begin with rank 0. Spread, so that nodes
    get equal work too, whatever the number of workers on each; from rank 0, so that it has a sample
    whenever there is one. With fewer samples than ranks some shares are 0.
    """
    ends = [-(-rank * samples // world_size) for rank in range(world_size + 1)]
    return [after - before for before, after in zip(ends, ends[1:])]


def batch_sizes(global_batch: int, world_size: int) -> List[int]:
    """Samples of each rank in one step: a list of `world_size` numbers that sum to `global_batch`.

    128 over 24 ranks are 8 of 6 and 16 of 5: [6, 5, 5, 6, 5, 5, ...]. See split() for the order.
    Raises ValueError if there are more ranks than samples.
    """
    if world_size < 1:
        raise ValueError(f"world size {world_size}: must be at least 1")
    if global_batch < 1:
        raise ValueError(f"global batch {global_batch}: must be at least 1 sample")
    if world_size > global_batch:
        raise ValueError(
            f"a global batch of {global_batch} samples cannot be shared by {world_size} workers: raise "
            f"it, or limit the job to {global_batch} workers"
        )
    return split(global_batch, world_size)


class EpochOrder(Sequence[int]):
    """The order of an epoch: a permutation of range(samples), fixed by (seed, epoch) alone.

    order[position] is computed when asked for, in constant time and memory, so that resuming in the
    middle of an epoch of a billion samples costs nothing. A Feistel network over a grid of about
    sqrt(samples) squared, walked until the result lies within range (Black and Rogaway, "Ciphers
    with arbitrary finite domains", 2002). Well mixed, not secret.
    """

    def __init__(self, samples: int, seed: int, epoch: int, shuffle: bool = True) -> None:
        self._samples = samples
        self._shuffle = shuffle
        self._rows = max(1, math.isqrt(samples))
        self._columns = -(-samples // self._rows)
        digest = hashlib.blake2b(f"{seed} {epoch}".encode(), digest_size=8 * _ROUNDS).digest()
        keys = [int.from_bytes(digest[i : i + 8], "little") for i in range(0, len(digest), 8)]
        self._keys = list(zip(keys[::2], keys[1::2]))

    def __len__(self) -> int:
        return self._samples

    @overload
    def __getitem__(self, position: int) -> int: ...

    @overload
    def __getitem__(self, position: slice) -> List[int]: ...

    def __getitem__(self, position: Union[int, slice]) -> Union[int, List[int]]:
        if isinstance(position, slice):
            return [self._at(i) for i in range(*position.indices(self._samples))]
        if not -self._samples <= position < self._samples:
            raise IndexError(f"position {position} of an epoch of {self._samples} samples")
        return self._at(position % self._samples)

    def _at(self, position: int) -> int:
        if not self._shuffle:
            return position
        rows, columns = self._rows, self._columns
        while True:
            row, column = divmod(position, columns)
            for first, second in self._keys:
                row = (row + _mix(column ^ first)) % rows
                column = (column + _mix(row ^ second)) % columns
            position = row * columns + column
            if position < self._samples:
                return position


def _mix(value: int) -> int:
    """A 64-bit hash: multiplication by odd constants, folded."""
    value = value * 0x9E3779B97F4A7C15 & _MASK
    value ^= value >> 32
    value = value * 0xD6E8FEB86659FD93 & _MASK
    return value ^ value >> 32
