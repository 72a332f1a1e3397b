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
import traceback
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from . import _events, _generators, _membership, _signature, _suitable, _world, checkpoint
from ._parts import is_optimizer, is_scaler, is_scheduler
from ._progress import Progress
from ._sharing import ShapesDiffer
from .leaving import leave
from .sampler import ElasticSampler

__all__ = ["COLLECTIVE", "ShapesDiffer", "State", "WorldChanged", "run"]

COLLECTIVE = datetime.timedelta(minutes=30)  # for each collective, as torch.distributed has it
TOUCHED = 3  # times the bytes of the parameters, for _touch()
TOUCHED_MOST = 1 << 30  # bytes


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
    values       plain values by name, attributes of the state: State(model, best=0.0) has
                 state.best.

    All of it must be equal on all ranks: one rank gives it to the ranks that lack it. What
    state_dict() of a part leaves out is lost.

    Raises TypeError for a model or parts that are known to be sharded (FSDP, DTensor,
    ZeroRedundancyOptimizer), and for parts without state_dict(); ValueError for another rng or a
    value with a name that the state has already.

    Not thread-safe.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *parts: Any,
        ddp_options: Optional[Dict[str, Any]] = None,
        rng: Optional[str] = "own",
        wrap: bool = True,
        **values: Any,
    ) -> None:
        for part in parts:
            if not hasattr(part, "state_dict") or not hasattr(part, "load_state_dict"):
                raise TypeError(
                    f"{type(part).__name__} has no state_dict() and load_state_dict(): "
                    "give plain values by name"
                )
        if rng not in ("own", "shared", None):
            raise ValueError(f'rng {rng!r}: must be "own", "shared" or None')
        _suitable.check(model, parts)
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
        self._wrap = wrap
        self._names = sorted(values)
        self._callbacks: List[Callable[[State], None]] = []
        self._progress = Progress(model, parts, self._values, self._set_values, rng)
        # Process groups of the world before: each takes its time to end.
        self._former_groups: List[Any] = []
        for name in values:
            if hasattr(self, name):
                raise ValueError(f"{name!r}: a value of the state cannot have this name")
        self._set_values(values)

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
            raise RuntimeError(
                "no optimizer among the parts of the state: make its step and call commit()"
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
        """One step is done. Raises WorldChanged if this world ends after it."""
        if self._progress.end_step():
            # Agents look at the signature when the boundary is passed. A forward pass may have
            # registered a buffer: a worker without this buffer cannot join.
            _events.tell_signature(self._signature())
        event = _events.elastic_event_detected()
        if event:
            raise WorldChanged(event)
        self._progress.keep()
        if self._former_groups:
            self._former_groups.clear()

    # ---- as a whole ------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """For a checkpoint: state_dict() of the model and the parts, values, steps, generators."""
        return {"model": self.model.state_dict(), **self._beside_the_model()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where state_dict() was taken. Raises ValueError if the numbers of parts differ."""
        self.model.load_state_dict(state["model"])
        self._load_beside_the_model(state)

    def _beside_the_model(self) -> Dict[str, Any]:
        parts = [part.state_dict() for part in self._parts]
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
            part.load_state_dict(saved)
        known = {name: state["values"][name] for name in self._names if name in state["values"]}
        self._set_values(known)
        self._progress.load(state["steps"])
        self._seed = state["seed"]
        if self._rng == "shared" and state["generators"] is not None:
            _generators.restore(state["generators"])

    def _load_latest(self) -> bool:
        """Load the newest checkpoint. False: there is none."""
        saved = checkpoint.load_latest()
        if saved is not None:
            self.load_state_dict(saved)
        return saved is not None

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
        return [each.data for each in (*self.model.parameters(), *self.model.buffers())]

    def _signature(self) -> int:
        """Equal on ranks of which one can take over the state of the other."""
        return _signature.digest(_signature.of_state(self.model, self._parts, self._names))


# ---- worlds --------------------------------------------------------------------------------------


def _touch(state: State) -> torch.Tensor:
    """In a newcomer: use the memory that gradients, their buckets and an optimizer will need.

    The caller frees it just before training needs it: it is quick to get again then. Memory that a
    virtual machine must first get from its host takes several times as long, 0.5 s for 100 MB.
    Returns an empty tensor in a worker of the first generation.
    """
    if (_world.generation() or 1) <= 1:
        return torch.ones(0, dtype=torch.uint8)
    trained = [
        each.numel() * each.element_size()
        for each in state.model.parameters()
        if each.requires_grad and each.device.type == "cpu"
    ]
    return torch.ones(min(TOUCHED * sum(trained), TOUCHED_MOST), dtype=torch.uint8)


def _train_in(
    membership: _membership.Membership, train: Callable[[State], Any], state: State
) -> Tuple[bool, Any]:
    """Train in one world. Returns (True, the result of train()), or, if another world follows,
    (False, whether a worker or node of this world was lost).
    """
    lost = False
    try:
        membership.enter()
        result = train(state)
        event = _events.finish()
        if event is None:
            return True, result
        lost = event.kind == "fault"
    except WorldChanged as change:
        lost = change.args[0].kind == "fault"
    except ShapesDiffer:
        raise
    except Exception as error:
        # A broken connection tells of a loss at once, the agents a moment later. If they know of no
        # loss, the error is the script's own.
        if not _events.torn():
            raise
        lost = True
        traceback.clear_frames(error.__traceback__)
        state._progress.undo()
    finally:
        membership.leave(lost)
    state._progress.end_world()
    return False, lost


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

    Raises what train() raises, some seconds later, if no loss is the reason; and what keeps the
    process group from forming. Does not return in a worker that is to leave, nor in one that has
    saved a checkpoint because all workers are started again.
    """
    if not _events.live(state._signature()):
        return _run_in_one_world(train, state)
    touched = _touch(state)
    _events.init()
    # Freeing takes a while: it is done before the other workers come to their boundary.
    del touched
    state._progress.watch()
    world = _events.world()
    while True:
        membership = _membership.Membership(world, state, timeout)
        is_over, result = _train_in(membership, train, state)
        if is_over:
            state._former_groups.clear()
            return result
        # A planned change has named the next world before it. Restart mode and the end of the job
        # name none.
        following = _events.next_world(None if result else 0)
        if following is None:
            checkpoint.save(state.state_dict(), rank=world.rank)
        elif following.save and state._progress.go_on_from_complete():
            # No other worker is left that could save.
            checkpoint.save(state.state_dict(), rank=0)
        if following is None or following.size == 0:
            leave()
        world = following


def _run_in_one_world(train: Callable[[State], Any], state: State) -> Any:
    """Under torchrun, srun or alone."""
    if "RANK" in os.environ:
        dist.init_process_group(_membership.backend())
        _membership.begin(state)
    else:
        if state._load_latest():
            state._begin_here(0)
        for callback in state._callbacks:
            callback(state)
    try:
        return train(state)
    finally:
        _membership.end(state)
