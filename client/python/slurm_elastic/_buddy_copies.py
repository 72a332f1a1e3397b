# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of a sharded state in the memory of other nodes. What they are for, and which of them
count, is in _buddy.

A boundary at which copies are due costs the training one copy of the rank's own part, in its own
memory. A thread does the rest: it sends the copy to the buddy, and receives those that this rank
keeps, over the group of the training. It sends in small parcels, so that the training's own
messages are not held up. Then the ranks' threads tell each other whether all have succeeded.
"""

from __future__ import annotations

import queue
import sys
import threading
import zlib
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import torch
import torch.distributed as dist

from . import _buddy, _flat, _left_behind, _memory, _packed, _sharded_snapshot, _world
from ._buddy import Held, Round
from ._transfer import Gate, exchange_apart

if TYPE_CHECKING:
    from ._sharding import Sharding
    from .live import State

PARCEL_BYTES = 1 << 20
QUIET = 5.0  # seconds for the thread to end before some ranks leave
_SPARE = 0.1  # of the memory that is available is left to others
_GRAIN = 1 << 20  # bytes; buffers are multiples of it, so that they can be used again
_COPY, _VOTE = 0x636F7079, 0x766F7465  # tags of messages: nothing else in the group has them


class _Copy(NamedTuple):
    """A copy of a part, its own or that of another rank."""

    held: Held
    buffer: torch.Tensor
    checksum: int
    """CRC-32 of its bytes."""

    @property
    def bytes(self) -> torch.Tensor:
        return self.buffer[: self.held.size]

    def is_right(self) -> bool:
        return _crc(self.bytes, 0) == self.checksum


def _crc(piece: torch.Tensor, before: int) -> int:
    return zlib.crc32(memoryview(piece.numpy()), before)


class Copies:
    """The copies that a process has. It stays over changes of worlds.

    sharding  None, or of `state`.
    every     steps from one copy to the next; 0: there are none.
    """

    def __init__(self, state: State, sharding: Optional[Sharding], every: int) -> None:
        self._state, self._sharding, self._every = state, sharding, every
        self._ledger = _buddy.Ledger()
        self._copies: List[_Copy] = []
        self._spare: List[torch.Tensor] = []
        self._lock = threading.RLock()
        self._copying: Optional[Copying] = None
        self._boundaries = 0  # in this world
        self._is_writing = False  # a snapshot
        self._said = ""
        self.nodes: List[int] = []
        """Of all ranks of this world."""

    # ---- in a world ------------------------------------------------------------------------------

    def begin_world(self) -> None:
        """The state is in place, and all ranks have agreed on what they keep."""
        self._boundaries = 0
        if self._sharding is not None:
            self._copying = Copying(self, _buddy.buddies(self.nodes))

    def boundary(self) -> None:
        """A step is done, and this world goes on."""
        copying = self._copying
        if copying is None or not self._every or not copying.has_buddies:
            return
        self._boundaries += 1
        if copying.error is not None:
            if copying.is_suspect:  # a step was made since, so no worker is lost
                self.end_world(together=False)
                self._say(f"no more copies for other nodes in this world: {copying.error}")
            copying.is_suspect = True
        elif _buddy.is_due(self._boundaries, self._every):
            round = Round(self._state.steps, _world.generation() or 1)
            copying.begin(copying.copy, round, self._copy(round))

    def _copy(self, round: Round) -> Optional[_Copy]:
        """Of this rank's part; None: there is no room for it, or not yet."""
        with self._lock:
            if not self._ledger.begin(round):
                return None
        content = self._content()
        if content is None or self._sharding is None:
            return None
        return _Copy(Held(round, *self._sharding.cut, content[1]), content[0], 0)

    def _content(self) -> Optional[Tuple[torch.Tensor, int]]:
        """A buffer with what this rank has at this boundary, and how many bytes that is."""
        assert self._sharding is not None
        found = _packed.outline(self._state, self._sharding)
        size = _flat.size(found)
        buffer = self.room(size)
        if buffer is None:
            return None
        _packed.fill(buffer, found)
        return buffer, size

    def snapshot(self) -> bool:
        """Write this rank's part of a snapshot. All ranks call it at the same boundary.

        False: not without elasticrun, nor while the one before is being written.
        """
        where = _sharded_snapshot.place(self.nodes) if self._copying is not None else None
        if where is None or self._copying is None:
            return False
        content = None if self._is_writing else self._content()
        self._is_writing = self._is_writing or content is not None
        self._copying.begin(self._write, self._copying, where, content)
        return content is not None

    def _write(
        self,
        copying: Copying,
        where: _sharded_snapshot.Place,
        content: Optional[Tuple[torch.Tensor, int]],
    ) -> None:
        """In the thread."""
        try:
            whole = None if content is None else content[0][: content[1]]
            failure = _sharded_snapshot.write(copying, where, whole)
            if failure:
                self._say(f"no snapshot: {failure}")
        finally:
            if content is not None:
                self.give_back(content[0])
                self._is_writing = False

    def room(self, size: int) -> Optional[torch.Tensor]:
        """A buffer of at least so many bytes; None if there is no memory for it."""
        wanted = -(-size // _GRAIN) * _GRAIN
        with self._lock:
            for number, each in enumerate(self._spare):
                if wanted <= each.numel() <= 2 * wanted:
                    return self._spare.pop(number)
        if wanted <= _memory.available() * (1 - _SPARE):
            return torch.empty(wanted, dtype=torch.uint8)
        self._say(f"no copy for another node: {wanted} bytes do not fit into the memory left")
        return None

    def give_back(self, buffer: torch.Tensor) -> None:
        """A buffer is not needed any more."""
        with self._lock:
            self._spare.append(buffer)

    def add(self, made: List[_Copy]) -> None:
        """This rank has these copies as a whole. Others may know before it that a round is
        complete, and then drop the one before.
        """
        with self._lock:
            self._copies += made

    def end_round(self, round: Round, is_complete: bool) -> None:
        """All ranks have told of a round."""
        with self._lock:
            self._ledger.end(round, is_complete)
            self._tidy()

    def _tidy(self) -> None:
        """Drop the copies of rounds that do not count any more."""
        rounds = self._ledger.rounds
        self._spare += [each.buffer for each in self._copies if each.held.round not in rounds]
        self._copies = [each for each in self._copies if each.held.round in rounds]

    def _say(self, text: str) -> None:
        if text != self._said:
            print(f"slurm_elastic: {text}", file=sys.stderr, flush=True)
        self._said = text

    def wait(self) -> None:
        """Until all copies that have been begun are complete, or are not."""
        if self._copying is not None:
            self._copying.wait()

    def end_world(self, together: bool) -> None:
        """Make no more copies.

        together  all ranks do this after the same step: wait for the thread, which gives up the
                  copy that it is sending.
        """
        copying, self._copying = self._copying, None
        if copying is not None:
            copying.end(QUIET if together else 0)

    # ---- between worlds --------------------------------------------------------------------------

    def holdings(self) -> List[Held]:
        """The copies that this rank has as a whole."""
        with self._lock:
            return [each.held for each in self._copies]

    def hand_over(self, stay: Sequence[bool]) -> None:
        """Before some ranks leave: those that stay get the copies that would be on one node only.
        A collective call of all ranks of a world, which ends.

        stay  for each rank, whether it goes on.

        Raises what torch.distributed raises if a rank is lost. This rank then has all copies that
        have arrived from others.
        """
        if all(stay) or not any(stay) or not self._every:
            return
        rank = dist.get_rank()
        table: List[Any] = [None] * dist.get_world_size()
        with self._lock:
            mine = list(self._copies)
        dist.all_gather_object(table, [(each.held, each.checksum) for each in mine])
        holdings = [[held for held, _ in row] for row in table]
        checksums = {held: checksum for row in table for held, checksum in row}
        going: Dict[int, List[torch.Tensor]] = {}
        coming: Dict[int, List[torch.Tensor]] = {}
        made: Dict[_buddy.Transfer, _Copy] = {}
        transfers = _buddy.before_leaving(holdings, self.nodes, stay)
        for each in (each for each in transfers if each.target == rank):
            buffer = self.room(each.held.size)
            if buffer is not None:
                made[each] = _Copy(each.held, buffer, checksums[each.held])
        # Only what there is room for: where it is missing, the rest goes on all the same.
        dist.all_gather_object(table, list(made))
        for each in (each for row in table for each in row):
            if each.source == rank:
                one = next(copy for copy in mine if copy.held == each.held)
                going.setdefault(each.target, []).append(one.bytes)
            elif each.target == rank:
                coming.setdefault(each.source, []).append(made[each].bytes)
        try:
            exchange_apart(going, coming)
        except Exception:
            self.add([each for each in made.values() if each.is_right()])
            raise
        self.add(list(made.values()))

    def check(self, round: Round) -> None:
        """Drop the copies of a round that are not what they were."""
        with self._lock:
            bad = [each for each in self._copies if each.held.round == round]
            bad = [each for each in bad if not each.is_right()]
            self._copies = [each for each in self._copies if not any(each is one for one in bad)]
        for each in bad:
            self._say(
                f"the copy of part {each.held.part} of step {round.step} is damaged: it is not used"
            )

    def keep(self, round: Optional[Round]) -> None:
        """All ranks have agreed that these are the copies that count."""
        with self._lock:
            self._ledger.keep(round)
            self._tidy()
            self._spare = []  # parts have other sizes in the next world

    def contents(self, round: Round) -> List[Dict[str, Any]]:
        """Of this rank's copies of a round, for _packed.load()."""
        with self._lock:
            return [_flat.view(each.bytes) for each in self._copies if each.held.round == round]


class Copying:
    """The thread that copies in one world.

    partners  for each rank, its buddy; None: nobody has one.
    """

    def __init__(self, copies: Copies, partners: List[Optional[int]]) -> None:
        self._copies = copies
        self._rank, self._size = dist.get_rank(), dist.get_world_size()
        self._buddy = partners[self._rank]
        self._wards = [each for each, buddy in enumerate(partners) if buddy == self._rank]
        self._jobs: queue.Queue[Any] = queue.Queue()
        self._ending, self._gate = threading.Event(), Gate()
        self.error: Optional[Exception] = None
        self.is_suspect = False
        self._leaving: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._left: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sender = _left_behind.start(self._send_all)
        self._thread = _left_behind.start(self._run)

    @property
    def has_buddies(self) -> bool:
        return self._buddy is not None

    @property
    def is_ending(self) -> bool:
        return self._ending.is_set()

    def begin(self, job: Callable[..., None], *args: Any) -> None:
        """Call this in the thread. All ranks begin the same jobs, at the same boundaries."""
        self._jobs.put((job, args))

    def wait(self) -> None:
        self._jobs.join()

    def end(self, seconds: float) -> None:
        """Wait for the thread for so long, which may hang where a rank is lost."""
        self._ending.set()
        self._jobs.put(None)
        if seconds:
            self._thread.join(seconds)
        self._gate.close()

    def _run(self) -> None:
        for job in iter(self._jobs.get, None):
            try:
                if self.error is None:
                    job[0](*job[1])
            except Exception as error:  # of connections that have ended, most often
                self.error = error
            self._jobs.task_done()
        self._leaving.put(None)

    def _send_all(self) -> None:
        for job in iter(self._leaving.get, None):
            try:
                self._left.put(self._send_copy(*job))
            except Exception as error:
                self._left.put(error)

    def copy(self, round: Round, copy: Optional[_Copy]) -> None:
        """A round. copy: of this rank; None: it has none."""
        self._leaving.put((round, copy))  # while this rank receives others
        received = [self._receive(ward, round) for ward in self._wards]
        sent = self._left.get()
        if isinstance(sent, Exception):
            raise sent
        made = [each for each in (*received, sent) if each is not None]
        if self._gate.is_open:
            self._copies.add(made)
        is_complete = self.all(len(made) == len(self._wards) + 1)
        if self._gate.is_open:
            self._copies.end_round(round, is_complete)

    # ---- messages --------------------------------------------------------------------------------

    def _send(self, tensor: torch.Tensor, target: Optional[int], tag: int) -> None:
        self._departure(tensor, target, tag).wait()

    # This holds no reference to the group: a thread that is left behind would end it, while it
    # holds Python's lock.
    def _departure(self, tensor: torch.Tensor, target: Optional[int], tag: int) -> Any:
        return self._gate.begin(dist.isend, tensor, target, tag=tag)

    def _receive_into(self, tensor: torch.Tensor, source: int, tag: int) -> None:
        self._gate.begin(dist.irecv, tensor, source, tag=tag).wait()

    def _receive_numbers(self, count: int, source: int, tag: int) -> List[int]:
        into = torch.empty(count, dtype=torch.int64)
        self._receive_into(into, source, tag)
        found: List[int] = into.tolist()
        return found

    def _send_copy(self, round: Round, copy: Optional[_Copy]) -> Optional[_Copy]:
        """Send a copy to the buddy. Returns it with its checksum; None: it was not sent."""
        head = [*round, *((0, 0, -1) if copy is None else copy.held[1:])]
        self._send(torch.tensor(head), self._buddy, _COPY)
        if copy is None:
            return None
        checksum = 0
        for piece in copy.bytes.split(PARCEL_BYTES):
            if self._ending.is_set():
                self._send(torch.tensor([-1, 0]), self._buddy, _COPY)
                self._copies.give_back(copy.buffer)
                return None
            checksum = _crc(piece, checksum)
            self._send(torch.tensor([len(piece), checksum]), self._buddy, _COPY)
            self._send(piece, self._buddy, _COPY)
        return _Copy(copy.held, copy.buffer, checksum)

    def _receive(self, ward: int, round: Round) -> Optional[_Copy]:
        """The copy of another rank; None: it has sent none, or there is no room for it."""
        step, generation, part, parts, size = self._receive_numbers(5, ward, _COPY)
        if (step, generation) != round:
            raise ConnectionError(f"rank {ward} copies step {step}, this one step {round.step}")
        if size < 0:
            return None
        buffer = self._copies.room(size)
        checksum, at = 0, 0
        while at < size:
            length, checksum = self._receive_numbers(2, ward, _COPY)
            if length < 0:
                if buffer is not None:
                    self._copies.give_back(buffer)
                return None
            if not 0 < length <= size - at:
                raise ConnectionError(f"rank {ward} sends {length} bytes of {size - at}")
            into = torch.empty(length, dtype=torch.uint8) if buffer is None else buffer
            start = 0 if buffer is None else at
            self._receive_into(into[start : start + length], ward, _COPY)
            at += length
        if buffer is None:
            return None
        return _Copy(Held(round, part, parts, size), buffer, checksum)

    def all(self, is_good: bool) -> bool:
        """Whether it is so on all ranks: each tells twice as many others in each turn."""
        distance = 1
        while distance < self._size:
            target = (self._rank + distance) % self._size
            source = (self._rank - distance) % self._size
            word = torch.tensor([int(is_good)])
            departure = self._departure(word, target, _VOTE)
            is_good = bool(self._receive_numbers(1, source, _VOTE)[0]) and is_good
            departure.wait()
            distance *= 2
        return is_good
