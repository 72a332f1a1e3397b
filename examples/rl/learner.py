# SPDX-License-Identifier: GPL-2.0-or-later
"""Learns from what the collectors have played: proximal policy optimization, in DDP.

The job's world. It grows and shrinks between two steps. Each update has a number, and the
coordinator gives the same batch to whoever asks for that number. So no batch is lost or learned
twice, and the result does not depend on how many learners there were.
"""

import argparse
import json
import os

import numpy
import slurm_elastic
import torch
import torch.distributed as dist
from cartpole import ACTIONS, OBSERVED, Coordinator, Over
from slurm_elastic import live
from torch import nn

EPOCHS, PARTS = 4, 4  # of an update; a step learns one part
SAVED = 10  # updates from one checkpoint to the next
CLIP, ENTROPY = 0.2, 0.01


class ActorCritic(nn.Module):
    """policy: scores of the actions; value: the rewards still to come."""

    def __init__(self):
        super().__init__()
        self.policy, self.value = self._network(ACTIONS), self._network(1)

    @staticmethod
    def _network(outputs):
        return nn.Sequential(
            nn.Linear(OBSERVED, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )

    def forward(self, seen):
        return self.policy(seen), self.value(seen)[:, 0]


def loss_of(model, batch, mine):
    """Summed over the samples of this rank."""
    scores, values = model(batch["seen"][mine])
    log_chances = torch.log_softmax(scores, dim=1)
    chosen = log_chances.gather(1, batch["actions"][mine, None])[:, 0]
    ratio = torch.exp(chosen - batch["log_chances"][mine])
    gained = batch["advantages"][mine]
    better = torch.min(ratio * gained, ratio.clamp(1 - CLIP, 1 + CLIP) * gained)
    entropy = -(log_chances.exp() * log_chances).sum(dim=1)
    return (0.5 * (values - batch["targets"][mine]) ** 2 - better - ENTROPY * entropy).sum()


def write(path, **fields):
    """All ranks write into one file: a line goes into it at once."""
    with open(path, "a", encoding="ascii") as file:
        file.write(json.dumps({**fields, "pid": os.getpid()}) + "\n")


def samples_of(update, step, size):
    """Numbers of the samples that this step of this update learns from, on all ranks together."""
    epoch, part = divmod(step, PARTS)
    order = numpy.random.default_rng([update, epoch]).permutation(size)
    return torch.from_numpy(order[part::PARTS])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", metavar="FILE", help="append a line for each step of each rank")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ActorCritic().double()
    state = live.State(model, torch.optim.Adam(model.parameters(), lr=1e-3), update=0, step_of=0)
    coordinator = Coordinator()

    def get_batch():
        """Of this update, from the coordinator; None: there is none yet. Rank 0 alone asks."""
        status, batch = coordinator.ask(f"/batch?update={state.update}")
        if status == 409:  # the coordinator does not know these weights
            weights = {name: value.numpy() for name, value in model.state_dict().items()}
            coordinator.ask(f"/learned?update={state.update}", weights)
        return batch

    def next_batch():
        """The same on all ranks; None: the training is over."""
        while True:
            said = [None]
            if dist.get_rank() == 0:
                try:
                    said = [get_batch()]
                except Over:
                    said = ["over"]
            dist.broadcast_object_list(said)
            if said[0] == "over":
                return None
            if said[0] is not None:
                return {name: torch.from_numpy(array) for name, array in said[0].items()}
            state.commit()  # the world may change while the learners wait

    def train(state):
        rank, world = dist.get_rank(), dist.get_world_size()
        while (batch := next_batch()) is not None:
            gained = batch["advantages"]
            batch["advantages"] = (gained - gained.mean()) / (gained.std() + 1e-8)
            for step in range(state.step_of, EPOCHS * PARTS):
                all_of_step = samples_of(state.update, step, len(gained))
                # DDP takes the mean over the ranks.
                loss = loss_of(state.ddp, batch, all_of_step[rank::world])
                (loss * world / len(all_of_step)).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if args.log:
                    write(args.log, update=state.update, step=step, rank=rank, world=world)
                state.step_of = (step + 1) % (EPOCHS * PARTS)
                state.update += state.step_of == 0
                state.step()
            if state.update % SAVED == 0:
                slurm_elastic.save(state.state_dict())

    live.run(train, state)


if __name__ == "__main__":
    main()
