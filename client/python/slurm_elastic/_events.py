# SPDX-License-Identifier: GPL-2.0-or-later
"""Events of an elastic job, over libelastic (ctypes)."""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
import sys
import time
from typing import Any, Iterator, NamedTuple, Optional

from . import _torch_compat
from ._final import final
from ._world import is_elastic, value

INTERFACE = 1  # ELASTIC_INTERFACE of elastic.h
# The real-time signal, counted from SIGRTMIN, for which nobody else should have a handler.
STACKS = 9
GO_ON = 3  # ELASTIC_GO_ON
SLICE = 0.5  # seconds, after which Python looks for signals such as that of Ctrl-C
KINDS = ("none", "grow", "shrink", "fault", "stop")


class Event(NamedTuple):
    """Why this world ends after the step just made. Always true, so that `if event:` works."""

    kind: str
    """"grow", "shrink", "fault" (a node or worker was lost) or "stop" (the job is to end)."""
    reason: str
    """One line for the user; may be empty."""
    deadline: Optional[float]
    """When this worker must have left, in seconds since the epoch; None: no limit is known."""
    nodes: Optional[int]
    """Nodes of the next world; None if not known yet."""
    generation: int
    """The world that ends."""
    step: int
    """Boundaries that all workers have passed in this world."""

    @property
    def time_remaining(self) -> float:
        """Seconds until the deadline, 0.0 when it is over, infinite without one."""
        if self.deadline is None:
            return float("inf")
        return max(0.0, self.deadline - time.time())

    def __bool__(self) -> bool:
        return True


class _CEvent(ctypes.Structure):  # struct elastic_event
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("generation", ctypes.c_int32),
        ("next_nodes", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("step", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("reason", ctypes.c_char * 192),
    ]

    def as_event(self) -> Event:
        return Event(
            kind=KINDS[self.kind] if 0 < self.kind < len(KINDS) else "stop",
            reason=self.reason.decode("utf-8", "replace"),
            deadline=self.deadline_ms / 1000 if self.deadline_ms else None,
            nodes=self.next_nodes or None,
            generation=self.generation,
            step=self.step,
        )


class World(NamedTuple):
    """A world as this worker sees it."""

    generation: int
    attempt: int
    rank: int
    size: int
    local_rank: int
    local_size: int
    nodes: int
    save: int


class _CWorld(ctypes.Structure):  # struct elastic_world
    _fields_ = [(name, ctypes.c_int32) for name in World._fields]

    def as_world(self) -> World:
        return World(*(getattr(self, name) for name in World._fields))


def _candidates() -> Iterator[str]:
    """Where libelastic may be. elasticrun names the one beside itself: it fits best."""
    named = value("ELASTIC_LIB")
    if named:
        yield named
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), "libelastic.so.0")
    from ctypes.util import find_library  # seldom needed, and dear: it imports subprocess

    found = find_library("elastic")
    if found:
        yield found


def _load() -> ctypes.CDLL:
    failures = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
            interface = library.elastic_interface()
        except (OSError, AttributeError) as error:
            failures.append(str(error))
            continue
        if interface == INTERFACE:
            library.elastic_error.restype = ctypes.c_char_p
            return library
        failures.append(f"{path}: interface {interface}, this package needs {INTERFACE}")
    raise OSError("libelastic cannot be loaded: " + "; ".join(failures))


def _error(library: Any) -> str:
    return str(library.elastic_error().decode("utf-8", "replace"))


def _attach() -> Optional[ctypes.CDLL]:
    if not is_elastic():
        return None
    try:
        library = _load()
        answer = library.elastic_attach()
        if answer < 0:
            raise OSError(_error(library))
    except OSError as error:
        print(
            f"slurm_elastic: {error}. No events: this worker will be stopped by SIGTERM when the job "
            "changes its size, and lose what it has not saved.",
            file=sys.stderr,
            flush=True,
        )
        return None
    if answer > 0:  # the worker has started this process ("spawn", "forkserver")
        _guard_data_loader(library)
        return None
    return library


def _guard_data_loader(library: Any) -> None:
    """In a process of a worker: let it survive the SIGTERM that Slurm sends to all processes.

    PyTorch installs a handler in a DataLoader's process that ends the process; the worker would end
    with it. PyTorch installs it as the process begins, so ours is installed after that, in this
    process only.
    """
    global _child
    _child = True
    guard = getattr(library, "elastic_guard_child", None)  # not in every release of libelastic
    if guard is not None:
        _torch_compat.after_loader_signals(guard)


