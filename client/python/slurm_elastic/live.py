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

step() makes the step of everything that the state has and commits it; commit() is for loops that
make it themselves.

When a worker or a node is lost, the others go on from the last step that one of them has committed.
The same script runs in restart mode, under torchrun and alone. Why it is done so: doc/live.md.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import sys
import threading
import traceback
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Set, Tuple

import torch
import torch.distributed as dist
import torch.optim.lr_scheduler as lr_scheduler

from . import _events, _generators, _suitable, _world, checkpoint
from ._boundary import Boundary, Standing, Stepping, drop_gradients, newest
from ._store import AgentStore
from ._transfer import neighbours, pass_state, wire_of
from ._wrapper import unwrap, wrap
from .leaving import leave
from .sampler import ElasticSampler

FORGET_SECONDS = 0.5  # for the groups of a torn world to end
COLLECTIVE = datetime.timedelta(minutes=30)  # for each collective, as torch.distributed has it
TOUCHED = 3  # times the parameters, …
TOUCHED_MOST = 1 << 30  # … in bytes
# Its name since PyTorch 2.
SCHEDULER = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)


class WorldChanged(BaseException):
    """Raised by State.commit() and step() after the last step of a world, for run() to catch."""


class ShapesDiffer(RuntimeError):
    """This rank's parameters are not those of the ranks that have the state."""


