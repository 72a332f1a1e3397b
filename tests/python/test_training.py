#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What must be exact in training: batches, sample order through resizes, gradients, checkpoints.

Time limit of each process that is started: 60 s.
"""

import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import fake_agent
import slurm_elastic
import tap
from slurm_elastic import ElasticSampler, batch_sizes


class BatchSizes(unittest.TestCase):
    def test_golden(self):
        self.assertEqual(collections.Counter(batch_sizes(128, 24)), {5: 16, 6: 8})
        self.assertEqual(collections.Counter(batch_sizes(128, 48)), {2: 16, 3: 32})
        self.assertEqual(batch_sizes(128, 4), [32] * 4)

    def test_sum_and_evenness(self):
        for batch in range(1, 200):
            for world in range(1, batch + 1):
                sizes = batch_sizes(batch, world)
                self.assertEqual((len(sizes), sum(sizes)), (world, batch))
                self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_refused(self):
        for batch, world in ((4, 5), (0, 1), (1, 0), (-1, 1)):
            with self.assertRaises(ValueError, msg=f"{batch} over {world}"):
                batch_sizes(batch, world)


class Resizes(unittest.TestCase):
    """Random histories of worlds against what must come out: each sample once per epoch."""

    def run_history(self, rng, samples, batch, drawn_ahead):
        state, seen = None, collections.defaultdict(list)
        epochs, sizes = 3, list(range(1, min(batch, 9) + 1))
        while True:
            world = rng.choice(sizes)
            ranks = [ElasticSampler(samples, batch, seed=7, rank=r, world_size=world) for r in range(world)]
            if state is not None:
                for sampler in ranks:
                    sampler.load_state_dict(state)
            for _ in range(rng.randint(1, 6)):
                epoch = ranks[0].epoch
                if epoch == epochs:
                    return seen
                iterators = [iter(sampler) for sampler in ranks]
                for iterator in iterators:  # a prefetching loader draws, and is thrown away
                    for _ in range(rng.randint(1, drawn_ahead)):
                        next(iterator, None)
                for sampler in ranks:
                    seen[epoch].extend(sampler.indices())
                    sampler.commit()
                if ranks[0].finished:
                    for sampler in ranks:
                        sampler.set_epoch(epoch + 1)
            states = [sampler.state_dict() for sampler in ranks]
            self.assertTrue(all(each == states[0] for each in states))
            state = states[rng.randrange(world)]

    def test_every_sample_once(self):
        rng = random.Random(20)
        for samples, batch in ((1, 1), (10, 3), (97, 16), (100, 10), (129, 128), (1000, 64)):
            for _ in range(8):
                seen = self.run_history(rng, samples, batch, 4)
                for epoch in range(3):
                    self.assertEqual(sorted(seen[epoch]), list(range(samples)))
                if samples > 50:
                    self.assertNotEqual(seen[0], seen[1])

    def test_order_does_not_depend_on_the_world(self):
        def order(world):
            ranks = [ElasticSampler(100, 16, seed=3, rank=r, world_size=world) for r in range(world)]
            steps = []
            while not ranks[0].finished:
                steps.append(sorted(i for sampler in ranks for i in sampler.indices()))
                for sampler in ranks:
                    sampler.commit()
            return steps

        self.assertEqual(order(1), order(5))
        self.assertEqual(order(1), order(16))

    def test_state_of_another_dataset_is_refused(self):
        state = ElasticSampler(100, 10, rank=0, world_size=1).state_dict()
        with self.assertRaises(ValueError):
            ElasticSampler(99, 10, rank=0, world_size=1).load_state_dict(state)
        with self.assertRaises(ValueError):
            ElasticSampler(100, 10, rank=0, world_size=1).load_state_dict({"committed": -1})


LOADER = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset
from slurm_elastic import ElasticSampler
data = TensorDataset(torch.arange(103))
workers, persistent = int(sys.argv[1]), sys.argv[2] == "persistent"
seen, state = [], None
for world, steps in ((2, 3), (3, 2), (1, 100)):
    ranks = [ElasticSampler(data, 10, seed=1, rank=r, world_size=world) for r in range(world)]
    loaders = [DataLoader(data, batch_sampler=s, num_workers=workers, persistent_workers=persistent) for s in ranks]
    for sampler in ranks:
        if state: sampler.load_state_dict(state)
    for _, *batches in zip(range(steps), *loaders):
        for sampler, (batch,) in zip(ranks, batches):
            if sampler.loss_scale(): seen += batch.tolist()
        for sampler in ranks: sampler.commit()
    state = ranks[0].state_dict()
assert sorted(seen) == list(range(103)), sorted(seen)
"""


class Loader(unittest.TestCase):
    """Through DataLoader, whose processes draw ahead."""

    def check(self, workers, persistent=""):
        subprocess.run([sys.executable, "-c", LOADER, str(workers), persistent], check=True, timeout=60)

    def test_no_workers(self):
        self.check(0)

    def test_2_workers(self):
        self.check(2)

    def test_4_persistent_workers(self):
        self.check(4, "persistent")