def guard_forkserver() -> None:
    """Let the "forkserver" of multiprocessing import this package, and so be guarded as well.

    The processes of a DataLoader end with it, if it has started them. To be called before Python
    starts it, for the first process.
    """
    if _library is not None and "multiprocessing" in sys.modules:
        _torch_compat.preload_in_forkserver(__package__)


def _show_stacks(library: ctypes.CDLL) -> None:
    """Let elasticrun make this worker print its stacks, when the training hangs."""
    number = int(signal.SIGRTMIN) + STACKS
    if not hasattr(library, "elastic_stacks") or signal.getsignal(number) != signal.SIG_DFL:
        return
    try:
        faulthandler.register(number, all_threads=True)
    except (RuntimeError, ValueError, OSError):  # no stderr
        return
    library.elastic_stacks(number)


_library: Any = None  # a ctypes.CDLL in an elastic worker that could load it
_attached = False
_child = False  # of a worker, and none itself
_waited_in = ""  # which function the script has called first, of those that wait for its world
_lives = False
_event = _CEvent()
_event_pointer = ctypes.byref(_event)


def attach() -> bool:
    """Attach to elasticrun, once: importing the package does it. True in an elastic worker."""
    global _library, _attached
    if not _attached:
        _library = _attach()
        _attached = True
        if _library is not None:
            os.register_at_fork(after_in_child=lambda: _guard_data_loader(_library))
            _show_stacks(_library)
    return _library is not None


def child() -> bool:
    """Whether a worker has started this process: such a process is no worker itself."""
    return _child


def library() -> Optional[ctypes.CDLL]:
    """libelastic, attached; None in a process that is no worker, or could not load it."""
    return _library if attach() and not _child else None


def init() -> bool:
    """Wait until this worker's world begins. True: this is an elastic worker, and it gets events.

    elasticrun may start the workers of the next world while the present one still trains: imports
    then cost no pause. Call this after everything that takes long and is the same in each world,
    and before the script uses a GPU or writes anything. Without this call such a worker waits in
    load_latest(), or in the other functions that look at checkpoints; on nodes with GPUs elasticrun
    then does not start the next workers early. Without elasticrun it does nothing.

    Raises SystemExit if elasticrun has died meanwhile.
    """
    return attach() and _pass_gate("elastic_init", "init()")


def loading() -> None:
    """Wait as init() does, before a checkpoint is read: the world before must have written it."""
    if attach():
        _pass_gate("elastic_loading", "load_latest(), or its like,")


def _pass_gate(function: str, said: str) -> bool:
    global _waited_in
    _waited_in = _waited_in or said
    guard_forkserver()
    if getattr(_library, function)() < 0:
        raise SystemExit("slurm_elastic: " + _error(_library))
    return True


def step() -> Optional[int]:
    """Boundaries that this worker has passed in its world; None if not elastic."""
    if not attach() or not hasattr(_library, "elastic_step"):
        return None
    _library.elastic_step.restype = ctypes.c_int64
    return int(_library.elastic_step())


def training() -> None:
    """Say that from now on there is a state worth saving (elastic_training)."""
    if attach():
        _library.elastic_training()


def live(shape: int) -> bool:
    """Say that this worker can go on in the next world.

    shape  what it trains: a number from 1, equal in workers that can take over each other's state.

    Returns False without elasticrun, and if this worker cannot go on in a next world. Raises
    RuntimeError if the script has waited for its world before: newcomers would wait there, and the
    others not know that they are live.
    """
    global _lives
    if attach() and _waited_in and not _lives:
        raise final(
            RuntimeError(
                f"slurm_elastic.{_waited_in} is called before live.run(): leave it out. live.run() waits "
                "for the world, and loads the latest checkpoint"
            )
        )
    _lives = True
    if not attach() or not hasattr(_library, "elastic_live") or _library.elastic_live() != 0:
        return False
    tell_signature(shape)
    return True


def moved(size: int) -> None:
    """Say that so many bytes of the state have gone to another worker, or have come from one.

    A worker that leaves a world has time for that, as long as it says so.
    """
    if _library is not None and hasattr(_library, "elastic_moved"):
        _library.elastic_moved(ctypes.c_int64(size))


def tell_signature(shape: int) -> None:
    """Say what this worker trains, in a worker that has called live()."""
    if hasattr(_library, "elastic_model_signature"):
        _library.elastic_model_signature(ctypes.c_int64(shape))


