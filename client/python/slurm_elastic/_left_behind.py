# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that may wait in C++ for what never comes, and are left behind.

Python before 3.14 ends a thread that comes back while the interpreter ends, by pthread_exit(). In
the midst of C++ that is std::terminate(): the process aborts, though its training has ended well.
So such threads are halted where they are when the interpreter begins to end. They end with the
process.

The threads of gloo need the interpreter, too: each frees what its last operation was on. A script
that ends without destroy_process_group() aborts about once in a hundred times on a busy node.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import signal
import sys
import threading
import weakref
from typing import Any, Callable

from ._world import is_elastic

GRACE = 0.1  # seconds for those that are about to end
GROUPS = 2.0  # … for those of the process groups
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
    for thread in _threads:
        if thread.is_alive() and thread.ident is not None:
            signal.pthread_kill(thread.ident, HALT)


def do_nothing_at_exit() -> None:
    """The process is about to end without the interpreter's end."""
    atexit.unregister(_halt)


if sys.version_info < (3, 14):
    atexit.register(_halt)
