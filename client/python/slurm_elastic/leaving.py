# SPDX-License-Identifier: GPL-2.0-or-later
"""Ending a worker without delay."""

import atexit
import contextlib
import ctypes
import os
import sys
from typing import NoReturn


def leave(status: int = 0) -> NoReturn:
    """End this process now: sys.exit() without the half second that Python takes to pull down a
    process which has imported a large framework.

    To be called when everything is saved, from the main thread. Functions registered with atexit
    run, logging and child processes are shut down, standard output and error are written. What is
    skipped is the destruction of objects: files that are still open for writing must have been
    flushed, and threads are not waited for.
    """
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()  # writes the traceback of one that fails
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(status)
