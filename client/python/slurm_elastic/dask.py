# SPDX-License-Identifier: GPL-2.0-or-later
"""Dask's cluster whose workers are the replicas of a role (doc/user/roles.md#dask).

    from distributed import Client
    from slurm_elastic.dask import RoleCluster

    with RoleCluster(role="worker", security=security) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=12)
        print(client.submit(sum, client.map(square, range(1000))).result())

The program is a task of a role with `api: yes`. The scheduler runs in it. The workers are
unmodified: `dask worker --scheduler-file FILE --name {replica} --local-directory NEW`, with
`drain: {signal: CONT}`, which they do not notice. RoleCluster sees that a replica drains. It lets
the worker finish what it computes, has its results moved to other workers, and closes it.

Needed besides the standard library: distributed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import tempfile
import time
from contextlib import suppress
from typing import (
    Any,
    Callable,
    Coroutine,
    Dict,
    Generator,
    Iterable,
    List,
    Optional,
    Set,
)

from distributed import Scheduler, Security
from distributed.core import Status, rpc
from distributed.deploy.adaptive import Adaptive
from distributed.deploy.cluster import Cluster
from tornado.ioloop import IOLoop

from slurm_elastic import roles

__all__ = ["RoleCluster"]

_LOOK = 0.5  # seconds between two looks at the replicas
_FINISH_POLL = 0.1  # seconds between two looks at what a worker computes
_TLS = ("tls://", "wss://")  # of Dask's protocols those with TLS

logger = logging.getLogger("distributed.slurm_elastic")


class _RoleAdaptive(Adaptive):
    """Removes replicas, and leaves it to the cluster to retire the workers of those that drain.

    Dask's own retires the workers first. Their programs would end, and their replicas be started
    again, before the replicas are removed.
    """

    async def scale_down(self, workers: Iterable[str]) -> None:
        if workers:
            await self.cluster.scale_down(workers)


class RoleCluster(Cluster):
    """A Dask cluster of the replicas of one role.

    role: the role of the workers. Their names have to be those of their replicas.
    scheduler_file: where the workers find the scheduler. Without it: dask-ROLE.json in
        ELASTIC_SHARED_DIR. It is written once the scheduler listens, and removed by close().
    finish: a worker that drains has so many seconds to finish what it computes. What it has not
        finished is computed anew on another worker.
    security: distributed.Security of the scheduler and its clients, for TLS. The default is that of
        Dask's configuration. The scheduler listens with TLS whether or not that has
        `require-encryption`.
    insecure: go on without TLS. Every user who reaches a port of the scheduler or of a worker can
        then run programs as the user of the job.
    options: more arguments of distributed.Scheduler.

    The scheduler listens at the port `scheduler` of the task, and its dashboard at `dashboard`, if
    the job file has ports of these names, else at any free port. The task is ready (`ready: told`)
    once the scheduler is.

    close() makes the role as small as it can be. RolesError says what the job refuses.
    """

    status: Status

    def __init__(
        self,
        role: str = "worker",
        *,
        scheduler_file: Optional[str] = None,
        finish: float = 5.0,
        security: Optional[Security] = None,
        insecure: bool = False,
        options: Optional[Dict[str, Any]] = None,
        asynchronous: bool = False,
        loop: Optional[IOLoop] = None,
        name: Optional[str] = None,
    ):
        me = roles.me()
        if me is None:
            raise roles.RolesError("this program is no task of a job with roles")
        if scheduler_file is None:
            shared = os.environ.get("ELASTIC_SHARED_DIR")
            if not shared:
                raise roles.RolesError(
                    "the job file has no `shared`, and there is no scheduler_file"
                )
            scheduler_file = os.path.join(shared, f"dask-{role}.json")
        self._me = me
        self.role = role
        self.scheduler_file = os.path.abspath(scheduler_file)
        self.scheduler: Any = None  # a Scheduler, once it has started
        self.security = security or Security()
        if not insecure and self.security.tls_scheduler_cert is None:
            raise roles.RolesError(
                "without TLS every user of the cluster could run programs as you: give security=, "
                "a distributed.Security with certificates, or insecure=True"
            )
        self._finish = finish
        self._options = dict(options or {})
        if not insecure:
            # Certificates alone do not make Dask listen with them: `require-encryption` would.
            _check_protocol(self._options.setdefault("protocol", _TLS[0]))
        self._insecure = insecure
        self._bounds: Any = None  # a Role, likewise
        self._replicas: Dict[str, roles.Replica] = {}
        self._starts: Dict[str, int] = {}  # of replicas, by the addresses of their workers
        self._retiring: Set[str] = set()  # addresses
        self._tasks: Set[asyncio.Future[None]] = set()
        if loop is None and asynchronous:
            loop = IOLoop.current()
        super().__init__(asynchronous=asynchronous, loop=loop, name=name, quiet=True)
        if not asynchronous:
            self._loop_runner.start()
            self.sync(self._start)

    # ---- start and end -------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, RoleCluster]:
        async def started() -> RoleCluster:
            await self._start()
            return self

        return started().__await__()

    def __exit__(self, *what: Any) -> None:
        super().__exit__(*what)
        self._loop_runner.stop()

    async def _start(self) -> None:
        if self.status != Status.created:
            return
        self.status = Status.starting
        try:
            await self._start_scheduler()
            await super()._start()
            await self._look()
        except BaseException:
            await self._close()
            raise
        self._spawn(self._watch())
        self._write_scheduler_file()
        roles.ready()

    async def _start_scheduler(self) -> None:
        me = self._me
        (self._bounds,) = await self._ask(roles.status, self.role)
        own = [each for each in await self._ask(roles.replicas, me.role) if each.name == me.replica]
        options = {
            "host": own[0].addresses[me.task],
            "port": me.ports.get("scheduler", 0),
            # It asks nobody who he is: other machines see it only if the job file has a port.
            "dashboard_address": f":{me.ports['dashboard']}"
            if "dashboard" in me.ports
            else "127.0.0.1:0",
            "security": self.security,
            **self._options,
        }
        self.scheduler = await Scheduler(**options)
        if not self._insecure:
            for listener in self.scheduler.listeners:
                _check_protocol(listener.contact_address)
        self.scheduler_comm = rpc(
            self.scheduler.address, connection_args=self.security.get_connection_args("client")
        )

    def _write_scheduler_file(self) -> None:
        directory, name = os.path.split(self.scheduler_file)
        number, part = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
        with open(number, "w", encoding="utf-8") as file:
            json.dump(self.scheduler.identity(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.scheduler_file)

    async def _close(self) -> None:
        if self.status == Status.closed:
            return
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        with suppress(FileNotFoundError):
            os.unlink(self.scheduler_file)
        if self._bounds is not None:
            # Or the replicas would be started again as their workers end.
            try:
                await self._ask(roles.scale, self.role, self._bounds.minimum)
            except roles.RolesError as error:
                logger.warning("%s", error)
        await super()._close()
        if self.scheduler is not None:
            await self.scheduler.close()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A question to the job, which may take long, and during which Dask goes on."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    # ---- sizes ---------------------------------------------------------------------------------

    @property
    def plan(self) -> Set[str]:
        """The replicas that should be there: those that drain are not among them."""
        return {each.name for each in self._replicas.values() if each.state != "draining"}

    requested = plan

    @property
    def observed(self) -> Set[str]:
        """Those whose workers have come."""
        return {str(each.name) for each in self.scheduler.workers.values()}

    def scale(self, n: int) -> Any:
        """The role is to have n replicas. Those that go are the workers with the least results."""
        return self.sync(self._scale, n)

    def scale_down(self, workers: Iterable[str]) -> Any:
        """These replicas go, by their names."""
        return self.sync(self._scale_down, workers)

    def adapt(self, Adaptive: type = _RoleAdaptive, **kwargs: Any) -> Adaptive:
        """As many replicas as the work needs: Dask's Adaptive, with its arguments.

        minimum and maximum have to be between those of the role, which are their defaults.
        """
        least, most = self._bounds.minimum, self._bounds.maximum
        kwargs = {"minimum": least, "maximum": most, **kwargs}
        if not least <= kwargs["minimum"] <= kwargs["maximum"] <= most:
            raise ValueError(
                f"{kwargs['minimum']} to {kwargs['maximum']} replicas of {self.role}: "
                f"allowed are {least} to {most}"
            )
        return super().adapt(Adaptive=Adaptive, **kwargs)

    async def _scale(self, n: int) -> None:
        plan = self.plan
        if n < len(plan):
            await self._scale_down(await self._superfluous(plan, n))
        await self._ask(roles.scale, self.role, n)
        await self._look()

    async def _superfluous(self, plan: Set[str], n: int) -> List[str]:
        """First those whose workers have not come, then those that Dask can best do without."""
        arrived = self.observed
        names = sorted(plan - arrived)
        if len(plan) - len(names) > n:
            names += [
                name
                for name in self.scheduler.workers_to_close(target=n, attribute="name")
                if name in plan
            ]
        return names[: len(plan) - n]

    async def _scale_down(self, workers: Iterable[str]) -> None:
        for name in [each for each in workers if each in self.plan]:
            try:
                await self._ask(roles.remove, name)
            except roles.RolesError as error:
                # It has gone by itself, or it is one that has to stay.
                logger.warning("%s", error)
        await self._look()

    # ---- the workers of replicas that come and go ----------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            try:
                await self._look()
            except roles.RolesError as error:
                logger.warning("%s", error)

    async def _look(self) -> None:
        # Of workers that come meanwhile, the answer may know an older start.
        workers = {address: str(each.name) for address, each in self.scheduler.workers.items()}
        found = await self._ask(roles.replicas, self.role)
        self._replicas = {each.name: each for each in found}
        self._starts = {
            address: self._starts[address] for address in workers.keys() & self._starts.keys()
        }
        draining = []
        for address, name in workers.items():
            replica = self._replicas.get(name)
            if self._is_lost(address, replica):
                await self._forget(address)
            elif replica is not None and replica.addresses:
                self._starts[address] = replica.start
                if replica.state == "draining":
                    draining.append(address)
        draining = [address for address in draining if address not in self._retiring]
        if draining:
            # All at once: no result moves to a worker that is about to go.
            self._retiring.update(draining)
            self._spawn(self._retire(draining))

    def _is_lost(self, address: str, replica: Optional[roles.Replica]) -> bool:
        """Whether the replica of this worker has ended, or has been started anew.

        Dask notices a lost node after minutes. Until then it refuses a new worker of that name.
        """
        if replica is not None and replica.state in ("wanted", "placed", "failed"):
            return True
        start = self._starts.get(address)
        return start is not None and (replica is None or replica.start != start)

    async def _forget(self, address: str) -> None:
        # "safe": the tasks there are not to blame. The word depends on the version.
        remove = self.scheduler.remove_worker
        word = "safe" if "safe" in inspect.signature(remove).parameters else "expected"
        await remove(address, stimulus_id=f"replica-lost-{time.time()}", **{word: True})

    async def _retire(self, addresses: List[str]) -> None:
        """Moves the results of these workers away, and closes the workers.

        A worker whose results have nowhere to go stays. The next look tries again.
        """
        scheduler = self.scheduler
        try:
            # They take no new task any more.
            await scheduler.retire_workers(workers=addresses, close_workers=False, remove=False)
            end = time.monotonic() + self._finish
            while time.monotonic() < end and await self._compute(addresses):
                await asyncio.sleep(_FINISH_POLL)
            await scheduler.retire_workers(workers=addresses, close_workers=True, remove=True)
        except (OSError, KeyError) as error:
            logger.warning("retiring %s: %s", ", ".join(addresses), error)
        finally:
            self._retiring.difference_update(addresses)

    async def _compute(self, addresses: List[str]) -> bool:
        """Whether one of these workers computes a task."""
        there = [each for each in addresses if each in self.scheduler.workers]
        answers = await asyncio.gather(
            *(self.scheduler.rpc(each).call_stack(keys=None) for each in there),
            return_exceptions=True,
        )
        return any(isinstance(each, dict) and each for each in answers)


def _check_protocol(address: str) -> None:
    if not str(address).startswith(_TLS):
        raise roles.RolesError(
            f"the scheduler would listen at {address} without TLS, and every user of the cluster "
            'could run programs as you: leave "protocol" and "host" out of options, or give '
            "insecure=True"
        )
