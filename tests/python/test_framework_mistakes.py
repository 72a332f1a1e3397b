#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What users of frameworks do wrong first gives one line. In worlds of two processes, without
elasticrun, with the adapters of examples/. And tensor parallelism goes with frameworks.
"""

import importlib.util
import os
import re
import unittest

import fake_agent
import processes
import tap

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")

# A process. CASES: for each of its trainings, who calls what. It writes a line for each: the error
# that it has ended with, else what rank 0 was told. The first one to end a training waits for the
# other one: it would tear connections from which that still reads, and here nobody tells it.
BEGIN = """
import copy, glob, os, sys, time
number, directory, examples, ports, *cases = sys.argv[1:]
sys.path[:0] = [os.path.join(examples, each) for each in ("accelerate", "huggingface", "lightning")]
import torch
import torch.distributed as dist
from slurm_elastic import ElasticSampler, _membership, _mistakes, live
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(40, 3)
dataset = TensorDataset(x, (x[:, 0] > 0).long())

def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard
    fully_shard(getattr(model, "layers", model), mesh=mesh)

def cut(model, mesh):
    import slurm_elastic
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    mesh = slurm_elastic.unit_mesh(mesh.device_type, {"shard": 1, "tensor": 2})
    layers = [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear)]
    plan = {name: ColwiseParallel(output_layouts=Replicate()) for name in layers}
    parallelize_module(model, mesh["tensor"], plan, src_data_rank=None)
    fully_shard(model, mesh=mesh["replicate", "shard"])

def share_samples(sampler):
    import slurm_elastic
    unit = slurm_elastic.unit()
    sampler.set_world(unit.number, unit.units)

