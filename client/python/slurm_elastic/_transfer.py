# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends a training state from the ranks that have it to the ranks that lack it.

Each rank with the state starts a line of receivers. Each receiver sends on what it has received
while more arrives: no rank sends more than one state. The state travels in parcels over
torch.distributed. Large tensors travel as they lie in memory, small ones are packed together.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import itertools
import pickle
import queue
import threading
import time
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

from . import _events, _left_behind

PARCEL_BYTES = 4 << 20  # a rank hands one on while the next is coming
IN_PLACE = 16  # of a parcel: a tensor that is larger than this part travels as it lies in memory
PARCELS = 8  # on their way at once
SENT = datetime.timedelta(seconds=20)  # for a parcel to be taken, which is a matter of milliseconds
LOOK = 0.05  # seconds between looks whether the world is torn
LATE = 3.0  # … that a rank of a torn world may still take: less than the leader waits for it
ALIGNMENT = 16  # of a tensor in a parcel, which is enough for every type


class _Hole:
    """Stands for a tensor in a structure that is sent without its tensors."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype, self.device = tuple(tensor.shape), tensor.dtype, tensor.device.type

    def empty(self, device: torch.device) -> torch.Tensor:
        return torch.empty(
            self.shape, dtype=self.dtype, device="cpu" if self.device == "cpu" else device
        )


def replaced(value: Any, kind: type, replacement: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts, lists and tuples; values of one type are replaced."""
    if isinstance(value, kind):
        return replacement(value)
    if isinstance(value, dict):
        copy = type(value)()
        copy.update((key, replaced(each, kind, replacement)) for key, each in value.items())
        return copy
    if type(value) in (list, tuple):
        return type(value)(replaced(each, kind, replacement) for each in value)
    return value


def _device(state: Any) -> torch.device:
    for tensor in state._model_tensors():
        return tensor.device
    return torch.device("cpu")


def _taken_apart(value: Any) -> Tuple[Any, List[torch.Tensor]]:
    """Splits a structure into its form, with a _Hole for each tensor, and the tensors."""
    tensors: List[torch.Tensor] = []

    def take(tensor: torch.Tensor) -> _Hole:
        tensors.append(tensor)
        return _Hole(tensor)

    return replaced(value, torch.Tensor, take), tensors


def _filled(value: Any, device: torch.device) -> Tuple[Any, List[torch.Tensor]]:
    """Puts new, empty tensors into the holes of a structure. Returns it, and the tensors."""
    tensors: List[torch.Tensor] = []

    def fill(hole: _Hole) -> torch.Tensor:
        tensors.append(hole.empty(device))
        return tensors[-1]

    return replaced(value, _Hole, fill), tensors


