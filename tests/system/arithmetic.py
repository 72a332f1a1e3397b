#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Is a training that was resized the training that was not? Trains, and compares.

    arithmetic.py train LOG STEPS [SIZE,...]
    arithmetic.py check REFERENCE LOG MODEL TOLERANCE

train: the digits of examples/digits as train_restart.py trains them, three models side by side in
the same steps, so that one job answers for all: "float64" and "float32" as documented, and
"unweighted", float64 without loss_scale(), which must not pass. With SIZEs, the first world has to
have the first of these sizes, and so on; each but the last makes at most STEPS_OF_A_WORLD steps and
then waits to be resized. Without RANK in the environment it is one process without
DistributedDataParallel, whose every step is the textbook's: the mean over the global batch, no
shares, no average of gradients. That is the reference: a stricter one than two workers that stay
two, whose order of summation would be that of some worlds of the resized run.

LOG for rank 0, LOG.1, LOG.2, ... for the others: a JSON line for each step, which
examples/digits/check_log.py reads too. "loss" is summed over this rank's samples, "state" is a hash
of parameters and optimizer after the step, "loaded" the same before a world's first one.

check: exit status 0 if each step of REFERENCE was made once in LOG, by all ranks of one world, with
a global loss within TOLERANCE of the reference's, and if parameters and optimizer were the same on
all ranks after each step and after each change. Else 1, and a line for what differs.
"""

import collections
import glob
import hashlib
import json
import os
import re
import sys
import time

GLOBAL_BATCH = 128
# Rounding may put an input of a ReLU on the other side of 0, and the sooner the larger the steps:
# at 0.2, float32 runs of one training on 1 and on 3 workers part by more than 1e-5 for 2 of 24
# seeds. At 0.1 it was 2e-6 at most, and 5e-7 for all but two.
LEARNING_RATE = 0.1
SEED = 0
STEPS_OF_A_WORLD = 30
MODELS = {
    "float64": ("float64", True),
    "float32": ("float32", True),
    "unweighted": ("float64", False),
}


# ---- training ------------------------------------------------------------------------------------


class Model:
    def __init__(self, dtype, weighted):
        torch.manual_seed(SEED)
        self.dtype = getattr(torch, dtype)
        self.weighted = weighted
        self.module = self.parallel = digits.build_model(self.dtype)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE, momentum=0.9)

    def distribute(self):
        self.parallel = torch.nn.parallel.DistributedDataParallel(self.module)

    def step(self, x, y, scale):
        """One optimizer step; the mean loss over the samples of this rank."""
        loss = torch.nn.functional.cross_entropy(self.parallel(x.to(self.dtype)), y)
        self.optimizer.zero_grad()
        (loss * scale if self.weighted else loss).backward()
        self.optimizer.step()
        return loss.item()

    def state_dict(self):
        return {"module": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])

    def hash(self):
        digest = hashlib.blake2b(digest_size=8)
        add_to_hash(digest, self.state_dict())
        return digest.hexdigest()


def add_to_hash(digest, value):
    if isinstance(value, torch.Tensor):
        digest.update(value.detach().numpy().tobytes())
    elif isinstance(value, dict):
        for key in value:
            digest.update(repr(key).encode())
            add_to_hash(digest, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            add_to_hash(digest, item)
    else:
        digest.update(repr(value).encode())


def train(path, steps, sizes):
    torch.set_num_threads(1)
    distributed = "RANK" in os.environ
    if distributed:
        torch.distributed.init_process_group("gloo")
    data, _ = digits.load(torch.float64)
    sampler = slurm_elastic.ElasticSampler(data, GLOBAL_BATCH, seed=SEED)
    world = slurm_elastic.generation() or 1
    if sizes and sizes[world - 1 : world] != [sampler.world_size]:
        sys.exit(f"world {world} has {sampler.world_size} workers, planned are {sizes}")
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
    models = {name: Model(*arguments) for name, arguments in MODELS.items()}

    state = slurm_elastic.load_latest() if sizes else None
    if state:
        sampler.load_state_dict(state["sampler"])
        for name, model in models.items():
            model.load_state_dict(state[name])
    # DistributedDataParallel makes all ranks like rank 0: whether they are is to be seen before.
    loaded = {"loaded": {name: model.hash() for name, model in models.items()}}
    if distributed:
        for model in models.values():
            model.distribute()

    log = open(path if sampler.rank == 0 else f"{path}.{sampler.rank}", "a", buffering=1)
    constant = {
        "generation": world,
        "world": sampler.world_size,
        "rank": sampler.rank,
        "samples": len(data),
    }
    made_here = 0
    for epoch in range(sampler.epoch, steps // len(sampler)):
        sampler.set_epoch(epoch)
        for step, (x, y, index) in enumerate(loader, sampler.step):
            scale = sampler.loss_scale()
            indices = index.tolist() if scale else []
            losses = {
                name: model.step(x, y, scale) * len(indices) for name, model in models.items()
            }
            sampler.commit()
            record = {"epoch": epoch, "step": step, "indices": indices, "loss": losses}
            record["state"] = {name: model.hash() for name, model in models.items()}
            log.write(json.dumps({**constant, **record, **loaded}) + "\n")
            loaded = {}
            made_here += 1
            event = slurm_elastic.elastic_event_detected()
            while not event and world < len(sizes) and made_here >= STEPS_OF_A_WORLD:
                time.sleep(0.02)
                event = slurm_elastic.elastic_event_detected()
            if event:
                state = {name: model.state_dict() for name, model in models.items()}
                slurm_elastic.save({**state, "sampler": sampler.state_dict()})
                sys.exit(0)
    log.close()


# ---- checking ------------------------------------------------------------------------------------


def read(path):
    """{(epoch, step): records of the ranks} of a run."""
    steps = collections.defaultdict(list)
    for name in [path, *glob.glob(glob.escape(path) + ".*")]:
        if name == path or re.fullmatch(r"\d+", name[len(path) + 1 :]):
            with open(name) as file:
                for line in file:
                    record = json.loads(line)
                    steps[record["epoch"], record["step"]].append(record)
    return dict(sorted(steps.items()))


def where(step, records):
    worlds = sorted({(record["generation"], record["world"]) for record in records})
    return f"epoch {step[0]} step {step[1]} ({', '.join(f'world {g} of {w} workers' for g, w in worlds)})"


def global_loss(records, model):
    """The mean over the step's samples, whoever had them."""
    return sum(r["loss"][model] for r in records) / sum(len(r["indices"]) for r in records)


