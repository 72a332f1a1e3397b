# SPDX-License-Identifier: GPL-2.0-or-later
"""What both training scripts share: the handwritten digits, the model, and a log of what was
trained on.
"""

import gzip
import importlib.util
import json
import os
import time
from pathlib import Path

import numpy
import torch
from torch.utils.data import TensorDataset


def load(dtype):
    """(training set, held-out set) of 1437 and 360 images of 8x8 pixels; items are (image, digit,
    index).

    The file is the one that sklearn.datasets.load_digits() reads. It is read here because importing
    scikit-learn, and scipy with it, takes longer than the first hundred steps, on each worker.
    """
    package = importlib.util.find_spec("sklearn")
    if package is None:
        raise SystemExit(
            "scikit-learn is not installed (Debian: python3-sklearn): its digits are needed"
        )
    with gzip.open(Path(package.origin).parent / "datasets/data/digits.csv.gz") as file:
        table = torch.from_numpy(numpy.loadtxt(file, delimiter=","))
    order = torch.from_numpy(numpy.random.RandomState(0).permutation(len(table)))
    images, digits = table[order, :-1].to(dtype) / 16, table[order, -1].long()
    train, held_out = slice(360, None), slice(0, 360)

    def dataset(part):
        return TensorDataset(images[part], digits[part], torch.arange(len(digits[part])))

    return dataset(train), dataset(held_out)


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
