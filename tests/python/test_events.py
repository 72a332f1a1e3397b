#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Takes 35 s
"""Events in Python, against a stand-in for elasticrun that writes the real pages."""

import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import fake_agent
import tap

STEPS = """
import sys, time, slurm_elastic
for step in range(1, 100000):
    time.sleep(0.002)
    event = slurm_elastic.elastic_event_detected()
    if event:
        assert event and slurm_elastic.elastic_event_detected() == event
        print(step, event.kind, event.nodes, event.reason, event.generation, event.step)
        print(event.deadline, event.time_remaining)
        sys.exit(0)
"""

READY = """
import os, sys, time, slurm_elastic
print("ready", flush=True)
"""


def python(code, *arguments):
    return ["-c", code, *arguments]


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
    env["ELASTIC_LIB"] = os.environ["ELASTIC_LIB"]
    env.update(changes)
    return env


class Leaving(unittest.TestCase):
    def test_what_is_run_and_written(self):
        code = """
import atexit, logging, slurm_elastic, sys, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
class Slow:
    def __del__(self):
        print("destroyed")
slow = Slow()
atexit.register(lambda: print("first registered"))
atexit.register(lambda: 1 / 0)
atexit.register(lambda: print("last registered"))
sys.stdout.write("no line break: ")
slurm_elastic.leave(*map(int, sys.argv[1:]))
"""
        for arguments, status in ((), 0), (("5",), 5):
            done = subprocess.run(
                [sys.executable, *python(code, *arguments)],
                env=environment(),
                capture_output=True,
                text=True,
                timeout=280,
            )
            self.assertEqual(done.returncode, status)
            self.assertEqual(done.stdout, "no line break: last registered\nfirst registered\n")
            self.assertIn("ZeroDivisionError", done.stderr)


