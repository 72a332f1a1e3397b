# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program of a job with roles can ask and say (doc/user/roles.md).

    from slurm_elastic import roles

    server.listen(roles.me().ports["http"])
    roles.ready()                                    # of a role with `ready: told`
    for each in roles.wait("server", 2, timeout=60): # two replicas of another role
        connect(each.address, each.ports["http"])
    roles.scale("server", 5)                         # of a role with `api: yes`
    roles.report("/scratch/batch-7", size=4096)      # where what I have made lies

Outside of a job with roles me() is None, endpoints() is empty, and ready() has no effect. Only
Python's standard library is needed.

status(), replicas(), scale(), remove(), fail(), report() and reports() ask the job's HTTP
interface. They raise RolesError, whose text says what is wrong. While another node takes over, they
wait.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from slurm_elastic import _listeners

_POLL = 0.2  # seconds between two looks at the file
_TIMEOUT = 90  # seconds for an answer: the interface itself waits 60 s for a leader


class RolesError(Exception):
    """The job's HTTP interface refuses, or cannot be reached.

    status is that of HTTP; 0 if there was no answer.
    """

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Task:
    """This process, as a task of a replica."""

    role: str  # "server"
    replica: str  # "server-3"
    index: int  # 3
    task: int  # its number in the replica, from 0
    tasks: int  # of the replica
    start: int  # a number that each start of a replica has alone
    ports: Dict[str, int]  # by the names in the job file


@dataclass(frozen=True)
class Endpoint:
    """A task of a replica that is ready."""

    role: str
    replica: str
    task: int
    node: str
    address: str
    ports: Dict[str, int]


@dataclass(frozen=True)
class Role:
    """A role of the job: how many replicas it has, and why."""

    name: str
    kind: str  # "replicas" or "world"
    ready: int
    target: int  # so many should be there
    minimum: int
    maximum: int
    leads: bool
    size: str  # why this size, in words
    more: str  # why not more


@dataclass(frozen=True)
class Replica:
    """A replica, whatever its state."""

    role: str
    name: str  # "server-3"
    state: str  # "wanted", "placed", "starting", "ready", "draining" or "failed"
    start: int  # a number that each start of a replica has alone
    reason: str  # why it is in this state
    nodes: List[str]  # of its tasks; empty while it has none
    addresses: List[str]


@dataclass(frozen=True)
class Report:
    """What a program of the job has reported of something that it has made."""

    number: int  # from 1, in the order in which the job has kept them
    time: float  # when, in Unix time
    role: str
    replica: str  # "collector-3"; of a world: the name of the role
    path: str
    size: Optional[int]  # bytes
    values: Dict[str, Any]  # all that it has besides


class Reports(List[Report]):
    """A list of reports, the oldest first.

    missed is how many that were asked for are kept no more. last is the number for the next
    reports(after=…).
    """

    def __init__(self, found: List[Report], missed: int, last: int):
        super().__init__(found)
        self.missed = missed
        self.last = last


def me() -> Optional[Task]:
    """This task; None if it is none of a job with roles."""
    get = os.environ.get
    if "ELASTIC_REPLICA" not in os.environ:
        return None
    return Task(
        get("ELASTIC_ROLE", ""),
        get("ELASTIC_REPLICA", ""),
        int(get("ELASTIC_REPLICA_INDEX", "0")),
        int(get("ELASTIC_TASK", "0")),
        int(get("ELASTIC_TASKS", "1")),
        int(get("ELASTIC_START", "0")),
        {
            name[len("ELASTIC_PORT_") :].lower().replace("_", "-"): int(value)
            for name, value in os.environ.items()
            if name.startswith("ELASTIC_PORT_") and value.isdigit()
        },
    )


def ready() -> None:
    """This task is ready. Its role has to have `ready: told`; else this has no effect."""
    path = os.environ.get("ELASTIC_READY_FILE")
    if path:
        with open(path, "w", encoding="ascii"):
            pass


def endpoints(role: Optional[str] = None) -> List[Endpoint]:
    """The tasks of all replicas that are ready, or of those of one role, replica after replica.

    Read from the job's endpoints.json in ELASTIC_STATE_DIR, which all nodes see. Empty as long as
    there is no such file.
    """
    path = os.path.join(os.environ.get("ELASTIC_STATE_DIR", ""), "endpoints.json")
    try:
        with open(path, encoding="utf-8") as file:
            replicas = json.load(file)["replicas"]
    except FileNotFoundError:
        return []
    return [
        Endpoint(
            replica["role"],
            replica["name"],
            task["task"],
            task["node"],
            task["address"],
            task["ports"],
        )
        for replica in replicas
        if role is None or replica["role"] == role
        for task in replica["tasks"]
    ]


def wait(role: str, replicas: int = 1, timeout: Optional[float] = None) -> List[Endpoint]:
    """endpoints() of that role, once so many replicas of it are ready.

    Raises TimeoutError after timeout seconds; None waits for ever.
    """
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        found = endpoints(role)
        count = len({each.replica for each in found})
        if count >= replicas:
            return found
        if end is not None and time.monotonic() >= end:
            raise TimeoutError(f"{count} of {replicas} replicas of {role} are ready")
        time.sleep(_POLL)


