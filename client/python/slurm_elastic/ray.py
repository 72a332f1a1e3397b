# SPDX-License-Identifier: GPL-2.0-or-later
"""Ray's cluster whose workers are the replicas of a role (doc/user/roles.md#ray).

    import ray
    from slurm_elastic.ray import RoleCluster

    with RoleCluster(role="worker", cpus=2) as cluster:
        ray.init(address=cluster.address)
        print(sum(ray.get([square.remote(number) for number in range(1000)])))

The program is a task of a role with `api: yes`. Ray's head runs beside it, and Ray's autoscaler in
the head. RoleProvider lets the autoscaler ask for replicas, and remove them. Each worker is
`python3 -m slurm_elastic.ray`, which becomes `ray start`. When its replica drains, no new task
begins there.

The head, the workers and the program talk by TLS. Its certificates are made for this cluster alone.

Needed besides the standard library: ray (tested: 2.60), and the program openssl.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional

import ray
from ray._private import services
from ray.autoscaler.node_provider import NodeProvider
from ray.autoscaler.tags import (
    NODE_KIND_HEAD,
    NODE_KIND_WORKER,
    STATUS_UP_TO_DATE,
    TAG_RAY_NODE_KIND,
    TAG_RAY_NODE_NAME,
    TAG_RAY_NODE_STATUS,
    TAG_RAY_USER_NODE_TYPE,
)

from slurm_elastic import _certificates, _listeners, _opened, roles

__all__ = ["RoleCluster", "RoleProvider"]

_INSIDE = "r"  # of the private directory: Ray's own
_POLL = 0.2  # seconds between two looks at a process, a file, or Ray's nodes
_START = 60  # seconds in which Ray's head has to answer
_END = 10  # seconds from SIGTERM to SIGKILL for the processes of Ray
_LEAVE = 15  # seconds in which the workers leave before the head ends
_UPDATE = "1"  # seconds between two looks of the autoscaler
_PR_SET_PDEATHSIG = 1
_COMMANDS = (
    "initialization_commands",
    "setup_commands",
    "head_setup_commands",
    "worker_setup_commands",
    "head_start_ray_commands",
    "worker_start_ray_commands",
)

_TLS = {
    "RAY_TLS_SERVER_CERT": "own.crt",
    "RAY_TLS_SERVER_KEY": "own.key",
    "RAY_TLS_CA_CERT": "ca.crt",
}

logger = logging.getLogger(__name__)


class RoleProvider(NodeProvider):
    """The replicas of a role, as the nodes of Ray's autoscaler.

    The name of a node is that of its replica and its start: `worker-3/17`. So a replica that has
    been started anew is another node. What waits for a start is `worker-3/17+`, the start before.
    """

    def __init__(self, provider_config: Dict[str, Any], cluster_name: str):
        super().__init__(provider_config, cluster_name)
        self._role: str = provider_config["role"]
        self._head: str = provider_config["head"]
        self._head_type: str = provider_config["head_type"]
        self._told: str = provider_config["told"]
        self._nodes: Dict[str, roles.Replica] = {}
        self._lock = threading.Lock()  # the autoscaler asks in several threads

    def non_terminated_nodes(self, tag_filters: Dict[str, str]) -> List[str]:
        self._nodes = {_node_id(each): each for each in roles.replicas(self._role)}
        return [
            each
            for each in [self._head, *self._nodes]
            if tag_filters.items() <= self.node_tags(each).items()
        ]

    def is_running(self, node_id: str) -> bool:
        each = self._nodes.get(node_id)
        return node_id == self._head or (each is not None and each.state in ("starting", "ready"))

    def is_terminated(self, node_id: str) -> bool:
        return node_id != self._head and node_id not in self._nodes

    def node_tags(self, node_id: str) -> Dict[str, str]:
        head = node_id == self._head
        return {
            TAG_RAY_NODE_KIND: NODE_KIND_HEAD if head else NODE_KIND_WORKER,
            TAG_RAY_USER_NODE_TYPE: self._head_type if head else self._role,
            TAG_RAY_NODE_NAME: node_id.partition("/")[0],
            TAG_RAY_NODE_STATUS: STATUS_UP_TO_DATE,
        }

    def set_node_tags(self, node_id: str, tags: Dict[str, str]) -> None:
        """The job knows all that there is to know."""

    def internal_ip(self, node_id: str) -> Optional[str]:
        each = self._nodes.get(node_id)
        return each.addresses[0] if each is not None and each.addresses else None

    def external_ip(self, node_id: str) -> Optional[str]:
        return self.internal_ip(node_id)

    def create_node(self, node_config: Dict[str, Any], tags: Dict[str, str], count: int) -> None:
        """The role is to have so many replicas more. More than its MAX: RolesError."""
        with self._lock:
            if not os.path.exists(self._told):
                raise roles.RolesError("the cluster is closing: its workers go")
            (role,) = roles.status(self._role)
            logger.info("%s", roles.scale(self._role, role.target + count))

    def terminate_node(self, node_id: str) -> None:
        with self._lock:
            there = {_node_id(each): each for each in roles.replicas(self._role)}
            each = there.get(node_id)
            # One that Slurm takes goes by itself. Its role keeps its size, and so gets it back.
            if each is not None and each.state != "draining":
                logger.info("%s", roles.remove(each.name))


def _node_id(replica: roles.Replica) -> str:
    waits = replica.state in ("wanted", "placed", "failed")
    return f"{replica.name}/{replica.start}{'+' if waits else ''}"


def _own_node_id(me: roles.Task) -> str:
    return f"{me.replica}/{me.start}"


class RoleCluster:
    """A Ray cluster of the replicas of one role.

    role: the role of the workers. Its replicas have one task each.
    cpus, gpus, memory (bytes), resources: what Ray has on each worker.
    object_store_memory: bytes of the object store of each worker, and of the head.
    head_cpus: what Ray has on the head, for tasks. Its own driver needs none.
    idle: a worker that has nothing to do for so many seconds goes.
    head_options: more arguments of `ray start` for the head.

    The head listens at the port `head` of the task. address is what ray.init() wants. The task is
    ready (`ready: told`) once the head answers.

    Head, workers and program have certificates of an authority that is made here. Nobody else can
    take the place of one of them, also not at the port of one that has ended.

    close(), or the end of `with`, makes the role as small as it can be, and then ends the head.
    RolesError says what is wrong.
    """

    def __init__(
        self,
        role: str = "worker",
        *,
        cpus: int = 1,
        gpus: int = 0,
        memory: Optional[int] = None,
        resources: Optional[Dict[str, float]] = None,
        object_store_memory: Optional[int] = None,
        head_cpus: int = 0,
        idle: float = 60.0,
        head_options: Optional[List[str]] = None,
    ):
        me = roles.me()
        if me is None:
            raise roles.RolesError("this program is no task of a job with roles")
        if "head" not in me.ports:
            raise roles.RolesError(f"the role {me.role} has no port `head`")
        self.role = role
        self._file = _told_file(role)
        (self._bounds,) = roles.status(role)
        own = [each for each in roles.replicas(me.role) if each.name == me.replica]
        self._ip = own[0].addresses[me.task]
        self.address = f"{self._ip}:{me.ports['head']}"
        self._has = {"CPU": cpus, "GPU": gpus, **(resources or {})}
        if memory is not None:
            self._has["memory"] = memory
        self._store = object_store_memory
        # Of a head that was killed. Its workers would look for it in vain.
        _forget(self._file)
        if _opened.is_there(self._file):
            raise roles.RolesError(f"{self._file} cannot be removed: is it another user's?")
        # The names of sockets below it have to be short. Ray lets all users write where it is told
        # to put its files, so that is inside of a directory which only this user may enter.
        self._dir = tempfile.mkdtemp(prefix="ray-")
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._watch: Optional[threading.Thread] = None
        try:
            # Ray runs whatever is sent to its ports. From here on, only for those who have these.
            self._token = secrets.token_hex(32)
            self._authority = _certificates.make_authority(_new_directory(self._dir))
            _use_token(self._token)
            _use_tls(self._dir, self._authority, self._ip)
            config = os.path.join(self._dir, "autoscaler.yaml")
            _write(config, self._config(me, idle))
            self._start(me, config, head_cpus, head_options or [])
            self._tell()
        except BaseException:
            self.close()
            raise
        roles.ready()

    def __enter__(self) -> RoleCluster:
        return self

    def __exit__(self, *what: Any) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            # From here on the autoscaler gets no more replicas.
            _forget(self._file)
            # A program that is still connected would wait for the head for a minute.
            ray.shutdown()
            # First the workers: without a head they would look for one for a minute.
            self._shrink()
            self._wait_for_workers()
            _end(self._process)
            self._process = None
            if self._watch is not None:
                self._watch.join()
            # The autoscaler may have asked for more at the same time as we for less.
            with suppress(roles.RolesError):
                if roles.status(self.role)[0].target > self._bounds.minimum:
                    self._shrink()
        _use_no_tls()
        shutil.rmtree(self._dir, ignore_errors=True)

    def _shrink(self) -> None:
        try:
            roles.scale(self.role, self._bounds.minimum)
        except roles.RolesError as error:
            logger.warning("%s", error)

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + _LEAVE
        with suppress(roles.RolesError):
            while len(roles.replicas(self.role)) > self._bounds.minimum:
                if time.monotonic() > end:
                    logger.warning("workers of Ray are still there after %s s", _LEAVE)
                    break
                time.sleep(_POLL)

    def _config(self, me: roles.Task, idle: float) -> Dict[str, Any]:
        """Of the autoscaler. Ray reads YAML, which JSON is."""
        workers = {
            "min_workers": self._bounds.minimum,
            "max_workers": self._bounds.maximum,
            "resources": {name: value for name, value in self._has.items() if value},
            "node_config": {},
        }
        return {
            "cluster_name": self.role,
            "max_workers": self._bounds.maximum,
            "idle_timeout_minutes": idle / 60,
            "upscaling_speed": 1000,
            "provider": {
                "type": "external",
                "module": "slurm_elastic.ray.RoleProvider",
                "role": self.role,
                "head": _own_node_id(me),
                "head_type": me.role,
                "told": self._file,
                "disable_node_updaters": True,
                "disable_launch_config_check": True,
            },
            # External providers get no defaults.
            **{name: [] for name in _COMMANDS},
            "file_mounts": {},
            "cluster_synced_files": [],
            "auth": {},
            "head_node_type": me.role,
            "available_node_types": {
                me.role: {"max_workers": 0, "resources": {}, "node_config": {}},
                self.role: workers,
            },
        }

    def _tell(self) -> None:
        """The workers know of the head for as long as it is there."""
        assert self._process is not None
        _write(self._file, self._told())
        self._watch = _forget_after(self._process, self._file)

    def _told(self) -> Dict[str, Any]:
        """What a worker has to know."""
        return {
            "address": self.address,
            "token": self._token,
            "authority": self._authority,
            "has": self._has,
            "object_store_memory": self._store,
            "directory": self._dir,
        }

    def _start(self, me: roles.Task, config: str, cpus: int, options: List[str]) -> None:
        options = [
            *("--head", f"--node-ip-address={self._ip}", f"--port={me.ports['head']}"),
            *(f"--autoscaling-config={config}", f"--temp-dir={os.path.join(self._dir, _INSIDE)}"),
            *("--include-dashboard=false", f"--num-cpus={cpus}", "--num-gpus=0"),
            *_store_option(self._store),
            *options,
        ]
        self._process = subprocess.Popen(
            _command(options),
            env=_environment(me, finish=0),
            stdin=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
        )
        end = time.monotonic() + _START
        while not (self._head_listens(me) and _answers(self.address) and self._head_listens(me)):
            if time.monotonic() > end:
                raise roles.RolesError(f"Ray's head does not answer within {_START} s")
            time.sleep(_POLL)

    def _head_listens(self, me: roles.Task) -> bool:
        """Whoever is asked there gets the token, and the workers would go there."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise roles.RolesError(f"Ray's head ended with {self._process.returncode}")
        port = me.ports["head"]
        ours = _listeners.is_ours(self._ip, port)
        if ours is False:
            raise roles.RolesError(f"a program of another user listens on port {port}")
        return ours is True