class Events(unittest.TestCase):
    def test_all_stop_after_the_same_step(self):
        for generation in range(5):
            pipes = dict(stdout=subprocess.PIPE, text=True)
            with fake_agent.World(python(STEPS), 3, generation, **pipes) as world:
                self.assertTrue(world.wait_for_step(20))
                step = world.stop(kind=fake_agent.SHRINK, reason="a rival", nodes=2)
                self.assertEqual(world.wait(), [0, 0, 0])
                self.assertTrue(all(page.told for page in world.pages))
                said = {worker.stdout.read() for worker in world.workers}
            # The event comes with the boundary after `step` that were answered with None.
            self.assertEqual(said, {f"{step + 1} shrink 2 a rival {generation} {step}\nNone inf\n"})

    def test_kinds_reasons_and_deadlines(self):
        for kind, name in ((1, "grow"), (2, "shrink"), (3, "fault"), (4, "stop"), (99, "stop")):
            deadline = time.time() + 3000
            pipes = dict(stdout=subprocess.PIPE, text=True)
            with fake_agent.World(python(STEPS), 1, **pipes) as world:
                world.wait_for_step(1)
                world.stop(kind=kind, reason="ä" * 96 + "cut", deadline=deadline)
                self.assertEqual(world.wait(), [0])
                first, second = world.workers[0].stdout.read().splitlines()
            self.assertEqual(first.split()[1:3], [name, "None"])
            self.assertTrue(first.split()[3].startswith("ä" * 95))
            told, remaining = map(float, second.split())
            self.assertAlmostEqual(told, deadline, places=2)
            self.assertTrue(2000 < remaining < 3000, remaining)

    def test_workers_that_start_early_wait_at_the_gate(self):
        for call, place in (
            ("slurm_elastic.init()", 3),
            ("slurm_elastic.load_latest()", 2),
            ("slurm_elastic.latest_checkpoint()", 2),
            ("slurm_elastic.checkpoint_dir()", 2),
            ("slurm_elastic.elastic_event_detected()", 2),
        ):
            code = f"import slurm_elastic; print('imported', flush=True); {call}; print('through')"
            pipes = dict(stdout=subprocess.PIPE, text=True)
            with tempfile.TemporaryDirectory() as directory, fake_agent.World(
                python(code), 2, 1, environment(), directory, gated=True, **pipes
            ) as world:
                limit = time.monotonic() + 250
                while any(page.place != 1 for page in world.pages):
                    self.assertLess(time.monotonic(), limit, f"{call}: not at the gate")
                    time.sleep(0.01)
                time.sleep(0.3)
                self.assertEqual([worker.poll() for worker in world.workers], [None, None])
                for page in world.pages:
                    page.open_gate()
                self.assertEqual(world.wait(), [0, 0])
                self.assertEqual([page.place for page in world.pages], [place, place], call)
                for worker in world.workers:
                    self.assertEqual(worker.stdout.read(), "imported\nthrough\n")

    def test_who_waits_is_told_and_sleeps_until_then(self):
        code = """
import time, slurm_elastic as s
assert s.wait_event(0) is None and s.wait_event(0.6) is None
print("waits", flush=True)
event = s.wait_event()
print(event.kind, event.step, time.process_time() < 5)
"""
        with fake_agent.World(python(code), 1, stdout=subprocess.PIPE, text=True) as world:
            worker, page = world.workers[0], world.pages[0]
            self.assertEqual(worker.stdout.readline(), "waits\n")
            self.assertEqual((page.waits, page.state, page.step), (True, 2, 0))
            page.hold(kind=fake_agent.SHRINK)
            page.run_to(0)
            self.assertEqual(worker.stdout.readline(), "shrink 0 True\n")
            self.assertEqual(world.wait(), [0])

    def test_a_wait_passes_one_boundary(self):
        code = """
import slurm_elastic as s
print("ready", flush=True)
input()
print([s.wait_event(30) for _ in range(3)])
"""
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with fake_agent.World(python(code), 1, **pipes) as world:
            worker, page = world.workers[0], world.pages[0]
            worker.stdout.readline()
            page.hold()
            page.run_to(2)
            worker.stdin.write("go\n")
            worker.stdin.flush()
            self.assertRegex(worker.stdout.readline(), r"^\[None, None, Event\(.*step=2\)\]$")
            self.assertEqual(page.step, 2)

    def test_step_times_add_up_on_the_page(self):
        code = """
import slurm_elastic as s
assert s.report_step_time(0.25)
assert s.report_step_time(0.0015)
for bad in (-1, 86401):
    try: s.report_step_time(bad)
    except ValueError: print("ValueError", flush=True)
input()
"""
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with fake_agent.World(python(code), 1, **pipes) as world:
            worker, page = world.workers[0], world.pages[0]
            for _ in range(2):
                self.assertEqual(worker.stdout.readline(), "ValueError\n")
            self.assertEqual(page.own_time, (2, 251500))
            worker.stdin.write("\n")
            worker.stdin.close()

    def test_progress_is_written_on_the_page(self):
        code = """
import slurm_elastic as s
assert s.report_progress(5)
print(flush=True), input()
assert s.report_progress(6, 2**40, "samples")
for bad in ((-1,), (1, -1), (1, 2, "x" * 24)):
    try: s.report_progress(*bad)
    except ValueError: print("ValueError", flush=True)
input()
"""
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with fake_agent.World(python(code), 1, **pipes) as world:
            worker, page = world.workers[0], world.pages[0]
            self.assertIsNone(page.progress)
            worker.stdout.readline()
            self.assertEqual(page.progress, (5, 0, "steps"))
            worker.stdin.write("\n")
            worker.stdin.flush()
            for _ in range(3):
                self.assertEqual(worker.stdout.readline(), "ValueError\n")
            self.assertEqual(page.progress, (6, 2**40, "samples"))

    def test_nodes_without_pmix_are_an_error(self):
        code = """
import os, sys, slurm_elastic as s
os.environ.pop("PMIX_NAMESPACE", None)
for ask in (lambda: s.request_nodes(1), lambda: s.release_nodes(1), lambda: s.release_nodes(["n1", "n2"]),
            lambda: s.cancel_request("1.0.1"), s.request_result, s.checkpoint_done):
    try: print(ask())
    except s.NodesRefused: print("refused")
    except s.ElasticError as error: print("--pmix=no" in str(error))
if os.fork() == 0:  # no worker
    assert s.request_nodes(1) is s.wait_event() is None
    assert not s.checkpoint_done() and not s.report_progress(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
        with fake_agent.World(python(code), 1, stdout=subprocess.PIPE, text=True) as world:
            self.assertEqual(world.wait(), [0])
            self.assertEqual(world.workers[0].stdout.read(), "True\n" * 6)

    def test_attached_and_training_are_told(self):
        for code, state in (
            ("print('ready', flush=True); import time", 0),
            (READY, 1),
            ("import slurm_elastic; slurm_elastic.load_latest('none')" + READY, 2),
            ("import slurm_elastic as s; iter(s.ElasticSampler(9, 3))" + READY, 2),
            ("import slurm_elastic as s; s.elastic_event_detected()" + READY, 2),
        ):
            code += "\ntime.sleep(600)"
            with fake_agent.World(python(code), 1, stdout=subprocess.PIPE) as world:
                world.workers[0].stdout.readline()
                self.assertEqual(world.pages[0].state, state, code)

    def test_a_worker_leaves_when_its_agent_is_gone(self):
        code = (
            "import fake_agent, os, sys, time\n"
            "world = fake_agent.World(['-c', sys.argv[1]], 1, stderr=open(sys.argv[2], 'w'))\n"
            "world.wait_for_step(5)\n"
            "world.pages[0].hold()\n"
            "print(world.workers[0].pid, flush=True)\n"
            "time.sleep(0.3)\n"
            "os._exit(0)\n"
        )
        here = os.path.dirname(os.path.abspath(__file__))
        path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        with tempfile.NamedTemporaryFile("r") as errors:
            done = subprocess.run(
                [sys.executable, "-c", code, STEPS, errors.name],
                env={**os.environ, "PYTHONPATH": path},
                stdout=subprocess.PIPE,
                timeout=280,
                text=True,
            )
            self.await_end(int(done.stdout))
            self.assertIn("slurm_elastic: elasticrun on this node", errors.read())

    def await_end(self, pid):
        limit = time.monotonic() + 250
        while not has_ended(pid):
            self.assertLess(time.monotonic(), limit, "it still runs")
            time.sleep(0.02)

    def test_processes_of_a_worker_count_no_steps(self):
        code = """
