# SPDX-License-Identifier: GPL-2.0-or-later
"""A mesh of the units of a world (--elastic-replica), for hybrid sharding and for meshes inside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ._world import unit

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def unit_mesh(
    device_type: Optional[str] = None, inside: Optional[Mapping[str, int]] = None
) -> DeviceMesh:
    """A mesh whose first dimension, "replicate", goes over the units, and the others inside a unit.

    By default there is one more, "shard": what fully_shard(mesh=…) takes for hybrid sharding
    (HSDP). Each unit then has all of the model.

    device_type  "cuda", "cpu", …; None: "cuda" if there is a GPU, else "cpu".
    inside       dimensions inside a unit, by name: {"shard": 2, "tensor": 4}. Their product is the
                 size of a unit.

    A collective call of all processes, with a process group. Raises ValueError if the dimensions
    do not make up a unit, and what unit() raises.
    """
    found = unit()
    sizes: Mapping[str, Any] = {"shard": found.size} if inside is None else dict(inside)
    if math.prod(sizes.values()) != found.size:
        said = " * ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(
            f"unit_mesh: {said} is {math.prod(sizes.values())}, and a unit has {found.size} "
            "processes (--elastic-replica times the workers of a node)"
        )
    import torch
    from torch.distributed.device_mesh import init_device_mesh

    if device_type is None:
        device_type = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(
        device_type,
        (found.units, *sizes.values()),
        mesh_dim_names=("replicate", *sizes),
    )