class _Parcel(NamedTuple):
    """Bytes that are sent at once.

    Pairs (into, from) in `before` are copied before the parcel leaves its first rank, those in
    `after` when it has arrived.
    """

    bytes: torch.Tensor
    before: List[Tuple[torch.Tensor, torch.Tensor]]
    after: List[Tuple[torch.Tensor, torch.Tensor]]


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _on_host(size: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory of the host for bytes that come from or go to a device. A GPU is quicker with pinned
    memory, and PyTorch keeps such memory for the next parcel.
    """
    return torch.empty(size, dtype=dtype, pin_memory=device.type == "cuda")


def _pieces(tensor: torch.Tensor) -> Iterator[_Parcel]:
    """Parcels of a large tensor; without a copy if it is on the host, in one piece."""
    whole = tensor if tensor.is_contiguous() else torch.empty(tensor.shape, dtype=tensor.dtype)
    pieces = whole.view(-1).split(PARCEL_BYTES // tensor.element_size())
    for number, piece in enumerate(pieces, 1):
        before = [(whole, tensor)] if number == 1 and whole is not tensor else []
        after = [(tensor, whole)] if number == len(pieces) and whole is not tensor else []
        content = piece
        if piece.device.type != "cpu":
            content = _on_host(piece.numel(), piece.dtype, piece.device)
            before, after = [(content, piece)], [(piece, content)]
        yield _Parcel(content.view(torch.uint8), before, after)


def _packed(tensors: List[torch.Tensor]) -> _Parcel:
    """One parcel of several small tensors."""
    rooms = [-(-_size(tensor) // ALIGNMENT) * ALIGNMENT for tensor in tensors]
    buffer = _on_host(sum(rooms), torch.uint8, tensors[0].device)
    places = [
        room[: _size(tensor)].view(tensor.dtype).view(tensor.shape)
        for tensor, room in zip(tensors, buffer.split(rooms))
    ]
    return _Parcel(buffer, list(zip(places, tensors)), list(zip(tensors, places)))


def _parcels(tensors: List[torch.Tensor]) -> Iterator[_Parcel]:
    """The parcels for some tensors: the same on all ranks, whatever the tensors' devices."""
    small: List[torch.Tensor] = []
    for tensor in tensors:
        if _size(tensor) > PARCEL_BYTES // IN_PLACE:
            yield from _pieces(tensor)
        elif _size(tensor):
            if sum(map(_size, small)) + _size(tensor) > PARCEL_BYTES:
                yield _packed(small)
                small = []
            small.append(tensor)
    if small:
        yield _packed(small)


class Gate:
    """All operations of an exchange begin in it, until the exchange is over.

    torch.distributed begins an operation in the group that is the default one at that moment. A
    thread that is left behind must not begin any in the group of the next world: there they would
    meet those of others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = True

    def begin(self, operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What the operation returns, which does not wait. Raises ConnectionError if it is over."""
        with self._lock:
            if not self._is_open:
                raise ConnectionError("this exchange is over")
            return operation(*args, **options)

    def close(self) -> None:
        with self._lock:
            self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open


class _Departures:
    """The sends that are on their way, PARCELS at most.

    A thread waits for them. A send does not end with its connection if the receiver is
    lost in the middle of it. This rank may be the only one with the state, so it leaves the thread
    behind when a worker of the world is lost. The thread ends after SENT.
    """

    def __init__(self) -> None:
        self._room = threading.Semaphore(PARCELS)
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: Optional[Exception] = None
        self._thread = _left_behind.start(self._wait)

    def _wait(self) -> None:
        for departure in iter(self._waiting.get, None):
            try:
                if self._error is None:
                    departure.wait(SENT)
            except Exception as error:
                self._error = error
            self._room.release()

    def _take_room(self) -> None:
        while not self._room.acquire(timeout=LOOK):
            if _events.torn(0):
                raise ConnectionError(
                    "the world is torn, and a rank has not taken what was sent to it"
                )
        if self._error is not None:
            raise self._error

    def add(self, departure: Any) -> None:
        self._take_room()
        self._waiting.put(departure)

    def __enter__(self) -> _Departures:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        """Wait until all has been sent, unless an exception is on its way."""
        try:
            for _ in range(PARCELS if kind is None else 0):
                self._take_room()
        finally:
            self._waiting.put(None)
        if kind is None:
            self._thread.join()


class _Route(NamedTuple):
    """Tensors come from the rank `source` and go to the rank `target`; None: no such rank."""

    source: Optional[int]
    target: Optional[int]
    departures: _Departures


def _pass_tensors(tensors: List[torch.Tensor], route: _Route) -> None:
    """Receive tensors and send them on. They must not change before all have been sent."""
    coming: Deque[Tuple[_Parcel, Any]] = collections.deque()
    parcels = _parcels(tensors)
    while True:
        for parcel in itertools.islice(parcels, PARCELS - len(coming)):
            coming.append(
                (parcel, None if route.source is None else dist.irecv(parcel.bytes, route.source))
            )
        if not coming:
            break
        parcel, arrival = coming.popleft()
        if arrival is not None:
            arrival.wait()
        for into, content in parcel.before if arrival is None else parcel.after:
            into.copy_(content)
        if route.target is not None:
            route.departures.add(dist.isend(parcel.bytes, route.target))


def _pass_text(text: bytes, route: _Route) -> bytes:
    """Pass on bytes. Only the first rank of the line knows how many there are."""
    length = torch.tensor([len(text)])
    _pass_tensors([length], route)
    is_here = route.source is None
    content = (
        torch.frombuffer(bytearray(text), dtype=torch.uint8)
        if is_here
        else torch.empty(int(length), dtype=torch.uint8)
    )
    _pass_tensors([content], route)
    return content.numpy().tobytes()


@contextlib.contextmanager
def _given_away(tensors: List[torch.Tensor]) -> Iterator[None]:
    """Marks tensors that nothing else refers to, so that they are not copied deeply.

    An optimizer makes deep copies of what it loads. It may keep these tensors as they are.
    """
    for tensor in tensors:
        tensor.__deepcopy__ = lambda memo, tensor=tensor: tensor
    try:
        yield
    finally:
        for tensor in tensors:
            del tensor.__deepcopy__


def _pass(state: Any, route: _Route) -> None:
    model = state._model_tensors()
    if route.source is None:
        rest, beside = _taken_apart(state._beside_the_model())
        _pass_text(pickle.dumps(rest), route)
        _pass_tensors(model + beside, route)
        return
    rest, beside = _filled(pickle.loads(_pass_text(b"", route)), _device(state))
    # An older one must not be broken before the newer one is complete.
    aside = [torch.empty_like(tensor) for tensor in model] if state._progress.is_whole else model
    _pass_tensors(aside + beside, route)
    if aside is not model:
        for tensor, newer in zip(model, aside):
            tensor.copy_(newer)
    with _given_away(beside):
        state._load_beside_the_model(rest)


def pass_state(state: Any, source: Optional[int], target: Optional[int]) -> None:
    """Receive the whole state from `source` and send it to `target`; None: no such rank."""
    with _Departures() as departures:
        _pass(state, _Route(source, target, departures))


def meet() -> None:
    """Wait until all ranks are here: over gloo, where the loss of a rank is an error."""
    dist.all_reduce(torch.zeros(1))


def neighbours(
    rank: int, sources: List[int], receivers: List[int]
) -> Tuple[Optional[int], Optional[int]]:
    """The rank that sends the state to this one, and the rank that gets it from this one.

    sources, receivers  the ranks that have the state, and those that lack it.

    Raises ValueError if `rank` is in neither list.
    """
    for number, source in enumerate(sources):
        line = [source, *receivers[number :: len(sources)]]
        if rank in line:
            place = line.index(rank)
            return line[place - 1] if place else None, line[place + 1] if place + 1 < len(
                line
            ) else None
    raise ValueError(f"rank {rank} neither has the state nor lacks it")


def exchange(going: Dict[int, List[torch.Tensor]], coming: Dict[int, List[torch.Tensor]]) -> None:
    """Send tensors to ranks and receive tensors from ranks, all at once.

    going   by the rank that gets them.
    coming  by the rank that sends them; the same sizes in the same order as there.

    Returns when this rank has received all and its own have been taken. Large tensors travel as
    they lie in memory, or through the host.

    Raises what torch.distributed raises if a rank is lost, or takes nothing for SENT.
    """
    gate = Gate()
    try:
        _exchange(going, coming, gate)
    finally:
        gate.close()


def _exchange(
    going: Dict[int, List[torch.Tensor]], coming: Dict[int, List[torch.Tensor]], gate: Gate
) -> None:
    rank, size = gate.begin(lambda: (dist.get_rank(), dist.get_world_size()))
    # No two ranks begin with the same receiver.
    targets = sorted(going, key=lambda each: (each - rank) % size)
    sender = _Sender(_in_turns({each: _parcels(going[each]) for each in targets}), gate)
    sources = sorted(coming, key=lambda each: (rank - each) % size)
    parcels = {each: _parcels(coming[each]) for each in sources}
    waiting: Dict[int, Deque[Tuple[_Parcel, Any]]] = {each: collections.deque() for each in sources}
    window = max(1, PARCELS // max(1, len(sources)))

    def fill(source: int) -> None:
        """Each rank that sends finds this one ready to receive."""
        queued = waiting[source]
        for parcel in itertools.islice(parcels[source], window - len(queued)):
            queued.append((parcel, gate.begin(dist.irecv, parcel.bytes, source)))

    for source in sources:
        fill(source)
    while sources:
        sources = [each for each in sources if waiting[each]]
        for source in sources:
            parcel, arrival = waiting[source].popleft()
            fill(source)
            arrival.wait(SENT)
            gate.begin(_events.moved, parcel.bytes.numel())
            for into, content in parcel.after:
                into.copy_(content)
    sender.finish()


def exchange_apart(
    going: Dict[int, List[torch.Tensor]], coming: Dict[int, List[torch.Tensor]]
) -> None:
    """The same, but the loss of a rank keeps nothing back that others send or get.

    Each rank has a thread of its own. Raises the first error when the others have ended, or LATE
    after it is known that the world is torn.
    """
    errors: queue.SimpleQueue[Exception] = queue.SimpleQueue()
    gate = Gate()

    def run(sent: Dict[int, List[torch.Tensor]], received: Dict[int, List[torch.Tensor]]) -> None:
        try:
            _exchange(sent, received, gate)
        except Exception as error:
            errors.put(error)

    threads = [_left_behind.start(run, {rank: each}, {}) for rank, each in going.items()]
    threads += [_left_behind.start(run, {}, {rank: each}) for rank, each in coming.items()]
    try:
        _wait_for(threads)
    finally:
        gate.close()
    if not errors.empty():
        raise errors.get()


def _wait_for(threads: List[threading.Thread]) -> None:
    """Raises ConnectionError LATE after it is known that the world is torn."""
    limit = None
    while alive := [each for each in threads if each.is_alive()]:
        if limit is None and _events.torn(0):
            limit = time.monotonic() + LATE
        if limit is not None and time.monotonic() > limit:
            raise ConnectionError("the world is torn, and a rank neither sends nor takes anything")
        alive[0].join(LOOK)


def _in_turns(parcels: Dict[int, Iterator[_Parcel]]) -> Iterator[Tuple[int, _Parcel]]:
    """(rank, parcel): one for each rank after the other, until there are no more."""
    while parcels:
        for rank, each in list(parcels.items()):
            parcel = next(each, None)
            if parcel is None:
                del parcels[rank]
            else:
                yield rank, parcel


class _Sender:
    """Sends parcels while another thread receives. If that one gives up, this one is left behind,
    begins nothing more, and ends after SENT.
    """

    def __init__(self, parcels: Iterator[Tuple[int, _Parcel]], gate: Gate) -> None:
        self._parcels, self._gate = parcels, gate
        self._error: Optional[Exception] = None
        self._thread = _left_behind.start(self._run)

    def _run(self) -> None:
        departures: Deque[Any] = collections.deque()
        try:
            for rank, parcel in self._parcels:
                if len(departures) == PARCELS:
                    self._await(departures)
                for into, content in parcel.before:
                    into.copy_(content)
                departures.append((self._gate.begin(dist.isend, parcel.bytes, rank), parcel))
            while departures:
                self._await(departures)
        except Exception as error:
            self._error = error

    def _await(self, departures: Deque[Any]) -> None:
        departure, parcel = departures.popleft()
        departure.wait(SENT)
        self._gate.begin(_events.moved, parcel.bytes.numel())

    def finish(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error
