# SPDX-License-Identifier: GPL-2.0-or-later
"""Live resize for PyTorch: workers that stay keep their process, memory and model.

    state = live.State(model, optimizer, scheduler, sampler, best=0.0)

    def train(state):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for x, y in DataLoader(dataset, batch_sampler=sampler):
                loss = loss_function(state.ddp(x), y) * sampler.loss_scale()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                state.commit()

    live.run(train, state)

The same script runs in restart mode, under torchrun and alone. Why it is done so, and what is not there
yet (faults end a world as in restart mode): doc/live.md.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import hashlib
import io
import os
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import _events, checkpoint
from ._store import AgentStore
from .leaving import leave
from .sampler import ElasticSampler

FORM_SECONDS = 30.0  # for all ranks of a world to meet, and for each collective
LEFT_SECONDS = 3.0  # for word of another world, when one could not be formed


class WorldChanged(BaseException):
    """Raised by State.commit() after the last step of a world, for run() to catch."""


class ShapesDiffer(RuntimeError):
    """This rank's parameters are not those of the ranks that have the state."""


class State:
    """What training is made of: the same on all ranks after each change of worlds.

    model        on its device. `ddp` is its DistributedDataParallel, made anew in each world.
    parts        whatever has state_dict() and load_state_dict(): optimizers, schedulers, a GradScaler,
                 an ElasticSampler, whose commit() and set_world() are then called from here.
    ddp_options  arguments of DistributedDataParallel.
    values       plain values by name, attributes of the state: State(model, best=0.0) has state.best.

    Not thread-safe.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *parts: Any,
        ddp_options: Optional[Dict[str, Any]] = None,
        **values: Any,
    ) -> None:
        for part in parts:
            if not hasattr(part, "state_dict") or not hasattr(part, "load_state_dict"):
                raise TypeError(
                    f"{type(part).__name__} has no state_dict() and load_state_dict(): "
                    "give plain values by name"
                )
        self.model = model
        self.ddp: torch.nn.Module = model
        self._parts = parts
        self._samplers = [part for part in parts if isinstance(part, ElasticSampler)]
        self._ddp_options = dict(ddp_options or {})
        self._names = sorted(values)
        self._callbacks: List[Callable[[State], None]] = []
        self._steps = 0
        self._is_whole = False  # not the state of a process that has only begun
        self._in_training = False
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

    def commit(self) -> None:
        """One step is done. Raises WorldChanged if this world ends after it."""
        for sampler in self._samplers:
            sampler.commit()
        self._steps += 1
        event = _events.elastic_event_detected()
        if event:
            raise WorldChanged(event)

    # ---- as a whole ------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """For a checkpoint."""
        return {"model": self.model.state_dict(), **self._beside_the_model()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where state_dict() was taken."""
        self.model.load_state_dict(state["model"])
        self._load_beside_the_model(state)

    def _beside_the_model(self) -> Dict[str, Any]:
        return {
            "parts": [part.state_dict() for part in self._parts],
            "values": {name: getattr(self, name) for name in self._names},
            "steps": self._steps,
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

    def _load_latest(self) -> None:
        saved = checkpoint.load_latest()
        if saved is not None:
            self.load_state_dict(saved)
        self._is_whole = True

    def _model_tensors(self) -> List[torch.Tensor]:
        return [each.data for each in (*self.model.parameters(), *self.model.buffers())]

    def _shapes(self) -> int:
        """Equal on ranks whose models have the same names, shapes and types."""
        named = (*self.model.named_parameters(), *self.model.named_buffers())
        text = repr([(name, tuple(each.shape), str(each.dtype)) for name, each in named])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


# ---- a state on its way ------------------------------------------------------------------------------


class _Hole:
    """Where a tensor is missing in a structure that is sent without its tensors."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype, self.device = tuple(tensor.shape), tensor.dtype, tensor.device.type

    def empty(self, device: torch.device) -> torch.Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device="cpu" if self.device == "cpu" else device)


def _replace(value: Any, kind: type, replacement: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts, lists and tuples, with what is of that kind replaced."""
    if isinstance(value, kind):
        return replacement(value)
    if isinstance(value, dict):
        copy = type(value)()
        copy.update((key, _replace(each, kind, replacement)) for key, each in value.items())
        return copy
    if type(value) in (list, tuple):
        return type(value)(_replace(each, kind, replacement) for each in value)
    return value


def _device(state: State) -> torch.device:
    for tensor in state._model_tensors():
        return tensor.device
    return torch.device("cpu")


def _send(state: State, rank: int) -> None:
    tensors: List[torch.Tensor] = []

    def take(tensor: torch.Tensor) -> _Hole:
        tensors.append(tensor)
        return _Hole(tensor)

    buffer = io.BytesIO()
    torch.save(_replace(state._beside_the_model(), torch.Tensor, take), buffer)
    text = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8).to(_wire(state))
    dist.send(torch.tensor([len(text)], device=_wire(state)), rank)
    dist.send(text, rank)
    for tensor in state._model_tensors() + tensors:
        dist.send(tensor.contiguous().to(_wire(state)), rank)


