#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training that lives through changes of its world, and what must hold of it.

    live.py train LOGDIR EPOCHS STEP_SECONDS [NEWCOMERS]
    live.py resize JOB LOGDIR SEED CHANGES
    live.py check LOGDIR SURVIVORS MODEL=TOLERANCE...
    live.py leaks LOGDIR

train: three small models in the same steps by slurm_elastic.live: "float64", "float32", and
"unweighted", which is float64 without loss_scale() and must not pass. Batches come from a
DataLoader, in odd epochs from one with two persistent processes; every third step accumulates
gradients. Each rank writes a JSON line for each step to LOGDIR/PID. Ends after EPOCHS, or with the
epoch in which a file LOGDIR.enough appears, from when on steps take no STEP_SECONDS. NEWCOMERS is a
file that tells workers of later worlds what to be: "broken" and "hang" at import, "batch" (a global
batch that is computed from WORLD_SIZE).

resize: makes that job's size another one of 2 to 5 nodes at random moments, also before the change
before is through, until so many worlds have begun; then lets the training end.

check: exit status 0 if each sample of each epoch was trained on once, each step by all ranks of one
world, with the loss of a training that was never resized (made here) within TOLERANCE, with equal
parameters, buffers and optimizer on all ranks after it; if so many processes (SURVIVORS) were in
all steps and none of the others came twice; if they kept their loader's processes, no random number
came twice, and scale_config was the world's. Else 1 and a line for what differs.

