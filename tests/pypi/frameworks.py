#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Is a training by a framework that was resized the training of one process without a framework?

    frameworks.py reference LOGDIR EPOCHS CLIP   trains what the examples of frameworks train
    frameworks.py check LOGDIR REFERENCE [AGAIN]

CLIP is the largest norm of the gradients; half of the steps must have had a larger one. Both
directories have a file for each process, of JSON lines for its steps: epoch, step, rank, world,
indices, global_step, rate, total (of the parameters); LOGDIR's have the generation, too. Exit
status 0 if each epoch of LOGDIR has each sample once, each step was made by all ranks of one world
with the global step, the rate and, within 1e-9, the parameters of the same step of REFERENCE; else
1 and a line for what differs.

AGAIN: so many steps may have been made again by a later world, which is the one that counts. What
the worlds before have made of them is compared, too, but not all their ranks must have made it.
"""

import collections
import glob
import json
import os
import sys


def reference(directory, epochs, clip):
    import torch
    from slurm_elastic import ElasticSampler

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(200, 12, dtype=torch.float64)
    y = (x[:, 0] + x[:, 1] > 0).long()
    sampler = ElasticSampler(len(x), 32, seed=3)
    model = torch.nn.Sequential(
        torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
    ).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 40, gamma=0.9)
    steps = clipped = 0
    with open(os.path.join(directory, "reference"), "w") as file:
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for indices in sampler:
                torch.nn.functional.cross_entropy(model(x[indices]), y[indices]).backward()
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
                clipped += norm.item() > clip
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                steps += 1
                record = {"epoch": epoch, "step": sampler.step, "rank": 0, "world": 1}
                record.update(indices=indices, global_step=steps)
                record["total"] = float(sum(each.detach().sum() for each in model.parameters()))
                record["rate"] = optimizer.param_groups[0]["lr"]
                file.write(json.dumps(record) + "\n")
                sampler.commit()
    if clipped < steps / 2:
        sys.exit(f"the gradients of {clipped} of {steps} steps were clipped to {clip}")


def read(directory):
    steps, processes = collections.defaultdict(list), {}
    for path in glob.glob(os.path.join(directory, "*")):
        with open(path) as file:
            # A worker that was killed while it wrote has left a part of a line.
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        processes[path] = {(line["epoch"], line["step"]) for line in lines}
        for line in lines:
            steps[line["epoch"], line["step"]].append(line)
    return steps, processes


def by_worlds(lines):
    """What each world that has made a step has written of it, the last one last."""
    worlds = collections.defaultdict(list)
    for line in lines:
        worlds[line["generation"]].append(line)
    return [worlds[generation] for generation in sorted(worlds)]


def what_differs(lines, right):
    """In a step, as the world has made it that counts."""
    ranks, size = sorted(line["rank"] for line in lines), lines[0]["world"]
    if ranks != list(range(size)) or {line["world"] for line in lines} != {size}:
        yield f"ranks {ranks} of {size}"
    if sorted(index for line in lines for index in line["indices"]) != sorted(right["indices"]):
        yield "other samples"


def what_is_wrong(line, right):
    """In what one process has made of a step."""
    if abs(line["total"] - right["total"]) > 1e-9:
        yield f"parameters {line['total']}, {right['total']} would be right"
    for name in ("global_step", "rate"):
        if line[name] != right[name]:
            yield f"{name} {line[name]}, {right[name]} would be right"


def check(directory, reference, again="0"):
    steps, processes = read(directory)
    expected, _ = read(reference)
    wrong, sizes, repeated = [], [], 0
    if sorted(steps) != sorted(expected):
        wrong.append(f"{len(steps)} steps, {len(expected)} would be right")
    for number, lines in sorted(steps.items()):
        worlds = by_worlds(lines)
        repeated += len(worlds) > 1
        size = worlds[-1][0]["world"]
        sizes += [size] if sizes[-1:] != [size] else []
        for right in expected.get(number, []):
            found = [*what_differs(worlds[-1], right)]
            found += [each for line in lines for each in what_is_wrong(line, right)]
            wrong += [f"step {number}: {each}" for each in found]
    if repeated > int(again):
        wrong.append(f"{repeated} steps were made again, {again} would be right")
    print("\n".join(wrong[:20]) if wrong else "ok")
    print("sizes", *sizes)
    made_all = sum(made == set(steps) for made in processes.values())
    print(f"{made_all} of {len(processes)} processes have made all {len(steps)} steps")
    print(f"{repeated} steps were made again")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        reference(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        sys.exit(check(*sys.argv[2:]))