# ---- processes of Ray --------------------------------------------------------------------------


def _environment(me: roles.Task, finish: float) -> Dict[str, str]:
    return {
        **os.environ,
        "RAY_CLOUD_INSTANCE_ID": _own_node_id(me),
        "RAY_NODE_TYPE_NAME": me.role,
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(finish),
        "RAY_enable_autoscaler_v2": "1",  # the first one knows its nodes by their addresses only
        "AUTOSCALER_UPDATE_INTERVAL_S": os.environ.get("AUTOSCALER_UPDATE_INTERVAL_S", _UPDATE),
    }


def _command(options: List[str]) -> List[str]:
    """`ray start`, whose processes end with it."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
    # Other jobs may have workers of Ray on this node. So the kernel chooses all ports.
    command += ["--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0"]
    return command + options


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    """Whether there is a head, with a node of Ray that runs."""
    from ray._raylet import GcsClient
    from ray.autoscaler.v2.sdk import get_cluster_resource_state

    try:
        return bool(get_cluster_resource_state(GcsClient(address=address)).node_states)
    except Exception as error:  # Ray has many, and no common one
        logger.debug("%s", error)
        return False


def _store_option(size: Optional[int]) -> List[str]:
    return [] if size is None else [f"--object-store-memory={size}"]


# ---- what a worker has to know -----------------------------------------------------------------


def _use_token(token: str) -> None:
    """For this process, and those that it starts."""
    from ray._raylet import AuthenticationTokenLoader, Config

    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    # Ray has read its environment when it was imported.
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def _use_tls(directory: str, authority: Dict[str, str], address: str) -> None:
    """Likewise. address: of this node, as the others of the cluster call it."""
    from ray._raylet import Config

    where = _new_directory(directory)
    # Ray calls processes of its own node by other names, too.
    _certificates.make_member(
        where, authority, [address, _seen_from_others(address), "127.0.0.1", "::1", "localhost"]
    )
    files = {name: os.path.join(where, file) for name, file in _TLS.items()}
    os.environ.update(files, RAY_USE_TLS="1")
    Config.initialize("")


def _use_no_tls() -> None:
    """What the program does with Ray once its cluster has ended needs no files of it."""
    from ray._raylet import Config

    for name in ("RAY_USE_TLS", *_TLS):
        os.environ.pop(name, None)
    Config.initialize("")


def _seen_from_others(address: str) -> str:
    return str(services.resolve_ip_for_localhost(address))


def _new_directory(directory: str) -> str:
    return tempfile.mkdtemp(prefix="tls-", dir=directory)


def _forget(path: str) -> None:
    """As far as that is possible: where others may write it can be another user's."""
    with suppress(OSError):
        os.unlink(path)


