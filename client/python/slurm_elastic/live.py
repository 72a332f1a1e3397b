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

import collections
import contextlib
import datetime
import gc
import hashlib
import inspect
import io
import itertools
import os
import weakref
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist
import torch.nn.parallel.distributed as ddp_module
from torch.nn.parallel import DistributedDataParallel

from . import _events, checkpoint
from ._store import AgentStore
from .leaving import leave
from .sampler import ElasticSampler

FORM_SECONDS = 30.0  # for all ranks of a world to meet, and for each collective
PARCEL_BYTES = 4 << 20  # of a state on its way; a rank hands one on while the next is coming
PARCELS = 8  # on their way at once
ALIGNMENT = 16  # of a tensor in a parcel, which is enough for every type
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


def _taken_apart(value: Any) -> Tuple[Any, List[torch.Tensor]]:
    """A structure without its tensors, and these."""
    tensors: List[torch.Tensor] = []

    def take(tensor: torch.Tensor) -> _Hole:
        tensors.append(tensor)
        return _Hole(tensor)

    return _replace(value, torch.Tensor, take), tensors


def _filled(value: Any, device: torch.device) -> Tuple[Any, List[torch.Tensor]]:
    """A structure with tensors for its holes, and these."""
    tensors: List[torch.Tensor] = []

    def fill(hole: _Hole) -> torch.Tensor:
        tensors.append(hole.empty(device))
        return tensors[-1]

    return _replace(value, _Hole, fill), tensors


