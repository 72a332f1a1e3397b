# SPDX-License-Identifier: GPL-2.0-or-later
"""What a script asks of its job (nodes, leave to end), and what it says about its progress.

libelastic implements the protocols, that of the event page and that of PMIx; this file calls it
through ctypes. Neither libelastic nor libpmix is loaded before it is needed. A worker that cannot
load libelastic trains all the same. A request for nodes must not fail in silence, however: these
functions raise ElasticError then.
"""

from __future__ import annotations

import ctypes
import math
import time
from typing import Any, Iterable, NamedTuple, Optional, Union

from . import _events
from ._world import is_elastic

_NOT_ELASTIC = 1
_ERROR_REFUSED, _ERROR_ARGUMENT = -5, -6
_ID_BYTES = 64


class ElasticError(RuntimeError):
    """A request failed: libelastic or PMIx is missing, has failed or does not answer."""


class NodesRefused(ElasticError):
    """The job cannot have, release or find what was asked for; the text says what is allowed."""


class NodesResult(NamedTuple):
    """How a request has ended."""

    id: str
    """As request_nodes() or release_nodes() has returned it."""
    done: bool
    """False: it has failed, or was cancelled."""
    nodes: Optional[int]
    """Nodes that the job had then; None if not known."""
    reason: str
    """Why it has failed; may be empty."""


class _CResult(ctypes.Structure):  # struct elastic_result
    _fields_ = [
        ("outcome", ctypes.c_int32),
        ("nodes", ctypes.c_int32),
        ("id", ctypes.c_char * _ID_BYTES),
        ("reason", ctypes.c_char * 256),
    ]

    def as_result(self) -> NodesResult:
        return NodesResult(
            id=self.id.decode("utf-8", "replace"),
            done=self.outcome == 1,
            nodes=self.nodes or None,
            reason=self.reason.decode("utf-8", "replace"),
        )


def _call(name: str, *arguments: Any) -> int:
    """Call a function of libelastic. Returns its answer, or _NOT_ELASTIC without elasticrun.

    Raises ElasticError, NodesRefused or ValueError if the answer is an error.
    """
    if not is_elastic() or _events.child():
        return _NOT_ELASTIC
    library = _events.library()
    if library is None:
        raise ElasticError(
            "libelastic could not be loaded, or has no event page: nodes cannot be asked for"
        )
    function = getattr(library, name, None)
    if function is None:
        raise ElasticError(
            f"this libelastic has no {name}: it is older than the package slurm_elastic"
        )
    answer = function(*arguments)
    if answer >= 0:
        return answer
    text = library.elastic_error().decode("utf-8", "replace")
    if answer == _ERROR_ARGUMENT:
        raise ValueError(text)
    raise (NodesRefused if answer == _ERROR_REFUSED else ElasticError)(text)


def _request(name: str, *arguments: Any) -> Optional[str]:
    id = ctypes.create_string_buffer(_ID_BYTES)
    return id.value.decode() if _call(name, *arguments, id) == 0 else None


def request_nodes(nodes: int, *, within: Optional[float] = None) -> Optional[str]:
    """Ask for this many more nodes. Returns the request's id; None without elasticrun.

    within  seconds after which the request fails and its jobs in Slurm are cancelled; None: no
            limit.

    Returns as soon as the request is accepted. The job gets the nodes with its next world: go on,
    and save and leave when elastic_event_detected() says so. request_result() then tells how the
    request has ended. A job grows to its maximum by itself, unless release_nodes() or `selastic
    resize` holds its size.

    Raises NodesRefused if the job may not have so many nodes or cannot grow; ValueError for
    impossible numbers; ElasticError if PMIx is missing or does not answer, which takes a minute at
    most.
    """
    seconds = 0 if within is None else max(1, math.ceil(within))
    return _request("elastic_request_nodes", ctypes.c_int(nodes), ctypes.c_int(seconds))


def release_nodes(nodes: Union[int, str, Iterable[str]]) -> Optional[str]:
    """Give back this many nodes, or the nodes with these names.

    Only whole extension jobs are given back, never nodes of the base job. The request has ended
    when Slurm has the nodes back. Returns and raises what request_nodes() does.
    """
    if isinstance(nodes, int):
        return _request("elastic_release_nodes", ctypes.c_int(nodes))
    names = nodes if isinstance(nodes, str) else ",".join(nodes)
    return _request("elastic_release_named", names.encode())


def cancel_request(id: str) -> bool:
    """Cancel a request that has not ended: it then counts as failed. False without elasticrun.

    Raises NodesRefused if there is no such request; otherwise what request_nodes() raises.
    """
    return _call("elastic_cancel_request", id.encode()) == 0


def request_result(
    id: Optional[str] = None, *, timeout: Optional[float] = 0.0
) -> Optional[NodesResult]:
    """How a request has ended.

    id       of the request; None: any request, each once, the oldest first.
    timeout  seconds to wait for the end; 0: do not wait; None: no limit.

    Returns None if no request has ended in time, and at once without elasticrun. Also returns None
    if a change of the job is under way: this worker has to come to its next step boundary. The
    process that has made the request gets the answer. In a new world, the process with its rank
    gets it, if it asks within two minutes.

    Raises ElasticError if PMIx is missing or has failed.
    """
    limit = None if timeout is None else time.monotonic() + timeout
    result = _CResult()
    name = None if id is None else id.encode()
    while True:
        begun = time.monotonic()
        left = _events.SLICE if limit is None else min(_events.SLICE, max(0.0, limit - begun))
        answer = _call(
            "elastic_request_result",
            name,
            ctypes.byref(result),
            ctypes.c_int(math.ceil(left * 1000)),
        )
        if answer == 0:
            return result.as_result()
        now = time.monotonic()
        if answer == _NOT_ELASTIC or now - begun < left:  # a change is under way
            return None
        if limit is not None and now >= limit:
            return None


def checkpoint_done() -> bool:
    """After an event, when everything is saved: let elasticrun end this process now.

    Returns False without elasticrun. leave() does the same without PMIx; this is for a worker that
    cannot end by itself, or is slow to end. Without an event it has no effect. Raises ElasticError
    if PMIx is missing or does not answer.
    """
    return _call("elastic_checkpoint_done") == 0


def report_step_time(seconds: float) -> bool:
    """Say how long this worker itself has needed for the step that ends now.

    seconds  up to the moment at which the worker began to wait for others, for their gradients say.

    elasticrun compares the workers of a world, and finds those that are slow (--elastic-straggler).
    slurm_elastic.live calls this by itself, for models that it wraps. Costs microseconds and no
    communication. Returns False without elasticrun, or if libelastic could not be loaded. Raises
    ValueError for an impossible time.
    """
    if _events.library() is None:
        return False
    microseconds = ctypes.c_int64(round(seconds * 1e6))
    return _call("elastic_report_step_time", microseconds) == 0


def report_progress(done: int, total: Optional[int] = None, unit: str = "steps") -> bool:
    """Say how far the script is. `selastic show` prints the last report of the lowest rank.

    done, total  whole numbers; total None: unknown.
    unit         "steps", "samples", "%": at most 23 bytes.

    Costs microseconds and no communication. Returns False without elasticrun, or if libelastic
    could not be loaded. Raises ValueError for impossible values.
    """
    if _events.library() is None:
        return False
    numbers = ctypes.c_int64(done), ctypes.c_int64(total or 0)
    return _call("elastic_report_progress", *numbers, unit.encode()) == 0