import multiprocessing, slurm_elastic, sys
def child():
    for _ in range(50): assert slurm_elastic.elastic_event_detected() is None
slurm_elastic.elastic_event_detected()
process = multiprocessing.get_context("fork").Process(target=child)
process.start(); process.join()
slurm_elastic.elastic_event_detected()
sys.exit(process.exitcode)
"""
        with fake_agent.World(python(code), 1) as world:
            self.assertEqual(world.wait(), [0])
            self.assertEqual(world.pages[0].step, 2)

    def test_processes_that_a_worker_starts_anew_are_no_workers(self):
        code = """
import multiprocessing, os, sys
sys.path[:0] = [sys.argv[1]]
import loaders, slurm_elastic
slurm_elastic.elastic_event_detected()
for method in ("spawn", "forkserver"):
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["slurm_elastic"])
    process = context.Process(target=loaders.child, args=(os.getpid(),))
    process.start(); process.join()
    print(method, process.exitcode, flush=True)
slurm_elastic.elastic_event_detected()
"""
        child = """
import os, signal
import slurm_elastic
def child(worker):
    assert os.getpid() != worker and not slurm_elastic.init()
    for _ in range(50): assert slurm_elastic.elastic_event_detected() is None
    assert slurm_elastic.request_nodes(1) is None
    # That of Slurm, which the agent's stand-in plays: it would end the data loader.
    os.kill(int(os.environ["STEPD_FOR"]), signal.SIGUSR1)
    signal.sigtimedwait([], 0.3)