def _forget_after(process: subprocess.Popen[bytes], path: str) -> threading.Thread:
    """The file does not outlive the process."""

    def forget() -> None:
        process.wait()
        _forget(path)

    thread = threading.Thread(target=forget, daemon=True)
    thread.start()
    return thread


def _told_file(role: str) -> str:
    shared = os.environ.get("ELASTIC_SHARED_DIR")
    if not shared:
        raise roles.RolesError("the job file has no `shared`")
    return os.path.join(shared, f"ray-{role}.json")


def _write(path: str, what: Dict[str, Any]) -> None:
    part = f"{path}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(part)
    # Others never see it, also where they may search the directory, or write into it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def _read(path: str) -> Dict[str, Any]:
    """Raises RolesError if another user could have written it: its cluster would be his."""
    try:
        with _opened.private_file(path) as file:
            told: Dict[str, Any] = json.load(file)
    except _opened.NotTrustedError as error:
        raise roles.RolesError(str(error)) from error
    return told


# ---- the worker --------------------------------------------------------------------------------


def _worker_options(told: Dict[str, Any]) -> List[str]:
    has = dict(told["has"])
    options = [f"--address={told['address']}", f"--node-ip-address={told['own_address']}"]
    options.append(f"--temp-dir={os.path.join(told['directory'], _INSIDE)}")
    options += [f"--num-cpus={has.pop('CPU')}", f"--num-gpus={has.pop('GPU')}"]
    if "memory" in has:
        options.append(f"--memory={has.pop('memory')}")
    if has:
        options.append(f"--resources={json.dumps(has)}")
    return options + _store_option(told["object_store_memory"])


