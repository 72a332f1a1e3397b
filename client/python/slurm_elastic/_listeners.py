# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose programs listen on the TCP ports of this machine, as the kernel knows them.

Any user can listen on a port that a program of another one was given, as long as that one does not.
"""

from __future__ import annotations

import ipaddress
import os
import struct
from typing import Dict, List, Optional, Union

_LISTEN = "0A"  # TCP_LISTEN

_Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


def is_ours(address: str, port: int) -> Optional[bool]:
    """Whether this user's program gets connections to that address of this machine.

    None: no program listens there.
    """
    without_scope = address.partition("%")[0]
    users = _users(_plain(ipaddress.ip_address(without_scope)), port)
    return all(user == os.getuid() for user in users) if users else None


def _users(address: _Address, port: int) -> List[int]:
    """Who listens there; -1: the program of such a socket has ended."""
    found: Dict[bool, List[int]] = {True: [], False: []}  # at this address, at all addresses
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for line in lines:
            # "0: LOCAL:PORT REMOTE:PORT STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE ..."
            words = line.split()
            local, _, number = words[1].partition(":")
            if words[3] != _LISTEN or int(number, 16) != port:
                continue
            where = _read(local)
            if where == address or where.is_unspecified:
                user = int(words[7]) if int(words[9]) else -1
                found[where == address].append(user)
    return found[True] or found[False]


def _read(digits: str) -> _Address:
    """An address of the table: words of eight digits, as the machine stores them."""
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    return _plain(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))


def _plain(address: _Address) -> _Address:
    """Of IPv4, also where it is written as one of IPv6."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