def trained_alone(net):
    net, sampler = copy.deepcopy(net), ElasticSampler(dataset, 8, rank=0, world_size=1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for drawn in sampler:
        x, y = dataset[drawn]
        for each in filter(lambda each: isinstance(each, torch.nn.Linear), net.modules()):
            x = each(x)
        cross_entropy(x, y).backward()
        sgd.step()
        sgd.zero_grad()
        sampler.commit()
    return list(net.parameters())

def check(net, alone):
    found = [each.full_tensor() for each in net.parameters()]
    if not all(torch.allclose(*pair, atol=1e-5) for pair in zip(found, alone)):
        raise ValueError("other parameters")

def say(words):
    assert "\\n" not in words
    print(f"ended: {words}", file=sys.stderr, flush=True)

def wait_for_the_other():
    place = os.path.join(directory, "ended-" + os.environ["MASTER_PORT"])
    open(f"{place}-{number}", "w").close()
    while len(glob.glob(f"{place}-*")) < 2:
        time.sleep(0.01)

def end_together(*arguments):
    wait_for_the_other()
    return end(*arguments)

end, _membership.end = _membership.end, end_together

def run(train, state):
    state._progress.watch()  # as in an elastic job
    is_first = not dist.is_initialized()
    try:
        live.run(train, state)
        say("; ".join(_mistakes._told))
    except (RuntimeError, TypeError, ValueError) as error:
        say(str(error))
    if not is_first:
        wait_for_the_other()
        dist.destroy_process_group()

def new_state(*parts, **options):
    try:
        return live.State(*parts, **options)
    except TypeError as error:
        say(str(error))
        return None

def main():
    for port, each in zip(ports.split(","), cases):
        os.environ.update(RANK=number, LOCAL_RANK=number, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_RUN_ID="test")
        _mistakes._told.clear()
        torch.manual_seed(1)
        kind, _, mistake = each.partition(":")
        training({"fsdp": shard, "tensor": cut}.get(kind), mistake)
"""
ACCELERATE = (
    BEGIN
    + """
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from elastic_accelerate import new_accelerator

def training(shard, mistake):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    sampler = ElasticSampler(dataset, 8)
    loader = DataLoader(dataset, batch_sampler=sampler)
    parts = {"optimizer": [sampler]}.get(mistake, [sgd, sampler])
    if mistake in ("sampler", "distributed", "prepared", "size"):
        parts = [sgd]

    def train(state):
        own = mistake == "accelerator"
        if shard is cut:
            share_samples(sampler)
        accelerator = Accelerator(cpu=True) if own else new_accelerator(state, cpu=True)
        model, optimizer = accelerator.prepare(net, sgd)
        data = accelerator.prepare(loader) if mistake == "loader" else loader
        if mistake == "distributed":
            data = DataLoader(dataset, 4, sampler=DistributedSampler(dataset))
        if mistake == "size":
            data = DataLoader(dataset, 4, sampler=DistributedSampler(dataset, 1, 0))
        if mistake == "prepared":
            data = accelerator.prepare(DataLoader(dataset, 4, shuffle=True))
        called = net if mistake == "model" else model
        if mistake == "wrapped":
            called = torch.nn.parallel.DistributedDataParallel(model)
        for x, y in data:
            accelerator.backward(cross_entropy(called(x), y) * sampler.loss_scale())
            optimizer.step()
            optimizer.zero_grad()
            for _ in range({"forgotten": 0, "twice": 2}.get(mistake, 1)):
                state.commit()
        if shard is cut and not mistake:
            check(net, alone)

    alone = trained_alone(net)
    if mistake in ("early", "early-prepared"):
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(cpu=True)
    if mistake == "early-prepared":
        state = new_state(accelerator.prepare(net), *parts, shard=shard)
        wait_for_the_other()
        dist.destroy_process_group()
    elif mistake == "first":
        state = new_state(sgd, net, sampler, shard=shard)
    else:
        state = new_state(net, *parts, shard=shard)
    if state is not None:
        run(train, state)

main()
"""
)
TRAINER = (
    BEGIN
    + """
from accelerate.state import AcceleratorState
from elastic_trainer import new_trainer
from transformers import Trainer, TrainerCallback, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Linear(3, 2)

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": cross_entropy(logits, labels), "logits": logits}

rows = [{"x": x, "labels": int(y)} for x, y in dataset]

def training(shard, mistake):
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ConstantLR(sgd, factor=1)
    sampler = ElasticSampler(rows, 8)
    parts = {"optimizer": [sampler], "sampler": [sgd]}.get(mistake, [sgd, sampler])

    def train(state):
        class Commit(TrainerCallback):
            def on_step_end(self, *arguments, **options):
                state.commit()

        options = dict(output_dir=directory, num_train_epochs=1, max_grad_norm=0, report_to=[],
                       disable_tqdm=True, use_cpu=True, logging_strategy="no")
        if mistake == "trainer":
            trainer = Trainer(net, TrainingArguments(save_strategy="no", **options),
                              train_dataset=rows, optimizers=(sgd, scheduler))
        else:
            callbacks = [Commit()] if mistake == "twice" else []
            options.update(per_device_train_batch_size=4) if mistake == "batch" else None
            options.update(fsdp="full_shard") if mistake == "strategy" else None
            trainer = new_trainer(state, sampler, rows, (sgd, scheduler), callbacks, **options)
        if mistake == "model":
            trainer.compute_loss = lambda _, inputs, **options: net(**inputs)["loss"]
        if mistake == "wrapped":
            wrap = torch.nn.parallel.DistributedDataParallel
            trainer.accelerator.prepare_model = lambda *_, **options: wrap(state.ddp)
        if shard is cut:
            share_samples(sampler)
        trainer.train()
        if shard is cut:
            check(net, alone)

    alone = trained_alone(net)
    if mistake == "early":
        AcceleratorState._reset_state(reset_partial_state=True)
        Trainer(net, TrainingArguments(output_dir=directory, use_cpu=True, report_to=[]))
    if mistake == "first":
        state = new_state(Trainer.__new__(Trainer), sgd, sampler, shard=shard)
    else:
        state = new_state(net, *parts, shard=shard)
    if state is not None:
        run(train, state)

main()
"""
)
LIGHTNING = (
    BEGIN
    + """
from elastic_lightning import new_trainer
from pytorch_lightning import Callback, LightningModule, Trainer

class Net(LightningModule):
    def __init__(self, sampler):
        super().__init__()
        self.layers, self.sampler = torch.nn.Linear(3, 2), sampler

    def configure_optimizers(self):
        return self.optimizer

    def training_step(self, batch, _):
        return cross_entropy(self.layers(batch[0]), batch[1]) * self.sampler.loss_scale()

class Commit(Callback):
    def __init__(self, state):
        self.state = state

    def on_train_batch_end(self, *_):
        self.state.commit()

def training(shard, mistake):
    sampler = ElasticSampler(dataset, 8)
    net = Net(sampler)
    net.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(dataset, batch_sampler=sampler)
    parts = {"optimizer": [sampler], "sampler": [net.optimizer]}.get(mistake, [net.optimizer, sampler])

    def train(state):
        options = dict(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                       enable_progress_bar=False, enable_model_summary=False)
        if mistake == "trainer":
            trainer = Trainer(devices=2, num_nodes=1, use_distributed_sampler=False,
                              strategy="ddp", **options)
        else:
            callbacks = [Commit(state)] if mistake == "twice" else []
            options.update(accumulate_grad_batches=2) if mistake == "batch" else None
            options.update(strategy="ddp") if mistake == "strategy" else None
            trainer = new_trainer(state, sampler, callbacks, **options)
        data = loader
        if mistake == "distributed":
            data = DataLoader(dataset, 4, sampler=DistributedSampler(dataset))
        if mistake == "wrapped":
            net.layers = torch.nn.parallel.DistributedDataParallel(net.layers)
        trainer.fit(net, data)

    options = {} if mistake == "wrap" else {"wrap": False}
    if mistake == "first":
        state = new_state(Trainer, net, *parts, shard=shard, **options)
    else:
        state = new_state(net, *parts, shard=shard, **options)
    if state is not None:
        run(train, state)

main()
"""
)
SHARDED = "^the model is sharded by fully_shard.*do not wrap it in DistributedDataParallel"
WRAPPED = "^the model is in a DistributedDataParallel already"
FORGOTTEN = "^the training has ended without one commit"
TWICE = "^commit.* is called twice for each step.*left out$|^commit.. without a batch"
SAMPLER = "^an ElasticSampler gives the batches, and it is not in the state"
THROUGH = "^the model has trained, and not through state.ddp"
BATCH = "^[a-z_]*: the global batch is the sampler's"
FIRST = "^the first argument of live.State is the model, a torch.nn.Module, not "
EARLY = "^there is a process group before live.run.*Trainer in train.state"
PREPARED_EARLY = "^give the model, not its DistributedDataParallel"
STRATEGY = (
    "^fsdp: the state shards the model, by live.State",
    "^strategy: new_trainer.. knows the world",
)
UNDRAWN = "^commit.. without a batch: .* let the loader draw from this sampler$"
DISTRIBUTED = "^the batches come from a DistributedSampler: .*Take ElasticSampler", "^$"
SIZE = (
    "^the batches come from a DistributedSampler of 1 ranks in a world of 2: samples are repeated"
)
PREPARED = "^the batches come from a loader that Accelerate has shared out: .*ElasticSampler", "^$"
OPTIMIZER = {
    "ddp": r"is trained by an optimizer \(.*\) that is not in the state",
    "fsdp": "is trained, and no optimizer of the state has it",
}


def needs(*names):
    found = all(importlib.util.find_spec(each) for each in names)
    return unittest.skipUnless(found, f"{' and '.join(names)} cannot be imported")


@processes.needs_sharding
class Frameworks(unittest.TestCase):
    def check(self, code, expected):
        """expected  what each training ends with: "" if it is right; or for each rank."""
        ports = ",".join(str(fake_agent.free_port()) for _ in expected)
        said = processes.run(self, code, 2, EXAMPLES, ports, *expected)
        for rank, text in enumerate(said):
            ended = re.findall("^ended: (.*)", text, re.MULTILINE)
            self.assertEqual(len(ended), len(expected), text[-3000:])
            for (name, words), line in zip(expected.items(), ended):
                with self.subTest(name, rank=rank):
                    words = words[rank] if isinstance(words, tuple) else words
                    self.assertRegex(line, words if words else "^$")

    @needs("accelerate")
    def test_accelerate(self):
        self.check(
            ACCELERATE,
            {
                "ddp:": "",
                "ddp:forgotten": FORGOTTEN,
                "ddp:twice": TWICE,
                "ddp:optimizer": OPTIMIZER["ddp"],
                "ddp:sampler": SAMPLER,
                "ddp:model": THROUGH,
                "ddp:accelerator": THROUGH,
                "ddp:wrapped": WRAPPED,
                "ddp:loader": "",
                "ddp:distributed": DISTRIBUTED,
                "ddp:prepared": PREPARED,
                "ddp:size": SIZE,
                "ddp:first": FIRST,
                "ddp:early": EARLY,
                "ddp:early-prepared": PREPARED_EARLY,
                "fsdp:": "",
                "fsdp:forgotten": FORGOTTEN,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
                "fsdp:accelerator": SHARDED,
                "fsdp:wrapped": SHARDED,
                "fsdp:loader": "",
                "fsdp:distributed": DISTRIBUTED,
                "fsdp:prepared": PREPARED,
                "fsdp:size": SIZE,
                "fsdp:first": FIRST,
                "fsdp:early": EARLY,
                "fsdp:early-prepared": PREPARED_EARLY,
                "tensor:": "",
                "tensor:size": DISTRIBUTED,  # the two share their samples
            },
        )

    @needs("accelerate", "transformers")
    def test_trainer(self):
        self.check(
            TRAINER,
            {
                "ddp:": "",
                "ddp:trainer": FORGOTTEN,
                "ddp:twice": TWICE,
                "ddp:optimizer": OPTIMIZER["ddp"],
                "ddp:sampler": SAMPLER,
                "ddp:model": THROUGH,
                "ddp:wrapped": WRAPPED,
                "ddp:batch": BATCH,
                "ddp:first": FIRST + "Trainer",
                "ddp:early": EARLY,
                "ddp:strategy": STRATEGY[0],
                "fsdp:": "",
                "fsdp:trainer": SHARDED,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
                "fsdp:wrapped": SHARDED,
                "fsdp:batch": BATCH,
                "fsdp:first": FIRST + "Trainer",
                "fsdp:early": EARLY,
                "fsdp:strategy": STRATEGY[0],
                "tensor:": "",
            },
        )

    @needs("pytorch_lightning")
    def test_lightning(self):
        self.check(
            LIGHTNING,
            {
                "ddp:": "",
                "ddp:trainer": FORGOTTEN,
                "ddp:twice": TWICE,
                "ddp:optimizer": OPTIMIZER["ddp"],
                "ddp:sampler": SAMPLER,
                "ddp:distributed": UNDRAWN,
                "ddp:wrap": THROUGH,
                "ddp:batch": BATCH,
                "ddp:wrapped": WRAPPED,
                "ddp:first": FIRST + "type",
                "ddp:strategy": STRATEGY[1],
                "fsdp:": "",
                "fsdp:trainer": SHARDED,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
                "fsdp:distributed": UNDRAWN,
                "fsdp:batch": BATCH,
                "fsdp:wrapped": SHARDED,
                "fsdp:first": FIRST + "type",
                "fsdp:strategy": STRATEGY[1],
            },
        )


if __name__ == "__main__":
    tap.main()
