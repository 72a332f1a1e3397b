# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of the state in the memory of nodes, for the loss of all workers at once.

snapshot() costs the training one copy of its tensors. A thread then writes them to the node's run
directory, which is in memory. The first and the last node of a world do so: one of them may be
lost. When a job ends in any other way than well, the epilog copies the newest snapshot to the
checkpoint directory, and load_latest() finds it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from . import _events, _flat, _left_behind, _memory, sampler
from ._world import generation, incarnation, is_elastic, value
from .checkpoint import checkpoint_dir, remove_tree

_FORMAT = 1
_STATE = "state.flat"
_MANIFEST = "complete.json"
_SPARE = 0.1  # of the memory that is available is left to others


def _node_writes() -> bool:
    """Whether this process writes: one process of the first node does, and one of the last."""
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    local, slots = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return local == 0 and (rank == 0 or rank + slots >= size)


class _Copies:
    """Host memory for the tensors of a state, used again by the next snapshot of the same state."""

    def __init__(self) -> None:
        self._old: List[Any] = []
        self._new: List[Any] = []

    def begin(self) -> None:
        self._old, self._new = self._new, []

    @property
    def bytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in self._new)

    def copy(self, tensor: Any) -> Any:
        import torch

        place = self._old[len(self._new)] if len(self._new) < len(self._old) else None
        if place is None or place.shape != tensor.shape or place.dtype != tensor.dtype:
            place = torch.empty(tensor.shape, dtype=tensor.dtype)
        place.copy_(tensor)
        self._new.append(place)
        return place


def _older_of(directory: Path) -> int:
    """The number of the buffer to overwrite: the incomplete one, else the older one.

    A former process may have written the other one on this node, and that may be all that is left.
    """
    times = []
    for number in (0, 1):
        try:
            times.append((directory / str(number) / _MANIFEST).stat().st_mtime_ns)
        except OSError:
            return number
    return 0 if times[0] <= times[1] else 1


def empty(buffer: Path) -> None:
    """Remove a buffer, which is not complete from the beginning on."""
    with contextlib.suppress(FileNotFoundError):
        (buffer / _MANIFEST).unlink()
    remove_tree(buffer)


def write_file(path: Path, size: int, write: Callable[[Callable[[Any], None]], None]) -> Any:
    """A file of a buffer. Returns what the manifest says of it.

    write  is called with a function, which it calls with each piece.

    Raises OSError, if there is not enough memory, too.
    """
    if size > _memory.available() * (1 - _SPARE):
        raise OSError(f"{size} bytes do not fit into the memory that is left")
    digest = hashlib.blake2b(digest_size=32)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb", buffering=0) as file:
        os.posix_fallocate(fd, 0, size)  # a full file system says so here

        def sink(piece: Any) -> None:
            digest.update(piece)
            view = memoryview(piece)
            while len(view):
                view = view[file.write(view) :]

        write(sink)
    return {"bytes": size, "blake2b": digest.hexdigest()}


def write_manifest(buffer: Path, manifest: Dict[str, Any]) -> None:
    """The last file of a buffer, which is complete then."""
    temporary = buffer / ("." + _MANIFEST)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as text:
        json.dump({"format": _FORMAT, **manifest}, text)
    os.rename(temporary, buffer / _MANIFEST)


class _Writer:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._copies = _Copies()
        self._thread: Optional[threading.Thread] = None
        self._buffer = _older_of(directory)  # the next one that is written
        self._said: Optional[str] = None

    def write(self, state: Any) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return False
        place = {"incarnation": incarnation(), "generation": generation(), "step": _events.step()}
        if not self._has_room_for_copies(state):
            return False
        self._copies.begin()
        found = _flat.outline(state, self._copies.copy)
        self._thread = _left_behind.start_outside(
            self._finish, found, place, str(checkpoint_dir().absolute())
        )
        return True

    def _has_room_for_copies(self, state: Any) -> bool:
        """Beside the file, if they are still to be made."""
        if self._copies.bytes > 0:
            return True
        size = _flat.size(_flat.outline(state, lambda tensor: tensor))
        if 2 * size <= _memory.available() * (1 - _SPARE):
            return True
        self._say(f"no snapshot: twice {size} bytes do not fit into the memory that is left")
        return False

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _finish(self, found: _flat.Outline, place: Dict[str, Any], checkpoint: str) -> None:
        buffer = self._directory / str(self._buffer)
        try:
            self._fill(buffer, found, {**place, "checkpoint": checkpoint})
        except OSError as error:
            remove_tree(buffer)
            self._say(f"no snapshot: {error}")
        else:
            self._buffer = 1 - self._buffer
            self._said = None

    def _fill(self, buffer: Path, found: _flat.Outline, manifest: Dict[str, Any]) -> None:
        empty(buffer)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        buffer.mkdir(mode=0o700)
        size = _flat.size(found)
        entry = write_file(buffer / _STATE, size, lambda sink: _flat.write(found, sink))
        write_manifest(buffer, {**manifest, "files": {_STATE: entry}})

    def _say(self, text: str) -> None:
        if text != self._said:
            print(f"slurm_elastic: {text}", file=sys.stderr, flush=True)
        self._said = text


_writer: Optional[_Writer] = None


def snapshot(state: Any) -> bool:
    """Keep a copy of `state` in the memory of the world's first and last node.

    All ranks call this between two steps, with an equal state, as often as they like: what was done
    since the last snapshot can be lost. It is no collective and writes nothing to a disk.

    state   what save() takes: anything that can be pickled. Tensors in it are copied to the host
            before this returns; a thread does the rest.

    Returns whether this process writes the snapshot. False in all other processes, without
    elasticrun, and while the snapshot before is still being written. If a snapshot does not fit
    into memory, this says so once, and the snapshot before stays.

    After all workers were lost, load_latest() returns the snapshot if it is newer than all
    checkpoints. Of a sharded live.State each rank has a part: call its snapshot().
    """
    global _writer
    run_dir = value("ELASTIC_RUN_DIR")
    if not is_elastic() or not run_dir or not _node_writes():
        return False
    sampler.tell_if_left_out(state)
    if _writer is None:
        _writer = _Writer(Path(run_dir) / "snapshot")
    return _writer.write(state)


def wait_for_snapshot() -> None:
    """Wait until the snapshot that is being written, if any, is complete."""
    if _writer is not None:
        _writer.wait()
