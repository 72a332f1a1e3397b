# SPDX-License-Identifier: GPL-2.0-or-later
"""complete.json of a checkpoint: what belongs to it, and which world has written it.

    {"format": 1, "incarnation": "12.0", "generation": 3, "step": 1234,
     "files": {"state.pt": 4711}, "blake2b": {"state.pt": "64 hex digits"}}

Whoever may write in the directory may have made it: nobody waits for it, and it has a bound.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import Any, BinaryIO, Dict, NamedTuple, Optional, Tuple

from ._opened import Directory

NAME = "complete.json"
_FORMAT = 1
_MOST = 16 << 20  # bytes
# Beside "files", whose values packages before this one read as sizes.
_DIGESTS = "blake2b"
_PIECE = 4 << 20
_FOLLOW = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# What reading raises of a manifest, or a file of it, that is not as it should be.
UNUSABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)

Identity = Tuple[int, int, int]


class Written(NamedTuple):
    """By which world a checkpoint was written."""

    job: str
    restarts: int
    generation: int


def uses_digests() -> bool:
    return os.environ.get("ELASTIC_CHECKPOINT_DIGEST") != "0"


# ---- reading -------------------------------------------------------------------------------------


def read(found: Directory) -> Tuple[Dict[str, Any], Identity]:
    """The manifest, and what tells it from another one. Raises one of UNUSABLE."""
    with found.file(NAME) as file:
        status = os.fstat(file.fileno())
        text = b"" if status.st_size > _MOST else file.read(_MOST + 1)
    if status.st_size > _MOST or len(text) > _MOST:
        raise ValueError(f"{NAME} has more than {_MOST} bytes")
    if not text:
        raise ValueError(f"{NAME} is empty")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError(f"{NAME} is no object")
    return content, (status.st_dev, status.st_ino, status.st_mtime_ns)


def written_by(found: Directory) -> Optional[Written]:
    """The world that has written a checkpoint; None if unknown, or not of an elastic job."""
    try:
        content, _ = read(found)
        job, restarts = content["incarnation"].split(".")
        return Written(job, int(restarts), int(content["generation"]))
    except UNUSABLE:
        return None


def step(found: Directory) -> float:
    """The step of its state; infinite if unknown."""
    try:
        content, _ = read(found)
        return float("inf") if content["step"] is None else float(content["step"])
    except UNUSABLE:
        return float("inf")


def incomplete(found: Directory) -> Optional[str]:
    """Why a checkpoint cannot be used; None if it can."""
    try:
        return lacking(found, read(found)[0])
    except UNUSABLE as error:
        return str(error)


def lacking(found: Directory, content: Dict[str, Any]) -> Optional[str]:
    """What is not as its manifest says; None if all is. Raises one of UNUSABLE."""
    if content["format"] != _FORMAT:
        return f"format {content['format']!r}, this package reads {_FORMAT}"
    for name, size in content["files"].items():
        with found.file(name) as file:
            has = os.fstat(file.fileno()).st_size
        if has != size:
            return f"{name} has {has} bytes of {size}"
    return None


def damage(found: Directory, content: Dict[str, Any]) -> Optional[str]:
    """Which file is not what was written. Raises one of UNUSABLE."""
    for name, digest in content.get(_DIGESTS, {}).items():
        with found.file(name) as file:
            if digest_of(file) != digest:
                return f"{name} is not what was written, its BLAKE2b is another"
    return None


def digest_of(file: BinaryIO) -> str:
    found = hashlib.blake2b(digest_size=32)
    for piece in iter(lambda: file.read(_PIECE), b""):
        found.update(piece)
    return found.hexdigest()


# ---- writing -------------------------------------------------------------------------------------


def _open_written(new: Directory, name: str) -> BinaryIO:
    """A file of the checkpoint, or where a link that the writer has made leads."""
    fd = os.open(name, _FOLLOW, dir_fd=new.fd)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise ValueError(f"{new.path / name} is no regular file")


def _digest(new: Directory, name: str) -> str:
    with _open_written(new, name) as file:
        return digest_of(file)


def write(new: Directory, place: Dict[str, Any]) -> None:
    """Flush all files to the disk, and write the manifest last. Raises ValueError if there is none.

    place  what else it says.

    Digests are computed meanwhile, while the files are still in memory.
    """
    import concurrent.futures

    files: Dict[str, int] = {}
    digests: Dict[str, concurrent.futures.Future[str]] = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as reader:
        for folder, _, names, fd in os.fwalk(".", dir_fd=new.fd):
            for each in names:
                name = os.path.normpath(os.path.join(folder, each))
                if name == NAME:
                    continue
                if uses_digests():
                    digests[name] = reader.submit(_digest, new, name)
                with _open_written(new, name) as file:
                    os.fsync(file.fileno())
                    files[name] = os.fstat(file.fileno()).st_size
            os.fsync(fd)
        found = {name: each.result() for name, each in digests.items()}
    if not files:
        raise ValueError("a checkpoint without files")
    new.remove(NAME)
    with new.create(NAME) as manifest:
        content = {"format": _FORMAT, **place, "files": files}
        manifest.write(json.dumps({**content, **({_DIGESTS: found} if found else {})}).encode())
        manifest.flush()
        os.fsync(manifest.fileno())
    new.sync()