def _private(directory: str) -> str:
    """A directory for the files of a worker, which only this user may enter: that one, where the
    head has its files on its own node, so that each start of a worker has the same. Where another
    user of this node was first, or others may enter it, a new one.
    """
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    return directory if _opened.is_private(directory) else tempfile.mkdtemp(prefix="ray-")


def _wait_for_file(path: str) -> str:
    """A head that has ended has none, and the next one none before it answers."""
    end = time.monotonic() + _START
    while not _opened.is_there(path) and time.monotonic() < end:
        time.sleep(_POLL)
    return path


def _work(finish: float) -> None:
    """Becomes Ray's worker, which drains itself at SIGTERM."""
    me = roles.me()
    if me is None:
        raise roles.RolesError("this program is no task of a job with roles")
    told = _read(_wait_for_file(_told_file(me.role)))
    told["directory"] = _private(told["directory"])
    told["own_address"] = _seen_from_others(services.get_node_ip_address(told["address"]))
    _use_token(told["token"])
    _use_tls(told["directory"], told["authority"], told["own_address"])
    # What tasks print goes to the output of the replica. In a file of Ray's it would cost tasks:
    # seen with 2.60 on a node that was taken, the file was gone before the task had ended, and the
    # task failed for good.
    environment = {
        **_environment(me, finish),
        "RAY_LOG_TO_STDERR": "1",
        "RAY_BACKEND_LOG_LEVEL": "warning",
    }
    # Once Ray's own processes have ended well, it goes on, until the replica is removed.
    os.execve(sys.executable, _command(_worker_options(told)), environment)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m slurm_elastic.ray",
        description="A worker of Ray, in a replica of the role that RoleCluster names.",
    )
    parser.add_argument(
        "--finish",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="tasks have so long to end when the replica drains (default 10)",
    )
    arguments = parser.parse_args()
    try:
        _work(arguments.finish)
    except (roles.RolesError, OSError) as error:
        print(f"slurm_elastic.ray: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
