# SPDX-License-Identifier: GPL-2.0-or-later
"""ElasticSampler: every sample of an epoch exactly once, through any number of world sizes."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Sized, Union

from . import _events
from ._final import final
from ._world import rank_and_size
from .batches import EpochOrder, batch_sizes, split

_STATE_VERSION = 1

_newest: Optional[weakref.ref[ElasticSampler]] = None
_has_told = False


def newest() -> Optional[ElasticSampler]:
    """The sampler of this process that was the last one to give a batch."""
    return None if _newest is None else _newest()


def tell_if_left_out(state: Any) -> None:
    """Print a line, once, on rank 0, if a checkpoint is written without the sampler of the batches.

    state  what is saved: dictionaries and lists of states, or of objects with one.
    """
    global _has_told
    found = newest()
    if found is None or not found.committed or _has_told:
        return
    if _holds(state, frozenset(found.state_dict())):
        return
    _has_told = True
    if rank_and_size()[0] == 0:
        print(
            "slurm_elastic: an ElasticSampler gives the batches, and it is not in the checkpoint: the "
            "next world would begin the epoch anew. Save sampler.state_dict() with the model",
            file=sys.stderr,
            flush=True,
        )


def _holds(state: Any, keys: FrozenSet[str], depth: int = 4) -> bool:
    """Whether there is a sampler in this, or the state of one, which has these keys."""
    if isinstance(state, ElasticSampler):
        return True
    if isinstance(state, dict):
        if state.keys() == keys:
            return True
        state = state.values()
    elif not isinstance(state, (list, tuple)):
        return False
    return depth > 0 and any(_holds(each, keys, depth - 1) for each in state)


class ElasticSampler:
    """Batches of dataset indices for this rank, for DataLoader's `batch_sampler`.

    Step by step, the next `global_batch` indices of the epoch's permutation are shared among the
    ranks (batch_sizes()); the last step of an epoch takes what is left. Its progress is what
    commit() has counted, never what was drawn from it: a data loader draws ahead.

    A rank that gets nothing in the last step draws one sample of that step all the same, since
    frameworks cannot collate an empty batch; loss_scale() is 0 then, so that it takes part with
    zero gradients, and indices() is empty.

    Use:     DataLoader(dataset, batch_sampler=sampler, num_workers=4, persistent_workers=True)
    or, for datasets that take a list of indices (TensorDataset does), without collation:
             DataLoader(dataset, sampler=sampler, batch_size=None)
    or, without PyTorch:
             while not sampler.finished: x = data[sampler.indices()]; ...; sampler.commit()

    dataset       anything with a length, or the number of samples.
    global_batch  samples per optimizer step, over all ranks; in live mode the same in all worlds.
    seed          of the order, the same on all ranks.
    shuffle       False: epochs go through the data in order.
    rank, world_size   both or none; by default of torch.distributed if initialised, else of $RANK
                  and $WORLD_SIZE, else one process.

    Raises ValueError for wrong values, and if there are more ranks than samples in a batch.
    Not thread-safe.
    """

    def __init__(
        self,
        dataset: Union[int, Sized],
        global_batch: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
    ) -> None:
        _events.guard_forkserver()
        self._samples = dataset if isinstance(dataset, int) else len(dataset)
        if self._samples < 1:
            raise ValueError(f"a dataset of {self._samples} samples: must have at least 1")
        if (rank is None) != (world_size is None):
            raise ValueError(f"rank={rank}, world_size={world_size}: give both or none")
        if rank is None or world_size is None:
            rank, world_size = rank_and_size()
        self._global_batch = global_batch
        self._seed = seed
        self._shuffle = shuffle
        self._version = 0
        self._given = 0  # batches, of all epochs
        self._place(0, 0)
        self.set_world(rank, world_size)

    def _place(self, epoch: int, committed: int) -> None:
        """Go to a position. Iterators from before are not valid any more."""
        self._epoch = epoch
        self._committed = self._drawn = committed
        self._order = EpochOrder(self._samples, self._seed, epoch, self._shuffle)
        self._exhausted = False
        self._version += 1

    # ---- where training is -----------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch of the step in flight."""
        return self._epoch

    @property
    def committed(self) -> int:
        """Samples of this epoch that optimizer steps have used, over all ranks."""
        return self._committed

    @property
    def step(self) -> int:
        """Steps of this epoch that are committed, at this global batch."""
        return -(-self._committed // self._global_batch)

    @property
    def finished(self) -> bool:
        """True once all samples of the epoch are committed."""
        return self._committed == self._samples

    @property
    def global_batch(self) -> int:
        return self._global_batch

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    @property
    def _is_drawn_out(self) -> bool:
        """Whether the last batch of the epoch has been drawn."""
        return self._drawn == self._samples

    def __len__(self) -> int:
        """Steps of a whole epoch, for schedules and progress bars."""
        return -(-self._samples // self._global_batch)

    # ---- the step in flight ----------------------------------------------------------------------

    def batch_size(self) -> int:
        """Samples of the step in flight over all ranks; smaller in the last one, 0 after it."""
        return self._batch_at(self._committed)

    def indices(self) -> List[int]:
        """The dataset indices that this rank trains on in the step in flight; may be empty."""
        self._drawn = max(self._drawn, self._committed + self.batch_size())
        self._note()
        return self._share(self._committed)

    def loss_scale(self, reduction: str = "mean") -> float:
        """What to multiply this rank's loss by before backward(), so that each sample counts alike.

        DistributedDataParallel averages gradients over ranks, which is wrong for unequal batches.
        With W ranks, B samples in the step and b of them here, the factor is W/B for a loss that is
        summed over the local samples (reduction="sum") and b*W/B for their mean: the averaged
        gradient is then that of the mean over all B samples. Losses that are a mean over something
        else than samples (tokens, class weights) need "sum"; so do parts of the local samples whose
        gradients are accumulated, when a small world's share does not fit into memory at once.
        """
        if reduction not in ("mean", "sum"):
            raise ValueError(f'reduction {reduction!r}: must be "mean" or "sum"')
        batch = self.batch_size()
        if batch == 0:
            raise RuntimeError(f"epoch {self._epoch} is finished: there is no step in flight")
        local = split(batch, self._world_size)[self._rank]
        if local == 0:
            return 0.0
        return (local if reduction == "mean" else 1) * self._world_size / batch

    def commit(self) -> None:
        """Count the step in flight as done. To be called on every rank right after
        optimizer.step(), before elastic_event_detected().

        Raises RuntimeError if no batch was drawn for that step.
        """
        batch = self.batch_size()
        if batch == 0 or self._drawn < self._committed + batch:
            raise final(
                RuntimeError(
                    f"commit() without a batch: epoch {self._epoch} has {self._samples} samples, "
                    f"{self._drawn} were drawn and {self._committed} are committed. Call it once for "
                    "each step, and let the loader draw from this sampler"
                )
            )
        self._committed += batch

    def _note(self) -> None:
        """A batch is given."""
        global _newest
        self._given += 1
        if _newest is None or _newest() is not self:
            _newest = weakref.ref(self)

    def _batch_at(self, position: int) -> int:
        return min(self._global_batch, self._samples - position)

    def _share(self, position: int) -> List[int]:
        shares = split(self._batch_at(position), self._world_size)
        begin = position + sum(shares[: self._rank])
        return self._order[begin : begin + shares[self._rank]]

    # ---- iteration -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[List[int]]:
        """This rank's batches from the first step that is not committed to the end of the epoch.

        Raises RuntimeError on a second try to iterate over an epoch that is finished.
        """
        if self.finished and self._exhausted:
            raise RuntimeError(
                f"epoch {self._epoch} is finished: call set_epoch({self._epoch + 1}) first"
            )
        _events.training()
        return self._batches(self._version)

    def _batches(self, version: int) -> Iterator[List[int]]:
        position = self._committed
        while position < self._samples:
            batch = self._batch_at(position)
            self._drawn = max(self._drawn, position + batch)
            self._note()
            yield self._share(position) or [self._order[position]]
            if version != self._version:
                raise RuntimeError(
                    "the sampler's epoch or world has changed under this iterator: iterate anew"
                )
            position += batch
        self._exhausted = True

    def set_epoch(self, epoch: int) -> None:
        """Go to the begin of an epoch. Naming the present one changes nothing, so that a loop that
        is resumed in the middle of an epoch may call it as always.

        Code that runs once at the end of an epoch and then saves should call set_epoch(epoch + 1)
        before it does, or what is saved lies before that code.
        """
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch {epoch!r}: must be a whole number from 0")
        if epoch == self._epoch:
            return
        if self._exhausted and self._committed == 0:
            raise final(
                RuntimeError(
                    f"epoch {self._epoch} was drawn to its end without one commit(): in live "
                    "mode give the sampler to live.State and call state.step(), else call commit() after "
                    "each optimizer.step()"
                )
            )
        self._place(epoch, 0)

    def set_world(self, rank: int, world_size: int) -> None:
        """Take part in another world from the step in flight on. Batches that were drawn and not
        committed are void: leave the loop over the data loader and begin a new one."""
        batch_sizes(self._global_batch, world_size)
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank}: must be 0 to {world_size - 1}")
        self._rank, self._world_size = rank, world_size
        self._place(self._epoch, self._committed)

    # ---- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """The progress: the same on all ranks, and good for any world size and global batch."""
        return {
            "version": _STATE_VERSION,
            "seed": self._seed,
            "epoch": self._epoch,
            "committed": self._committed,
            "samples": self._samples,
            "shuffle": self._shuffle,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where state_dict() was taken; the seed comes with it.

        Raises ValueError, and changes nothing, if it is of another dataset or not such a state.
        """
        expected = self.state_dict()
        if not isinstance(state, dict) or set(state) != set(expected):
            raise ValueError(f"not a state of ElasticSampler: {state!r}")
        if state["version"] != _STATE_VERSION:
            raise ValueError(
                f"sampler state of version {state['version']!r}: this package reads {_STATE_VERSION}"
            )
        for key, what in (("samples", "the dataset's length"), ("shuffle", "shuffle")):
            if state[key] != expected[key]:
                raise ValueError(
                    f"the checkpoint was written with {key}={state[key]!r}, {what} is now "
                    f"{expected[key]!r}: its position means nothing here"
                )
        for key, limit in (("epoch", None), ("committed", self._samples), ("seed", None)):
            value = state[key]
            if type(value) is not int or (key != "seed" and value < 0) or (limit and value > limit):
                raise ValueError(f"sampler state with {key}={value!r}: out of range")
        self._seed = state["seed"]
        self._place(state["epoch"], state["committed"])
