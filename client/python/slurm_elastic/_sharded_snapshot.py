# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of a sharded state: each rank writes its part to the run directory of its node.

    RUN_DIR/snapshot/0/part-00003-of-00008     one for each rank of the node
    RUN_DIR/snapshot/0/complete.json           when all ranks of all nodes have written theirs

elastic-flush copies them as it copies all snapshots, but to a directory for each node, since what
one node has flushed makes nothing needless that another one has:

    CHECKPOINT/.parts/NODE/.flushed-JOB.RESTARTS.GENERATION.STEP-NODE

The newest set of which all parts are there is read by a world of any size.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from . import _events, _flat, _snapshot, _world, checkpoint

if TYPE_CHECKING:
    from ._buddy_copies import Copying

PARTS = ".parts"
LOOK, IDLE, LOOKS_MOST = 1.0, 30, 600  # seconds; looks in which nothing has changed; looks
_PART = re.compile(r"part-(\d{5,})-of-(\d{5,})")
_NAME = re.compile(r"\.(flushed|flushing)-(\d+)\.(\d+)\.(\d+)\.(\d+)-.+")

Key = Tuple[int, int, int]  # restarts, generation, step: the larger one is newer


# ---- writing -------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where this rank writes, and what it says of the snapshot."""

    directory: Path
    part: str
    local: List[str]
    """All parts of this node: the first one's rank writes the manifest."""
    manifest: Dict[str, Any]


def place(nodes: Sequence[int]) -> Optional[Place]:
    """For a snapshot at this step; None: elasticrun has not started this process.

    nodes  of each rank.
    """
    run_dir = _world.value("ELASTIC_RUN_DIR")
    if not _world.is_elastic() or not run_dir:
        return None
    rank, size = dist.get_rank(), len(nodes)
    parts = [f"part-{each:05d}-of-{size:05d}" for each in range(size)]
    node = Path(run_dir).name.split("-", 3)[3]  # elastic-UID-JOB.RESTARTS-NODE
    return Place(
        Path(run_dir) / "snapshot",
        parts[rank],
        [part for part, where in zip(parts, nodes) if where == nodes[rank]],
        {
            "incarnation": _world.incarnation(),
            "generation": _world.generation(),
            "step": _events.step(),
            "checkpoint": str(checkpoint.checkpoint_dir().absolute() / PARTS / node),
        },
    )


def write(world: Copying, where: Place, content: Optional[torch.Tensor]) -> str:
    """Called in the thread that copies, on all ranks. content: None if this rank has none.

    Returns why this rank could not write, "" if it could.

    The manifest of a node is written when all nodes have their parts. Until then the buffer of the
    snapshot before stays as it is, on all nodes.
    """
    is_first = where.part == where.local[0]
    failure = ""
    buffer = where.directory / str(_snapshot._older_of(where.directory))
    try:
        if is_first:
            _snapshot.empty(buffer)
            buffer.mkdir(mode=0o700, parents=True)
    except OSError as error:
        failure = str(error)
    world.all(True)  # the directory is there
    try:
        if not failure and content is not None:
            entry = _snapshot.write_file(
                buffer / where.part, len(content), lambda sink: _write_all(world, content, sink)
            )
            (buffer / f".{where.part}").write_text(json.dumps(entry))
    except OSError as error:
        failure = str(error)
    is_whole = world.all(not failure and content is not None)
    if is_whole and is_first:
        try:
            files = {each: json.loads((buffer / f".{each}").read_text()) for each in where.local}
            _snapshot.write_manifest(buffer, {**where.manifest, "files": files})
        except OSError as error:
            failure = str(error)
    elif is_first:
        _snapshot.empty(buffer)
    world.all(True)  # nobody looks for the older buffer before
    return failure


def _write_all(world: Copying, content: torch.Tensor, sink: Callable[[Any], None]) -> None:
    for piece in content.split(_flat.PIECE):
        if world.is_ending:
            raise OSError("this world ends")
        sink(memoryview(piece.numpy()))


# ---- reading -------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A set of parts, in the order of the ranks that have written them."""

    key: Key
    paths: List[Path]


