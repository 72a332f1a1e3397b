#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoleCluster, against a stand-in for the job, with Dask's own scheduler, workers and client."""

import asyncio
import contextlib
import importlib.util
import json
import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import tap
from roles_api import RolesApi

if importlib.util.find_spec("distributed"):
    from distributed import Client, Scheduler, Security, Worker
    from slurm_elastic import _certificates, roles
    from slurm_elastic.dask import RoleCluster


def square(number):
    with open(os.environ["COMPUTED"], "a", encoding="ascii") as file:
        file.write(f"{number}\n")
    return number * number


def held(number):
    """As square, once there is the file that lets it go on."""
    while not os.path.exists(os.environ["COMPUTED"] + ".may"):
        time.sleep(0.02)
    return square(number)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.02)


@unittest.skipUnless(importlib.util.find_spec("distributed"), "distributed is not installed")
class Dask(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.api = RolesApi()
        self.addCleanup(self.api.close)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        changed = mock.patch.dict(
            os.environ,
            {
                "ELASTIC_API": self.api.url,
                "ELASTIC_ROLE": "program",
                "ELASTIC_REPLICA": "program-0",
                "ELASTIC_SHARED_DIR": directory.name,
                "ELASTIC_READY_FILE": str(self.dir / "ready"),
                "COMPUTED": str(self.dir / "computed"),
            },
        )
        changed.start()
        self.addCleanup(changed.stop)

    def computed(self):
        return sorted(map(int, (self.dir / "computed").read_text().split()))

    @contextlib.asynccontextmanager
    async def cluster(self, **arguments):
        async with contextlib.AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                RoleCluster(asynchronous=True, insecure=True, **arguments)
            )
            client = await stack.enter_async_context(Client(cluster, asynchronous=True))
            yield cluster, client

    async def worker(self, cluster, index, start):
        """The program of a replica, as Dask's own command would start it."""
        self.api.put("worker", index, "ready", start)
        await until(lambda: f"worker-{index}" in cluster.plan)
        worker = await Worker(
            scheduler_file=cluster.scheduler_file,
            name=f"worker-{index}",
            nthreads=1,
            local_directory=str(self.dir),
            dashboard_address=":0",
        )
        self.addAsyncCleanup(worker.close)
        return worker

    async def test_begin_and_end(self):
        async with self.cluster() as (cluster, _):
            told = json.loads((self.dir / "dask-worker.json").read_text())
            self.assertEqual(told["address"], cluster.scheduler_address)
            self.assertIn("//127.0.0.1:", cluster.scheduler_address)
            self.assertTrue((self.dir / "ready").exists())
            self.assertEqual((self.dir / "dask-worker.json").stat().st_mode & 0o777, 0o600)
            with self.assertRaisesRegex(ValueError, "0 to 13 replicas of worker: .* 0 to 12"):
                cluster.adapt(minimum=0, maximum=13)
            with self.assertRaisesRegex(roles.RolesError, "13 replicas of worker: allowed"):
                await cluster.scale(13)
            self.api.asked.clear()
        self.assertEqual(self.api.asked, ['PATCH /v1/roles/worker {"replicas": 0}'])
        self.assertFalse((self.dir / "dask-worker.json").exists())

    async def test_no_job(self):
        with mock.patch.dict(os.environ, {"ELASTIC_SHARED_DIR": ""}):
            with self.assertRaisesRegex(roles.RolesError, "no `shared`"):
                RoleCluster(asynchronous=True)
        with self.assertRaisesRegex(roles.RolesError, "no role 'none'"):
            await RoleCluster("none", asynchronous=True, insecure=True)
        with self.assertRaisesRegex(roles.RolesError, "^without TLS every user of the cluster"):
            RoleCluster(asynchronous=True)
        self.assertFalse((self.dir / "ready").exists())

    def security(self):
        """Certificates, as Dask's configuration may have them: nothing says to use them always."""
        there = [self.dir / each for each in ("ca", "member")]
        for each in there:
            each.mkdir()
        authority = _certificates.make_authority(str(there[0]))
        _certificates.make_member(str(there[1]), authority, ["127.0.0.1"])
        files = {
            f"tls_{role}_{what}": str(there[1] / f"own.{end}")
            for role in ("scheduler", "worker", "client")
            for what, end in (("cert", "crt"), ("key", "key"))
        }
        files["tls_ca_file"] = str(there[1] / "ca.crt")
        return Security(require_encryption=False, **files)

    async def test_tls(self):
        security = self.security()
        async with RoleCluster(asynchronous=True, security=security) as cluster:
            self.assertRegex(cluster.scheduler_address, "^tls://")
            told = json.loads((self.dir / "dask-worker.json").read_text())
            self.assertEqual(told["address"], cluster.scheduler_address)
            async with Client(cluster, asynchronous=True) as client:
                self.assertEqual(client.security, security)
            with self.assertRaises(OSError):
                address = cluster.scheduler_address.replace("tls://", "tcp://")
                await Client(address, timeout=1, asynchronous=True)
        for wrong in ({"protocol": "tcp://"}, {"protocol": "tcp"}):
            with self.assertRaisesRegex(roles.RolesError, "would listen at tcp.* without TLS"):
                RoleCluster(asynchronous=True, security=security, options=wrong)

    async def test_tls_of_what_listens(self):
        """Whatever Dask makes of the options: what counts is where it listens."""

        def without_tls(**options):
            return Scheduler(**{**options, "protocol": "tcp://"})

        with mock.patch("slurm_elastic.dask.Scheduler", without_tls):
            with self.assertRaisesRegex(roles.RolesError, "listen at tcp://.* without TLS"):
                await RoleCluster(asynchronous=True, security=self.security())
        self.assertFalse((self.dir / "ready").exists())
        self.assertFalse((self.dir / "dask-worker.json").exists())

    async def test_adapt(self):
        async with self.cluster() as (cluster, client):
            there = []
            self.api.removing = lambda name: there.append(name in cluster.observed)
            cluster.adapt(minimum=0, maximum=3, interval="50ms", wait_count=1, target_duration="1s")
            # Else two workers are done with them before the third has come, and it is removed.
            futures = client.map(held, range(20))
            await until(lambda: 'PATCH /v1/roles/worker {"replicas": 3}' in self.api.asked)
            for index in range(3):
                await self.worker(cluster, index, index + 1)
            (self.dir / "computed.may").touch()
            self.assertEqual(sum(await client.gather(futures)), 2470)
            # They have nothing to do any more. Each is removed, then drains, then is closed.
            for future in futures:
                future.release()
            await until(lambda: sum(line.startswith("DELETE") for line in self.api.asked) == 3)
            await until(lambda: not cluster.scheduler.workers)
        # Or it would be started again, because its worker has ended.
        self.assertEqual(there, [True] * 3)
        self.assertEqual(self.computed(), list(range(20)))

    async def test_drained(self):
        async with self.cluster() as (cluster, client):
            first = await self.worker(cluster, 0, 1)
            done = client.map(square, range(30))
            await client.gather(done)
            second = await self.worker(cluster, 1, 2)
            under_way = client.submit(held, 100, workers=[first.address])
            await until(lambda: first.state.executing_count == 1)
            self.api.put("worker", 0, "draining", 1)
            await until(lambda: cluster._retiring)
            (self.dir / "computed.may").touch()
            self.assertEqual(sum(await client.gather([*done, under_way])), 8555 + 10000)
            await first.finished()
            self.assertEqual(list(cluster.scheduler.workers), [second.address])
            # All results are still there, and none was computed again.
            self.assertEqual(sum(await client.gather([*done, under_way])), 8555 + 10000)
        self.assertEqual(self.computed(), [*range(30), 100])

    async def test_drained_with_nowhere_to_go(self):
        async with self.cluster() as (cluster, client):
            first = await self.worker(cluster, 0, 1)
            done = client.map(square, range(30))
            await client.gather(done)
            self.api.put("worker", 0, "draining", 1)
            await until(lambda: cluster._retiring)
            await until(lambda: not cluster._retiring)
            await self.worker(cluster, 1, 2)
            await first.finished()
            self.assertEqual(sum(await client.gather(done)), 8555)
        self.assertEqual(self.computed(), list(range(30)))

    async def test_lost(self):
        async with self.cluster() as (cluster, client):
            first = await self.worker(cluster, 0, 1)
            under_way = client.submit(held, 100)
            await until(lambda: first.state.executing_count == 1)
            # Its node is lost: the replica is wanted, then started anew. Dask has not noticed.
            self.api.put("worker", 0, "wanted", 1)
            await until(lambda: not cluster.scheduler.workers)
            again = await self.worker(cluster, 0, 2)
            (self.dir / "computed.may").touch()
            self.assertEqual(await under_way, 10000)
            self.assertEqual(list(cluster.scheduler.workers), [again.address])
            self.assertEqual(cluster.scheduler.tasks[under_way.key].suspicious, 0)
            await until(lambda: again.address in cluster._starts)
            # It was so quick that nobody has seen that it was wanted.
            self.api.put("worker", 0, "ready", 3)
            await until(lambda: not cluster.scheduler.workers)

    async def test_scale(self):
        async with self.cluster() as (cluster, client):
            await cluster.scale(3)
            self.assertEqual(self.api.asked, ['PATCH /v1/roles/worker {"replicas": 3}'])
            first = await self.worker(cluster, 0, 1)
            second = await self.worker(cluster, 1, 2)
            self.api.put("worker", 2, "wanted", 0)
            await until(lambda: "worker-2" in cluster.plan)
            # The second one has results, the first one has none, and the third one has not come.
            done = client.map(square, range(5), workers=[second.address])
            await client.gather(done)
            self.api.asked.clear()
            await cluster.scale(1)
            self.assertEqual(
                self.api.asked,
                [
                    "DELETE /v1/roles/worker/replicas/worker-2",
                    "DELETE /v1/roles/worker/replicas/worker-0",
                    'PATCH /v1/roles/worker {"replicas": 1}',
                ],
            )
            await first.finished()
            self.assertEqual(list(cluster.scheduler.workers), [second.address])


if __name__ == "__main__":
    tap.main()
