# SPDX-License-Identifier: GPL-2.0-or-later
"""Which world this process is a worker of, by its environment."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple

_said = False


def value(name: str) -> Optional[str]:
    """What elasticrun has written under this name; None in a job that has only inherited it.

    A job that a worker submits may inherit the worker's environment. It must not act as the
    worker.
    """
    global _said
    world, job = os.environ.get("ELASTIC_JOB_ID"), os.environ.get("SLURM_JOB_ID")
    if not world or not job or world == job:
        return os.environ.get(name)
    if not _said:
        _said = True
        print(
            f"slurm_elastic: job {job} has inherited the environment of a worker of job {world}: "
            "this process goes on as without elasticrun",
            file=sys.stderr,
            flush=True,
        )
    return None


def is_elastic() -> bool:
    """True in a worker that elasticrun has started."""
    return bool(value("ELASTIC_EVENT_FILE"))


def generation() -> Optional[int]:
    """The number of this world, counted from 1 over all changes of the job; None if not elastic."""
    text = value("ELASTIC_GENERATION") if is_elastic() else None
    return int(text) if text else None


def incarnation() -> Optional[str]:
    """The job's id and how often Slurm has requeued the job, "12.0"; None if not elastic."""
    return value("ELASTIC_INCARNATION") if is_elastic() else None


def most_nodes() -> int:
    """The most nodes that this job may have; 1 if it is not elastic."""
    return int(value("ELASTIC_MAX_NODES") or value("GROUP_WORLD_SIZE") or "1")


def scale_config() -> Dict[str, Any]:
    """What the policy file says under `scale_config` for this world size; {} if nothing.

    Raises ValueError if the environment does not hold a JSON object.
    """
    text = value("ELASTIC_SCALE_CONFIG") or "{}"
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"ELASTIC_SCALE_CONFIG={text!r}: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"ELASTIC_SCALE_CONFIG={text!r}: must be a JSON object")
    return config


class Unit(NamedTuple):
    """Where this process is in its world, if nodes come and go by several (--elastic-replica)."""

    number: int
    """Of this process's unit, from 0."""
    units: int
    """Units in the world."""
    rank: int
    """Of this process, in its unit."""
    size: int
    """Processes of the unit."""


def _unit_of(rank: int, size: int, unit_size: int) -> Unit:
    if unit_size < 1 or size % unit_size != 0:
        raise ValueError(
            f"{size} processes are no whole units of {unit_size}: nodes with unequal numbers of "
            "workers cannot be one mesh; give each node as many (--ntasks-per-node, or "
            "--gpus-per-node)"
        )
    return Unit(rank // unit_size, size // unit_size, rank % unit_size, unit_size)


def unit() -> Unit:
    """The unit of this process: the nodes that --elastic-replica=N keeps together.

    By default that is a node. Without elasticrun it is a node of torchrun, else all processes.

    Raises ValueError if units differ in size, since nodes have unequal numbers of workers.
    """
    rank, size = rank_and_size()
    local = int(value("LOCAL_WORLD_SIZE") or size or "1")
    return _unit_of(rank, size, local * int(value("ELASTIC_REPLICA_NODES") or "1"))


def _set_unit(world: Any) -> None:
    """$ELASTIC_UNIT… of a new world; none where units differ in size."""
    nodes = int(os.environ.get("ELASTIC_REPLICA_NODES") or "1")
    try:
        found = _unit_of(world.rank, world.size, world.local_size * nodes)
    except ValueError:
        for name in ("ELASTIC_UNIT", "ELASTIC_UNITS", "ELASTIC_UNIT_RANK", "ELASTIC_UNIT_SIZE"):
            os.environ.pop(name, None)
        return
    os.environ.update(
        ELASTIC_UNIT=str(found.number),
        ELASTIC_UNITS=str(found.units),
        ELASTIC_UNIT_RANK=str(found.rank),
        ELASTIC_UNIT_SIZE=str(found.size),
    )


def enter(world: Any) -> None:
    """Set os.environ, which the functions here read, for a worker that goes on in a new world."""
    os.environ.update(
        RANK=str(world.rank),
        WORLD_SIZE=str(world.size),
        LOCAL_RANK=str(world.local_rank),
        LOCAL_WORLD_SIZE=str(world.local_size),
        ROLE_RANK=str(world.rank),
        ROLE_WORLD_SIZE=str(world.size),
        GROUP_WORLD_SIZE=str(world.nodes),
        ELASTIC_GENERATION=str(world.generation),
        ELASTIC_ATTEMPT=str(world.attempt),
        ELASTIC_NODES=str(world.nodes),
    )
    _set_unit(world)
    configs = json.loads(os.environ.get("ELASTIC_SCALE_CONFIGS") or "{}")
    if configs:
        os.environ["ELASTIC_SCALE_CONFIG"] = json.dumps(configs.get(str(world.size), {}))


def rank_and_size() -> Tuple[int, int]:
    """(rank, world size) of this process.

    From torch.distributed if it is initialised; else from $RANK and $WORLD_SIZE, which elasticrun
    and torchrun set; else (0, 1).
    """
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, size = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    try:
        return int(rank), int(size)
    except ValueError:
        raise ValueError(f"RANK={rank!r} WORLD_SIZE={size!r}: must be whole numbers") from None
