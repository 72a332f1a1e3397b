# SPDX-License-Identifier: GPL-2.0-or-later
"""What two ranks compare before one takes over the state of the other.

Each rank describes its model, its parts and its values in plain lists. Ranks exchange only a number
made from the description: equal descriptions give equal numbers.
"""

from __future__ import annotations

import hashlib
from typing import Any, List, Sequence

import torch

from ._parts import is_optimizer
from .sampler import ElasticSampler


def digest(description: Any) -> int:
    """A number from 1 to 2**56 - 1, equal for descriptions with equal repr()."""
    return max(1, int.from_bytes(hashlib.sha256(repr(description).encode()).digest()[:7], "big"))


def of_model(model: torch.nn.Module) -> List[Any]:
    """Name, shape and type of each parameter and buffer."""
    named = (*model.named_parameters(), *model.named_buffers())
    return [(name, tuple(each.shape), str(each.dtype)) for name, each in named]


def of_state(model: torch.nn.Module, parts: Sequence[Any], names: Sequence[str]) -> List[Any]:
    """The model, the parts, and the names of the plain values.

    It tells apart what can be told apart before training: optimizers have no state by then.
    """
    return [of_model(model), [_of_part(part) for part in parts], list(names)]


def _of_part(part: Any) -> List[Any]:
    if isinstance(part, ElasticSampler):
        state = part.state_dict()
        # Not the seed: a newcomer gets it with the state.
        return ["sampler", state["samples"], state["shuffle"], part.global_batch]
    groups = part.param_groups if is_optimizer(part) else []
    return [type(part).__qualname__, *(len(group["params"]) for group in groups)]
