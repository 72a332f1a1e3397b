# SPDX-License-Identifier: GPL-2.0-or-later
"""The training that the benchmarks resize and disturb.

It is the same for all peers, but for how a change is announced.

A linear model under DistributedDataParallel over gloo, SGD with momentum. Each step does 50 ms of
work, asleep or on the CPU, then a forward and a backward pass. When a change is announced, all
ranks stop after the same step, rank 0 saves, and all leave. Rank 0 appends one JSON object per step
to --step-log, with the wall clock of the step's begin and end, and one for each checkpoint.

Peers differ in how a rank hears of a change:

  live      slurm_elastic.live: processes that stay go on in the next world, nothing is saved
  elastic   slurm_elastic: the process waits at its gate, slurm_elastic.init(), until the old world
            has left
  elastic-load   the same without init(): the gate is load_latest(), after the rendezvous
  signal    SIGTERM or SIGUSR1 to any rank; the ranks agree by an all-reduce in each step, as most
            frameworks do. They leave with status 3, for a 0 would mean that the training is over
  none      not at all
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
# Width and number of layers, by MB (2^20 bytes) of parameters.
SHAPES = {1: (512, 1), 100: (1024, 25), 1000: (4096, 15)}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notice", choices=["live", *NOTICES], required=True)
    parser.add_argument(
        "--megabytes", type=int, choices=sorted(SHAPES), default=1, help="of parameters"
    )
    parser.add_argument(
        "--share-among",
        type=int,
        default=0,
        metavar="N",
        help="work of a step is shared: 50 ms with N ranks, more with fewer",
    )
    parser.add_argument(
        "--save-every",
        type=int,
        default=0,
        metavar="N",
        help="steps; for who loses workers without notice",
    )
    parser.add_argument(
        "--copy-every",
        type=int,
        default=10,
        metavar="N",
        help="steps, in live mode with a sharded model; 0: no copies; default 10",
    )
    # Not --log: torchrun takes an abbreviation of its own options for one, wherever it stands.
    parser.add_argument("--step-log", dest="log", metavar="FILE", required=True)
    parser.add_argument("--checkpoint", metavar="DIR", required=True)
    parser.add_argument(
        "--step-file", metavar="FILE", required=True, help='holds "sleep" or "cpu", may change'
    )
    return parser.parse_args()


class Log:
    """Lines of rank 0, of all worlds in one file. One write each, so that they are never mixed."""

    def __init__(self, path, rank, world):
        self._file = (
            os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if rank == 0 else None
        )
        self._constant = {"world": f"{time.time():.6f}-{os.getpid()}", "size": world}

    def write(self, **fields):
        if self._file is not None:
            os.write(self._file, (json.dumps({**self._constant, **fields}) + "\n").encode())

    def close(self):
        if self._file is not None:
            os.close(self._file)


class Training:
    """The model, and one step of it."""

    def __init__(self, args):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        width, layers = SHAPES[args.megabytes]
        self._step_file, self._share_among = args.step_file, args.share_among
        self._x = torch.randn(4, width)
        self.model = torch.nn.Sequential(
            *(torch.nn.Linear(width, width, bias=False) for _ in range(layers))
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def kind(self):
        with open(self._step_file) as file:
            return file.read().strip()

    def step(self, kind, forward):
        work(kind, WORK * self._share_among / dist.get_world_size() if self._share_among else WORK)
        self.differentiate(forward)
        self.optimizer.step()

    def differentiate(self, forward):
        """Gradients of this rank's part."""
        self.optimizer.zero_grad()
        forward(self._x).square().mean().backward()


def work(kind, seconds):
    """The part of a step that is not the model: on a GPU the CPU would wait, elsewhere it
    computes.
    """
    if kind == "cpu":
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
    else:
        time.sleep(seconds)


# ---- who stops and is started anew ---------------------------------------------------------------


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


class NoNotice(SignalNotice):
    def told(self):
        return False


NOTICES = {
    "elastic": ElasticNotice,
    "elastic-load": ElasticNotice,
    "signal": SignalNotice,
    "none": NoNotice,
}


def train_in_one_world(args, training):
    if args.notice == "elastic":
        import slurm_elastic

        slurm_elastic.init()  # the gate
    dist.init_process_group("gloo")
    notice = NOTICES[args.notice](args.checkpoint)
    state = notice.load()
    step = 0
    if state:
        training.model.load_state_dict(state["model"])
        training.optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        del state

    def save():
        begin = time.time()
        model, optimizer = training.model.state_dict(), training.optimizer.state_dict()
        notice.save({"model": model, "optimizer": optimizer, "step": step})
        log.write(save=step, begin=begin, end=time.time())

    log = Log(args.log, dist.get_rank(), dist.get_world_size())
    parallel = DistributedDataParallel(training.model)
    while True:
        kind = training.kind()
        begin = time.time()
        training.step(kind, parallel)
        told = notice.told()
        log.write(step=step, kind=kind, begin=begin, end=time.time())
        step += 1
        if told or (args.save_every and step % args.save_every == 0):
            save()
        if told:
            notice.leave()


# ---- who goes on ---------------------------------------------------------------------------------


def train_live(args, training):
    from slurm_elastic import live

    def train(state):
        log = Log(args.log, dist.get_rank(), dist.get_world_size())
        try:
            while True:
                kind, step = training.kind(), state.steps
                begin = time.time()
                training.step(kind, state.ddp)
                try:
                    state.commit()
                finally:  # the world may end in there, after this step
                    log.write(step=step, kind=kind, begin=begin, end=time.time())
        finally:
            log.close()

    live.run(train, live.State(training.model, training.optimizer))


def main():
    args = parse_arguments()
    training = Training(args)
    if args.notice == "live":
        train_live(args, training)
    else:
        train_in_one_world(args, training)


if __name__ == "__main__":
    main()