def wrong_steps(reference, run):
    """Lines about steps that were not made once by all ranks of one world."""
    for step in sorted(reference.keys() | run.keys()):
        records = run.get(step, [])
        if step not in reference:
            yield f"{where(step, records)}: the reference has no such step"
        elif not records:
            yield f"epoch {step[0]} step {step[1]}: was never made"
        elif sorted(r["rank"] for r in records) != list(range(records[0]["world"])):
            yield f"{where(step, records)}: made by ranks {sorted(r['rank'] for r in records)}"


def alike(step, records, model, moment):
    """A line if not all ranks have the same hash."""
    hashes = {record["rank"]: record.get(moment, {}).get(model) for record in records}
    first = hashes[min(hashes)]
    different = sorted(rank for rank in hashes if hashes[rank] != first or first is None)
    if different:
        yield f"{where(step, records)}: ranks {different} have another {moment} than rank {min(hashes)}: {hashes}"


def wrong_states(run, model):
    """Lines about ranks whose parameters or optimizer differ, after a step or at the begin of a
    world.
    """
    world, state = None, None
    for step, records in run.items():
        if records[0]["generation"] != world:
            world = records[0]["generation"]
            yield from alike(step, records, model, "loaded")
            if state is not None and records[0].get("loaded", {}).get(model) != state:
                yield f"{where(step, records)}: begins with another state than the world before has left"
        yield from alike(step, records, model, "state")
        state = records[0]["state"][model]


def check(reference, run, model, tolerance):
    """All that is wrong, as lines; prints what was compared."""
    wrong = list(wrong_steps(reference, run))
    wrong += wrong_states(run, model)
    both = [step for step in run if step in reference]
    expected = {step: global_loss(reference[step], model) for step in both}
    differences = {step: abs(global_loss(run[step], model) - expected[step]) for step in both}
    far = [step for step in both if not differences[step] <= tolerance]
    for step in sorted({far[0], max(far, key=differences.get)}) if far else []:
        found = global_loss(run[step], model)
        wrong.append(
            f"{where(step, run[step])}: global loss {found!r}, the reference has {expected[step]!r}: "
            f"differs by {differences[step]:.1e}, more than {tolerance:g} (as in {len(far)} steps)"
        )
    sizes = dict(sorted((r["generation"], r["world"]) for records in run.values() for r in records))
    largest = max(differences, key=differences.get)
    print(
        f"{model}: {len(both)} steps in worlds of {','.join(map(str, sizes.values()))} workers, global loss "
        f"{expected[both[0]]:.4f} to {expected[both[-1]]:.4f}, largest difference {differences[largest]:.1e} at {where(largest, run[largest])}"
    )
    return wrong


if __name__ == "__main__":
    if len(sys.argv) in (4, 5) and sys.argv[1] == "train":
        import digits
        import slurm_elastic
        import torch
        import torch.distributed
        import torch.nn.parallel

        train(
            sys.argv[2],
            int(sys.argv[3]),
            [int(size) for size in sys.argv[4].split(",")] if sys.argv[4:] else [],
        )
    elif len(sys.argv) == 6 and sys.argv[1] == "check":
        errors = check(read(sys.argv[2]), read(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
        for line in errors[:10]:
            print(f"{sys.argv[4]}: {line}")
        sys.exit(bool(errors))
    else:
        sys.exit(__doc__)
