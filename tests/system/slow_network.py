#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A network in which no answer comes: accepts connections, keeps them, says nothing.

Usage: slow_network.py NAME

Listens on 127.0.0.1 on the port that it writes into NAME.port, its process id being in NAME.pid;
NAME.calls gets a line per connection.
"""

import os
import socket
import sys

name = sys.argv[1]
server = socket.create_server(("127.0.0.1", 0))
with open(f"{name}.pid", "w") as file:
    file.write(f"{os.getpid()}\n")
with open(f"{name}.tmp", "w") as file:
    file.write(f"{server.getsockname()[1]}\n")
os.rename(file.name, f"{name}.port")
kept = []
while True:
    kept.append(server.accept()[0])
    with open(f"{name}.calls", "a") as file:
        file.write("call\n")
