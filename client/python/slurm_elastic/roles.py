# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program of a job with roles can ask and say (doc/user/roles.md).

    from slurm_elastic import roles

    server.listen(roles.me().ports["http"])
    roles.ready()                                    # of a role with `ready: told`
    for each in roles.wait("server", 2, timeout=60): # two replicas of another role
        connect(each.address, each.ports["http"])

Outside of a job with roles me() is None, endpoints() is empty, and ready() has no effect. Only
Python's standard library is needed.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Dict, List, Optional

_POLL = 0.2  # seconds between two looks at the file


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
