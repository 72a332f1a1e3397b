# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small network on numbers that it makes itself, with transformers.Trainer.

srun elasticrun --mode=restart python3 train.py OUTPUT_DIR
"""

import argparse
import time

import slurm_elastic
import torch
from elastic_trainer import fit, share_of
from transformers import Trainer, TrainerCallback, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Slow(TrainerCallback):
    def __init__(self, seconds):
        self._seconds = seconds

    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(self._seconds)
        if state.is_world_process_zero:
            print(f"step {state.global_step} world {args.world_size}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", metavar="OUTPUT_DIR")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--step-time", type=float, default=0, metavar="SECONDS", help="slow down")
    arguments = parser.parse_args()
    slurm_elastic.init()
    torch.manual_seed(0)
    x = torch.randn(192, 12)
    dataset = [{"x": each, "labels": int(each[0] + each[1] > 0)} for each in x]
    training = TrainingArguments(
        output_dir=arguments.output,
        per_device_train_batch_size=share_of(24),
        num_train_epochs=arguments.epochs,
        learning_rate=0.01,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="epoch",
        save_total_limit=2,
    )
    model = Net()
    fit(Trainer(model, training, train_dataset=dataset, callbacks=[Slow(arguments.step_time)]))
    if training.process_index == 0:
        total = float(sum(each.detach().double().sum() for each in model.parameters()))
        print(f"trained, parameters {total:.4f}", flush=True)


if __name__ == "__main__":
    main()
