# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of train.py under torchft: each node is a replica group, and groups that go on need
no restart.

Needs PyTorch 2.13 and torchft 0.2.0, whose lighthouse TORCHFT_LIGHTHOUSE names. Its manager is
called by hand: in its DistributedDataParallel (0.2.0, ddp.py) each survivor ends at an assertion
when a sum of gradients fails because a node is lost.

A group that joins gets its state from another one. The lowest rank of each quorum appends to the
log, and only steps that the manager has committed. Such a quorum is a world.
"""

import datetime
import os
import sys
import time

import train
from torchft import Manager, ProcessGroupGloo

TIMEOUT = datetime.timedelta(seconds=30)  # of all that it does


class Replica:
    """One replica group of a single process."""

    def __init__(self, args, training):
        self._args, self._training = args, training
        self._log, self._world = None, None
        self._size = 1  # of the last step
        self.manager = Manager(
            pg=ProcessGroupGloo(timeout=TIMEOUT),
            load_state_dict=self._load,
            state_dict=self._state,
            min_replica_size=1,
            timeout=TIMEOUT,
            quorum_timeout=TIMEOUT,
            init_sync=False,  # train.Training begins with one seed
            replica_id=os.environ["REPLICA_GROUP_ID"],
        )

    def _state(self):
        training = self._training
        return {
            "model": training.model.state_dict(),
            "optimizer": training.optimizer.state_dict(),
        }

    def _load(self, state):
        self._training.model.load_state_dict(state["model"])
        self._training.optimizer.load_state_dict(state["optimizer"])

    def _work(self, kind):
        """The rank's part of a step's work, while torchft asks for the quorum: at first as in the
        world before.
        """
        share = self._args.share_among
        done = train.WORK * share / self._size if share else train.WORK
        train.work(kind, done)
        self._size = self.manager.num_participants()
        if share and train.WORK * share / self._size > done:
            train.work(kind, train.WORK * share / self._size - done)

    def step(self):
        kind, begin = self._training.kind(), time.time()
        number = self.manager.current_step()
        self.manager.start_quorum()
        self._work(kind)
        training = self._training
        training.differentiate(training.model)
        sums = [self.manager.allreduce(each.grad) for each in training.model.parameters()]
        for each in sums:
            each.wait()
        if self.manager.should_commit():
            training.optimizer.step()
            self._note(step=number, kind=kind, begin=begin, end=time.time())

    def _note(self, **fields):
        world = (self.manager._quorum_id, self._size)
        if world != self._world:
            if self._log:
                self._log.close()
            self._log = train.Log(self._args.log, self.manager.participating_rank(), self._size)
            self._world = world
        self._log.write(**fields)


def main():
    args = train.parse_arguments()
    replica = Replica(args, train.Training(args))
    while True:
        replica.step()


if __name__ == "__main__":
    sys.exit(main())
