# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of train.py with a model that fully_shard() shards, and AdamW.

Needs PyTorch 2.13. Options and log are those of train.py. Peers differ in what happens at a change:

  live     slurm_elastic.live: ranks send each other the rows that change hands, and keep copies on
           other nodes every --copy-every steps
  signal   SIGTERM or SIGUSR1 to any rank; all write their part by torch.distributed.checkpoint, and
           leave with status 3. The next world reads it
  none     the same without a signal: it has to save every so many steps
"""

import json
import os
import shutil
import statistics
import sys
import time

import torch
import torch.distributed as dist
import train
from torch.distributed.fsdp import fully_shard

STATES = 3  # of AdamW: a parameter and its two moments
PROBES = 4  # the first one does not count
PROBED = 4  # ranks


class Training(train.Training):
    def __init__(self, args):
        super().__init__(args)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def shard(self, model, mesh):
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)


def note(args, **fields):
    """What this rank knows of a world, beside the log of rank 0. bench/transfers.py reads it."""
    line = {"rank": dist.get_rank(), "time": time.time(), **fields}
    with open(f"{args.log}.worlds", "a") as file:
        file.write(json.dumps(line) + "\n")


def memory(field):
    """Bytes: "VmRSS", or "VmHWM", its peak since forget_peak()."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines[field].split()[0]) << 10


def forget_peak():
    """The peak of memory is from now on that of the future. What the process has now, in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return memory("VmRSS")


def probe(args, training):
    """How long the bytes that a shrink to half must move take over these connections at best: sent
    from memory that is there, whole, and nothing else is done. Seconds and bytes, of rank 0.
    """
    parameters = sum(each.numel() * each.element_size() for each in training.model.parameters())
    part = STATES * parameters // dist.get_world_size()
    mine, other, third = (torch.ones(part, dtype=torch.uint8) for _ in range(3))
    times = []
    for _ in range(PROBES):
        dist.barrier()
        begin = time.monotonic()
        for work in {
            0: lambda: [dist.irecv(other, 1)],
            1: lambda: [dist.isend(mine, 0), dist.irecv(other, 2), dist.irecv(third, 3)],
            2: lambda: [dist.isend(mine, 1)],
            3: lambda: [dist.isend(mine, 1)],
        }[dist.get_rank()]():
            work.wait()
        dist.barrier()
        times.append(time.monotonic() - begin)
    if dist.get_rank() == 0:
        note(args, probe=statistics.median(times[1:]), bytes=3 * part)


class Dcp:
    """Checkpoints of all ranks, the newest of which `latest` names."""

    def __init__(self, args, training):
        self._base, self._training = args.checkpoint, training

    def _state(self):
        from torch.distributed.checkpoint.state_dict import get_state_dict

        return get_state_dict(self._training.model, self._training.optimizer)

    def save(self, step):
        import torch.distributed.checkpoint as dcp

        model, optimizer = self._state()
        path = os.path.join(self._base, str(step))
        dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=path)
        if dist.get_rank() == 0:
            link = os.path.join(self._base, f".latest-{os.getpid()}")
            os.symlink(str(step), link)
            os.replace(link, os.path.join(self._base, "latest"))
            for name in os.listdir(self._base):
                if name.isdecimal() and int(name) < step:
                    shutil.rmtree(os.path.join(self._base, name))

    def load(self):
        """The step that it was saved behind; 0: there is none."""
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import set_state_dict

        newest = [None]
        if dist.get_rank() == 0:
            os.makedirs(self._base, exist_ok=True)
            link = os.path.join(self._base, "latest")
            newest[0] = os.readlink(link) if os.path.islink(link) else None
        dist.broadcast_object_list(newest, 0)
        if newest[0] is None:
            return 0
        model, optimizer = self._state()
        saved = {"model": model, "optimizer": optimizer}
        dcp.load(saved, checkpoint_id=os.path.join(self._base, newest[0]))
        set_state_dict(
            self._training.model,
            self._training.optimizer,
            model_state_dict=saved["model"],
            optim_state_dict=saved["optimizer"],
        )
        return int(newest[0])


def train_in_one_world(args, training):
    dist.init_process_group("gloo")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    training.shard(training.model, mesh)
    training.optimizer = torch.optim.AdamW(training.model.parameters(), lr=1e-4)
    notice = train.NOTICES[args.notice](args.checkpoint)
    checkpoints = Dcp(args, training)
    step = checkpoints.load()
    log = train.Log(args.log, dist.get_rank(), dist.get_world_size())
    while True:
        kind = training.kind()
        begin = time.time()
        training.step(kind, training.model)
        told = notice.told()
        log.write(step=step, kind=kind, begin=begin, end=time.time())
        step += 1
        if told or (args.save_every and step % args.save_every == 0):
            begin = time.time()
            checkpoints.save(step)
            log.write(save=step, begin=begin, end=time.time())
        if told:
            os._exit(train.LEFT)  # an interpreter that ends was aborted by threads of PyTorch


def train_live(args, training):
    from slurm_elastic import live

    was, held = None, forget_peak()  # rank and size of the world before; bytes at its end

    def run(state):
        nonlocal was, held
        rank, size = dist.get_rank(), dist.get_world_size()
        moved, grown = state._sharding.moved, memory("VmHWM") - held
        note(args, size=size, was=was, received=moved.received, grown=grown)
        was = (rank, size)
        # The job begins with fewer, so this is in no change that is measured.
        if size == PROBED and not os.path.exists(f"{args.log}.probed"):
            probe(args, training)
            dist.barrier()
            open(f"{args.log}.probed", "a").close()
        log = train.Log(args.log, rank, size)
        try:
            while True:
                kind, step = training.kind(), state.steps
                begin = time.time()
                training.step(kind, state.ddp)
                held = forget_peak()
                try:
                    state.commit()
                finally:  # the world may end in there, after this step
                    log.write(step=step, kind=kind, begin=begin, end=time.time())
        finally:
            log.close()

    options = {"copy_every": args.copy_every} if args.copy_every else {"copies": 0}
    state = live.State(training.model, training.optimizer, shard=training.shard, **options)
    live.run(run, state)


def main():
    args = train.parse_arguments()
    training = Training(args)
    if args.notice == "live":
        train_live(args, training)
    else:
        train_in_one_world(args, training)


if __name__ == "__main__":
    sys.exit(main())