class _Parcel(NamedTuple):
    """What goes over the wire at once. Pairs (into, from) are copied before it leaves its first rank, and after it has arrived."""

    bytes: torch.Tensor
    before: List[Tuple[torch.Tensor, torch.Tensor]]
    after: List[Tuple[torch.Tensor, torch.Tensor]]


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _pieces(tensor: torch.Tensor, wire: torch.device) -> Iterator[_Parcel]:
    """Of a large one, as it lies in memory if it lies well there."""
    there = tensor.device == wire and tensor.is_contiguous()
    whole = tensor if there else torch.empty(tensor.shape, dtype=tensor.dtype, device=wire)
    pieces = whole.view(-1).split(PARCEL_BYTES // tensor.element_size())
    for number, piece in enumerate(pieces, 1):
        before = [(whole, tensor)] if number == 1 and not there else []
        after = [(tensor, whole)] if number == len(pieces) and not there else []
        yield _Parcel(piece.view(torch.uint8), before, after)


def _packed(tensors: List[torch.Tensor], wire: torch.device) -> _Parcel:
    """Several small ones."""
    rooms = [-(-_size(tensor) // ALIGNMENT) * ALIGNMENT for tensor in tensors]
    buffer = torch.empty(sum(rooms), dtype=torch.uint8, device=wire)
    places = [
        room[: _size(tensor)].view(tensor.dtype).view(tensor.shape) for tensor, room in zip(tensors, buffer.split(rooms))
    ]
    return _Parcel(buffer, list(zip(places, tensors)), list(zip(tensors, places)))


def _parcels(tensors: List[torch.Tensor], wire: torch.device) -> Iterator[_Parcel]:
    """The same ones on all ranks, wherever and however their tensors lie."""
    small: List[torch.Tensor] = []
    for tensor in tensors:
        if _size(tensor) > PARCEL_BYTES // 2:
            yield from _pieces(tensor, wire)
        elif _size(tensor):
            if sum(map(_size, small)) + _size(tensor) > PARCEL_BYTES:
                yield _packed(small, wire)
                small = []
            small.append(tensor)
    if small:
        yield _packed(small, wire)


def _pass_tensors(tensors: List[torch.Tensor], source: Optional[int], target: Optional[int], wire: torch.device) -> None:
    """They come from the source, unless they are here, and go to the target, if any, while more come."""
    coming: Deque[Tuple[_Parcel, Any]] = collections.deque()
    leaving: Deque[Any] = collections.deque()
    parcels = _parcels(tensors, wire)
    while True:
        for parcel in itertools.islice(parcels, PARCELS - len(coming)):
            coming.append((parcel, None if source is None else dist.irecv(parcel.bytes, source)))
        if not coming:
            break
        parcel, arrival = coming.popleft()
        if arrival is not None:
            arrival.wait()
        for into, content in parcel.before if arrival is None else parcel.after:
            into.copy_(content)
        if target is not None:
            leaving.append(dist.isend(parcel.bytes, target))
            if len(leaving) > PARCELS:
                leaving.popleft().wait()
    for departure in leaving:
        departure.wait()


def _pass_text(text: bytes, source: Optional[int], target: Optional[int], wire: torch.device) -> bytes:
    """The same with bytes of which only the source knows how many they are."""
    length = torch.tensor([len(text)])
    _pass_tensors([length], source, target, wire)
    content = torch.empty(int(length), dtype=torch.uint8) if source is not None else torch.frombuffer(bytearray(text), dtype=torch.uint8)
    _pass_tensors([content], source, target, wire)
    return content.numpy().tobytes()


@contextlib.contextmanager
def _given_away(tensors: List[torch.Tensor]) -> Iterator[None]:
    """Nobody else has them, so that an optimizer that loads them, and copies deeply what it loads, may keep them as they are."""
    for tensor in tensors:
        tensor.__deepcopy__ = lambda memo, tensor=tensor: tensor
    try:
        yield
    finally:
        for tensor in tensors:
            del tensor.__deepcopy__


def _pass_state(state: State, source: Optional[int], target: Optional[int]) -> None:
    """The same with a whole state."""
    wire, model = _wire(state), state._model_tensors()
    buffer = io.BytesIO()
    beside: List[torch.Tensor] = []
    if source is None:
        rest, beside = _taken_apart(state._beside_the_model())
        torch.save(rest, buffer)
    text = _pass_text(buffer.getvalue(), source, target, wire)
    aside = model
    if source is not None:
        rest, beside = _filled(torch.load(io.BytesIO(text)), _device(state))
        if state._is_whole:  # an older one, that must not be broken before the newer one is complete
            aside = [torch.empty_like(tensor) for tensor in model]
    _pass_tensors(aside + beside, source, target, wire)
    if source is not None:
        if aside is not model:
            for tensor, newer in zip(model, aside):
                tensor.copy_(newer)
        with _given_away(beside):
            state._load_beside_the_model(rest)


def _wire(state: State) -> torch.device:
    """Where tensors must be to be sent: gloo's on the host, NCCL's on the GPU."""
    return _device(state) if dist.get_backend() == "nccl" else torch.device("cpu")


def _neighbours(rank: int, sources: List[int], receivers: List[int]) -> Tuple[Optional[int], Optional[int]]:
    """From whom this rank gets the state, and to whom it goes on. From each source goes a line of receivers."""
    for number, source in enumerate(sources):
        line = [source, *receivers[number :: len(sources)]]
        if rank in line:
            place = line.index(rank)
            return line[place - 1] if place else None, line[place + 1] if place + 1 < len(line) else None
    raise ValueError(f"rank {rank} neither has the state nor lacks it")


def _share(state: State) -> bool:
    """Ranks that lack the newest state get it, each from one of those that have it. False: none has any; they have begun
    from the newest checkpoint, or anew."""
    rank, size = dist.get_rank(), dist.get_world_size()
    steps = state._steps if state._is_whole else -1
    mine = torch.tensor([steps, state._shapes()], device=_wire(state))
    gathered = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(gathered, mine)
    table = [each.tolist() for each in gathered]
    newest = max(steps for steps, _ in table)
    if newest < 0:
        state._load_latest()
        return False
    sources = [each for each in range(size) if table[each][0] == newest]
    receivers = [each for each in range(size) if table[each][0] != newest]
    if table[rank][1] != table[sources[0]][1]:
        raise ShapesDiffer("the model's parameters are not those of the ranks that train")
    source, target = _neighbours(rank, sources, receivers)
    if source is not None or target is not None:
        _pass_state(state, source, target)
    return True


# ---- the wrapper ---------------------------------------------------------------------------------------


def _wrap(state: State, is_shared: bool) -> None:
    """Make DistributedDataParallel, without its broadcast of what the ranks have already."""
    options = dict(state._ddp_options)
    function = getattr(ddp_module, "_sync_module_states", None)
    if is_shared and "init_sync" in inspect.signature(DistributedDataParallel).parameters:  # newer releases
        options.setdefault("init_sync", False)
    elif is_shared and function is not None:
        ddp_module._sync_module_states = lambda *args, **kwargs: None
    try:
        state.ddp = DistributedDataParallel(state.model, **options)
    finally:
        if function is not None:
            ddp_module._sync_module_states = function


def _unwrap(state: State) -> None:
    """Drop it. Its reducer has hooks in the parameters and holds on to the group: it must be gone before the next one."""
    wrapper, state.ddp = state.ddp, state.model
    reducer = getattr(wrapper, "reducer", None)
    if reducer is None:
        return
    reference = weakref.ref(reducer)
    del reducer
    for name in ("reducer", "logger", "process_group"):
        wrapper.__dict__.pop(name, None)
    del wrapper
    if reference() is not None:  # held in a cycle: looking for these takes a tenth of a second
        gc.collect()


# ---- worlds ------------------------------------------------------------------------------------------


def _backend() -> str:
    return "nccl" if torch.cuda.is_available() else "gloo"


def _begin(state: State) -> None:
    """The group is formed."""
    is_shared = _share(state)
    for sampler in state._samplers:
        sampler.set_world(dist.get_rank(), dist.get_world_size())
    if any(each.requires_grad for each in state.model.parameters()):
        _wrap(state, is_shared)
    for callback in state._callbacks:
        callback(state)


def _end(state: State) -> None:
    """The wrapper first, whose reducer holds on to the group, and both before another world."""
    _unwrap(state)
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
