# SPDX-License-Identifier: GPL-2.0-or-later
"""What a script asks of its job: nodes, and to be let go; and what it says of its progress. Over
libelastic.

The protocols, that of the event page and PMIx's, are implemented there and nowhere else; this is
ctypes, which loads neither it nor libpmix before they are needed. A worker that cannot load
libelastic trains all the same, as _events.py says when it is imported, but what was asked for by
name must not fail in silence: then the functions about nodes raise ElasticError.
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
    """Nodes cannot be asked for here: libelastic or PMIx is missing, has failed or does not
    answer.
    """


class NodesRefused(ElasticError):
    """The job cannot have, give or find what was asked for; the text says what would be allowed."""


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
    """The answer of a function of libelastic, if it is none of an error; _NOT_ELASTIC if it is not
    elastic.
    """
    if not is_elastic() or _events.forked():
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
    """Ask for so many nodes more. Returns the request's id as soon as it is accepted; None when not
    elastic.

    within  seconds after which it fails, and what was asked of Slurm is cancelled; None: no limit.

    The job gets them with its next world: go on, and when elastic_event_detected() says so, save
    and leave. request_result() then tells how it has ended. A job grows to its maximum by itself
    unless its size is held, by release_nodes() or `selastic resize`.

    Raises NodesRefused if the job may not have so many or has nowhere to grow, ValueError for
    numbers that make no sense, ElasticError if PMIx, through which this goes, is missing or does
    not answer. That takes a minute at most.
    """
    seconds = 0 if within is None else max(1, math.ceil(within))
    return _request("elastic_request_nodes", ctypes.c_int(nodes), ctypes.c_int(seconds))


def release_nodes(nodes: Union[int, str, Iterable[str]]) -> Optional[str]:
    """Give back so many nodes, or these, by name: whole extension jobs, never nodes of the base
    job.

    Returns and raises what request_nodes() does; it is done when Slurm has the nodes back.
    """
    if isinstance(nodes, int):
        return _request("elastic_release_nodes", ctypes.c_int(nodes))
    names = nodes if isinstance(nodes, str) else ",".join(nodes)
    return _request("elastic_release_named", names.encode())


def cancel_request(id: str) -> bool:
    """Forget a request that has not ended: it ends as one that has failed. False when not elastic.

    Raises NodesRefused if there is no such request; otherwise as request_nodes().
    """
    return _call("elastic_cancel_request", id.encode()) == 0


def request_result(
    id: Optional[str] = None, *, timeout: Optional[float] = 0.0
) -> Optional[NodesResult]:
    """How a request has ended: the one of this id; None: any, each once, the oldest first.

    timeout  seconds to wait for it, 0: do not, None: until it has ended.

    Returns None if none has ended within that time, or if a change of the job is under way, for
    which this worker has to come to its next step boundary; and at once when not elastic. A request
    is answered in the process that has made it or, in a new world, in the one that has its rank
    then, if that asks within two minutes.

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
    """After an event, when everything is saved: let elasticrun end this process now. False when not
    elastic.

    leave() does the same without PMIx; this is for a worker that cannot end by itself, or is slow
    to. Without an event it has no effect. Raises ElasticError if PMIx is missing or does not
    answer.
    """
    return _call("elastic_checkpoint_done") == 0


def report_progress(done: int, total: Optional[int] = None, unit: str = "steps") -> bool:
    """Say how far the script is; `selastic show` tells users what the worker of the lowest rank
    that reports has said last.

    done, total  whole numbers, total None if it is not known.
    unit         "steps", "samples", "%": at most 23 bytes.

    Costs microseconds and no communication. False when not elastic, or when libelastic could not be
    loaded, which has been said at import. Raises ValueError for what makes no sense.
    """
    if _events.library() is None:
        return False
    numbers = ctypes.c_int64(done), ctypes.c_int64(total or 0)
    return _call("elastic_report_progress", *numbers, unit.encode()) == 0