def _receive(state: State, rank: int) -> None:
    def receive(into: torch.Tensor) -> torch.Tensor:
        wire = into.contiguous().to(_wire(state))
        dist.recv(wire, rank)
        if wire.data_ptr() != into.data_ptr():
            into.copy_(wire)
        return into

    length = receive(torch.zeros(1, dtype=torch.int64))
    text = receive(torch.empty(int(length), dtype=torch.uint8))
    rest = torch.load(io.BytesIO(text.numpy().tobytes()))
    for tensor in state._model_tensors():
        receive(tensor)
    rest = _replace(rest, _Hole, lambda hole: receive(hole.empty(_device(state))))
    state._load_beside_the_model(rest)


def _wire(state: State) -> torch.device:
    """Where tensors must be to be sent: gloo's on the host, NCCL's on the GPU."""
    return _device(state) if dist.get_backend() == "nccl" else torch.device("cpu")


def _share(state: State) -> None:
    """Ranks that lack the newest state get it, each from one of those that have it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    steps = state._steps if state._is_whole else -1
    mine = torch.tensor([steps, state._shapes()], device=_wire(state))
    gathered = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(gathered, mine)
    table = [each.tolist() for each in gathered]
    newest = max(steps for steps, _ in table)
    if newest < 0:
        state._load_latest()
        return
    sources = [each for each in range(size) if table[each][0] == newest]
    receivers = [each for each in range(size) if table[each][0] != newest]
    if table[rank][1] != table[sources[0]][1]:
        raise ShapesDiffer("the model's parameters are not those of the ranks that train")
    for number, receiver in enumerate(receivers):
        source = sources[number % len(sources)]
        if rank == source:
            _send(state, receiver)
        elif rank == receiver:
            _receive(state, source)


# ---- worlds ------------------------------------------------------------------------------------------


def _backend() -> str:
    return "nccl" if torch.cuda.is_available() else "gloo"


def _begin(state: State) -> None:
    """The group is formed."""
    _share(state)
    for sampler in state._samplers:
        sampler.set_world(dist.get_rank(), dist.get_world_size())
    if any(each.requires_grad for each in state.model.parameters()):
        state.ddp = DistributedDataParallel(state.model, **state._ddp_options)
    for callback in state._callbacks:
        callback(state)


def _end(state: State) -> None:
    """The wrapper first, whose reducer holds on to the group, and both before another world."""
    state.ddp = state.model
    gc.collect()
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def _member_of(world: _events.World, state: State) -> Iterator[None]:
    """In that world, with the state of those that have it."""
    patience = datetime.timedelta(seconds=FORM_SECONDS)
    store = AgentStore(world.generation, world.attempt, timeout=patience)
    os.environ.update(
        RANK=str(world.rank),
        WORLD_SIZE=str(world.size),
        LOCAL_RANK=str(world.local_rank),
        LOCAL_WORLD_SIZE=str(world.local_size),
    )
    state._in_training = False
    try:
        dist.init_process_group(
            _backend(), store=store, rank=world.rank, world_size=world.size, timeout=patience
        )
        _begin(state)
        state._in_training = True
        yield
    finally:
        _end(state)
        store.close()


def run(train: Callable[[State], Any], state: State) -> Any:
    """Form a world, bring the state up to date and call train(state); again after each change of worlds, until
    it returns. Returns what it has returned.

    Raises what train() raises, and whatever keeps the group from forming. Does not return in a worker
    that is to leave, or has saved a checkpoint because all are started anew.
    """
    if not _events.live():
        return _run_in_one_world(train, state)
    _events.init()
    world = _events.world()
    while True:
        error: Optional[Exception] = None
        try:
            with _member_of(world, state):
                return train(state)
        except WorldChanged:
            pass
        except ShapesDiffer:
            raise
        except Exception as caught:
            # Another change may have come while this world was forming: nobody has made a step in it.
            if state._in_training:
                raise
            error = caught
        following = _events.next_world(0 if error is None else LEFT_SECONDS)
        if following is None and error is not None:
            raise error
        if following is None:  # restart mode, or the end of the job
            checkpoint.save(state.state_dict(), rank=world.rank)
            leave()
        if following.size == 0:
            leave()
        world = following


def _run_in_one_world(train: Callable[[State], Any], state: State) -> Any:
    """Under torchrun, srun or alone."""
    if "RANK" in os.environ:
        dist.init_process_group(_backend())
        _begin(state)
    else:
        state._load_latest()
        for callback in state._callbacks:
            callback(state)
    try:
        return train(state)
    finally:
        _end(state)
