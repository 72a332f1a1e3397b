# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints on S3, as `selastic states` keeps them: s3://BUCKET/PREFIX/000012/...

A process of this package never speaks to S3 itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Iterable, Iterator, Optional, Set

from . import _world
from ._opened import is_private

_NOTHING = 3  # exit status: there are no states yet
_NOTE = "elastic-state: note: "
_LOCK = ".lock"  # of copies; `selastic states pull` locks it
_KEPT = 86400  # seconds for which a copy stays that nobody asks for

_said: Set[str] = set()


class S3Error(OSError):
    """`selastic states` has failed, for the reason that it says."""


def is_url(place: object) -> bool:
    return isinstance(place, str) and place.startswith("s3:")


def _pass_on(notes: Iterable[str]) -> None:
    """Each once in a process."""
    for note in notes:
        if note not in _said:
            _said.add(note)
            print(f"slurm_elastic: {note[len(_NOTE) :]}", file=sys.stderr, flush=True)


def _run(*arguments: str) -> Optional[str]:
    """What it prints; None where there are no states yet."""
    import shutil
    import subprocess

    program = shutil.which("selastic")
    if program is None:
        raise S3Error("checkpoints on S3 need the command selastic, which is not in PATH")
    done = subprocess.run(
        [program, "states", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    lines = done.stderr.decode(errors="replace").split("\n")
    faults = [line for line in lines if not line.startswith(_NOTE)]
    _pass_on(line for line in lines if line.startswith(_NOTE))
    if done.returncode == _NOTHING:
        return None
    if done.returncode != 0:
        raise S3Error(faults[0] or f"selastic states: status {done.returncode}")
    return done.stdout.decode().strip()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child may have the file, too


def _scratch() -> Path:
    """The same directory in all processes of this user, and so of this job, on this node."""
    import tempfile

    base = Path(tempfile.gettempdir())
    usual = base / f"slurm-elastic-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        usual.mkdir(mode=0o700)
    return usual if is_private(usual) else _spare(base, usual.name)


def _spare(base: Path, name: str) -> Path:
    """Somebody else has taken the usual name. One that is there already is used again."""
    import tempfile

    run = _world.value("ELASTIC_RUN_DIR")
    with _locked(Path(run) / "s3.lock") if run else contextlib.nullcontext():
        found = sorted(path for path in base.glob(f"{name}-*") if is_private(path))
        return found[0] if found else Path(tempfile.mkdtemp(dir=base, prefix=f"{name}-"))


def _remove_unlocked(path: Path, lock: str) -> None:
    import shutil

    with contextlib.suppress(OSError), open(path / lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)


def _remove_leftovers(scratch: Path) -> None:
    """Remove what killed writers have left, of which nobody has the locks; and copies that nobody
    has asked for of late.
    """
    for path in scratch.glob("new-*"):
        _remove_unlocked(path, "lock")
    for used in scratch.glob(f"*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if time.time() - used.stat().st_mtime > _KEPT:
                _remove_unlocked(used.parent, _LOCK)


@contextlib.contextmanager
def new_directory() -> Iterator[Path]:
    """For what is written before it goes to S3. It is removed at the end."""
    import shutil
    import tempfile

    scratch = _scratch()
    with _locked(scratch / "lock"):
        _remove_leftovers(scratch)
        path = Path(tempfile.mkdtemp(dir=scratch, prefix="new-"))
        lock = open(path / "lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            (path / "state").mkdir()
            yield path / "state"
        finally:
            shutil.rmtree(path, ignore_errors=True)


def push(directory: Path, url: str, keep: int) -> str:
    """Write a sealed checkpoint as the next state. Returns its URL."""
    return _run("push", url, str(directory), f"--keep={keep}") or ""


def pull(url: str) -> Optional[Path]:
    """The latest complete state, copied to this node once for all processes; None if there is none.

    A copy of an earlier state goes.
    """
    name = hashlib.blake2b(url.encode(), digest_size=8).hexdigest()
    scratch = _scratch()
    with _locked(scratch / "lock"):
        _remove_leftovers(scratch)
        copies = scratch / name
        copies.mkdir(mode=0o700, exist_ok=True)
        (copies / _LOCK).touch(mode=0o600)  # it is used
    found = _run("pull", url, str(copies), "--keep=1")
    return None if found is None else Path(found)
