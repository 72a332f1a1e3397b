# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that may wait in C++ for what never comes, and are left behind.

Python before 3.14 ends a thread that comes back while the interpreter ends, by pthread_exit(). In
the midst of C++ that is std::terminate(): the process aborts, though its training has ended well.
So such threads are halted where they are when the interpreter begins to end. They end with the
process.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import sys
import threading
from typing import Any, Callable, List

GRACE = 0.1  # seconds for those that are about to end
HALT = signal.SIGRTMAX - 2

_threads: List[threading.Thread] = []


def start(target: Callable[..., Any], *args: Any) -> threading.Thread:
    """Start a thread that nobody has to wait for. Wait for it if it will end by itself."""
    _threads[:] = [each for each in _threads if each.is_alive()]
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    _threads.append(thread)
    return thread


def _halt() -> None:
    """A signal that is handled by pause(3) halts a thread, until it gets another one."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    libc.signal(HALT, ctypes.cast(libc.pause, ctypes.c_void_p))
    for thread in _threads:
        thread.join(GRACE)
        if thread.is_alive() and thread.ident is not None:
            signal.pthread_kill(thread.ident, HALT)


if sys.version_info < (3, 14):
    atexit.register(_halt)