def status(role: Optional[str] = None) -> List[Role]:
    """All roles of the job, or the one of this name: a list of one."""
    if role is None:
        found = _ask("GET", "/v1/roles")["roles"]
    else:
        found = [_ask("GET", f"/v1/roles/{role}")]
    return [
        Role(
            each["name"],
            each["kind"],
            each["ready"],
            each["target"],
            each["min"],
            each["max"],
            each["leads"],
            each["size"],
            each["more"],
        )
        for each in found
    ]


def replicas(role: str) -> List[Replica]:
    """The replicas of that role, in all states."""
    return [
        Replica(
            role,
            each["name"],
            each["state"],
            each["start"],
            each["reason"],
            [task["node"] for task in each["tasks"]],
            [task["address"] for task in each["tasks"]],
        )
        for each in _ask("GET", f"/v1/roles/{role}/replicas")["replicas"]
    ]


def scale(role: str, count: int) -> str:
    """The role is to have so many replicas. Returns what the change waits for, in one line.

    It does not wait until it is so. MIN and MAX of the role must allow the number.
    """
    return _change("PATCH", f"/v1/roles/{role}", {"replicas": count})


def remove(replica: str) -> str:
    """This replica goes, and its role is smaller by it."""
    return _change("DELETE", _path_of(replica))


def fail(replica: str, reason: Optional[str] = None) -> str:
    """This replica has failed: another start replaces it."""
    return _change(
        "POST", _path_of(replica) + "/failed", {} if reason is None else {"reason": reason}
    )


def report(path: str, size: Optional[int] = None, **values: Any) -> int:
    """Tell the job where something lies that this task has made, and whatever else it is to know.

    size is in bytes. values are what JSON has: texts, numbers, True, False, None, lists, dicts. All
    of it may have 4096 bytes. Returns the number of the report. Then the job keeps it, also if
    another node leads from then on.
    """
    role = os.environ.get("ELASTIC_ROLE")
    if not role:
        raise RolesError("this is no task of a job with roles: there is no ELASTIC_ROLE")
    replica = os.environ.get("ELASTIC_REPLICA", role)
    body: Dict[str, Any] = {"path": path}
    if size is not None:
        body["size"] = size
    body.update(values)
    return _reply("POST", f"/v1/roles/{role}/replicas/{replica}/report", body)["data"]["number"]


def reports(after: Optional[int] = None) -> Reports:
    """What the job's programs have reported, as far as the job keeps it: the last 1000, or 256 KiB.

    With after, only those with higher numbers: if there are none, this waits for one, but for 30 s
    at most. So a program that wants all of them asks again and again, with the last of the answer:

        last = 0
        while True:
            found = roles.reports(after=last)
            last = found.last
    """
    data = _ask("GET", "/v1/reports" if after is None else f"/v1/reports?after={int(after)}")
    if data is None:
        return Reports([], 0, after or 0)
    found = [
        Report(
            each["number"],
            each["time"],
            each["role"],
            each["replica"],
            each["report"]["path"],
            each["report"].get("size"),
            {k: v for k, v in each["report"].items() if k not in ("path", "size")},
        )
        for each in data["reports"]
    ]
    return Reports(found, data["missed"], data["last"])


def _path_of(replica: str) -> str:
    role, dash, index = replica.rpartition("-")
    if not role or not index.isdigit():
        raise RolesError(f"'{replica}' is not the name of a replica, such as server-3")
    return f"/v1/roles/{role}/replicas/{replica}"


def _change(method: str, path: str, body: Optional[Dict[str, Any]] = None) -> str:
    return _reply(method, path, body)["message"]


def _ask(method: str, path: str) -> Any:
    return _reply(method, path)["data"]


def _reply(method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    api = os.environ.get("ELASTIC_API")
    if not api:
        raise RolesError("there is no ELASTIC_API: the role of this program needs `api: yes`")
    data = None if body is None else json.dumps(body).encode()
    try:
        connection = _connection(api)
        try:
            connection.request(method, path, data)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise RolesError(_message_of(answer, text), answer.status)
        reply = json.loads(text)
        return {"message": reply["message"], "data": reply["data"]}
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
        raise RolesError(f"no answer of {api}: {error!r}") from None


def _connection(api: str) -> http.client.HTTPConnection:
    """To the interface on this node. No proxy of the environment could reach it.

    Only this user can make its socket. Its port may be another user's once the interface is gone.
    """
    path = os.environ.get("ELASTIC_API_SOCKET")
    if path:
        connection: http.client.HTTPConnection = _SocketConnection(path)
        try:
            connection.connect()
            return connection
        except OSError:  # a container may have a file system of its own
            connection.close()
    url = urllib.parse.urlsplit(api)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=_TIMEOUT)
    connection.connect()
    peer = connection.sock.getpeername()
    if not _listeners.is_ours(peer[0], peer[1]):
        connection.close()
        raise RolesError(f"no answer of {api}: it is not of this user's job")
    return connection


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("job", timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _message_of(answer: http.client.HTTPResponse, text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, LookupError, TypeError):
        return f"HTTP status {answer.status}"
