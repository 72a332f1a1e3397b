# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small model of the handwritten digits in a second or two, and writes model.pt.

    train.py DIRECTORY [--task digit|parity|large] [--steps N]

The tasks are those of three users: which digit it is, whether it is odd, whether it is above 4.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parent.parent / "digits"))
import digits

TASKS = {
    "digit": lambda labels: labels,
    "parity": lambda labels: labels % 2,
    "large": lambda labels: (labels > 4).long(),
}


def train(task, steps, seed=0):
    """The model, and its accuracy on images that it has not seen."""
    torch.manual_seed(seed)
    dataset, held_out = digits.load(torch.float32)
    images, labels, _ = dataset.tensors
    model = digits.build_model(torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), TASKS[task](labels)).backward()
        optimizer.step()
    images, labels, _ = held_out.tensors
    with torch.no_grad():
        right = (model(images).argmax(1) == TASKS[task](labels)).double().mean().item()
    return model, right


def write(model, directory):
    directory.mkdir(parents=True, exist_ok=True)
    torch.jit.script(model.eval()).save(str(directory / "model.pt"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--task", choices=TASKS, default="digit")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    model, right = train(args.task, args.steps)
    write(model, args.directory)
    print(f"{args.task}: {right:.1%} of 360 images")


if __name__ == "__main__":
    main()
