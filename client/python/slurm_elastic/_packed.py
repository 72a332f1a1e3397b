# SPDX-License-Identifier: GPL-2.0-or-later
"""What one rank has of a sharded state, in one piece of host memory: a copy for another node, and a
part of a snapshot. It is laid out as _flat writes it.

All ranks have some of it alike: what is not sharded, schedules, the position in the data, values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List

import torch

from . import _flat, _sharding
from ._sharding import Sharding
from ._transfer import replaced

if TYPE_CHECKING:
    from .live import State


def outline(state: State, sharding: Sharding) -> _flat.Outline:
    """What is to be copied, at a boundary. Its tensors are those of the state itself."""
    return _flat.outline(
        {
            "cut": sharding.cut,
            "replicated": _sharding.replicated(state.model),
            "beside": state._beside_the_model(),
            "parts": sharding.parts(),
        },
        lambda tensor: tensor.contiguous().cpu(),
    )


def fill(buffer: torch.Tensor, found: _flat.Outline) -> None:
    """Copy it all into a buffer of bytes, which is large enough."""
    room, at = memoryview(buffer.numpy()), 0

    def sink(piece: Any) -> None:
        nonlocal at
        size = len(piece)
        room[at : at + size] = piece
        at += size

    _flat.write(found, sink)


def load(state: State, sharding: Sharding, contents: List[Dict[str, Any]]) -> None:
    """Go back to what was copied. What is sharded becomes pieces, for Sharding.move().

    contents  as _flat.view() returns them, of one step. Their memory must stay as it is until
              move() has returned.
    """
    sharding.adopt([each["parts"] for each in contents])
    _load_beside(state, contents[0])


def read(state: State, sharding: Sharding, contents: List[Dict[str, Any]]) -> None:
    """Take this rank's part of what all ranks of another world have written."""
    _load_beside(state, contents[0])
    sharding.read([each["parts"] for each in contents])


def _load_beside(state: State, content: Dict[str, Any]) -> None:
    with torch.no_grad():
        for name, tensor in _sharding.replicated(state.model).items():
            tensor.copy_(content["replicated"][name])
    # Optimizers change their counts of steps in place.
    state._load_beside_the_model(replaced(content["beside"], torch.Tensor, torch.Tensor.clone))