def world() -> World:
    """The world of this worker, after init(), in a worker that has called live()."""
    found = _CWorld()
    _library.elastic_world(ctypes.byref(found))
    return found.as_world()


def _note_page() -> None:
    """Let processes that Python starts have the page that the library names in C's environment."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    path = getenv(b"ELASTIC_EVENT_FILE")
    if path:
        os.environ["ELASTIC_EVENT_FILE"] = os.fsdecode(path)


def next_world(timeout: Optional[float]) -> Optional[World]:
    """The world that follows this one.

    timeout  seconds to wait until the next world is named; None: wait without a limit.

    Its size is 0 if this worker is to leave, with `save` after it has saved a checkpoint. Returns
    None if no world is named in time. Raises SystemExit if elasticrun has died.
    """
    found = _CWorld()
    limit = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE if limit is None else min(SLICE, max(0.0, limit - time.monotonic()))
        answer = _library.elastic_next_world(ctypes.byref(found), math.ceil(left * 1000))
        if answer < 0:
            raise SystemExit("slurm_elastic: " + _error(_library))
        if answer == 1:
            _note_page()
            return found.as_world()
        if limit is not None and time.monotonic() >= limit:
            return None


def finish() -> Optional[Event]:
    """The last boundary of this worker: like elastic_event_detected(), but it waits for no further
    one.
    """
    answer = _library.elastic_finish(_event_pointer)
    if answer < 0:
        raise SystemExit("slurm_elastic: " + _error(_library))
    return _event.as_event() if answer == 1 else None


def torn(seconds: Optional[float] = None) -> bool:
    """Whether a worker or node of this world has been lost.

    seconds  how long to wait for a loss; None: as long as the agents may need to notice one. Use
             None
             when an exchange with other workers has failed. A worker that has ended with 0 before
             the
             others counts as lost then.

    False without elasticrun. Raises SystemExit if elasticrun has died.
    """
    if _library is None:
        return False
    answer = _library.elastic_torn(-1 if seconds is None else math.ceil(seconds * 1000))
    if answer < 0:
        raise SystemExit("slurm_elastic: " + _error(_library))
    return answer == 1


def world_forms() -> None:
    """Connections that are made from here on belong to the new world (elastic_world_forms)."""
    if _library.elastic_world_forms() < 0:
        raise OSError(_error(_library))


def world_formed() -> None:
    """All connections of the new world have been made (elastic_world_formed)."""
    _library.elastic_world_formed()


def world_left() -> None:
    """Nothing waits for connections of the old world any more (elastic_world_left).

    Until then they end when it is torn, or, behind next_world(), when the next one is.
    """
    _library.elastic_world_left()


def elastic_event_detected() -> Optional[Event]:
    """One step boundary. Call it after each optimizer step, equally often on all ranks.

    Returns None while training goes on, and always without elasticrun. That costs about a
    microsecond and no communication. When the job is to change, all ranks get an Event after the
    same step: save a checkpoint and exit with status 0. elasticrun starts the script again in the
    new world.

    Raises SystemExit if elasticrun has died: nobody would answer this worker any more. Call it from
    one thread only.
    """
    if not attach():
        return None
    answer = _library.elastic_event_test(_event_pointer)
    if answer == 0:
        return None
    if answer < 0:
        raise SystemExit("slurm_elastic: " + _error(_library))
    return _event.as_event()


def wait_event(timeout: Optional[float] = None) -> Optional[Event]:
    """Like elastic_event_detected(), for a worker that has nothing to do until something changes.

    timeout  seconds; None: no limit.

    Sleeps until a change is under way or the time is over, and passes one step boundary at most.
    Returns None if the time is over, or if other workers are steps ahead: call it again. Without
    elasticrun it returns None after `timeout`, or at once if there is none. Otherwise it returns
    and raises what elastic_event_detected() does.
    """
    limit = None if timeout is None else time.monotonic() + timeout
    wait = getattr(library(), "elastic_event_wait", None)  # not in every release of libelastic
    if wait is None:
        time.sleep(timeout or 0)
        return elastic_event_detected() if library() is not None else None
    while True:
        left = SLICE if limit is None else min(SLICE, max(0.0, limit - time.monotonic()))
        answer = wait(_event_pointer, math.ceil(left * 1000))
        if answer == 1:
            return _event.as_event()
        if answer < 0:
            raise SystemExit("slurm_elastic: " + _error(_library))
        if answer == GO_ON or (limit is not None and time.monotonic() >= limit):
            return None
