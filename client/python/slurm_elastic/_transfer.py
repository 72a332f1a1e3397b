# SPDX-License-Identifier: GPL-2.0-or-later
"""A training state (live.State) on its way from ranks that have it to those that lack it, over torch.distributed.

From each source goes a line of receivers; each hands on what it has received while more comes, so that nobody sends more than one
state. It goes in parcels: large tensors as they lie in memory, small ones packed together.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import itertools
import pickle
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

PARCEL_BYTES = 4 << 20  # a rank hands one on while the next is coming
PARCELS = 8  # on their way at once
SENT = datetime.timedelta(seconds=20)  # for a parcel to be taken, which is a matter of milliseconds
ALIGNMENT = 16  # of a tensor in a parcel, which is enough for every type


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


def _device(state: Any) -> torch.device:
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


def _wait_sent(departure: Any) -> None:
    """With a time limit: gloo does not tell of a connection that ends before the other rank was ready to receive, and who waits here may be the
    only one that has the state."""
    if dist.get_backend() == "gloo":
        departure.wait(SENT)
    else:
        departure.wait()


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
                _wait_sent(leaving.popleft())
    for departure in leaving:
        _wait_sent(departure)


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


def pass_state(state: Any, source: Optional[int], target: Optional[int]) -> None:
    """The same with a whole state."""
    wire, model = wire_of(state), state._model_tensors()
    text = b""
    beside: List[torch.Tensor] = []
    if source is None:
        rest, beside = _taken_apart(state._beside_the_model())
        text = pickle.dumps(rest)
    text = _pass_text(text, source, target, wire)
    aside = model
    if source is not None:
        rest, beside = _filled(pickle.loads(text), _device(state))
        if state._is_whole:  # an older one, that must not be broken before the newer one is complete
            aside = [torch.empty_like(tensor) for tensor in model]
    _pass_tensors(aside + beside, source, target, wire)
    if source is not None:
        if aside is not model:
            for tensor, newer in zip(model, aside):
                tensor.copy_(newer)
        with _given_away(beside):
            state._load_beside_the_model(rest)


def wire_of(state: Any) -> torch.device:
    """Where tensors must be to be sent: gloo's on the host, NCCL's on the GPU."""
    return _device(state) if dist.get_backend() == "nccl" else torch.device("cpu")


def neighbours(rank: int, sources: List[int], receivers: List[int]) -> Tuple[Optional[int], Optional[int]]:
    """From whom this rank gets the state, and to whom it goes on. From each source goes a line of receivers."""
    for number, source in enumerate(sources):
        line = [source, *receivers[number :: len(sources)]]
        if rank in line:
            place = line.index(rank)
            return line[place - 1] if place else None, line[place + 1] if place + 1 < len(line) else None
    raise ValueError(f"rank {rank} neither has the state nor lacks it")
