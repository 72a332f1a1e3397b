#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""AgentStore: torch's names for it, threads, fork, time limits, errors. The agent is played
here.
"""

import base64
import json
import os
import signal
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from datetime import timedelta
from unittest import mock

import tap

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../client/python")
sys.path.insert(0, PACKAGE)


class Agent(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Keeps the values itself, as the leader does for real ones."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path):
        super().__init__(path, Connection)
        self.values, self.changed = {}, threading.Condition()
        self.over, self.busy, self.connections, self.waiting = False, 0, [], 0
        self.longest = 0  # seconds for which somebody would have waited
        self.scopes = set()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, address):
        pass

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def stop(self):
        self.end()
        self.shutdown()
        self.server_close()

    def answer(self, request):
        with self.changed:
            self.scopes.add((request["gen"], request["attempt"]))
            if self.busy > 0:
                self.busy -= 1
                return {"error": "busy"}
            op, key, keys = request["op"], request.get("key"), request.get("keys", [])
            if op in ("get", "wait"):
                return self.wait(request, [key] if op == "get" else keys)
            if op == "check":
                return {"number": int(all(each in self.values for each in keys))}
            if op == "num_keys":
                return {"number": len(self.values)}
            if op == "delete":
                return {"number": int(self.values.pop(key, None) is not None)}
            value = base64.b64decode(request.get("value", ""))
            if value == b"full":
                return {"error": "full", "reason": "no room"}
            if op == "add":
                number = int(self.values.get(key, b"0")) + request["amount"]
                self.values[key] = str(number).encode()
                answer = {"number": number}
            elif op == "set":
                self.values[key] = value
                answer = {}
            else:
                expected = base64.b64decode(request["expected"])
                if self.values.get(key, b"") == expected:
                    self.values[key] = value
                answer = {"value": self.coded(self.values.get(key, expected))}
            self.changed.notify_all()
            return answer

    def wait(self, request, keys):
        self.waiting += 1
        self.longest = max(self.longest, request["timeout"])
        there = self.changed.wait_for(
            lambda: self.over or all(key in self.values for key in keys), request["timeout"]
        )
        self.waiting -= 1
        if self.over:
            return {"error": "gone"}
        if not there:
            return {"error": "timeout"}
        return {"value": self.coded(self.values[keys[0]])} if keys else {}

    def coded(self, value):
        return base64.b64encode(value).decode()


class Connection(socketserver.StreamRequestHandler):
    def setup(self):
        super().setup()
        self.lock = threading.Lock()
        self.server.connections.append(self.connection)

    def handle(self):
        while head := self.rfile.read(4):
            request = json.loads(self.rfile.read(struct.unpack(">I", head)[0]))
            threading.Thread(target=self.answer, args=(request,), daemon=True).start()

    def answer(self, request):
        body = json.dumps({"id": request["id"], **self.server.answer(request)}).encode()
        with self.lock:
            try:
                # In two parts, as it may come.
                self.connection.sendall(struct.pack(">I", len(body)) + body[:3])
                self.connection.sendall(body[3:])
            except OSError:
                pass


def until(condition):
    while not condition():
        time.sleep(0.005)


def in_threads(count, function):
    """What each of so many threads has returned, or raised."""
    results = [None] * count

    def run(index):
        try:
            results[index] = function(index)
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    return threads, results


@tap.needs_torch
class Store(unittest.TestCase):
    def setUp(self):
        from slurm_elastic import _store

        self.module = _store
        self.directory = tempfile.TemporaryDirectory()
        # Longer than a socket's address.
        deep = os.path.join(self.directory.name, "d" * 120)
        os.mkdir(deep)
        here = os.getcwd()
        os.chdir(deep)
        self.agent = Agent("store")
        os.chdir(here)
        self.path = os.path.join(deep, "store")
        self.store = _store.AgentStore(3, 4, self.path, timedelta(seconds=30))

    def tearDown(self):
        self.store.close()
        self.agent.stop()
        self.directory.cleanup()

    def test_operations(self):
        store = self.store
        store.set("k", "text")
        store.set("b", b"\0\xff")
        self.assertEqual((store.get("k"), store.get("b")), (b"text", b"\0\xff"))
        self.assertEqual([store.add("n", 5), store.add("n", -7)], [5, -2])
        self.assertEqual(store.compare_set("k", "text", "new"), b"new")
        self.assertEqual(store.compare_set("k", "text", "newer"), b"new")
        self.assertEqual(store.compare_set("c", "x", "y"), b"x")
        self.assertTrue(store.check(["k", "n"]))
        self.assertFalse(store.check(["k", "none"]))
        self.assertEqual(store.num_keys(), 3)
        self.assertEqual([store.delete_key("k"), store.delete_key("k")], [True, False])
        store.multi_set(["x", "y"], ["1", b"2"])
        self.assertEqual(store.multi_get(["y", "x"]), [b"2", b"1"])
        store.wait(["x", "y"])
        large = os.urandom(1 << 20)
        store.set("large", large)
        self.assertEqual(store.get("large"), large)
        self.assertEqual(self.agent.scopes, {(3, 4)})

    def test_through_torch(self):
        """C++ calls the methods, by names of its own."""
        import torch.distributed as dist

        prefixed = dist.PrefixStore("p", self.store)
        prefixed.set("k", "v")
        self.assertEqual(prefixed.get("k"), b"v")
        self.assertEqual(self.store.get("p/k"), b"v")
        self.assertEqual([prefixed.add("n", 2), prefixed.add("n", 3)], [2, 5])
        prefixed.wait(["k", "n"])
        prefixed.wait(["k"], timedelta(seconds=5))
        self.assertEqual(prefixed.num_keys(), 2)
        self.assertTrue(prefixed.delete_key("k"))
        with self.assertRaisesRegex(RuntimeError, "p/none.*not there after 0.05 s"):
            prefixed.wait(["none"], timedelta(seconds=0.05))
        self.agent.end()
        with self.assertRaisesRegex(RuntimeError, "p/none.*that world is over"):
            prefixed.get("none")

    def test_threads_share_one_connection(self):
        def pair(index):
            if index % 2:
                return self.store.get(str(index))
            time.sleep(0.001 * index)
            self.store.set(str(index + 1), f"v{index + 1}")
            return self.store.add("sum", 1)

        threads, results = in_threads(32, pair)
        for thread in threads:
            thread.join()
        self.assertEqual(results[1::2], [f"v{i}".encode() for i in range(1, 32, 2)])
        self.assertEqual(sorted(results[::2]), list(range(1, 17)))
        self.assertEqual(len(self.agent.connections), 1)

    def test_time_limits(self):
        with self.assertRaisesRegex(
            self.module.StoreTimeout, r"wait\(a, b, c and 2 more\) in generation 3.4: .* 0.05 s"
        ):
            self.store.wait(list("abcde"), timedelta(seconds=0.05))
        self.store.set_timeout(timedelta(seconds=0.07))
        with self.assertRaisesRegex(self.module.StoreTimeout, r"get\(a\).* 0.07 s"):
            self.store.get("a")
        self.assertEqual(self.store.timeout, timedelta(seconds=0.07))

    def test_abort_frees_all_that_are_blocked(self):
        threads, results = in_threads(5, lambda index: self.store.get(f"never{index}"))
        until(lambda: self.agent.waiting == 5)
        begun = time.monotonic()
        self.store.abort("torn")
        for thread in threads:
            thread.join()
        self.assertLess(time.monotonic() - begun, 15)  # not the 30 s of the requests
        for index, error in enumerate(results):
            self.assertIsInstance(error, self.module.StoreAborted)
            self.assertIn(f"never{index}", str(error))
            self.assertIn("torn", str(error))
        with self.assertRaises(self.module.StoreAborted):
            self.store.set("k", "v")

    def test_abort_frees_a_group_that_forms(self):
        """The exception comes through C++."""
        import torch.distributed as dist

        place = dist.PrefixStore("p", self.store)
        threads, results = in_threads(
            1, lambda _: dist.init_process_group("gloo", store=place, rank=0, world_size=2)
        )
        until(lambda: self.agent.waiting == 1)
        self.store.abort("torn")
        threads[0].join()
        self.assertIsInstance(results[0], self.module.StoreAborted)
        self.assertIn("torn", str(results[0]))
        self.assertFalse(dist.is_initialized())

    def test_who_forms_a_live_world_waits_until_it_is_over(self):
        """Others may have a long step to end before they come."""
        import torch
        from slurm_elastic import _events, _membership, live

        world = _events.World(3, 4, rank=0, size=2, local_rank=0, local_size=1, nodes=2, save=0)
        for end in (lambda: self.agent.connections[-1].shutdown(2), self.agent.end):
            membership = _membership.Membership(
                world, live.State(torch.nn.Linear(2, 2)), timedelta(minutes=7)
            )
            with mock.patch.dict(os.environ, ELASTIC_STORE=self.path), mock.patch.object(
                _events, "_library", mock.MagicMock()
            ):
                _events._library.elastic_world_forms.return_value = 0
                threads, results = in_threads(1, lambda _, entering=membership: entering.enter())
                until(lambda: self.agent.waiting == 1)
                self.assertEqual(self.agent.longest, 7 * 60)
                end()
                threads[0].join(5)
                self.assertIsInstance(results[0], self.module.StoreError)
                membership.leave(lost=True)
            with self.agent.changed:
                self.agent.waiting = 0  # that of the connection that has ended goes on

    def test_descriptors(self):
        def open_now():
            return len(os.listdir("/proc/self/fd"))

        before = open_now()
        for _ in range(20):
            store = self.module.AgentStore(1, 1, self.path)
            store.set("k", "v")
            self.assertEqual(store.clone().get("k"), b"v")
            store.close()
        until(lambda: open_now() <= before)  # the agent's ends are here, too

    def test_fork(self):
        self.store.set("parent", "1")
        child = os.fork()
        if child == 0:
            try:
                self.store.set("child", self.store.get("parent"))
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.store.get("child"), b"1")
        self.assertEqual(len(self.agent.connections), 2)

    def test_errors(self):
        with self.assertRaisesRegex(self.module.StoreError, r"set\(k\) .*no room"):
            self.store.set("k", "full")
        self.agent.busy = 3
        self.store.set("k", "v")
        self.assertEqual(self.agent.busy, 0)
        threads, results = in_threads(1, lambda index: self.store.get("never"))
        until(lambda: self.agent.waiting == 1)
        self.agent.connections[0].shutdown(2)
        threads[0].join()
        self.assertIsInstance(results[0], self.module.StoreError)
        self.assertRegex(str(results[0]), "never.*agent has ended the connection")
        self.assertEqual(self.store.get("k"), b"v")  # over a new one
        threads, results = in_threads(2, lambda index: self.store.get("never"))
        until(lambda: self.agent.waiting == 3)
        self.agent.end()
        for thread in threads:
            thread.join()
        for error in results:
            self.assertIsInstance(error, self.module.StoreGone)

    def test_a_signal_handler_that_raises(self):
        """Its call ends; those of other threads go on."""

        class Enough(Exception):
            pass

        def raise_it(number, frame):
            raise Enough

        def interrupt(main, asking):
            asking.wait()
            # A request that is cut while it is written would end the connection.
            until(lambda: sys._current_frames()[main].f_code.co_name in ("_receive", "wait"))
            time.sleep(0.02)
            signal.pthread_kill(main, signal.SIGUSR1)

        threads, results = in_threads(1, lambda index: self.store.get("late"))
        until(lambda: self.agent.waiting == 1)
        before = signal.signal(signal.SIGUSR1, raise_it)
        try:
            for _ in range(20):
                asking = threading.Event()
                other = threading.Thread(target=interrupt, args=(threading.get_ident(), asking))
                other.start()
                with self.assertRaises(Enough):
                    asking.set()
                    self.store.get("never")
                other.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        self.store.set("late", "v")
        threads[0].join()
        self.assertEqual(results, [b"v"])
        self.assertEqual(len(self.agent.connections), 1)

    def test_no_agent(self):
        with self.assertRaisesRegex(self.module.StoreError, "nowhere/store cannot be reached"):
            self.module.AgentStore(1, 1, "/nowhere/store").set("k", "v")
        os.environ.pop("ELASTIC_STORE", None)
        with self.assertRaisesRegex(self.module.StoreError, "ELASTIC_STORE is not set"):
            self.module.AgentStore()
        os.environ["ELASTIC_STORE"] = self.path
        # A worker of job 12 has submitted this job.
        other = {"ELASTIC_JOB_ID": "12", "SLURM_JOB_ID": "13"}
        with mock.patch.dict(os.environ, **other), self.assertRaises(self.module.StoreError):
            self.module.AgentStore(1, 1)
        os.environ.pop("ELASTIC_ATTEMPT", None)
        with self.assertRaisesRegex(self.module.StoreError, "ELASTIC_ATTEMPT"):
            self.module.AgentStore(generation=1)
        os.environ["ELASTIC_GENERATION"], os.environ["ELASTIC_ATTEMPT"] = "8", "9"
        self.module.AgentStore().set("k", "v")
        self.assertEqual(self.agent.scopes, {(8, 9)})


class Package(unittest.TestCase):
    def test_torch_is_not_imported(self):
        code = "import slurm_elastic, sys; sys.exit('torch' in sys.modules)"
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)


if __name__ == "__main__":
    tap.main()
