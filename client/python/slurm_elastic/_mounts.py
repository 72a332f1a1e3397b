# SPDX-License-Identifier: GPL-2.0-or-later
"""On which mount an open entry lies, and whether another user has mounted it.

Users can mount FUSE. Whoever has says of what is in it what he likes, also to whom it belongs, and
may never answer. So all of it is his. The kernel is asked here, and no file system.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple, Optional

UNKNOWN = -1
_NUMBER = re.compile(rb"^mnt_id:\s*([0-9]+)$", re.MULTILINE)
_USER = re.compile(rb"(?:^|,)user_id=([0-9]+)(?:,|$)")


class Mount(NamedTuple):
    """number  as in /proc/self/mountinfo; it stays while anything of the mount is open.
    kind    of which type the file system is; "" if unknown.
    user    who has mounted it, if that is neither this process's user nor root; else None. UNKNOWN
            if it is not there any more, and so may have been anybody's.
    """

    number: int
    kind: str
    user: Optional[int]


def parse(text: bytes, number: int) -> Optional[Mount]:
    """Of the content of mountinfo; None if it does not list the mount.

    36 35 98:0 / /mnt rw master:1 - fuse.sshfs host: rw,user_id=1001,group_id=1001

    A user chooses names in it, in which the kernel leaves no space and no newline.
    """
    for line in text.split(b"\n"):
        fields = line.split(b" ")
        if fields[0] != b"%d" % number:
            continue
        kind = fields[fields.index(b"-", 6) + 1]
        found = _USER.search(fields[-1]) if kind.startswith(b"fuse") else None
        user = int(found[1]) if found else 0
        stranger = None if user in (0, os.geteuid()) else user
        return Mount(number, kind.decode(errors="replace"), stranger)
    return None


def _number(fd: int) -> int:
    """UNKNOWN if the kernel does not tell, as one before Linux 5.14 if others may not trace us."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            found = _NUMBER.search(file.read())
    except PermissionError:
        return UNKNOWN
    return int(found[1]) if found else UNKNOWN


def _is_root(number: int) -> bool:
    """After chroot() the mount on which "/" lies is not listed."""
    fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        return _number(fd) == number
    finally:
        os.close(fd)


def of(fd: int, known: Optional[Mount] = None) -> Mount:
    """Raises OSError.

    known  of another open entry.
    """
    number = _number(fd)
    if known is not None and known.number == number:
        return known
    with open("/proc/self/mountinfo", "rb") as file:
        found = parse(file.read(), number)
    return found or Mount(number, "", None if _is_root(number) else UNKNOWN)