leaks: exit status 0 if memory, descriptors, sockets and threads of processes that were there from
the first step to the last, and of the agents, do not grow.
"""

import collections
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import time

SAMPLES, FEATURES, BATCH = 200, 12, 32
LOADERS = 2  # processes
MODELS = {"float64": "float64", "float32": "float32", "unweighted": "float64"}
WARM_UP = 6  # worlds in which a process may still grow: allocators, caches


def resources(pid="self"):
    """What a process holds: KiB of memory of its own, threads, descriptors (sockets among them),
    without those of batches that its loader has ready.
    """
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    targets = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue  # the one that lists them
        if not target.startswith("/dev/shm/torch_"):
            targets.append(target)
    return {
        "memory": int(fields["RssAnon"].split()[0]),
        "threads": int(fields["Threads"]),
        "descriptors": len(targets),
        "sockets": sum(target.startswith("socket:") for target in targets),
    }


# ---- training ------------------------------------------------------------------------------------


def import_torch():
    global torch, slurm_elastic, live
    import slurm_elastic
    import torch
    from slurm_elastic import live


def build_model(dtype):
    torch.manual_seed(0)
    layers = (torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    model = torch.nn.Sequential(*layers).to(dtype=getattr(torch, dtype))
    model.register_buffer("average", model[0].weight.detach().clone())
    return model


class Training:
    def __init__(self, batch=BATCH):
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.x = torch.randn(SAMPLES, FEATURES, dtype=torch.float64)
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()
        self.models = torch.nn.ModuleDict(
            {name: build_model(dtype) for name, dtype in MODELS.items()}
        )
        optimizer = torch.optim.SGD(self.models.parameters(), lr=0.05, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 + (step % 50) / 50)
        self.sampler = slurm_elastic.ElasticSampler(SAMPLES, global_batch=batch, seed=3)
        data = torch.utils.data.TensorDataset(self.x, self.y, torch.arange(SAMPLES))
        loader = torch.utils.data.DataLoader
        self.loaders = (
            loader(data, batch_sampler=self.sampler),
            loader(data, batch_sampler=self.sampler, num_workers=LOADERS, persistent_workers=True),
        )
        self.optimizer = optimizer
        wrap = Wrap(self.models)
        options = {"broadcast_buffers": False}
        self.state = live.State(
            wrap, optimizer, scheduler, self.sampler, ddp_options=options, losses=0.0
        )

    def backward(self, x, y, share):
        """The gradients of some samples of a share; the sums of their losses."""
        outputs = self.state.ddp(x)
        losses = {}
        for name, output in outputs.items():
            losses[name] = torch.nn.functional.cross_entropy(output, y, reduction="sum")
        scale = self.sampler.loss_scale("sum")
        scales = {name: 1 / share if name == "unweighted" else scale for name in losses}
        sum(losses[name].double() * scales[name] for name in losses).backward()
        # Who has no share of the last step draws a sample all the same.
        return {name: loss.item() if scale else 0.0 for name, loss in losses.items()}

    def gradients(self, x, y, parts):
        """The same of a whole share, in so many parts at most."""
        size = -(-len(x) // parts)
        *firsts, last = zip(x.split(size), y.split(size))
        losses = collections.Counter()
        with self.state.no_sync():
            for part in firsts:
                losses.update(self.backward(*part, len(x)))
        losses.update(self.backward(*last, len(x)))
        with torch.no_grad():
            for model in self.models.values():
                model.average.lerp_(model[0].weight, 0.1)
        return dict(losses)

    def digest(self):
        tensors = [*self.models.parameters(), *self.models.buffers()]
        tensors += [state["momentum_buffer"] for state in self.optimizer.state.values()]
        return hashlib.sha256(
            b"".join(each.detach().numpy().tobytes() for each in tensors)
        ).hexdigest()[:16]

    def rate(self):
        return self.optimizer.param_groups[0]["lr"]


def Wrap(models):
    """One module for DistributedDataParallel."""

    class Together(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.models = models

        def forward(self, x):
            return {name: model(x.to(model[0].weight.dtype)) for name, model in self.models.items()}

    return Together()


def enough(log_dir):
    """Whether it is, in the eyes of rank 0."""
    flag = torch.tensor([int(os.path.exists(log_dir + ".enough"))])
    if torch.distributed.is_initialized():
        torch.distributed.broadcast(flag, 0)
    return bool(flag)


def newcomer(file):
    """How to be, for a worker of a later world."""
    if (
        file is None
        or int(os.environ.get("ELASTIC_GENERATION", "1")) == 1
        or not os.path.exists(file)
    ):
        return None
    with open(file) as text:
        return text.read().strip()


def train(log_dir, epochs, seconds, newcomers):
    how = newcomer(newcomers)
    if how == "broken":
        sys.exit("cannot import what is not there")
    if how == "hang":
        time.sleep(100000)
    # PyTorch 2 keeps a record of its newest 2000 collectives: leaks() would take it for a leak.
    os.environ["TORCH_FR_BUFFER_SIZE"] = "0"
    import_torch()
    os.makedirs(log_dir, exist_ok=True)
    # As if two workers had begun with batches of their own.
    own = BATCH // 2 * int(os.environ["WORLD_SIZE"]) if how == "batch" else BATCH
    training = Training(own)
    state, sampler = training.state, training.sampler
    log = open(os.path.join(log_dir, str(os.getpid())), "a", buffering=1)
    world = {}

    def look(state):
        world.update(
            generation=slurm_elastic.generation(), config=slurm_elastic.scale_config().get("nodes")
        )
        world["fresh"] = True

    def loop(state):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            if sampler.committed == 0 and enough(log_dir):
                break
            loader = training.loaders[epoch % 2]
            for x, y, index in loader:
                losses = training.gradients(x, y, parts=2 if state.steps % 3 == 0 else 1)
                share = index.tolist() if sampler.loss_scale() else []
                line = {
                    "step": state.steps,
                    "epoch": epoch,
                    "rank": sampler.rank,
                    "size": sampler.world_size,
                }
                line.update(
                    generation=world["generation"], config=world["config"], share=share, loss=losses
                )
                line.update(rate=training.rate(), draw=float(torch.rand(1, dtype=torch.float64)))
                if epoch % 2:
                    line["loader"] = [process.pid for process in loader._iterator._workers]
                if world.pop("fresh", False):
                    line["resources"] = resources()
                state.losses += losses["float64"]
                if not os.path.exists(log_dir + ".enough"):
                    time.sleep(seconds)
                try:
                    state.step()
                finally:
                    line["state"] = training.digest()
                    log.write(json.dumps(line) + "\n")
        return state.steps

    state.on_generation(look)
    steps = live.run(loop, state)
    if sampler.rank == 0:
        print(f"trained {steps} steps", flush=True)


# ---- resizing ------------------------------------------------------------------------------------


def newest(log_dir):
    """(step, generation, size) of the newest step."""
    found = (-1, 0, 0)
    for path in glob.glob(os.path.join(log_dir, "*")):
        with open(path, "rb") as log:
            log.seek(max(0, os.path.getsize(path) - 4000))
            for line in log.read().decode().splitlines()[-2:]:
                if line.startswith("{") and line.endswith("}"):
                    line = json.loads(line)
                    found = max(found, (line["step"], line["generation"], line["size"]))
    return found


def agents(job):
    """The process ids of a job's elasticruns, not of its extensions', nor of workers' shims."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(path + "/environ", "rb") as file:
                environment = file.read().split(b"\0")
        except OSError:
            continue
        # The number is another cluster's, too.
        ours = {f"SLURM_JOB_ID={job}".encode(), f"SLURM_CONF={os.environ['SLURM_CONF']}".encode()}
        in_step = any(each.startswith(b"SLURM_STEP_ID=") for each in environment)
        is_agent = os.path.basename(words[0]) == b"elasticrun" and words[1:2] != [b"--exec-worker"]
        if is_agent and in_step and ours <= set(environment):
            found.append(int(os.path.basename(path)))
    return found


