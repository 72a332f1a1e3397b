# SPDX-License-Identifier: GPL-2.0-or-later
"""What users do wrong first, and what would give wrong numbers without a word.

A training is looked at in the first steps of each world; after that a step costs one comparison.
Nothing here talks to other ranks. What is certainly wrong raises an error of one line. What some
scripts may do on purpose gets one line, once. Workers that end by such an error are not started
again (_final.py).

mistake                       how it is seen                                      what follows
state.ddp is not called       the parameters have changed, no forward pass went   error
                              through the wrapper
wrapped twice                 a DistributedDataParallel is made of the wrapper,    error
                              of what has one, or of a sharded model
a process group of its own    there is one before live.run() (live.py)            error
fully_shard() without shard=  the model of a state without it is sharded          error
commit() twice for a step     the first steps have work, none, work, none         error, or a line
                                                                                  without sampler
commit() is forgotten         training is over, and there was none                error
                              an optimizer has made FORGOTTEN steps without one   line
optimizer left out            a parameter has changed that belongs to an          error
                              optimizer which the state does not have
sampler left out              an ElasticSampler has given batches                 error
DistributedSampler, or a      it has given what the steps have used               line; error if it
loader of Accelerate's                                                            is of another size
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Set, Tuple

import torch

from . import _torch_compat, sampler
from ._final import final
from ._parts import is_optimizer, is_scaler
from ._world import rank_and_size
from .sampler import ElasticSampler

if TYPE_CHECKING:
    from .live import State

EARLY = 4
"""Boundaries of a world at which it is looked for mistakes."""
FORGOTTEN = 1000
"""Steps of an optimizer without commit() after which the script is told. More than what trainings
do on purpose between two boundaries, which are the mini-batches of a rollout for example."""

_told: Set[str] = set()


def tell(line: str) -> None:
    """Print a line, once, on rank 0."""
    if line not in _told and rank_and_size()[0] == 0:
        _told.add(line)
        print(f"slurm_elastic: {line}", file=sys.stderr, flush=True)


def tell_of_forgotten_commit() -> None:
    """An optimizer has made FORGOTTEN steps without commit()."""
    tell(
        f"{FORGOTTEN} steps of an optimizer without commit(): the world can only change in there. "
        "Call state.step(), or state.commit() after each optimizer.step()"
    )


class _Calls:
    """What a hook has seen. It only sets a constant, so that torch.compile has nothing to guard."""

    is_called = False


def _note_calls(model: Any) -> _Calls:
    """Note forward passes that are for training."""
    calls = _Calls()

    def note(*_: Any) -> None:
        if torch.is_grad_enabled():
            calls.is_called = True

    model.register_forward_pre_hook(note)
    return calls


def watch_data_parallel() -> None:
    """Refuse a DistributedDataParallel of a model that has one. Without effect the second time."""
    from torch.nn.parallel import DistributedDataParallel

    original: Any = DistributedDataParallel.__init__
    if hasattr(original, "is_watched"):
        return

    @functools.wraps(original)
    def init(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if any(isinstance(each, DistributedDataParallel) for each in module.modules()):
            raise final(
                RuntimeError(
                    "the model is in a DistributedDataParallel already: state.ddp is one, do not wrap it"
                )
            )
        if any(_torch_compat.is_dtensor(each) for each in module.parameters()):
            raise final(
                RuntimeError(
                    "the model is sharded by fully_shard(), which sums the gradients: do not wrap it in "
                    "DistributedDataParallel"
                )
            )
        original(self, module, *args, **kwargs)

    vars(init)["is_watched"] = True
    DistributedDataParallel.__init__ = init


# ---- data ----------------------------------------------------------------------------------------


class _Source:
    """An iterator over a sampler that shares out for one world, which gives indices to a loader."""

    def __init__(self, of: Any, kind: str) -> None:
        self.of = weakref.ref(of)
        self.kind = kind
        self.given = 0


_sources: List[_Source] = []


def _watch(kind: Any, words: str) -> None:
    """Count what each sampler of this class gives. Without effect the second time."""
    original: Any = kind.__iter__
    if hasattr(original, "is_watched"):
        return

    def iterate(self: Any) -> Iterator[Any]:
        source = _Source(self, words)
        _sources.append(source)
        try:
            for index in original(self):
                source.given += 1
                yield index
        finally:
            _sources.remove(source)

    vars(iterate)["is_watched"] = True
    kind.__iter__ = iterate


def watch_samplers() -> None:
    """That of PyTorch, and that of Accelerate's prepare(), on which transformers.Trainer relies."""
    from torch.utils.data.distributed import DistributedSampler

    _watch(DistributedSampler, "a DistributedSampler")
    accelerate = sys.modules.get("accelerate.data_loader")
    shard = getattr(accelerate, "BatchSamplerShard", None)
    if shard is not None:
        _watch(shard, "a loader that Accelerate has shared out")