"""
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "loaders.py").write_text(child)
            stepd = {"STEPD_FOR": str(os.getpid())}
            old = signal.signal(signal.SIGUSR1, lambda *_: self.term_descendants(world))
            try:
                with fake_agent.World(
                    python(code, directory), 1, stdout=subprocess.PIPE, text=True, environment=stepd
                ) as world:
                    self.assertEqual(world.wait(), [0])
                    self.assertEqual(world.pages[0].step, 2)
                    said = world.workers[0].stdout.read()
            finally:
                signal.signal(signal.SIGUSR1, old)
        self.assertEqual(said, "spawn 0\nforkserver 0\n")

    def term_descendants(self, world):
        for pid in fake_agent.descendants(world.workers[0].pid)[1:]:
            with open(f"/proc/{pid}/cmdline") as command:
                if "resource_tracker" not in command.read():
                    os.kill(pid, signal.SIGTERM)

    def test_a_worker_may_attach_after_another_one(self):
        # Two programs of one script, one after the other.
        code = """
import os, sys, slurm_elastic
assert slurm_elastic.init()
slurm_elastic.elastic_event_detected()
if len(sys.argv) > 1: os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
        with fake_agent.World(python(code, code), 1) as world:
            self.assertEqual(world.wait(), [0])
            self.assertEqual(world.pages[0].step, 2)

    def test_a_boundary_costs_microseconds(self):
        code = """
import sys, time, slurm_elastic
best = 1.0
for _ in range(20):
    begin = time.perf_counter()
    for _ in range(10000): slurm_elastic.elastic_event_detected()
    best = min(best, (time.perf_counter() - begin) / 10000)
print(best * 1e6)
"""
        with fake_agent.World(python(code), 1, stdout=subprocess.PIPE) as world:
            cost = float(world.workers[0].stdout.read())
        print(f"# {cost:.2f} us per boundary")
        self.assertLess(cost, 20)


# As a file: what "forkserver" and "spawn" start reads it again. Python 3.14 takes the former if
# nobody says anything. The package is there before PyTorch, as those sort imports who sort them.
LOADERS = """
import multiprocessing, sys, time, slurm_elastic, torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    multiprocessing.set_start_method(sys.argv[1])
    data = TensorDataset(torch.arange(100000))
    sampler = slurm_elastic.ElasticSampler(data, 10)
    loader = DataLoader(
        data, batch_sampler=sampler, num_workers=int(sys.argv[2]), persistent_workers=len(sys.argv) > 3
    )
    for batch in loader:
        sampler.commit()
        time.sleep(0.005)
        if slurm_elastic.elastic_event_detected(): sys.exit(0)

if __name__ == "__main__":
    main()
"""


def has_ended(pid):
    """Also if nobody has waited for it."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_running(pid):
    """Python's resource tracker ends a moment after its worker."""
    limit = time.monotonic() + 30
    while not has_ended(pid) and time.monotonic() < limit:
        time.sleep(0.05)
    return not has_ended(pid)