def resize(job, log_dir, seed, changes):
    chance = random.Random(seed)
    begun = time.monotonic()
    wanted, commands = 2, 0
    while newest(log_dir)[1] < changes + 1:
        size = chance.choice([size for size in range(2, 6) if size != wanted])
        pause = chance.uniform(0, 0.8)
        time.sleep(pause)
        step, generation, _ = newest(log_dir)
        print(
            f"{time.monotonic() - begun:.1f} s: to {size}, in step {step} of world {generation}",
            flush=True,
        )
        subprocess.run(
            ["selastic", "resize", job, str(size)], check=True, stdout=subprocess.DEVNULL
        )
        wanted, commands = size, commands + 1
        if chance.random() < 0.2:
            continue
        limit = time.monotonic() + 270
        while newest(log_dir)[0] <= step or newest(log_dir)[2] != size:
            if time.monotonic() > limit:
                sys.exit(
                    f"not {size} nodes after 270 s: step, world and size are {newest(log_dir)}"
                )
            time.sleep(0.1)
        with open(log_dir + ".agents", "a") as log:
            for pid in agents(job):
                line = {"generation": newest(log_dir)[1], "size": size, "resources": resources(pid)}
                log.write(json.dumps({"pid": pid, **line}) + "\n")
    print(
        f"{commands} commands, {newest(log_dir)[1] - 1} changes in {time.monotonic() - begun:.0f} s"
    )
    open(log_dir + ".enough", "w").close()


# ---- checking ------------------------------------------------------------------------------------


def read(log_dir):
    """The lines of each process."""
    of_process = {}
    for path in glob.glob(os.path.join(log_dir, "*")):
        with open(path) as log:
            lines = [json.loads(line) for line in log]
        if lines:  # not of one that was never let in
            of_process[os.path.basename(path)] = lines
    return of_process


def reference(epochs, kept_in):
    """The steps of a training by one process, without shares or micro batches. Other checks of logs
    in the same directory need the same ones: they are kept beside them, in a file for these models.
    """
    kept = os.path.join(os.path.dirname(os.path.abspath(kept_in)), f"reference-{len(MODELS)}")
    if os.path.exists(kept):
        with open(kept) as file:
            steps = json.load(file)
        if steps[-1]["epoch"] + 1 >= epochs:
            return [step for step in steps if step["epoch"] < epochs]
    steps = compute_reference(epochs)
    with open(kept + ".new", "w") as file:
        json.dump(steps, file)
    os.rename(kept + ".new", kept)
    return steps


def compute_reference(epochs):
    import_torch()
    training = Training()
    steps = []
    for epoch in range(epochs):
        training.sampler.set_epoch(epoch)
        for x, y, _ in training.loaders[0]:
            losses = training.gradients(x, y, parts=1)
            steps.append({"epoch": epoch, "loss": losses, "rate": training.rate()})
            training.state.step()
    return steps


def wrong_step(lines, expected, tolerances):
    """What is wrong with a step, as lines."""
    ranks, sizes = sorted(line["rank"] for line in lines), {line["size"] for line in lines}
    if len(sizes) != 1 or ranks != list(range(len(ranks))) or len(ranks) != max(sizes):
        yield f"ranks {ranks} of worlds of {sorted(sizes)}"
    if len({line["generation"] for line in lines}) != 1:
        yield "of several worlds"
    if len({line["state"] for line in lines}) != 1:
        yield "the ranks differ in parameters, buffers or optimizer"
    if {(line["epoch"], line["rate"]) for line in lines} != {(expected["epoch"], expected["rate"])}:
        yield "epoch or learning rate"
    if any(line["config"] not in (None, line["size"]) for line in lines):
        yield f"scale_config of {sorted({line['config'] for line in lines})} nodes in a world of {lines[0]['size']}"
    samples = sum(len(line["share"]) for line in lines)
    for model, tolerance in tolerances.items():
        loss = sum(line["loss"][model] for line in lines)
        if samples and not abs(loss - expected["loss"][model]) <= tolerance * samples:
            yield f"{model}: loss {loss / samples}, {expected['loss'][model] / samples} would be right"


