# SPDX-License-Identifier: GPL-2.0-or-later
"""The training that bench/resize resizes: the same for all peers, but for how a change is announced.

A linear model of 1 MB under DistributedDataParallel over gloo. Each step does 50 ms of work, asleep or
on the CPU, then a forward and a backward pass. When a change is announced, all ranks stop after the
same step, rank 0 saves, and all leave. Rank 0 appends one JSON object per step to --log, with the wall
clock of the step's begin and end, and one for each checkpoint.

Peers differ in how a rank hears of a change:

  elastic   slurm_elastic: the process waits at its gate, slurm_elastic.init(), until the old world has left
  elastic-load   the same without init(): the gate is load_latest(), after the rendezvous
  signal    SIGTERM or SIGUSR1 to any rank; the ranks agree by an all-reduce in each step, as most
            frameworks do. They leave with status 3, for a 0 would mean that the training is over
"""

import argparse
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WORK = 0.05  # seconds in each step
LEFT = 3  # exit status of a rank that was told to leave
WIDTH = 512  # WIDTH * WIDTH * 4 bytes is 1 MiB


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notice", choices=["elastic", "elastic-load", "signal"], required=True)
    parser.add_argument("--log", metavar="FILE", required=True)
    parser.add_argument("--checkpoint", metavar="DIR", required=True)
    parser.add_argument("--step-file", metavar="FILE", required=True, help='holds "sleep" or "cpu", may change')
    return parser.parse_args()


class Log:
    """Lines of rank 0, of all worlds in one file. One write each, so that they are never mixed."""

    def __init__(self, path, rank, world):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if rank == 0 else None
        self._constant = {"world": f"{time.time():.6f}-{os.getpid()}", "size": world}

    def write(self, **fields):
        if self._file is not None:
            os.write(self._file, (json.dumps({**self._constant, **fields}) + "\n").encode())


class ElasticNotice:
    """How a script that uses slurm_elastic does it."""

    def __init__(self, directory):
        import slurm_elastic

        self._elastic, self._directory = slurm_elastic, directory

    def load(self):
        return self._elastic.load_latest(self._directory)

    def save(self, state):
        self._elastic.save(state, self._directory)

    def told(self):
        return self._elastic.elastic_event_detected() is not None

    def leave(self):
        self._elastic.leave()


class SignalNotice:
    """How a script does it by itself."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, "state.pt")
        self._flag = torch.zeros(1)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._on_signal)
        self._signalled = False

    def _on_signal(self, number, frame):
        self._signalled = True

    def load(self):
        return torch.load(self._path) if os.path.exists(self._path) else None

    def save(self, state):
        if dist.get_rank() == 0:
            torch.save(state, self._path + ".new")
            os.replace(self._path + ".new", self._path)

    def told(self):
        self._flag[0] = self._signalled
        dist.all_reduce(self._flag, dist.ReduceOp.MAX)
        return bool(self._flag[0])

    def leave(self):
        sys.exit(LEFT)


def work(kind):
    """The part of a step that is not the model: on a GPU the CPU would wait, elsewhere it computes."""
    if kind == "cpu":
        end = time.thread_time() + WORK
        while time.thread_time() < end:
            pass
    else:
        time.sleep(WORK)


def read_kind(path):
    with open(path) as file:
        return file.read().strip()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(4, WIDTH)
    if args.notice == "elastic":
        import slurm_elastic

        slurm_elastic.init()  # the gate
    dist.init_process_group("gloo")
    notice = SignalNotice(args.checkpoint) if args.notice == "signal" else ElasticNotice(args.checkpoint)
    state = notice.load()
    step = 0
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]

    log = Log(args.log, dist.get_rank(), dist.get_world_size())
    parallel = DistributedDataParallel(model)
    while True:
        kind = read_kind(args.step_file)
        begin = time.time()
        work(kind)
        optimizer.zero_grad()
        parallel(x).square().mean().backward()
        optimizer.step()
        told = notice.told()
        log.write(step=step, kind=kind, begin=begin, end=time.time())
        step += 1
        if told:
            begin = time.time()
            notice.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step})
            log.write(save=step, begin=begin, end=time.time())
            notice.leave()


if __name__ == "__main__":
    main()
