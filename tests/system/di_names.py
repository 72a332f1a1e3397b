# SPDX-License-Identifier: GPL-2.0-or-later
"""Connects to each NAME.JOB:PORT, as DI-engine's clients do, and prints what is said there."""

import socket
import sys

for url in sys.argv[1:]:
    host, port = url.split(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        print(connection.makefile().readline(), end="")