class Signals(unittest.TestCase):
    """slurmstepd signals every process of a step; the agent signals workers only."""

    @tap.needs_torch
    def test_slurms_sigterm_does_not_end_loaders_before_the_agreed_step(self):
        # Loaders that are not forked from the worker import PyTorch each. The first worker does so,
        # too, after the package; the others have it already.
        for arguments, has_torch in (
            (["fork", "2"], False),
            (["fork", "2", "persistent"], True),
            (["forkserver", "1"], True),
            (["spawn", "1"], True),
        ):
            with self.subTest(arguments), tempfile.TemporaryDirectory() as directory:
                script = pathlib.Path(directory, "train.py")
                script.write_text(LOADERS)
                with fake_agent.World([str(script), *arguments], 1, has_torch=has_torch) as world:
                    self.outlive_slurms_sigterm(world)

    def outlive_slurms_sigterm(self, world):
        self.assertTrue(world.wait_for_step(5))
        processes = world.signal_as_slurm()
        self.assertGreaterEqual(len(processes), 3)
        step = world.pages[0].step
        # More than the loaders can have drawn ahead.
        self.assertTrue(world.wait_for_step(step + 20), "the worker has died")
        world.stop()
        self.assertEqual(world.wait(), [0])
        for pid in processes:
            self.assertFalse(is_running(pid), pid)

    def test_anybody_elses_sigterm_ends_a_worker(self):
        with fake_agent.World(
            python(READY + "time.sleep(600)"), 1, stdout=subprocess.PIPE
        ) as world:
            world.workers[0].stdout.readline()
            subprocess.run(["/bin/kill", "-TERM", str(world.workers[0].pid)], check=True)
            self.assertEqual(world.wait(), [-signal.SIGTERM])

    def test_a_handler_of_the_scripts_own_gets_it(self):
        for order in ("{handle}\n{ready}", "{ready}\n{handle}"):
            handle = "import signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(5))"
            code = "import os\n" + order.format(handle=handle, ready=READY)
            code += "\nprint('set', flush=True)\ntime.sleep(600)"
            with fake_agent.World(python(code), 1, stdout=subprocess.PIPE) as world:
                world.workers[0].stdout.readline()
                world.workers[0].stdout.readline()
                world.signal_as_slurm()
                self.assertEqual(world.wait(), [5])


