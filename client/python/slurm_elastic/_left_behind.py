# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that may wait in C++ for what never comes, and are left behind.

Python before 3.14 ends a thread that comes back while the interpreter ends, by pthread_exit(). In
the midst of C++ that is std::terminate(): the process aborts, though its training has ended well.
So such threads are halted where they are when the interpreter begins to end. They end with the
process.

The threads of gloo need the interpreter, too: each frees what its last operation was on. A script
that ends without destroy_process_group() aborts about once in a hundred times on a busy node. Nor
is destroy_process_group() enough where something else refers to the group: a wrapper of DDP, or a
model that fully_shard() has sharded. So the interpreter's end waits until these threads rest.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

from ._world import is_elastic

GRACE = 0.1  # seconds for those that are about to end
GROUPS = 2.0  # … for those of the process groups
LOOK = 0.01  # … between looks whether they rest, which is twice what one waits for the interpreter
GLOO = "pt_gloo"  # what the names of their threads begin with
HALT = signal.SIGRTMAX - 2

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_outside: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Those of them that use no process group."""


def start(target: Callable[..., Any], *args: Any) -> threading.Thread:
    """Start a thread that nobody has to wait for. Wait for it if it will end by itself."""
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    _threads.add(thread)
    return thread


def start_outside(target: Callable[..., Any], *args: Any) -> threading.Thread:
    """The same for one that uses no process group: these can end while it is halted."""
    thread = start(target, *args)
    _outside.add(thread)
    return thread


def _end_groups() -> None:
    """As destroy_process_group(), and wait for their threads. NCCL could wait for a lost worker."""
    dist = sys.modules.get("torch.distributed")
    if not is_elastic() or dist is None or not dist.is_available() or not dist.is_initialized():
        return
    from . import _torch_compat

    if _torch_compat.nccl_backends():
        return
    groups = _torch_compat.group_backends()
    dist.destroy_process_group()
    start(groups.clear).join(GROUPS)


def _look() -> Dict[str, Tuple[str, ...]]:
    """By thread that is not Python's: its state and how often it has waited and was held up.

    Of the threads of gloo, if they have names, as in newer versions of PyTorch. Else of all, and
    without the numbers: some look for messages again and again.
    """
    own = {str(each.native_id) for each in threading.enumerate()}
    own.add(str(threading.get_native_id()))  # of a process that was forked, threading has another
    found: Dict[str, Tuple[str, ...]] = {}
    named: Dict[str, Tuple[str, ...]] = {}
    for task in Path("/proc/self/task").iterdir():
        if task.name in own:
            continue
        with contextlib.suppress(OSError):  # it has ended
            lines = (task / "status").read_text().splitlines()
            fields = dict(each.split(":", 1) for each in lines)
            state = fields["State"].split()[0]
            found[task.name] = (state,)
            if fields["Name"].strip().startswith(GLOO):
                switches = (each for name, each in fields.items() if name.endswith("switches"))
                named[task.name] = (state, *switches)
    return named or found


def _await_gloo() -> None:
    """Until the threads of gloo rest, at most GROUPS seconds. They get the interpreter."""
    if not is_elastic() or "torch.distributed" not in sys.modules:
        return
    limit = time.monotonic() + GROUPS
    before: Dict[str, Tuple[str, ...]] = {}
    while time.monotonic() < limit:
        now = _look()
        if now == before and all(each[0] in "SIT" for each in now.values()):
            return
        before = now
        time.sleep(LOOK)


def _halt() -> None:
    """A signal that is handled by pause(3) halts a thread, until it gets another one."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    libc.signal(HALT, ctypes.cast(libc.pause, ctypes.c_void_p))
    threads = list(_threads)
    for thread in threads:
        thread.join(GRACE)
    # Another one may be in one of the groups.
    if not any(each.is_alive() for each in threads if each not in _outside):
        with contextlib.suppress(Exception):
            _end_groups()
    with contextlib.suppress(Exception):
        _await_gloo()
    for thread in _threads:
        if thread.is_alive() and thread.ident is not None:
            signal.pthread_kill(thread.ident, HALT)


def do_nothing_at_exit() -> None:
    """The process is about to end without the interpreter's end."""
    atexit.unregister(_halt)


if sys.version_info < (3, 14):
    atexit.register(_halt)
