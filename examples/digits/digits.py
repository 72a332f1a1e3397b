# SPDX-License-Identifier: GPL-2.0-or-later
"""What both training scripts share: the handwritten digits, the model, and a log of what was
trained on.
"""

import json
import os
import time

import images
import torch
from torch.utils.data import TensorDataset


def load(dtype):
    """(training set, held-out set) of 1437 and 360 images of 8x8 pixels; items are (image, digit,
    index).
    """
    pixels, labels = map(torch.from_numpy, images.read())

    def dataset(part):
        return TensorDataset(pixels[part].to(dtype), labels[part], torch.arange(len(labels[part])))

    return dataset(slice(images.HELD_OUT, None)), dataset(slice(images.HELD_OUT))


def build_model(dtype):
    return torch.nn.Sequential(
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    ).to(dtype)


@torch.no_grad()
def accuracy(model, dataset):
    images, digits, _ = dataset.tensors
    return (model(images).argmax(1) == digits).double().mean().item()


class Log:
    """One JSON line per step of this rank: FILE for rank 0, FILE.RANK for the others. check_log.py
    reads them.
    """

    def __init__(self, path, rank, world, samples):
        self._file = None
        self._constant = {"rank": rank, "world": world, "samples": samples}
        self._constant["process"] = f"{os.uname().nodename}:{os.getpid()}"
        self._constant["generation"] = int(os.environ.get("ELASTIC_GENERATION", 0))
        if path:
            self._file = open(path if rank == 0 else f"{path}.{rank}", "a", buffering=1)

    def step(self, epoch, step, indices, loss):
        """`indices`: what this rank has really trained on in this step."""
        if self._file:
            record = {
                "epoch": epoch,
                "step": step,
                "loss": loss,
                "time": time.time(),
                "indices": indices,
            }
            self._file.write(json.dumps({**self._constant, **record}) + "\n")
