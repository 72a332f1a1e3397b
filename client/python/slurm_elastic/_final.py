# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of the script itself: the same would happen again if its workers were started again.

    raise final(RuntimeError("..."))

It is an exception like any other. If nobody catches it in a worker of elasticrun, the worker ends
with the status that says so to the leader (lib/recovery.h). The leader prints the line. The
tracebacks are alike: rank 0 writes its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from typing import Any, TypeVar

from . import _world
from .leaving import leave

STATUS = 93
_MARK = "_elastic_is_final"

Error = TypeVar("Error", bound=BaseException)


def final(error: Error) -> Error:
    """Mark an error as the script's own. Returns it."""
    vars(error)[_MARK] = True
    if _world.is_elastic() and not hasattr(sys.excepthook, "is_ours"):
        hook = functools.partial(_end, sys.excepthook)
        vars(hook)["is_ours"] = True
        sys.excepthook = hook
    return error


def is_final(error: BaseException) -> bool:
    return _MARK in vars(error)


def _end(before: Any, kind: Any, error: BaseException, trace: Any) -> None:
    """The interpreter ends by this error. before: what it would call otherwise."""
    if not vars(error).pop(_MARK, False):
        before(kind, error, trace)
        return
    if _world.rank_and_size()[0] == 0:
        before(kind, error, trace)  # which may be one that calls this one: the mark is gone
    _tell_leader(str(error))
    leave(STATUS)


def _tell_leader(line: str) -> None:
    """As torchrun's workers do. A script may have done so itself."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path and not os.path.exists(path):
        with contextlib.suppress(OSError), open(path, "w") as file:
            json.dump({"message": line}, file)