def _directories(base: Path, job: str, kind: str) -> List[Tuple[Key, Path]]:
    found = []
    for path in (base / PARTS).glob(f"*/.{kind}-{job}.*"):
        match = _NAME.fullmatch(path.name)
        if match is not None and match[2] == job:
            found.append(((int(match[3]), int(match[4]), int(match[5])), path))
    return found


def find(base: Path, job: str) -> List[Found]:
    """All sets of a job of which each part is there, the newest first."""
    parts: Dict[Tuple[Key, int], Dict[int, Path]] = {}
    for key, directory in _directories(base, job, "flushed"):
        if checkpoint._incomplete(directory, base) is not None:
            continue
        for name in os.listdir(directory):
            match = _PART.fullmatch(name)
            if match is not None:
                number, count = int(match[1]), int(match[2])
                parts.setdefault((key, count), {})[number] = directory / name
    return [
        Found(key, [each for _, each in sorted(paths.items())])
        for (key, count), paths in sorted(parts.items(), reverse=True)
        if set(paths) == set(range(count))
    ]


def _is_being_written(base: Path, job: str, restarts: int) -> int:
    """A number that changes while parts of an earlier run are written; 0: none is."""
    seen = 0
    for key, directory in _directories(base, job, "flushing"):
        if key[0] >= restarts:
            continue
        seen += 1
        with contextlib.suppress(OSError):
            seen += sum(each.stat().st_size for each in directory.iterdir())
    return seen


def _wait_for_flushes(base: Path, job: str, restarts: int) -> None:
    """A run that was put back into the queue may start while the parts before are written."""
    idle, before = 0, 0
    for _ in range(LOOKS_MOST if restarts else 0):
        seen = _is_being_written(base, job, restarts)
        idle = idle + 1 if seen == before else 0
        if seen == 0 or idle >= IDLE:
            return
        before = seen
        time.sleep(LOOK)


def newer_than(path: Optional[Path]) -> List[Found]:
    """The sets of this job that are newer than a checkpoint, on rank 0. None: there is none."""
    incarnation = _world.incarnation()
    if incarnation is None:
        return []
    job, _, number = incarnation.partition(".")
    base = checkpoint.checkpoint_dir()
    _wait_for_flushes(base, job, int(number))
    other = None if path is None else checkpoint._key(path)
    return [
        each
        for each in find(base, job)
        if other is None or other[0] != job or each.key > tuple(other[1:])
    ]


def _is_damaged(path: Path) -> bool:
    """Whether a part is not what its manifest says."""
    try:
        digests = json.loads((path.parent / "complete.json").read_text())["blake2b"]
        return bool(checkpoint._digest(path) != digests[path.name])
    except (OSError, ValueError, KeyError, TypeError):
        return True


def choose(path: Optional[Path]) -> Optional[Found]:
    """The newest set that is newer than a checkpoint and is not damaged. A collective call."""
    rank, size = dist.get_rank(), dist.get_world_size()
    offered: List[Any] = [newer_than(path) if rank == 0 else None]
    dist.broadcast_object_list(offered, 0)
    for found in offered[0]:
        damaged: List[Any] = [None] * size
        mine = next((str(each) for each in found.paths[rank::size] if _is_damaged(each)), "")
        dist.all_gather_object(damaged, mine)
        what = next((each for each in damaged if each), "")
        if not what:
            return Found(*found)
        if rank == 0:
            print(
                f"slurm_elastic: {what} is damaged: its snapshot is not used",
                file=sys.stderr,
                flush=True,
            )
    return None


def contents(found: Found) -> List[Any]:
    """Of all parts, mapped into memory."""
    return [
        _flat.view(torch.from_file(str(each), size=each.stat().st_size, dtype=torch.uint8))
        for each in found.paths
    ]


def drop_older(path: Path) -> None:
    """Remove the sets of this job that a new checkpoint has made needless."""
    other = checkpoint._key(path)
    if other is None:
        return
    for key, directory in _directories(path.parent, other[0], "flushed"):
        if key <= tuple(other[1:]):
            shutil.rmtree(directory, ignore_errors=True)
