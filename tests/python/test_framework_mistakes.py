#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What users of frameworks do wrong first gives one line. In worlds of two processes, without
elasticrun, with the adapters of examples/.
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
# that it has ended with.
BEGIN = """
import os, sys
number, directory, examples, ports, *cases = sys.argv[1:]
sys.path[:0] = [os.path.join(examples, each) for each in ("accelerate", "huggingface", "lightning")]
import torch
import torch.distributed as dist
from slurm_elastic import ElasticSampler, _mistakes, live
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
x = torch.randn(40, 3)
dataset = TensorDataset(x, (x[:, 0] > 0).long())

def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard
    fully_shard(getattr(model, "layers", model), mesh=mesh)

def say(words):
    assert "\\n" not in words
    print(f"ended: {words}", file=sys.stderr, flush=True)

def run(train, state):
    state._progress.watch()  # as in an elastic job
    try:
        live.run(train, state)
        say("")
    except (RuntimeError, TypeError) as error:
        say(str(error))

def main():
    for port, each in zip(ports.split(","), cases):
        os.environ.update(RANK=number, LOCAL_RANK=number, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_RUN_ID="test")
        _mistakes._told.clear()
        kind, _, mistake = each.partition(":")
        training(shard if kind == "fsdp" else None, mistake)
"""
ACCELERATE = (
    BEGIN
    + """
from accelerate import Accelerator
from elastic_accelerate import new_accelerator

def training(shard, mistake):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    sampler = ElasticSampler(dataset, 8)
    loader = DataLoader(dataset, batch_sampler=sampler)
    parts = {"optimizer": [sampler], "sampler": [sgd]}.get(mistake, [sgd, sampler])

    def train(state):
        own = mistake == "accelerator"
        accelerator = Accelerator(cpu=True) if own else new_accelerator(state, cpu=True)
        model, optimizer = accelerator.prepare(net, sgd)
        data = accelerator.prepare(loader) if mistake == "loader" else loader
        called = net if mistake == "model" else model
        if mistake == "wrapped":
            called = torch.nn.parallel.DistributedDataParallel(model)
        for x, y in data:
            accelerator.backward(cross_entropy(called(x), y) * sampler.loss_scale())
            optimizer.step()
            optimizer.zero_grad()
            for _ in range({"forgotten": 0, "twice": 2}.get(mistake, 1)):
                state.commit()

    try:
        state = live.State(net, *parts, shard=shard)
    except TypeError as error:
        say(str(error))
        return
    run(train, state)

main()
"""
)
TRAINER = (
    BEGIN
    + """
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
    scheduler = torch.optim.lr_scheduler.ConstantLR(sgd)
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
            trainer = new_trainer(state, sampler, rows, (sgd, scheduler), callbacks, **options)
        trainer.train()

    try:
        state = live.State(net, *parts, shard=shard)
    except TypeError as error:
        say(str(error))
        return
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
            trainer = new_trainer(state, sampler, callbacks, **options)
        trainer.fit(net, loader)

    try:
        state = live.State(net, *parts, wrap=False, shard=shard)
    except TypeError as error:
        say(str(error))
        return
    run(train, state)

main()
"""
)
SHARDED = "^the model is sharded by fully_shard.*do not wrap it in DistributedDataParallel"
FORGOTTEN = "^the training has ended without one commit"
TWICE = "^commit.* is called twice for each step.*left out$|^commit.. without a batch"
SAMPLER = "^an ElasticSampler gives the batches, and it is not in the state"
THROUGH = "^the model has trained, and not through state.ddp"
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
        """expected  what each training ends with: "" if it is right."""
        ports = ",".join(str(fake_agent.free_port()) for _ in expected)
        said = processes.run(self, code, 2, EXAMPLES, ports, *expected)
        for text in said:
            ended = re.findall("^ended: (.*)", text, re.MULTILINE)
            self.assertEqual(len(ended), len(expected), text[-3000:])
            for (name, words), line in zip(expected.items(), ended):
                with self.subTest(name):
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
                "ddp:wrapped": "^the model is in a DistributedDataParallel already",
                "ddp:loader": "",
                "fsdp:": "",
                "fsdp:forgotten": FORGOTTEN,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
                "fsdp:accelerator": SHARDED,
                "fsdp:wrapped": SHARDED,
                "fsdp:loader": "",
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
                "fsdp:": "",
                "fsdp:trainer": SHARDED,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
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
                "fsdp:": "",
                "fsdp:trainer": SHARDED,
                "fsdp:twice": TWICE,
                "fsdp:optimizer": OPTIMIZER["fsdp"],
                "fsdp:sampler": SAMPLER,
            },
        )


if __name__ == "__main__":
    tap.main()
