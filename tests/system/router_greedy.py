# SPDX-License-Identifier: GPL-2.0-or-later
"""router_greedy.py PORT MOST: a client who holds as many connections of a router as it gets.

Each has had one request, so that it may stay. Prints after how many one was refused, or that none
of MOST was, and keeps them.
"""

import contextlib
import socket
import sys
import time

REQUEST = b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"


def get_one(port: int) -> socket.socket | None:
    """A connection that has had an answer, or None."""
    # A refusal may come before connect() returns.
    with contextlib.suppress(ConnectionError):
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        with contextlib.suppress(ConnectionError):
            connection.sendall(REQUEST)
            if connection.recv(4096):
                return connection
        connection.close()
    return None


def main() -> None:
    """Hold them until the process is ended."""
    port, most = int(sys.argv[1]), int(sys.argv[2])
    held = []
    while len(held) < most:
        connection = get_one(port)
        if connection is None:
            break
        held.append(connection)
    print(f"refused after {len(held)}" if len(held) < most else "none refused", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
