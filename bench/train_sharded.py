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
import resource
import shutil
import sys
import time

import torch
import torch.distributed as dist
import train
from torch.distributed.fsdp import fully_shard


class Training(train.Training):
    def __init__(self, args):
        super().__init__(args)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def shard(self, model, mesh):
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)


def note(args, **fields):
    """What this rank knows of a world, beside the log of rank 0."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    with open(f"{args.log}.worlds", "a") as file:
        file.write(json.dumps({"rank": dist.get_rank(), "peak": peak, **fields}) + "\n")


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
            note(args)
            notice.leave()


def train_live(args, training):
    from slurm_elastic import live

    def run(state):
        note(args, size=dist.get_world_size(), moved=list(state._sharding.moved))
        log = train.Log(args.log, dist.get_rank(), dist.get_world_size())
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
