# SPDX-License-Identifier: GPL-2.0-or-later
"""Live resize for PyTorch: workers that stay keep their process, memory and model.

    state = live.State(model, optimizer, scheduler, sampler, best=0.0)

    def train(state):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for x, y in DataLoader(dataset, batch_sampler=sampler):
                loss = loss_function(state.ddp(x), y) * sampler.loss_scale()
                loss.backward()
                state.step()

    live.run(train, state)

step() makes the step of all optimizers of the state and commits it. commit() is for loops that make
the optimizers' step themselves.

When a worker or a node is lost, the other workers go on from the last step that one of them has
committed. The same script runs in restart mode, under torchrun and alone. doc/internals/live.md has
the reasons.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import traceback
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional

import torch
import torch.distributed as dist

from . import (
    _events,
    _generators,
    _membership,
    _nccl,
    _sharded_checkpoint,
    _signature,
    _snapshot,
    _suitable,
    _torch_compat,
    _touched,
    checkpoint,
)
from ._buddy_copies import Copies
from ._final import final, is_final
from ._mistakes import Mistakes
from ._parts import is_optimizer, is_scaler, is_scheduler
from ._progress import Progress
from ._sharding import ShardFunction, Sharding
from ._sharing import ShapesDiffer
from ._step_time import StepClock
from .leaving import leave
from .sampler import ElasticSampler

__all__ = ["COLLECTIVE", "ShapesDiffer", "State", "WorldChanged", "run"]

COLLECTIVE = datetime.timedelta(minutes=30)  # for each collective, as torch.distributed has it
COPY_EVERY = 10  # steps


class WorldChanged(BaseException):
    """Raised by State.commit() and step() after the last step of a world, for run() to catch."""


class State:
    """What training is made of: equal on all ranks after each change of worlds.

    model        on its device. `ddp` is its DistributedDataParallel; each world has a new one.
    parts        objects with state_dict() and load_state_dict(): optimizers, schedulers, a
                 GradScaler, an ElasticSampler. The state calls the sampler's commit() and
                 set_world().
    ddp_options  arguments of DistributedDataParallel.
    rng          how ranks draw random numbers, with the default generators of Python, numpy and
                 PyTorch:
                 "own"     each rank draws its own. The seed is made of the script's seed, the step,
                           and the rank, when the rank begins or receives the state. Ranks that stay
                           go on with their generators.
                 "shared"  all ranks draw the same numbers, as layers that are dropped at random
                           need it. A rank that receives the state gets the sender's generators;
                           they are part of state_dict().
                 None      the state leaves the generators alone.
    wrap         False: `ddp` stays the model, for frameworks that wrap the model themselves.
    shard        shard(model, mesh) calls fully_shard() for the layers of the model and the model
                 itself, on this mesh. It is called once in each world. Each rank then has a part
                 of the model and of what the optimizers keep; ranks send each other what changes
                 hands. `ddp` is the model.
    copies       with `shard`: 1 keeps a copy of each part in the memory of another node, for its
                 loss; 0 keeps none. It takes four times the memory of a part. Default 1.
    copy_every   steps from one copy to the next: with a node at most twice as many are lost, if
                 copies arrive before the next ones are due. Default 10.
    values       plain values by name, attributes of the state: State(model, best=0.0) has
                 state.best.

    All of it must be equal on all ranks: one rank gives it to the ranks that lack it. What
    state_dict() of a part leaves out is lost.

    Raises TypeError for a model or parts that are known to be sharded already (FSDP, DTensor,
    ZeroRedundancyOptimizer), and for parts without state_dict(); ValueError for another rng or a
    value with a name that the state has already, and if `shard` comes with ddp_options, without a
    PyTorch that can run fully_shard() on the host, or with checkpoints on S3 and several nodes.

    Not thread-safe.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *parts: Any,
        ddp_options: Optional[Dict[str, Any]] = None,
        rng: Optional[str] = "own",
        wrap: bool = True,
        shard: Optional[ShardFunction] = None,
        copies: Optional[int] = None,
        copy_every: Optional[int] = None,
        **values: Any,
    ) -> None:
        for part in parts:
            if not hasattr(part, "state_dict") or not hasattr(part, "load_state_dict"):
                raise final(
                    TypeError(
                        f"{type(part).__name__} has no state_dict() and load_state_dict(): "
                        "give plain values by name"
                    )
                )
        if rng not in ("own", "shared", None):
            raise final(ValueError(f'rng {rng!r}: must be "own", "shared" or None'))
        _suitable.check(model, parts)
        if shard is not None:
            _suitable.check_sharding(shard, ddp_options)
        _suitable.check_copies(shard, copies, copy_every)
        self.model = model
        self.ddp: torch.nn.Module = model
        self._parts = parts
        self._samplers = [part for part in parts if isinstance(part, ElasticSampler)]
        self._optimizers = [part for part in parts if is_optimizer(part)]
        self._schedulers = [part for part in parts if is_scheduler(part)]
        self._scalers = [part for part in parts if is_scaler(part)]
        self._ddp_options = dict(ddp_options or {})
        self._rng = rng
        self._seed = torch.initial_seed()
        self._wrap = wrap and shard is None
        self._sharding = None if shard is None else Sharding(model, self._optimizers, shard)
        every = copy_every or COPY_EVERY
        self._copies = Copies(self, self._sharding, 0 if shard is None or copies == 0 else every)
        self._names = sorted(values)
        self._callbacks: List[Callable[[State], None]] = []
        self._clock = StepClock()
        self._progress = Progress(model, parts, self._values, self._set_values, rng)
        # Process groups of the world before: each takes its time to end.
        self._former_groups: List[Any] = []
        self._room = _touched.Room(0)
        for name in values:
            if hasattr(self, name):
                raise final(ValueError(f"{name!r}: a value of the state cannot have this name"))
        self._set_values(values)
        self._mistakes = Mistakes(self)

    # ---- for the training loop -------------------------------------------------------------------

    def on_generation(self, callback: Callable[[State], None]) -> None:
        """Call this in each generation, once its group has formed and the state is in place."""
        self._callbacks.append(callback)

    @property
    def steps(self) -> int:
        """Steps committed in the whole training."""
        return self._progress.steps

    def no_sync(self) -> ContextManager[None]:
        """For all micro batches of a step but the last.

        Each rank sums up its gradients in here. The last micro batch sums them over the ranks.
        """
        if self._sharding is not None:
            return _without_sums(self.model)
        return contextlib.nullcontext() if self.ddp is self.model else self.ddp.no_sync()

    def step(self, schedulers: bool = True) -> None:
        """Make one step, after backward(): optimizers, schedulers, gradients to None, commit().

        All optimizers among the parts step, through the GradScaler if there is one. All schedulers
        step but ReduceLROnPlateau, which needs a figure. If a worker is lost meanwhile, training
        goes on from before or from behind all of this.

        schedulers  False: the schedulers do not count steps, and the script calls them itself, at
                    the end of an epoch for example.

        Raises RuntimeError if no part is an optimizer, and what commit() raises.
        """
        if not self._optimizers:
            raise final(
                RuntimeError(
                    "no optimizer among the parts of the state: make its step and call commit()"
                )
            )
        if self._step_optimizers() and schedulers:
            for scheduler in self._schedulers:
                scheduler.step()
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)
        self.commit()

    def _step_optimizers(self) -> bool:
        """False: the scaler has found infinite gradients, and the optimizers have not stepped."""
        if not self._scalers:
            for optimizer in self._optimizers:
                optimizer.step()
            return True
        scaler = self._scalers[0]
        before = scaler.get_scale()
        for optimizer in self._optimizers:
            scaler.step(optimizer)
        scaler.update()
        return bool(scaler.get_scale() >= before)

    def commit(self) -> None:
        """One step is done. Raises WorldChanged if this world ends after it.

        Raises RuntimeError in the first steps of a world if the script does what is certainly
        wrong: _mistakes.py has the list.
        """
        self._mistakes.at_boundary()
        self._clock.step_ends()
        if self._progress.end_step():
            # Agents look at the signature when the boundary is passed. A forward pass may have
            # registered a buffer: a worker without this buffer cannot join.
            _events.tell_signature(self._signature())
        event = _events.elastic_event_detected()
        if event:
            raise WorldChanged(event)
        self._progress.keep()
        self._copies.boundary()
        if self._former_groups:
            self._former_groups.clear()
        self._room.close()
        self._clock.step_begins()

    # ---- as a whole ------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """For a checkpoint: state_dict() of the model and the parts, values, steps, generators.

        Raises TypeError if the state is sharded: no rank has the whole of it. save() writes it.
        """
        if self._sharding is not None and not self._sharding.is_fresh:
            raise TypeError(
                "the state is sharded, no rank has the whole of it: call state.save() on all ranks"
            )
        return {"model": self.model.state_dict(), **self._beside_the_model()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where state_dict() was taken. Raises ValueError if the numbers of parts differ."""
        self.model.load_state_dict(state["model"])
        self._load_beside_the_model(state)

    def save(self, keep: int = 2) -> None:
        """Write the state as the latest checkpoint. Call it on all ranks, between two steps.

        Rank 0 writes it. If the state is sharded, each rank writes its part, into one checkpoint.

        keep  as in slurm_elastic.save().

        Raises OSError on all ranks of a sharded state if one of them cannot write.
        """
        if self._sharding is None or self._sharding.is_fresh:
            checkpoint.save(self.state_dict(), keep=keep)
        else:
            _sharded_checkpoint.save(self, self._sharding, keep)

    def snapshot(self) -> bool:
        """Keep the state in the memory of nodes, for the loss of all of them, as
        slurm_elastic.snapshot() does. Call it on all ranks, between two steps.

        If the state is sharded, each rank keeps its part.

        Returns whether this process writes.
        """
        if self._sharding is None or self._sharding.is_fresh:
            return _snapshot.snapshot(self.state_dict())
        return self._copies.snapshot()

    def _is_sharded(self, part: Any) -> bool:
        return self._sharding is not None and is_optimizer(part) and not self._sharding.is_fresh

    def _state_of(self, part: Any) -> Any:
        if self._sharding is not None and self._is_sharded(part):
            return self._sharding.optimizer_state(part)
        return part.state_dict()

    def _load_part(self, part: Any, saved: Any) -> None:
        if self._sharding is not None and self._is_sharded(part):
            self._sharding.load_optimizer_state(part, saved)
        else:
            part.load_state_dict(saved)

    def _beside_the_model(self) -> Dict[str, Any]:
        parts = [self._state_of(part) for part in self._parts]
        _suitable.refuse_sharded(parts)
        return {
            "parts": parts,
            "values": self._values(),
            "steps": self._progress.steps,
            "seed": self._seed,
            "generators": _generators.snapshot() if self._rng == "shared" else None,
        }

    def _load_beside_the_model(self, state: Dict[str, Any]) -> None:
        if len(state["parts"]) != len(self._parts):
            raise ValueError(
                f"a state of {len(state['parts'])} parts beside the model: this one has "
                f"{len(self._parts)}"
            )
        for part, saved in zip(self._parts, state["parts"]):
            self._load_part(part, saved)
        known = {name: state["values"][name] for name in self._names if name in state["values"]}
        self._set_values(known)
        self._progress.load(state["steps"])
        self._seed = state["seed"]
        if self._rng == "shared" and state["generators"] is not None:
            _generators.restore(state["generators"])

    def _load_latest(self) -> str:
        """Load the newest checkpoint, or the newest snapshot of a sharded state. Returns which of
        them it is, "" if there is none.
        """
        if self._sharding is not None and not self._sharding.is_fresh:
            return _sharded_checkpoint.load_latest(self, self._sharding)
        saved = checkpoint.load_latest()
        if saved is not None:
            _sharded_checkpoint.refuse(saved)
            self.load_state_dict(saved)
        return "" if saved is None else "checkpoint"

    def _begin_here(self, rank: int) -> None:
        """This rank begins, or goes on with a state that it has received or read."""
        if self._rng == "own":
            _generators.seed(self._seed, self._progress.steps, rank)

    def _values(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _set_values(self, values: Dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def _model_tensors(self) -> List[torch.Tensor]:
        """What is equal on all ranks: all parameters and buffers that are not sharded."""
        found = (*self.model.parameters(), *self.model.buffers())
        return [each.data for each in found if not _torch_compat.is_dtensor(each)]

    def _signature(self) -> int:
        """Equal on ranks of which one can take over the state of the other."""
        return _signature.digest(_signature.of_state(self.model, self._parts, self._names))


@contextlib.contextmanager
def _without_sums(model: torch.nn.Module) -> Iterator[None]:
    """Ranks do not sum the gradients of a sharded model in here."""
    modules = [each for each in model.modules() if _torch_compat.is_fully_sharded(each)]

    def sums(are_made: bool) -> None:
        for each in modules:
            each.set_requires_gradient_sync(are_made, recurse=False)

    sums(False)
    try:
        yield
    finally:
        sums(True)


# ---- worlds --------------------------------------------------------------------------------------


def _hand_over(sharding: Sharding, state: State) -> Optional[_events.World]:
    """All ranks have ended a planned world together, and its group is still there: those that leave
    give away their parts. Returns the next world; None: there is none, and all have saved.
    """
    following = _events.next_world(0)
    if following is None:
        state.save()
        return None
    place = (following.rank, following.size) if following.size else None
    try:
        # Copies first: whoever is lost after that, they are there.
        sharding.hand_over(place, state._copies.hand_over)
    except Exception as error:
        # A rank was lost meanwhile. All ranks then find that some rows are missing.
        print(
            f"slurm_elastic: parts of the state were not handed over: {error}",
            file=sys.stderr,
            flush=True,
        )
    return following


class _Ended(NamedTuple):
    """How a world has ended for this worker."""

    is_over: bool
    """The training is."""
    result: Any
    """Of train(), if it is."""
    following: Optional[_events.World]
    """The next world. None: the workers are started again, or the job ends."""
    has_saved: bool


def _train_in(
    membership: _membership.Membership, train: Callable[[State], Any], state: State
) -> _Ended:
    """Train in one world."""
    lost, sharding = False, state._sharding
    following, is_handed_over, goes_on = None, False, False
    try:
        membership.enter()
        result = train(state)
        state._mistakes.at_end()
        event = _events.finish()
        if event is None:
            return _Ended(True, result, None, False)
        lost, goes_on = event.kind == "fault", True
    except WorldChanged as change:
        lost, goes_on = change.args[0].kind == "fault", True
    except ShapesDiffer:
        raise
    except Exception as error:
        # A broken connection tells of a loss at once, the agents a moment later. If they know of no
        # loss, the error is the script's own.
        if is_final(error) or not _events.torn():
            raise
        lost, goes_on = True, True
        traceback.clear_frames(error.__traceback__)
        state._progress.undo()
    finally:
        try:
            membership.settle(lost)
            if goes_on and sharding is not None:
                state._copies.end_world(together=not lost)
                if not lost:
                    following, is_handed_over = _hand_over(sharding, state), True
                sharding.detach()
        finally:
            membership.leave(lost)
    state._progress.end_world()
    if not is_handed_over:
        # A planned change has named the next world before it. Restart mode and the end of the job
        # name none.
        following = _events.next_world(None if lost else 0)
    return _Ended(False, None, following, is_handed_over)


def run(
    train: Callable[[State], Any], state: State, *, timeout: datetime.timedelta = COLLECTIVE
) -> Any:
    """Form a world, bring the state up to date and call train(state); again in each new world.

    Returns what train() has returned.

    The loss of a worker or a node makes a new world, too. The other workers go on from the last
    step that one of them has committed. All that train() has done since then is undone, and done
    again.

    timeout  for each collective. Agents notice a lost worker earlier; this is for what nobody
             notices.

    Raises RuntimeError if there is a process group already: each world forms its own.

    Raises what train() raises, some seconds later, if no loss is the reason; and what keeps the
    process group from forming. Does not return in a worker that is to leave, nor in one that has
    saved a checkpoint because all workers are started again.
    """
    is_member = _events.live(state._signature())
    if dist.is_initialized() and (is_member or "RANK" in os.environ):
        raise final(
            RuntimeError(
                "there is a process group before live.run(), which forms one in each world: leave out "
                "init_process_group(), and make an Accelerator or a Trainer in train(state)"
            )
        )
    if not is_member:
        return _run_in_one_world(train, state)
    state._room = _touched.of(state)
    _events.init()
    # Freeing takes a while: it is done before the other workers come to their boundary.
    state._room.open()
    state._progress.watch()
    world = _events.world()
    while True:
        membership = _membership.Membership(world, state, timeout)
        ended = _train_in(membership, train, state)
        following = ended.following
        if ended.is_over:
            state._former_groups.clear()
            return ended.result
        if following is None and not ended.has_saved:
            checkpoint.save(state.state_dict(), rank=world.rank)
        elif following is not None and following.save:
            _save_alone(state)
        if following is None or following.size == 0:
            leave()
        world = following


def _save_alone(state: State) -> None:
    """No other worker is left that could save."""
    if state._sharding is not None:
        print(
            "slurm_elastic: no worker has the whole state, which is sharded: the newest checkpoint "
            "stays",
            file=sys.stderr,
            flush=True,
        )
    elif state._progress.go_on_from_complete():
        checkpoint.save(state.state_dict(), rank=0)


def _run_in_one_world(train: Callable[[State], Any], state: State) -> Any:
    """Under torchrun, srun or alone."""
    if "RANK" in os.environ:
        dist.init_process_group(_nccl.backend())
        _membership.begin(state)
    else:
        if state._load_latest():
            state._begin_here(0)
        for callback in state._callbacks:
            callback(state)
    try:
        result = train(state)
        state._mistakes.at_end()
        return result
    finally:
        _membership.end(state)
