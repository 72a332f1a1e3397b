#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training that lives through changes of its world, and what must hold of it.

    live.py train LOGDIR EPOCHS STEP_SECONDS [broken]
    live.py check LOGDIR EPOCHS [SURVIVORS]

train: a small float64 model by slurm_elastic.live; each rank writes a JSON line for each step to LOGDIR/PID. "broken": newcomers fail before they
come to their gate. Without elasticrun it is one process.

check: exit status 0 if each sample of each epoch was trained on once, each step by all ranks of one world, with the loss of a training that was never
resized (made here) within 1e-10, with equal parameters and optimizer state on all ranks after it; and if so many processes (SURVIVORS) were in the
first and in the last step, and none of the others came twice. Else 1 and a line for what differs.
"""

import collections
import glob
import hashlib
import json
import os
import sys
import time

import torch

from slurm_elastic import ElasticSampler

SAMPLES, FEATURES, BATCH = 200, 12, 32


class Training:
    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.x = torch.randn(SAMPLES, FEATURES, dtype=torch.float64)
        self.y = (self.x[:, 0] + self.x[:, 1] > 0).long()
        self.model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 40, gamma=0.9)
        self.sampler = ElasticSampler(SAMPLES, global_batch=BATCH, seed=3)

    def step(self, forward, indices):
        """The sum of the losses of these samples; scaled so that all of the step count alike."""
        losses = torch.nn.functional.cross_entropy(forward(self.x[indices]), self.y[indices], reduction="none")
        self.optimizer.zero_grad()
        # Who has no share of the last step draws a sample all the same.
        (losses.mean() * self.sampler.loss_scale()).backward()
        self.optimizer.step()
        self.scheduler.step()
        return float(losses.sum())

    def digest(self):
        tensors = list(self.model.parameters()) + [state["momentum_buffer"] for state in self.optimizer.state.values()]
        return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()[:16]


def train(log_dir, epochs, seconds, broken):
    from slurm_elastic import live

    if broken and int(os.environ["ELASTIC_GENERATION"]) > 1:
        sys.exit("cannot import what is not there")
    os.makedirs(log_dir, exist_ok=True)
    training = Training()
    sampler = training.sampler
    state = live.State(training.model, training.optimizer, training.scheduler, sampler, losses=0.0)

    def loop(state):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for drawn in sampler:
                share = sampler.indices()
                loss = training.step(state.ddp, drawn) if share else training.step(state.ddp, drawn) * 0
                state.losses += loss
                line = {"step": state.steps, "epoch": epoch, "rank": sampler.rank, "size": sampler.world_size}
                line.update(share=share, loss=loss, state=training.digest(), rate=training.optimizer.param_groups[0]["lr"])
                with open(os.path.join(log_dir, str(os.getpid())), "a") as log:
                    log.write(json.dumps(line) + "\n")
                time.sleep(seconds)
                state.commit()
        return state.steps

    steps = live.run(loop, state)
    if sampler.rank == 0:
        print(f"trained {steps} steps", flush=True)


def reference(epochs):
    training = Training()
    steps = []
    for epoch in range(epochs):
        training.sampler.set_epoch(epoch)
        for drawn in training.sampler:
            steps.append((epoch, training.step(training.model, drawn), training.optimizer.param_groups[0]["lr"]))
            training.sampler.commit()
    return steps


def check(log_dir, epochs, survivors):
    wrong = []
    steps, of_process = collections.defaultdict(list), {}
    for path in glob.glob(os.path.join(log_dir, "*")):
        with open(path) as log:
            lines = [json.loads(line) for line in log]
        of_process[os.path.basename(path)] = [line["step"] for line in lines]
        for line in lines:
            steps[line["step"]].append(line)
    expected = reference(epochs)
    if sorted(steps) != list(range(len(expected))):
        wrong.append(f"{len(steps)} steps, {len(expected)} would be right")
    seen = collections.defaultdict(collections.Counter)
    for number, lines in sorted(steps.items()):
        ranks, sizes = sorted(line["rank"] for line in lines), {line["size"] for line in lines}
        if len(sizes) != 1 or ranks != list(range(len(ranks))) or len(ranks) != max(sizes):
            wrong.append(f"step {number}: ranks {ranks} of worlds of {sorted(sizes)}")
        if len({line["state"] for line in lines}) != 1:
            wrong.append(f"step {number}: the ranks differ in parameters or optimizer")
        for line in lines:
            seen[line["epoch"]].update(line["share"])
        if number < len(expected):
            epoch, loss, rate = expected[number]
            if abs(sum(line["loss"] for line in lines) - loss) > 1e-10 * BATCH:
                wrong.append(f"step {number}: loss {sum(line['loss'] for line in lines)}, {loss} would be right")
            if {(line["epoch"], line["rate"]) for line in lines} != {(epoch, rate)}:
                wrong.append(f"step {number}: epoch or learning rate")
    for epoch in range(epochs):
        if seen[epoch] != collections.Counter(range(SAMPLES)):
            wrong.append(f"epoch {epoch}: {sum(seen[epoch].values())} samples, {len(seen[epoch])} different ones")
    stayed = [pid for pid, made in of_process.items() if made == list(range(len(expected)))]
    if survivors is not None and len(stayed) != survivors:
        wrong.append(f"{len(stayed)} processes have made all steps, {survivors} would be right")
    sizes = [lines[0]["size"] for _, lines in sorted(steps.items())]
    print("sizes", *[size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] != size])
    print("\n".join(wrong[:20]) if wrong else "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), "broken" in sys.argv[5:])
    else:
        sys.exit(check(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None))