class State:
    """What training is made of: the same on all ranks after each change of worlds.

    model        on its device. `ddp` is its DistributedDataParallel, made anew in each world.
    parts        whatever has state_dict() and load_state_dict(): optimizers, schedulers, a
                 GradScaler, an ElasticSampler, whose commit() and set_world() are then called from
                 here.
    ddp_options  arguments of DistributedDataParallel.
    rng          "own": each rank draws random numbers of its own, of a seed made of the script's,
                 the step and the rank when it begins or receives the state. Those that stay go on
                 with theirs. "shared": all ranks draw the same ones (layers that are dropped at
                 random need that), who receives the state those of who sends it; they are part of
                 state_dict(). None: nothing is done about them. It is about the default generators
                 of Python, numpy and PyTorch.
    wrap         False: `ddp` stays the model, for frameworks that wrap it themselves.
    values       plain values by name, attributes of the state: State(model, best=0.0) has
                 state.best.

    All of it must be the same on all ranks: one gives it to those that lack it. Raises TypeError
    for what is known to be sharded (FSDP, ZeroRedundancyOptimizer, DTensor); what state_dict() of
    another part leaves out is lost.

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
        self._optimizers = [part for part in parts if _is_optimizer(part)]
        self._schedulers = [part for part in parts if _is_scheduler(part)]
        self._scalers = [part for part in parts if _is_scaler(part)]
        self._ddp_options = dict(ddp_options or {})
        self._rng = rng
        self._seed = torch.initial_seed()
        self._wrap = wrap
        self._names = sorted(values)
        self._callbacks: List[Callable[[State], None]] = []
        self._steps = 0
        # Not before the first step of a process that has begun anew: it may have other random
        # parameters than the others.
        self._is_whole = False
        # Steps made, when only the optimizers' part of the last is known to have been.
        self._complete = -1
        self._has_part = False  # of a step that was torn
        self._is_first_step = False  # of a world
        self._stepping: Optional[Stepping] = None  # where workers can be lost
        self._boundary: Optional[Boundary] = None
        # ids of parameters that change though no optimizer has them.
        self._changing: Set[int] = set()
        self._former: List[Any] = []  # groups of the world before, which take their time to end
        for name, value in values.items():
            if hasattr(self, name):
                raise ValueError(f"{name!r}: a value of the state cannot have this name")
            setattr(self, name, value)

    # ---- for the training loop -------------------------------------------------------------------

    def on_generation(self, callback: Callable[[State], None]) -> None:
        """Call this in each generation, once its group is formed and the state in place."""
        self._callbacks.append(callback)

    @property
    def steps(self) -> int:
        """commit()s of the whole training."""
        return self._steps

    def no_sync(self) -> ContextManager[None]:
        """For all micro batches of a step but the last: gradients are summed here, and over the
        ranks with the last one.
        """
        return self.ddp.no_sync() if self.ddp is not self.model else contextlib.nullcontext()

    def step(self, schedulers: bool = True) -> None:
        """One step, after backward(): of all optimizers among the parts, through the GradScaler if
        there is one, and of all schedulers but ReduceLROnPlateau, which wants a figure; gradients
        are set to None; commit(). If a worker is lost meanwhile, training goes on from before or
        from behind all of that, never from between.

        schedulers  False: they do not count steps; the script calls theirs, at the end of an epoch
                    say.

        Raises what commit() raises.
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
        """False: the scaler has found infinite gradients and has left out the step."""
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
        self._count_step()
        if self._is_first_step:
            self._end_first_step()
        event = _events.elastic_event_detected()
        if event:
            raise WorldChanged(event)
        if self._boundary is not None:
            self._boundary.keep()
        if self._former:
            self._former.clear()

    def _count_step(self) -> None:
        for sampler in self._samplers:
            sampler.commit()
        self._steps += 1
        if self._stepping is not None:
            self._stepping.begin()

    # ---- when a step is torn ---------------------------------------------------------------------

    def _watch(self) -> None:
        """Workers can be lost from here on."""
        if self._stepping is None:
            self._stepping = Stepping(self._optimizers)

    def _begin_training(self) -> None:
        """In a world, with the state in place."""
        drop_gradients(self.model)
        if self._stepping is None:
            return
        self._is_first_step = True
        self._stepping.begin()
        kinds = {"optimizers": self._optimizers, "scalers": self._scalers}
        self._boundary = Boundary(
            self.model, self._parts, kinds, self._values, self._rng, self._changing
        )

    def _end_first_step(self) -> None:
        """Before its boundary is passed, which is when the agents look."""
        self._is_first_step = False
        self._is_whole = True  # by now that of one that has begun anew is equal to the others', too
        # A forward may have registered a buffer: who lacks it cannot join.
        _events.tell_signature(_digest(self._outline()))

    def _tear(self) -> None:
        """The step in flight will not be ended."""
        boundary, self._boundary = self._boundary, None
        if boundary is None or self._stepping is None:
            return  # it had not begun
        if self._stepping.none and self._optimizers:
            values, is_undone = boundary.restore()
            for name, value in values.items():
                setattr(self, name, value)
            self._is_whole = self._is_whole and is_undone
            self._has_part = self._has_part or not is_undone
        else:
            self._is_whole = False
            self._has_part = True
            self._complete = self._steps + 1 if self._stepping.all else -1
        self._stepping.begin()

    @property
    def _farthest(self) -> int:
        """As _standing, if nothing better is left anywhere."""
        return self._steps if self._steps or self._has_part else -1

    @property
    def _standing(self) -> Standing:
        return Standing(self._steps if self._is_whole else -1, self._complete)

    def _go_on_from(self, step: int) -> None:
        """From a step that this rank has."""
        if not self._is_whole:
            self._count_step()
            self._is_whole = True
        assert self._steps == step

    def _save_alone(self) -> None:
        """Nobody else is left who would, if this rank has anything."""
        if not self._is_whole and self._complete >= 0:
            self._go_on_from(self._complete)
        if self._is_whole:
            checkpoint.save(self.state_dict(), rank=0)

    def _values(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    # ---- as a whole ------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """For a checkpoint."""
        return {"model": self.model.state_dict(), **self._beside_the_model()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where state_dict() was taken."""
        self.model.load_state_dict(state["model"])
        self._load_beside_the_model(state)

    def _beside_the_model(self) -> Dict[str, Any]:
        parts = [part.state_dict() for part in self._parts]
        _suitable.refuse_sharded(parts)
        return {
            "parts": parts,
            "values": self._values(),
            "steps": self._steps,
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
        for name in self._names:
            setattr(self, name, state["values"].get(name, getattr(self, name)))
        self._steps = state["steps"]
        self._is_whole = True
        self._complete = -1
        self._seed = state["seed"]
        if self._rng == "shared" and state["generators"] is not None:
            _generators.restore(state["generators"])

    def _take_up(self, rank: int) -> None:
        """This rank begins, or goes on with a state that it has received or read."""
        if self._rng == "own":
            _generators.seed(self._seed, self._steps, rank)

    def _load_latest(self) -> bool:
        saved = checkpoint.load_latest()
        if saved is not None:
            self.load_state_dict(saved)
        return saved is not None

    def _model_tensors(self) -> List[torch.Tensor]:
        return [each.data for each in (*self.model.parameters(), *self.model.buffers())]

    def _shapes(self) -> List[Any]:
        """Equal on ranks whose models have the same names, shapes and types."""
        named = (*self.model.named_parameters(), *self.model.named_buffers())
        return [(name, tuple(each.shape), str(each.dtype)) for name, each in named]

    def _outline(self) -> List[Any]:
        """Equal on ranks of which one can take over the state of the other, as far as can be seen
        before training.
        """
        return [self._shapes(), [_outline(part) for part in self._parts], self._names]


def _is_optimizer(part: Any) -> bool:
    return hasattr(part, "param_groups") and hasattr(part, "zero_grad") and hasattr(part, "step")


def _is_scheduler(part: Any) -> bool:
    return isinstance(part, SCHEDULER) and not isinstance(part, lr_scheduler.ReduceLROnPlateau)


def _is_scaler(part: Any) -> bool:
    return all(hasattr(part, name) for name in ("scale", "unscale_", "get_scale", "step", "update"))


def _outline(part: Any) -> List[Any]:
    if isinstance(part, ElasticSampler):
        state = part.state_dict()
        # The seed comes with the state.
        return ["sampler", state["samples"], state["shuffle"], part.global_batch]
    groups = part.param_groups if _is_optimizer(part) else []
    return [type(part).__qualname__, *(len(group["params"]) for group in groups)]


def _digest(value: Any) -> int:
    """1 to 2**56 - 1: equal for what is written alike."""
    return max(1, int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:7], "big"))


def _share(state: State) -> bool:
    """Ranks that lack the newest state get it, each from one of those that have it. If there is
    none, and no checkpoint, it is that of the rank that has come farthest, as the torn step has
    left it. False: they have begun from the newest checkpoint, or anew.
    """
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor(
        [*state._standing, state._farthest, _digest(state._shapes())], device=wire_of(state)
    )
    gathered = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(gathered, mine)
    table = [each.tolist() for each in gathered]
    step, sources = newest([Standing(*row[:2]) for row in table])
    if not sources:
        step, farthest = max((row[2], -each) for each, row in enumerate(table))
        found = state._load_latest()
        if rank == 0 and (_world.generation() or 1) > 1:
            where = (
                f"the newest checkpoint, step {state.steps}"
                if found
                else f"step {step}, a part of which is made"
                if step >= 0
                else "the beginning"
            )
            print(
                f"slurm_elastic: no worker has the state any more: goes on from {where}",
                file=sys.stderr,
                flush=True,
            )
        if found or step < 0:
            state._take_up(rank)
            return False
        sources = [-farthest]
        state._is_whole = rank in sources
    receivers = [each for each in range(size) if each not in sources]
    if table[rank][3] != table[sources[0]][3]:
        raise ShapesDiffer("the model's parameters are not those of the ranks that train")
    if rank in sources:
        state._go_on_from(step)
    source, target = neighbours(rank, sources, receivers)
    if source is not None and not state._is_whole:
        state._complete = -1  # what is received replaces it piece by piece
    if source is not None or target is not None:
        pass_state(state, source, target)
    if source is not None:
        state._take_up(rank)
    return True


# ---- worlds --------------------------------------------------------------------------------------


def _backend() -> str:
    return "nccl" if torch.cuda.is_available() else "gloo"


def _touch(state: State) -> torch.Tensor:
    """In a newcomer: as much memory as gradients, their buckets and an optimizer are going to take,
    to be given back just before. What has been touched is at hand then; what a virtual machine has
    to get from its host first takes several times as long, half a second for 100 MB.
    """
    trained = [
        each
        for each in state.model.parameters()
        if each.requires_grad and each.device.type == "cpu"
    ]
    wanted = (
        TOUCHED * sum(each.numel() * each.element_size() for each in trained)
        if (_world.generation() or 1) > 1
        else 0
    )
    return torch.ones(min(wanted, TOUCHED_MOST), dtype=torch.uint8)


def _begin(state: State) -> None:
    """The group is formed."""
    is_shared = _share(state)
    for sampler in state._samplers:
        sampler.set_world(dist.get_rank(), dist.get_world_size())
    if state._wrap and any(each.requires_grad for each in state.model.parameters()):
        wrap(state, is_shared)
    for callback in state._callbacks:
        callback(state)


def _end(state: State) -> List[Any]:
    """The wrapper first, whose reducer holds on to the group, and both before another world.
    Returns the groups, which end when they are forgotten: that takes them some time.
    """
    unwrap(state)
    if not dist.is_initialized():
        # A group that was never formed has been counted all the same, and this count is in the
        # names under which ranks meet.
        for holder, name in (
            (dist.distributed_c10d, "_group_count"),
            (getattr(dist.distributed_c10d, "_world", None), "group_count"),
        ):
            if hasattr(holder, name):
                setattr(holder, name, 0)
        return []
    groups = list(dist.distributed_c10d._pg_map)
    dist.destroy_process_group()
    return groups


def _forget(groups: List[Any]) -> None:
    """The end of a torn world's groups, which waits for their threads. One of gloo's can wait for
    the rest of a message until the collective's time is over (a part of it had arrived when its
    connection ended), and holds nobody but a thread of its own then.
    """
    ending = threading.Thread(target=groups.clear, daemon=True)
    ending.start()
    ending.join(FORGET_SECONDS)


@contextlib.contextmanager
def _without_barrier() -> Iterator[None]:
    """init_process_group() ends with a barrier that looks every 10 ms. Where the group's
    connections are made at once, as gloo's are, nobody comes so far alone.
    """
    function = getattr(dist.distributed_c10d, "_store_based_barrier", None)
    if function is None or _backend() != "gloo":
        yield
        return
    dist.distributed_c10d._store_based_barrier = lambda *args, **kwargs: None
    try:
        yield
    finally:
        dist.distributed_c10d._store_based_barrier = function


def _abort_when_torn(groups: List[Any], over: threading.Event) -> None:
    """What frees a rank from NCCL, whose waits do not end with connections: not tested, for want of
    GPUs.
    """
    while not over.is_set() and not _events.torn(_events.SLICE):
        pass
    for group in groups if not over.is_set() else []:
        abort = getattr(group, "abort", None) or getattr(group, "_abort", None)
        if abort is not None:
            abort()


class _Membership:
    """In a world: from when its group begins to form until all that waits in it is gone."""

    def __init__(self, world: _events.World, state: State, timeout: datetime.timedelta):
        self._world, self._state, self._timeout = world, state, timeout
        self._store: Optional[AgentStore] = None
        self._aborting: Optional[threading.Thread] = None
        self._over = threading.Event()

    def enter(self) -> None:
        world, state = self._world, self._state
        _world.enter(world)
        _events.world_forms()
        # No limit of its own: others may have a long step to end first, and the store says when
        # this world is over.
        self._store = AgentStore(world.generation, world.attempt, timeout=self._timeout)
        with _without_barrier():
            dist.init_process_group(
                _backend(),
                store=self._store,
                rank=world.rank,
                world_size=world.size,
                timeout=self._timeout,
            )
        if dist.get_backend() == "nccl":
            self._aborting = threading.Thread(
                target=_abort_when_torn,
                args=(list(dist.distributed_c10d._pg_map), self._over),
                daemon=True,
            )
            self._aborting.start()
        _begin(state)
        _events.world_formed()
        state._begin_training()

    def leave(self, torn: bool) -> None:
        """Torn: nobody is there who would wait for this one."""
        groups = _end(self._state)
        self._over.set()
        if self._aborting is not None:
            self._aborting.join()
        if torn:
            _forget(groups)
        else:
            self._state._former.extend(groups)
        del groups
        _events.world_left()
        if self._store is not None:
            self._store.close()


def _train_in(
    membership: _Membership, train: Callable[[State], Any], state: State
) -> Tuple[bool, Any]:
    """(True, what train() has returned), or (False, whether the world was torn): another one
    follows.
    """
    torn = False
    try:
        membership.enter()
        result = train(state)
        event = _events.finish()
        if event is None:
            return True, result
        torn = event.kind == "fault"
    except WorldChanged as change:
        torn = change.args[0].kind == "fault"
    except ShapesDiffer:
        raise
    except Exception as error:
        # A connection tells of a loss at once, the agents a moment later; without one it is the
        # script's own.
        if not _events.torn():
            raise
        torn = True
        traceback.clear_frames(error.__traceback__)
        state._tear()
    finally:
        membership.leave(torn)
    state._boundary = None
    return False, torn


def run(
    train: Callable[[State], Any], state: State, *, timeout: datetime.timedelta = COLLECTIVE
) -> Any:
    """Form a world, bring the state up to date and call train(state); again after each change of
    worlds, until it returns. Returns what it has returned.

    A worker or a node that is lost is such a change, too: the others go on from the last step that
    one of them has committed. All that train() has done since is void, and done again.

    timeout  for each collective. Who is lost is noticed otherwise; this is for what nobody notices.

    Raises what train() raises, some seconds later, if no loss is the reason for it; and whatever
    keeps the group from forming. Does not return in a worker that is to leave, or has saved a
    checkpoint because all are started anew.
    """
    if not _events.live(_digest(state._outline())):
        return _run_in_one_world(train, state)
    touched = _touch(state)
    _events.init()
    del touched  # before the others come to their boundary: this takes a while, too
    state._watch()
    world = _events.world()
    while True:
        is_over, result = _train_in(_Membership(world, state, timeout), train, state)
        if is_over:
            state._former.clear()
            return result
        # After a planned change the next world has been named before; restart mode and the end of
        # the job name none.
        following = _events.next_world(None if result else 0)
        if following is None:
            checkpoint.save(state.state_dict(), rank=world.rank)
        elif following.save:
            state._save_alone()
        if following is None or following.size == 0:
            leave()
        world = following


def _run_in_one_world(train: Callable[[State], Any], state: State) -> Any:
    """Under torchrun, srun or alone."""
    if "RANK" in os.environ:
        dist.init_process_group(_backend())
        _begin(state)
    else:
        if state._load_latest():
            state._take_up(0)
        for callback in state._callbacks:
            callback(state)
    try:
        return train(state)
    finally:
        _end(state)
