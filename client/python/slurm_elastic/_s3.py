# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints on S3, as `selastic states` keeps them: s3://BUCKET/PREFIX/000012/...

A process of this package never speaks to S3 itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Optional

_NOTHING = 3  # exit status: there are no states yet


class S3Error(OSError):
    """`selastic states` has failed, for the reason that it says."""


def is_url(place: object) -> bool:
    return isinstance(place, str) and place.startswith("s3:")


def _run(*arguments: str) -> Optional[str]:
    """What it prints; None where there are no states yet."""
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
    if done.returncode == _NOTHING:
        return None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").split("\n")
        raise S3Error(lines[0] or f"selastic states: status {done.returncode}")
    return done.stdout.decode().strip()


def _own_directory(path: Path) -> Path:
    """Others can write where temporary files are: what is there already must be ours alone."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise S3Error(f"{path} is not a directory of this user alone: remove it, or set TMPDIR")
    return path


def _scratch() -> Path:
    return _own_directory(Path(tempfile.gettempdir()) / f"slurm-elastic-{os.geteuid()}")


def new_directory() -> Path:
    """For what is written before it goes to S3."""
    return Path(tempfile.mkdtemp(dir=_scratch(), prefix="new-"))


def push(directory: Path, url: str, keep: int) -> str:
    """Write a sealed checkpoint as the next state. Returns its URL."""
    return _run("push", url, str(directory), f"--keep={keep}") or ""


def pull(url: str) -> Optional[Path]:
    """The latest complete state, copied to this node once for all processes; None if there is none.

    A copy of an earlier state goes.
    """
    name = hashlib.blake2b(url.encode(), digest_size=8).hexdigest()
    found = _run("pull", url, str(_own_directory(_scratch() / name)), "--keep=1")
    return None if found is None else Path(found)
