# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of a fit: a model of handwritten digits, trained further from the state before.

The data is a file with two numbers, FIRST and LAST: these images of the training set are new. The
config may say {"steps": N, "rate": R}.
"""

import json
import os
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parent.parent / "digits"))
import digits


def build(previous):
    """The model of the state before, or a new one."""
    torch.manual_seed(0)
    model = digits.build_model(torch.float32)
    if previous is not None:
        model.load_state_dict(torch.load(Path(previous) / "weights.pt", weights_only=True))
    return model


def train(model, images, labels, steps, rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def main():
    call = json.loads(Path(os.environ["ELASTIC_FIT"]).read_text())
    config = call["config"] or {}
    first, last = map(int, Path(call["trainData"]).read_text().split())
    dataset, held_out = digits.load(torch.float32)
    images, labels, _ = dataset.tensors
    model = build(call["previousModelDir"])
    train(
        model,
        images[first:last],
        labels[first:last],
        config.get("steps", 60),
        config.get("rate", 0.005),
    )
    images, labels, _ = held_out.tensors
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).double().mean().item()
    directory = Path(call["modelDir"])
    torch.save(model.state_dict(), directory / "weights.pt")
    torch.jit.script(model).save(str(directory / "model.pt"))
    print(f"images {first} to {last}: {right:.1%} of {len(labels)} images")


if __name__ == "__main__":
    main()
