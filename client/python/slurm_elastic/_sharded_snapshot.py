# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of a sharded state: each rank writes its part to the run directory of its node.

    RUN_DIR/snapshot/0/part-00003-of-00008     one for each rank of the node
    RUN_DIR/snapshot/0/complete.json           when all ranks of all nodes have written theirs

elastic-flush copies them as it copies all snapshots, but to a directory for each node, since what
one node has flushed makes nothing needless that another one has:

    CHECKPOINT/.parts/NODE/.flushed-JOB.RESTARTS.GENERATION.STEP-NODE

Where another user has taken the name .parts, they are in .parts-XXXXXXXX.

The newest set of which all parts are there is read by a world of any size.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import torch
import torch.distributed as dist

from . import _events, _flat, _manifest, _snapshot, _world, checkpoint
from ._opened import Directory, NotTrustedError, open_base

if TYPE_CHECKING:
    from ._buddy_copies import Copying

PARTS = ".parts"
LOOK, IDLE, LOOKS_MOST = 1.0, 30, 600  # seconds; looks in which nothing has changed; looks
_PART = re.compile(r"part-([0-9]{5,9})-of-([0-9]{5,9})")
_NUMBER = r"([0-9]{1,19})"
_NAME = re.compile(rf"\.(flushed|flushing)-{_NUMBER}\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}-.+")
_PLACE = re.compile(r"\.parts(-[0-9a-f]{8})?")

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
    """Below the directory of checkpoints."""


def _open(above: Directory, name: str) -> Optional[Directory]:
    """None: it is no directory, not there any more, or a stranger's."""
    try:
        return above.directory(name)
    except NotTrustedError as error:
        checkpoint.say_once(f"left aside: {error}")
    except OSError:
        pass
    return None


def _nodes(base: Directory) -> Iterator[Directory]:
    """The directories of nodes, each open while it is looked at."""
    for name in filter(_PLACE.fullmatch, base.names()):
        place = _open(base, name)
        if place is None:
            continue
        with place:
            for node in place.names():
                found = _open(place, node)
                if found is not None:
                    with found:
                        yield found


def _keys(node: Directory, job: str, kind: str) -> Iterator[Tuple[Key, str]]:
    """What there is of a job, by its name."""
    for name in node.names():
        match = _NAME.fullmatch(name)
        if match is not None and match[1] == kind and match[2] == job:
            yield (int(match[3]), int(match[4]), int(match[5])), name


def _directories(base: Directory, job: str, kind: str) -> Iterator[Tuple[Key, Directory]]:
    for node in _nodes(base):
        for key, name in _keys(node, job, kind):
            found = _open(node, name)
            if found is not None:
                with found:
                    yield key, found


def find(base: Directory, job: str) -> List[Found]:
    """All sets of a job of which each part is there, the newest first."""
    parts: Dict[Tuple[Key, int], Dict[int, Path]] = {}
    for key, directory in _directories(base, job, "flushed"):
        if _manifest.incomplete(directory) is not None:
            continue
        for name in directory.names():
            match = _PART.fullmatch(name)
            if match is not None:
                path = (directory.path / name).relative_to(base.path)
                parts.setdefault((key, int(match[2])), {})[int(match[1])] = path
    return [
        Found(key, [each for _, each in sorted(paths.items())])
        for (key, count), paths in sorted(parts.items(), reverse=True)
        if len(paths) == count and max(paths) == count - 1
    ]


def _is_being_written(base: Directory, job: str, restarts: int) -> int:
    """A number that changes while parts of an earlier run are written; 0: none is."""
    seen = 0
    for key, directory in _directories(base, job, "flushing"):
        if key[0] >= restarts:
            continue
        seen += 1
        with contextlib.suppress(OSError):
            seen += sum(os.stat(each, dir_fd=directory.fd).st_size for each in directory.names())
    return seen


def _wait_for_flushes(base: Directory, job: str, restarts: int) -> None:
    """A run that was put back into the queue may start while the parts before are written."""
    idle, before = 0, 0
    for _ in range(LOOKS_MOST if restarts else 0):
        seen = _is_being_written(base, job, restarts)
        idle = idle + 1 if seen == before else 0
        if seen == 0 or idle >= IDLE:
            return
        before = seen
        time.sleep(LOOK)


def newer_than(newest: Optional[Directory]) -> List[Found]:
    """The sets of this job that are newer than a checkpoint, on rank 0. None: there is none."""
    incarnation = _world.incarnation()
    if incarnation is None:
        return []
    job, _, number = incarnation.partition(".")
    try:
        base = open_base(checkpoint.checkpoint_dir())
    except OSError:
        return []
    with base:
        _wait_for_flushes(base, job, int(number))
        other = None if newest is None else checkpoint.key_of(newest)
        return [
            each
            for each in find(base, job)
            if other is None or other[0] != job or each.key > tuple(other[1:])
        ]


class _DamagedError(OSError):
    """A part is not what its manifest says."""


def _map(base: Directory, path: Path, compare: bool) -> torch.Tensor:
    """A part in memory. What others put in its place is not what is seen there."""
    with base.file(str(path)) as file:
        # By reading: an error of the disk that is met in mapped memory ends the process.
        if compare and _is_damaged(base, path, file):
            raise _DamagedError
        size = os.fstat(file.fileno()).st_size
        return torch.from_file(f"/proc/self/fd/{file.fileno()}", size=size, dtype=torch.uint8)


def _is_damaged(base: Directory, path: Path, file: BinaryIO) -> bool:
    try:
        with base.below(str(path.parent)) as directory:
            digest = _manifest.read(directory)[0]["blake2b"][path.name]
        return bool(_manifest.digest_of(file) != digest)
    except _manifest.UNUSABLE:
        return True


def _map_all(found: Found, rank: int, size: int) -> Tuple[List[torch.Tensor], str]:
    """All parts, and which one is damaged of those at which this rank looks."""
    mapped: List[torch.Tensor] = []
    path = Path()
    try:
        with open_base(checkpoint.checkpoint_dir()) as base:
            for number, path in enumerate(found.paths):
                mapped.append(_map(base, path, number % size == rank))
    except _DamagedError:
        return [], f"{checkpoint.checkpoint_dir() / path} is damaged"
    except OSError as error:
        return [], f"{path} cannot be read: {error}"
    return mapped, ""


def choose(newest: Optional[Directory]) -> Optional[List[Any]]:
    """The contents of the newest set that is newer than a checkpoint and is not damaged.

    They are mapped into memory. A collective call.
    """
    rank, size = dist.get_rank(), dist.get_world_size()
    offered: List[Any] = [newer_than(newest) if rank == 0 else None]
    dist.broadcast_object_list(offered, 0)
    for found in offered[0]:
        mapped, mine = _map_all(Found(*found), rank, size)
        damaged: List[Any] = [None] * size
        dist.all_gather_object(damaged, mine)
        what = next((each for each in damaged if each), "")
        if not what:
            return [_flat.view(each) for each in mapped]
        if rank == 0:
            checkpoint.say(f"{what}: its snapshot is not used")
    return None


def drop_older(newest: Directory) -> None:
    """Remove the sets of this job that a new checkpoint has made needless."""
    other = checkpoint.key_of(newest)
    if other is None:
        return
    with contextlib.suppress(OSError), open_base(newest.path.parent) as base:
        for node in _nodes(base):
            for key, name in _keys(node, other[0], "flushed"):
                if key <= tuple(other[1:]):
                    node.remove(name)
