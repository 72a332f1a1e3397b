# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of an elastic job for torch.distributed. No rank hosts it.

    store = AgentStore()
    place = dist.PrefixStore("first", store)
    dist.init_process_group("gloo", store=place, rank=rank, world_size=size)

The agent of the node listens on a socket ($ELASTIC_STORE; doc/internals/protocol.md, "The store's
socket"). It passes requests on to the leader, which keeps the values. A store belongs to one start
of a world. When that world ends, all calls that wait get an error.

Keep a reference to the store while anything uses it: C++ keeps only its own half alive.
"""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import struct
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Union

import torch.distributed as dist

from . import _world
from ._torch_compat import store_error

CONNECT = 10.0  # seconds for the agent to accept
SLACK = 15.0  # seconds beyond its time limit after which an answer is not waited for any longer
PAUSE = 0.05  # seconds, before what the agent is too busy for is asked again
PIECE = 1 << 18
FRAME_MAX = 3 << 20

REASONS = {
    "gone": "that world is over",
    "lost": "the job's leader is gone",
    "memory": "the leader has no memory left",
}


_OfTorch: Any = store_error()


class StoreError(_OfTorch):
    """A request could not be carried out; the text says which, and why."""


class StoreTimeout(StoreError):
    """What was waited for has not come in time."""


class StoreGone(StoreError):
    """The world that the store belongs to is over."""


class StoreAborted(StoreError):
    """abort() or close() was called."""


class _Closed(Exception):
    """A connection has ended."""


class _Link:
    """One connection. Of the threads that wait for an answer, one reads for all."""

    def __init__(self, path: str):
        self.failure: Optional[str] = None
        self._socket = _connect(path)
        self._buffer = bytearray()
        self._send_lock = threading.Lock()
        self._changed = threading.Condition()
        self._reading = False
        self._torn = False  # what has been received is not in the buffer yet
        self._number = 0
        # Of calls under way, by their number; None: it has not come yet.
        self._answers: Dict[int, Optional[Dict[str, Any]]] = {}

    def call(self, request: Dict[str, Any], until: float) -> Optional[Dict[str, Any]]:
        """The answer; None: it has not come before `until` (time.monotonic()). Raises _Closed."""
        with self._changed:
            self._number += 1
            number = self._number
            self._answers[number] = None
        try:
            self._send(json.dumps({"id": number, **request}).encode())
            while True:
                with self._changed:
                    answer = self._answers[number]
                    if answer is not None:
                        return answer
                    if self.failure is not None:
                        raise _Closed(self.failure)
                    left = until - time.monotonic()
                    if left <= 0:
                        return None
                    if self._reading:
                        self._changed.wait(left)
                        continue
                    self._reading = True
                self._read(until)
        finally:
            with self._changed:
                del self._answers[number]
                self._close_if_unused()

    def shut(self, why: str) -> None:
        """End it: every call that is blocked raises _Closed now."""
        with self._changed:
            if self.failure is None:
                self.failure = why
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self._close_if_unused()
            self._changed.notify_all()

    def forget(self) -> None:
        """In a child after fork: the connection belongs to the parent."""
        self._socket.close()

    def _close_if_unused(self) -> None:
        """Not under the hands of a thread: its number may be another file's at once."""
        if self.failure is not None and not self._answers:
            self._socket.close()

    def _send(self, body: bytes) -> None:
        if len(body) > FRAME_MAX:
            raise StoreError(f"a request of {len(body)} bytes: at most {FRAME_MAX}")
        whole = False
        try:
            with self._send_lock:
                self._socket.sendall(struct.pack(">I", len(body)) + body)
                whole = True
        except OSError as error:
            self.shut(f"the agent does not take requests any more: {error}")
            raise _Closed(self.failure) from None
        finally:
            if not whole:  # a signal's handler has raised: nobody knows how far it has come
                self.shut("a request was interrupted")

    def _read(self, until: float) -> None:
        """Wait for one answer, whoever's it is, or until then."""
        why = None
        try:
            while not self._take() and self._receive(until):
                pass
        except (OSError, ValueError, EOFError) as error:
            why = f"the agent has ended the connection ({error or 'end of file'})"
        finally:
            with self._changed:
                self._reading = False
                if self._torn and why is None:  # a signal's handler has raised
                    why = "reading was interrupted"
                if why is not None and self.failure is None:
                    self.failure = why
                self._changed.notify_all()

    def _take(self) -> bool:
        """Whether an answer was in the buffer."""
        if len(self._buffer) < 4:
            return False
        end = 4 + struct.unpack_from(">I", self._buffer)[0]
        if len(self._buffer) < end:
            return False
        answer = json.loads(self._buffer[4:end])
        with self._changed:
            if answer["id"] in self._answers:
                self._answers[answer["id"]] = answer
            del self._buffer[:end]
        return True

    def _receive(self, until: float) -> bool:
        """Whether something has come by then."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return False
        self._torn = True
        piece = self._socket.recv(PIECE)
        self._buffer += piece
        self._torn = False
        if not piece:
            raise EOFError
        return True


def _connect(path: str) -> socket.socket:
    """The directory's path may be longer than a socket's address: go by its descriptor."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = -1
    try:
        directory = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY)
        connection.settimeout(CONNECT)
        connection.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        connection.settimeout(None)
        return connection
    except OSError as error:
        connection.close()
        raise StoreError(f"the agent's store {path} cannot be reached: {error}") from None
    finally:
        if directory >= 0:
            os.close(directory)