# ---- optimizers ----------------------------------------------------------------------------------


def _version(parameter: Any) -> int:
    try:
        return int(_torch_compat.version_of(_torch_compat.local(parameter)))
    except RuntimeError:  # of an inference tensor
        return 0


def _optimizer_of(parameter: Any) -> Any:
    """An optimizer of this process that has the parameter; None if there is none.

    It goes over all objects: only for a parameter that is suspicious.
    """
    for each in gc.get_objects():
        if issubclass(type(each), torch.optim.Optimizer) and any(
            own is parameter for group in each.param_groups for own in group["params"]
        ):
            return each
    return None


def _is_known(part: Any) -> bool:
    """Whether it is of a kind that keeps no other part's state."""
    return (
        isinstance(part, (ElasticSampler, torch.nn.Module))
        or is_optimizer(part)
        or is_scaler(part)
        or hasattr(part, "last_epoch")  # schedulers
    )


class Mistakes:
    """The look at one training state.

    begin_world() when a world has formed, at_boundary() in each commit(), at_end() after training.
    """

    def __init__(self, state: State) -> None:
        # The state has this object.
        self._state = weakref.ref(state)
        self._early = 0  # boundaries that are still looked at; none without a world
        self._calls: Optional[_Calls] = None
        self._versions: List[Tuple[str, Any, int]] = []
        # A part of the script's own may keep an optimizer or a sampler in its state.
        self._has_unknown = not all(_is_known(part) for part in state._parts)

    def begin_world(self) -> None:
        """The group has formed and the model is wrapped or sharded."""
        state = self._state()
        assert state is not None
        self._is_wrapped = state.ddp is not state.model
        is_watched = self._is_wrapped or state._sharding is not None
        # The hook goes with the wrapper, or with what fully_shard() has added.
        self._calls = _note_calls(state.ddp) if is_watched else None
        watch_data_parallel()
        watch_samplers()
        self._early = EARLY
        self._work: List[bool] = []
        self._was_called = False
        self._drawn = self._given(state)
        self._strange: Optional[ElasticSampler] = None
        self._strange_given = 0
        self._sources: Dict[_Source, int] = {}
        self._versions = [
            (name, each, _version(each))
            for name, each in state.model.named_parameters()
            if each.requires_grad
        ]

    @staticmethod
    def _given(state: State) -> int:
        return sum(each._given for each in state._samplers)

    def _has_trained(self, state: State) -> bool:
        """Whether the parameters have changed by a step, and not by load_state_dict() say."""
        stepped = state._progress.has_stepped
        if stepped is not None:
            return stepped
        return any(_version(each) != version for _, each, version in self._versions)

    # ---- at a boundary ---------------------------------------------------------------------------

    def at_boundary(self) -> None:
        """Before a step is counted. Raises RuntimeError for what is certainly wrong."""
        if not self._early:
            return
        state = self._state()
        assert state is not None
        self._early -= 1
        self._look_at_model(state)
        self._look_at_optimizers(state)
        self._look_at_sampler(state)
        self._look_at_distributed_sampler(state)
        self._look_at_commits(state)
        # The hook stays: to remove it would make torch.compile compile a wrapper again.
        if not self._early:
            self._versions = []

    def _look_at_model(self, state: State) -> None:
        if state._sharding is None and any(
            _torch_compat.is_fully_sharded(each) for each in state.model.modules()
        ):
            raise final(
                RuntimeError(
                    "the script has called fully_shard() for the model of a state without shard=: give "
                    "live.State(..., shard=function), and function(model, mesh) calls it"
                )
            )
        if self._calls is None:
            return
        self._was_called = self._was_called or self._calls.is_called
        if self._is_wrapped and not self._was_called and self._has_trained(state):
            raise final(
                RuntimeError(
                    "the model has trained, and not through state.ddp: each rank would train a model "
                    "of its own. Call state.ddp(x) instead of model(x). A script that sums the "
                    "gradients itself needs live.State(..., wrap=False)"
                )
            )

    def _look_at_optimizers(self, state: State) -> None:
        # A sharded state has been asked for all optimizers when it was made.
        if self._has_unknown or state._sharding is not None:
            return
        kept = {
            id(each)
            for one in state._optimizers
            for group in one.param_groups
            for each in group["params"]
        }
        for name, each, version in self._versions:
            if id(each) not in kept and _version(each) != version:
                found = _optimizer_of(each)
                if found is not None:
                    raise final(
                        RuntimeError(
                            f"{name} is trained by an optimizer ({type(found).__name__}) that is not "
                            "in the state: those that join would not get what it keeps. Give it to "
                            "live.State(model, optimizer, ...)"
                        )
                    )
                return  # changed by the script itself

    def _look_at_sampler(self, state: State) -> None:
        found = sampler.newest()
        if self._has_unknown or state._samplers or found is None:
            return
        if found._is_drawn_out:
            return  # for a validation
        # The second batch: the first one may be of a validation at the beginning.
        if self._strange is found and found._given > self._strange_given:
            what = (
                "an ElasticSampler gives the batches, and it is not in the state: those that join "
                "would not know where the epoch is. Give it to live.State(model, ..., sampler)"
            )
            # The script may commit it and take it from world to world by itself.
            if not found.committed or (found.rank, found.world_size) != rank_and_size():
                raise final(RuntimeError(what))
            tell(what)
        self._strange, self._strange_given = found, found._given

    def _look_at_distributed_sampler(self, state: State) -> None:
        before, self._sources = self._sources, {each: each.given for each in _sources}
        if self._given(state) > self._drawn:
            return  # the state's sampler gives the batches
        for source, given in self._sources.items():
            of = source.of()
            if of is None or given <= before.get(source, given):
                continue  # it gave nothing in this step: it is for something else
            size = rank_and_size()[1]
            what = f"the batches come from {source.kind}"
            ranks = of.num_replicas if hasattr(of, "num_replicas") else of.num_processes
            if ranks != size and self._has_samples_of_its_own(state):
                raise final(
                    RuntimeError(
                        f"{what} of {ranks} ranks in a world of {size}: samples are repeated "
                        "or left out. Take ElasticSampler, and give it to live.State"
                    )
                )
            tell(
                f"{what}: where the world changes its epoch begins anew, and samples are repeated. "
                "Take ElasticSampler, and give it to live.State"
            )

    def _has_samples_of_its_own(self, state: State) -> bool:
        """Whether no rank may have the samples of another one."""
        sharding = state._sharding
        return self._is_wrapped if sharding is None else not sharding.shares_samples

    def _look_at_commits(self, state: State) -> None:
        given = self._given(state)
        is_drawn, self._drawn = given > self._drawn, given
        if self._calls is None:
            return
        # Behind the last draw of an epoch a loader still has what it has drawn ahead.
        is_drawn = is_drawn or any(each._is_drawn_out for each in state._samplers)
        self._work.append(self._calls.is_called or is_drawn)
        self._calls.is_called = False
        if self._work != [True, False, True, False]:
            return
        what = "commit() is called twice for each step: state.step() calls it, the script need not"
        if state._samplers:
            raise final(RuntimeError(f"{what}. Samples would be left out"))
        tell(what)

    # ---- at the end ------------------------------------------------------------------------------

    def at_end(self) -> None:
        """train() has returned. Raises RuntimeError if it has trained and never called commit()."""
        state = self._state()
        assert state is not None
        if state.steps or self._early != EARLY:
            return
        # Where nobody counts steps, parameters may have changed in other ways.
        has_trained = state._progress.has_stepped
        if has_trained is None:
            is_called = self._calls is None or self._calls.is_called
            has_trained = is_called and self._has_trained(state)
        if has_trained:
            raise final(
                RuntimeError(
                    "the training has ended without one commit(): the world could not change. Call "
                    "state.step(), or state.commit() after each optimizer.step()"
                )
            )
