# SPDX-License-Identifier: GPL-2.0-or-later
"""For bench/roles: GET so many times a second for so many seconds, over kept connections. Prints
JSON: milliseconds of each request from the moment when it was due, and the statuses.

    python3 roles_load.py http://127.0.0.1:PORT/PATH RATE SECONDS
"""

import collections
import json
import select
import socket
import sys
import time
from urllib.parse import urlsplit

CONNECTIONS = 32
PATIENCE = 10  # seconds for the last answers


def connect(url):
    connection = socket.create_connection((url.hostname, url.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return connection


def is_whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


def load(url, rate, seconds):
    """(milliseconds of each request, how often each status came)"""
    request = f"GET {url.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    # In turns: the interface closes a connection that is idle for 10 s.
    idle = collections.deque(connect(url) for _ in range(CONNECTIONS))
    due, answers = {}, {}
    took, statuses = [], collections.Counter()
    begin = time.monotonic()
    sent, total = 0, int(rate * seconds)
    while len(took) < total:
        now = time.monotonic()
        if now > begin + seconds + PATIENCE:
            raise TimeoutError(f"{total - len(took)} requests have no answer")
        while sent < total and idle and begin + sent / rate <= now:
            connection = idle.popleft()
            due[connection], answers[connection] = begin + sent / rate, b""
            connection.send(request)
            sent += 1
        later = begin + sent / rate - time.monotonic() if sent < total and idle else 1
        for connection in select.select(list(due), [], [], max(later, 0))[0]:
            got = connection.recv(1 << 20)
            if not got:
                raise ConnectionError("the interface has closed a connection")
            answers[connection] += got
            if not is_whole(answers[connection]):
                continue
            took.append(1000 * (time.monotonic() - due.pop(connection)))
            statuses[answers[connection].split()[1].decode()] += 1
            idle.append(connection)
    return took, statuses


if __name__ == "__main__":
    milliseconds, codes = load(urlsplit(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps({"milliseconds": milliseconds, "statuses": codes}))
