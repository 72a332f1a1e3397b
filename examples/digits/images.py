# SPDX-License-Identifier: GPL-2.0-or-later
"""The handwritten digits as numpy arrays, for programs that need no torch, which takes a second."""

import gzip
import importlib.util
from pathlib import Path

import numpy

HELD_OUT = 360  # of 1797: the first ones, in the order that read() gives them


def read():
    """(images, digits): float64[1797, 64] from 0 to 1, and int64[1797], in an order that is always
    the same.

    The file is the one that sklearn.datasets.load_digits() reads. It is read here because importing
    scikit-learn, and scipy with it, takes longer than the first hundred steps, on each worker.
    """
    package = importlib.util.find_spec("sklearn")
    if package is None:
        raise SystemExit(
            "scikit-learn is not installed (Debian: python3-sklearn): its digits are needed"
        )
    with gzip.open(Path(package.origin).parent / "datasets/data/digits.csv.gz") as file:
        table = numpy.loadtxt(file, delimiter=",")
    table = table[numpy.random.RandomState(0).permutation(len(table))]
    return table[:, :-1] / 16, table[:, -1].astype(numpy.int64)
