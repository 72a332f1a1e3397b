# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that this process can still use, as common/memory.c computes it.

Both the node's memory and the limits of the memory cgroups count.
"""

from __future__ import annotations

import os
import sys
from typing import Iterator, Tuple

_V2 = ("", "memory.max", "memory.current", "inactive_file")
_V1 = ("/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _number(path: str) -> int:
    """Raises ValueError for "max"."""
    with open(path) as file:
        return int(file.read())


def _named(path: str, name: str) -> int:
    """The number in the line "name number"; 0 if there is no such line."""
    try:
        with open(path) as file:
            for line in file:
                words = line.replace(":", " ").split()
                if len(words) > 1 and words[0] == name:
                    return int(words[1])
    except OSError:
        pass
    return 0


def _left_in(directory: str, names: Tuple[str, str, str, str]) -> int:
    _, limit, usage, cache = names
    try:
        used = _number(f"{directory}/{usage}") - _named(f"{directory}/memory.stat", cache)
        return max(0, _number(f"{directory}/{limit}") - max(0, used))
    except (OSError, ValueError):
        return sys.maxsize  # no limit, or not known


def _groups(root: str) -> Iterator[int]:
    """Bytes left in the process's group and in each group above: every limit counts."""
    try:
        with open(f"{root}/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for number, controllers, group in (line for line in lines if len(line) == 3):
        names = (
            _V2
            if (number, controllers) == ("0", "")
            else _V1
            if "memory" in controllers.split(",")
            else None
        )
        top = f"{root}/sys/fs/cgroup{names[0] if names else ''}"
        directory = os.path.normpath(top + group)
        while names is not None and directory.startswith(os.path.normpath(top)):
            yield _left_in(directory, names)
            directory = os.path.dirname(directory)


def available(root: str = "") -> int:
    """Bytes that are left. Pages that the kernel can drop from the page cache count as left."""
    node = _named(f"{root}/proc/meminfo", "MemAvailable") * 1024
    return min([node or sys.maxsize, *_groups(root)])