_stores: weakref.WeakSet[AgentStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store._after_fork()


os.register_at_fork(after_in_child=_after_fork)


class AgentStore(dist.Store):
    """The store of one start of a world.

    generation, attempt  of the world; by default of the one that this process was started for.
    timeout              how long get and wait take at most, unless a call names another time.

    Threads may share a store. After fork the child has a connection of its own. A key has 1 to 1024
    bytes, a value at most 1 MiB. Errors are StoreError and its subclasses.
    """

    def __init__(
        self,
        generation: Optional[int] = None,
        attempt: Optional[int] = None,
        path: Optional[str] = None,
        timeout: timedelta = timedelta(minutes=5),
    ):
        super().__init__()
        self._path = path or _world.value("ELASTIC_STORE") or ""
        if not self._path:
            raise StoreError("no store: ELASTIC_STORE is not set, as it is for elastic workers")
        self._generation = _number("ELASTIC_GENERATION") if generation is None else generation
        self._attempt = _number("ELASTIC_ATTEMPT") if attempt is None else attempt
        self._ended: Optional[str] = None
        self._clones: List[AgentStore] = []
        self._after_fork(first=True)
        self.set_timeout(timeout)
        _stores.add(self)

    # ---- torch's names --------------------------------------------------------------------------

    def set(self, key: str, value: Union[str, bytes]) -> None:
        """Set a value, whether there is one or not."""
        self._ask("set", key, value=_text(value))

    def get(self, key: str) -> bytes:
        """The value of a key. Waits until there is one."""
        return _bytes(self._ask("get", key, timeout=self._seconds(None)))

    def add(self, key: str, amount: int) -> int:
        """Add to an integer; a missing one counts as 0. Returns the sum."""
        return self._ask("add", key, amount=int(amount))["number"]

    def compare_set(
        self, key: str, expected: Union[str, bytes], desired: Union[str, bytes]
    ) -> bytes:
        """Set the value if it equals `expected`, or if `expected` is "" and there is no value.

        Returns the value after that; `expected` if there is none.
        """
        answer = self._ask("compare_set", key, value=_text(desired), expected=_text(expected))
        return _bytes(answer)

    def delete_key(self, key: str) -> bool:
        """Delete a key. Returns whether it was there."""
        return bool(self._ask("delete", key)["number"])

    def num_keys(self) -> int:
        """The number of keys of this start of the world, of all ranks."""
        return self._ask("num_keys")["number"]

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return bool(self._ask("check", keys=list(keys))["number"])

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        """Wait until all keys are there."""
        self._ask("wait", keys=list(keys), timeout=self._seconds(timeout))

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of get, and of wait without one of its own."""
        super().set_timeout(timeout)

    def multi_get(self, keys: Sequence[str]) -> List[bytes]:
        """The values of several keys. Waits until all are there."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Union[str, bytes]]) -> None:
        """Set several keys, one after the other."""
        for key, value in zip(keys, values):
            self.set(key, value)

    def clone(self) -> AgentStore:
        """Another store of the same world, with a connection of its own."""
        self._clones.append(AgentStore(self._generation, self._attempt, self._path, self.timeout))
        return self._clones[-1]

    # C++ looks for these two by its own names.
    deleteKey = delete_key
    getNumKeys = num_keys

    # ---- ours -----------------------------------------------------------------------------------

    def abort(self, reason: str = "aborted") -> None:
        """Make all calls raise StoreAborted, of all threads: those that wait, and later ones."""
        if self._ended is None:
            self._ended = reason
        link = self._link  # without the lock, whose holder may be connecting
        if link is not None:
            link.shut(self._ended)
        for clone in self._clones:
            clone.abort(reason)

    def close(self) -> None:
        """Close the connection; later calls raise StoreAborted."""
        self.abort("closed")

    def _after_fork(self, first: bool = False) -> None:
        if not first and self._link is not None:
            self._link.forget()
        self._link: Optional[_Link] = None
        self._lock = threading.Lock()

    def _connection(self) -> _Link:
        with self._lock:
            if self._ended is None and (self._link is None or self._link.failure is not None):
                self._link = _Link(self._path)
            # abort() may have set it while the link was connecting: abort() takes no lock.
            if self._ended is not None:
                if self._link is not None:
                    self._link.shut(self._ended)
                raise _Closed(self._ended)
            assert self._link is not None
            return self._link

    def _seconds(self, timeout: Optional[timedelta]) -> float:
        timeout = self.timeout if timeout is None else timeout
        return max(0.0, timeout.total_seconds())

    def _ask(self, op: str, key: Optional[str] = None, **fields: Any) -> Dict[str, Any]:
        """The answer without error, or StoreError."""
        request = {"op": op, "gen": self._generation, "attempt": self._attempt, **fields}
        if key is not None:
            request["key"] = key
        limit = time.monotonic() + fields.get("timeout", self._seconds(None))
        while True:
            try:
                answer = self._connection().call(request, limit + SLACK)
            except _Closed as error:
                kind = StoreError if self._ended is None else StoreAborted
                raise kind(f"{self._what(request)}: {error}") from None
            if answer is None:
                raise StoreTimeout(f"{self._what(request)}: the agent does not answer")
            if answer.get("error") != "busy":
                break
            time.sleep(PAUSE)
            left = limit - time.monotonic()
            if left < 0:
                raise StoreTimeout(f"{self._what(request)}: the agent is too busy")
            if "timeout" in request:
                request["timeout"] = left
        code = answer.get("error")
        if code is None:
            return answer
        if code == "timeout":
            raise StoreTimeout(f"{self._what(request)}: not there after {fields['timeout']:g} s")
        reason = answer.get("reason") or REASONS.get(code, code)
        raise (StoreGone if code == "gone" else StoreError)(f"{self._what(request)}: {reason}")

    def _what(self, request: Dict[str, Any]) -> str:
        keys = [request["key"]] if "key" in request else request.get("keys", [])
        names = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
        return f"{request['op']}({names}) in generation {self._generation}.{self._attempt}"


def _number(name: str) -> int:
    try:
        return int(_world.value(name) or "")
    except ValueError:
        raise StoreError(f"no store: {name} is not set to a number") from None


def _text(value: Union[str, bytes]) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else bytes(value)).decode()


def _bytes(answer: Dict[str, Any]) -> bytes:
    return base64.b64decode(answer.get("value", ""))
