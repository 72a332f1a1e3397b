# SPDX-License-Identifier: GPL-2.0-or-later
"""The random number generators of this process: Python's, numpy's and PyTorch's."""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any, Dict

import torch


def snapshot() -> Dict[str, Any]:
    """The states of all generators that are in use."""
    taken = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        taken["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_initialized():
        taken["cuda"] = torch.cuda.get_rng_state()
    return taken


def restore(taken: Dict[str, Any]) -> None:
    """Set the generators to what snapshot() has returned, here or in another process."""
    random.setstate(taken["python"])
    torch.set_rng_state(taken["torch"].cpu())
    if "numpy" in taken and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(taken["numpy"])
    if "cuda" in taken and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(taken["cuda"].cpu())


def seed(*numbers: int) -> None:
    """Seed all generators with a number made from these numbers."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=7).digest()
    number = int.from_bytes(digest, "big")
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)