TRAINING = """
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from slurm_elastic import ElasticSampler
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(5)
x, y = torch.randn(61, 6, dtype=torch.float64), torch.randn(61, 1, dtype=torch.float64)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
ddp, weighted = DistributedDataParallel(model), sys.argv[2] == "weighted"
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
sampler = ElasticSampler(61, 10, seed=2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for indices in sampler:
        loss = ((ddp(x[indices]) - y[indices]) ** 2).mean()
        optimizer.zero_grad()
        (loss * sampler.loss_scale() if weighted else loss).backward()
        optimizer.step()
        sampler.commit()
if dist.get_rank() == 0:
    torch.save([p.detach() for p in model.parameters()], sys.argv[1])
"""


class Gradients(unittest.TestCase):
    """Real DDP over gloo: unequal shares give what one process gives, and without weights they do not."""

    def train(self, directory, size, how):
        path = os.path.join(directory, f"{size}-{how}")
        with fake_agent.World(["-c", TRAINING, path, how], size) as world:
            self.assertEqual(world.wait(60), [0] * size)
        import torch

        return torch.cat([p.flatten() for p in torch.load(path)])

    def test_uneven_shares_are_exact_and_the_control_is_not(self):
        with tempfile.TemporaryDirectory() as directory:
            alone = self.train(directory, 1, "weighted")
            three = self.train(directory, 3, "weighted")  # 4 + 3 + 3, at the end of an epoch 1 + 0 + 0
            plain = self.train(directory, 3, "plain")
        self.assertLess((alone - three).abs().max().item(), 1e-10)
        self.assertGreater((alone - plain).abs().max().item(), 1e-4)


SAVER = """
import sys, slurm_elastic
n = 0
while True:
    n += 1
    slurm_elastic.save({"n": n, "data": list(range(n, n + 20000))}, sys.argv[1])
    print(n, flush=True)
"""


class Checkpoints(unittest.TestCase):
    def test_a_kill_leaves_a_complete_one(self):
        rng = random.Random(3)
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(12):
                worker = subprocess.Popen([sys.executable, "-c", SAVER, directory], stdout=subprocess.PIPE, text=True)
                first = int(worker.stdout.readline())  # it has saved once
                time.sleep(rng.random() * 0.05)
                worker.send_signal(signal.SIGKILL)
                numbers = [first] + [int(line) for line in worker.stdout.read().split()]
                worker.stdout.close()
                worker.wait(60)
                state = slurm_elastic.load_latest(directory)
                self.assertEqual(state["data"], list(range(state["n"], state["n"] + 20000)))
                # What has been reported as saved is there.
                self.assertIn(state["n"], (numbers[-1], numbers[-1] + 1))

    def test_nothing_yet(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertIsNone(slurm_elastic.load_latest(os.path.join(directory, "none")))

    def test_no_room_keeps_the_old_one(self):
        with tempfile.TemporaryDirectory() as directory:
            slurm_elastic.save({"n": 1}, directory)
            code = (
                "import resource, signal, sys, slurm_elastic\n"
                "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
                "try: slurm_elastic.save({'n': 2, 'data': 'x' * 100000}, sys.argv[1])\n"
                "except OSError: sys.exit(7)\n"
            )
            run = subprocess.run([sys.executable, "-c", code, directory], timeout=60)
            self.assertEqual(run.returncode, 7)
            self.assertEqual(slurm_elastic.load_latest(directory), {"n": 1})


STEPS = """
import sys, time, slurm_elastic
slurm_elastic.load_latest(sys.argv[1])
for step in range(1, 100000):
    time.sleep(0.002)
    event = slurm_elastic.elastic_event_detected()
    if event:
        print(step, event.kind, event.nodes, event.reason, flush=True)
        sys.exit(0)
"""


class Events(unittest.TestCase):
    def test_all_stop_after_the_same_step(self):
        with tempfile.TemporaryDirectory() as directory:
            for round_number in range(5):
                with fake_agent.World(
                    ["-c", STEPS, directory], 3, generation=round_number, checkpoint=directory, stdout=subprocess.PIPE, text=True
                ) as world:
                    self.assertTrue(world.wait_for_step(20))
                    world.stop(kind=fake_agent.SHRINK, reason="a rival", nodes=2)
                    self.assertEqual(world.wait(30), [0, 0, 0])
                    said = {worker.stdout.read() for worker in world.workers}
                self.assertEqual(len(said), 1, said)
                self.assertRegex(said.pop(), r"^\d+ shrink 2 a rival\n$")

    def test_a_worker_leaves_when_its_agent_is_gone(self):
        code = (
            "import fake_agent, sys, os, time\n"
            "world = fake_agent.World(['-c', sys.argv[1], sys.argv[2]], 1)\n"
            "world.wait_for_step(5)\n"
            "world.pages[0].hold()\n"
            "print(world.workers[0].pid, flush=True)\n"
            "time.sleep(0.3)\n"
            "os._exit(0)\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])}
            run = subprocess.run([sys.executable, "-c", code, STEPS, directory], env=environment, stdout=subprocess.PIPE, timeout=60, text=True)
            pid, limit = int(run.stdout), time.monotonic() + 20
            while os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat").read().split(")")[-1].split()[0] != "Z":
                self.assertLess(time.monotonic(), limit, "it still runs")
                time.sleep(0.05)

    def test_elsewhere_nothing_happens(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ELASTIC_")}
        code = "import slurm_elastic as s; assert not s.init() and s.elastic_event_detected() is None and not s.is_elastic()"
        run = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, b""))


if __name__ == "__main__":
    tap.main()