class Elsewhere(unittest.TestCase):
    """Without elasticrun, or without the library."""

    def run_script(self, code, **changes):
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment(**changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=280,
            text=True,
        )

    def test_nothing_happens_and_nothing_is_said(self):
        code = (
            "import slurm_elastic as s\n"
            "assert not s.init() and not s.is_elastic()\n"
            "assert s.elastic_event_detected() is None\n"
            "assert s.generation() is None and s.scale_config() == {}\n"
            "assert list(s.ElasticSampler(3, 2, shuffle=False)) == [[0, 1], [2]]\n"
            "assert s.wait_event() is None and s.wait_event(0.01) is None\n"
            "assert s.request_nodes(1) is None and s.release_nodes('n1') is None\n"
            "assert s.request_result(timeout=280) is None and s.request_result('1.0.1') is None\n"
            "assert not s.cancel_request('1.0.1') and not s.checkpoint_done()\n"
            "assert not s.report_progress(1, 2)\n"
        )
        for changes in ({}, {"ELASTIC_LIB": "/nowhere"}):
            done = self.run_script(code, **changes)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_what_a_job_has_inherited_from_a_worker_that_submitted_it(self):
        code = (
            "import slurm_elastic as s\n"
            "for _ in range(3): assert not s.init() and not s.is_elastic()\n"
            "assert s.elastic_event_detected() is None and not s.snapshot(1)\n"
            "assert s.generation() is None and s.scale_config() == {}\n"
            "assert str(s.checkpoint_dir('own')) == 'own'\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            page = fake_agent.Page(os.path.join(directory, "page"))
            inherited = {
                "ELASTIC_CHECKPOINT_DIR": "/of/the/worker",
                "ELASTIC_EVENT_FILE": page.path,
                "ELASTIC_GENERATION": "1",
                "ELASTIC_JOB_ID": "12",
                "ELASTIC_RUN_DIR": directory,
                "ELASTIC_SCALE_CONFIG": '{"lr": 1}',
            }
            done = self.run_script(code, SLURM_JOB_ID="13", **inherited)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"^slurm_elastic: job 13 .*job 12.*\n$")
            self.assertEqual((page.state, page.step), (0, 0))
            code = "import slurm_elastic as s; assert s.is_elastic() and s.scale_config()"
            for own in ({}, {"SLURM_JOB_ID": "12"}):
                done = self.run_script(code, **inherited, **own)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            page.close()

    def test_nothing_heavy_is_imported(self):
        code = (
            "import sys, slurm_elastic as s\n"
            "s.elastic_event_detected(); s.batch_sizes(5, 2); iter(s.ElasticSampler(5, 2))\n"
            "heavy = {'torch', 'numpy', 'asyncio', 'multiprocessing'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        self.assertEqual(self.run_script(code).stderr, "")

    def test_without_the_library_one_warning_and_no_events(self):
        code = (
            "import ctypes.util; ctypes.util.find_library = lambda name: None\n"
            "import slurm_elastic as s\n"
            "for _ in range(3): assert s.elastic_event_detected() is None and not s.init()\n"
            "assert s.is_elastic() and not s.report_progress(1) and s.wait_event(0.01) is None\n"
            "try: s.request_nodes(1)\n"
            "except s.ElasticError as error: assert 'libelastic' in str(error)\n"
            "else: raise AssertionError('no error')\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            page = fake_agent.Page(os.path.join(directory, "page"))
            for library in ("/nowhere/libelastic.so.0", os.path.join(directory, "page")):
                done = self.run_script(code, ELASTIC_EVENT_FILE=page.path, ELASTIC_LIB=library)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(library, done.stderr)
                self.assertIn("SIGTERM", done.stderr)
            self.assertEqual((page.state, page.step), (0, 0))
            page.close()

    def test_a_page_that_is_none_is_one_warning_and_no_events(self):
        code = "import slurm_elastic as s; assert s.elastic_event_detected() is None"
        done = self.run_script(code, ELASTIC_EVENT_FILE="/nowhere/page")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^slurm_elastic: /nowhere/page: .*No such file.*\n$")

    def test_generation_and_scale_config(self):
        code = "import slurm_elastic as s; print(s.generation(), s.scale_config())"
        for text, expected in (
            ('{"lr": 0.1}', "7 {'lr': 0.1}\n"),
            ("{}", "7 {}\n"),
            ("", "7 {}\n"),
            ("[1]", "must be a JSON object"),
            ("{", "ELASTIC_SCALE_CONFIG='{'"),
        ):
            done = self.run_script(
                code,
                ELASTIC_EVENT_FILE="/nowhere/page",
                ELASTIC_GENERATION="7",
                ELASTIC_SCALE_CONFIG=text,
            )
            self.assertIn(expected, done.stdout or done.stderr)


class Package(unittest.TestCase):
    def test_version_and_names(self):
        import slurm_elastic

        project = pathlib.Path(slurm_elastic.__file__).parents[1] / "pyproject.toml"
        if not project.exists():
            self.skipTest("runs from an installed package")
        version = re.search(r'^version = "(.*)"$', project.read_text(), re.M)[1]
        self.assertEqual(slurm_elastic.__version__, version)
        for name in slurm_elastic.__all__:
            self.assertTrue(hasattr(slurm_elastic, name), name)

    @unittest.skipUnless(
        all(map(importlib.util.find_spec, ("pip", "setuptools", "wheel"))),
        "pip, setuptools or wheel is not installed",
    )
    def test_pip_installs_it_without_a_network(self):
        import slurm_elastic

        source = pathlib.Path(slurm_elastic.__file__).parents[1]
        if not (source / "pyproject.toml").exists():
            self.skipTest("runs from an installed package")
        with tempfile.TemporaryDirectory() as directory:
            # A copy, for pip builds in place.
            copy, target = os.path.join(directory, "copy"), os.path.join(directory, "target")
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "-q", "install", "--no-index"),
                    *("--no-build-isolation", "--root-user-action=ignore"),
                    *("--target", target, copy),
                ],
                check=True,
                timeout=280,
                stdout=sys.stderr,
            )
            code = "import slurm_elastic as s; print(s.__file__, s.batch_sizes(7, 3))"
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=environment(PYTHONPATH=target),
                stdout=subprocess.PIPE,
                timeout=280,
                text=True,
            )
            self.assertEqual(done.stdout, f"{target}/slurm_elastic/__init__.py [3, 2, 2]\n")


if __name__ == "__main__":
    tap.main()