def wrong_processes(of_process, steps, survivors):
    stayed = [
        pid
        for pid, lines in of_process.items()
        if [line["step"] for line in lines] == list(range(steps))
    ]
    if len(stayed) != survivors:
        yield f"{len(stayed)} processes have made all steps, {survivors} would be right"
    for pid, lines in of_process.items():
        made = [line["step"] for line in lines]
        if made and made != list(range(made[0], made[0] + len(made))):
            yield f"process {pid} was not there all the time between its first and last step"
        loaders = {tuple(line["loader"]) for line in lines if "loader" in line}
        if len(loaders) > 1:
            yield f"process {pid} has had {len(loaders)} sets of loader processes"
    draws = collections.Counter(line["draw"] for lines in of_process.values() for line in lines)
    if max(draws.values()) > 1:
        yield f"{sum(count > 1 for count in draws.values())} random numbers were drawn more than once"


def largest_difference(steps, expected, model):
    sums = (
        (sum(line["loss"][model] for line in steps[number]), expected[number]["loss"][model])
        for number in steps
    )
    return max(abs(made - right) for made, right in sums) / BATCH


def check(log_dir, survivors, tolerances):
    of_process = read(log_dir)
    steps, seen = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for lines in of_process.values():
        for line in lines:
            steps[line["step"]].append(line)
            seen[line["epoch"]].update(line["share"])
    expected = reference(max(seen) + 1, log_dir)
    wrong = list(wrong_processes(of_process, len(expected), survivors))
    if sorted(steps) != list(range(len(expected))):
        wrong.append(f"{len(steps)} steps, {len(expected)} would be right")
    for number, lines in sorted(steps.items()):
        if number < len(expected):
            wrong += (
                f"step {number}: {what}" for what in wrong_step(lines, expected[number], tolerances)
            )
    for epoch, samples in sorted(seen.items()):
        if samples != collections.Counter(range(SAMPLES)):
            wrong.append(
                f"epoch {epoch}: {sum(samples.values())} samples, {len(samples)} different ones"
            )
    sizes = [lines[0]["size"] for _, lines in sorted(steps.items())]
    print("sizes", *[size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] != size])
    for model in tolerances:
        print(
            f"{model}: {len(expected)} steps, largest difference {largest_difference(steps, expected, model):.1e}"
        )
    print("\n".join(wrong[:20]) if wrong else "ok")
    return 1 if wrong else 0


def growth(samples, what):
    """(first, last) of what a process holds, later than its warm-up: the least in the same sizes of
    world in both halves, the mean of all sizes.
    """
    samples = [each for each in samples if each["generation"] > WARM_UP]
    half = (samples[0]["generation"] + samples[-1]["generation"]) / 2 if samples else 0
    halves = [collections.defaultdict(list), collections.defaultdict(list)]
    for each in samples:
        halves[each["generation"] > half][each["size"]].append(each["resources"][what])
    common = halves[0].keys() & halves[1].keys()
    return [sum(min(part[size]) for size in common) / max(1, len(common)) for part in halves]


def leaks(log_dir):
    of_process = read(log_dir)
    longest = max(len(lines) for lines in of_process.values())
    held = {
        f"worker {pid}": [line for line in lines if "resources" in line]
        for pid, lines in of_process.items()
        if len(lines) == longest
    }
    with open(log_dir + ".agents") as log:
        for line in map(json.loads, log):
            held.setdefault(f"agent {line['pid']}", []).append(line)
    wrong = 0
    for who, samples in held.items():
        worlds = samples[-1]["generation"] - WARM_UP
        for what in ("memory", "threads", "descriptors", "sockets"):
            first, last = growth(samples, what)
            # Of memory 40 KiB for each change, and what each of an agent's 16 threads takes for its
            # first work; of the rest nothing, but for what is open in all steps of a short world.
            allowed = 512 + 40 * worlds / 2 if what == "memory" else 3
            print(
                f"{who}: {what} {first:.0f} in the first half of {worlds} worlds, {last:.0f} in the second"
            )
            wrong += last - first > allowed
    return 1 if wrong else 0


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "train":
        train(rest[0], int(rest[1]), float(rest[2]), rest[3] if len(rest) > 3 else None)
    elif command == "resize":
        resize(rest[0], rest[1], int(rest[2]), int(rest[3]))
    elif command == "check":
        pairs = (pair.split("=") for pair in rest[2:])
        sys.exit(
            check(rest[0], int(rest[1]), {model: float(tolerance) for model, tolerance in pairs})
        )
    elif command == "leaks":
        sys.exit(leaks(rest[0]))
    else:
        sys.exit(__doc__)
