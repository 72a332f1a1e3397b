#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What json_value of elastic.bash prints: expressions of JSON, which is s in them.

    json_value.py once EXPRESSION    of the JSON on stdin
    json_value.py serve              for others, who write into the FIFO that is stdin, open for
                                     writing, too: so it never comes to an end

A request is "PID FD EXPRESSION" and a zero byte. The JSON is what that process has as stdin. The
answer goes to its descriptor FD: the status, a blank, what is printed, and a zero byte.

Tests ask this while they wait, again and again. Python takes longer to start than to answer.
"""

import json
import os
import sys
from _thread import start_new_thread
from io import StringIO


def value(expression, text):
    """The status, and what is to be printed."""
    out = StringIO()
    try:
        names = {"s": json.loads(text), "out": out}
        exec(f"print({expression}, file=out)", names)
    except Exception as error:
        return 1, f"{type(error).__name__}: {error}\n"
    return 0, out.getvalue()


def read_all(path):
    with open(path, "rb") as file:
        return file.read().decode()


def answer(request):
    pid, number, expression = request.split(" ", 2)
    try:
        status, said = value(expression, read_all(f"/proc/{pid}/fd/0"))
    except Exception as error:
        status, said = 1, f"{type(error).__name__}: {error}\n"
    try:
        with open(f"/proc/{pid}/fd/{number}", "wb", buffering=0) as file:
            file.write(f"{status} {said}\0".encode())
    except OSError as error:  # who has asked has been ended
        print(error, file=sys.stderr, flush=True)


def serve():
    rest = b""
    while True:
        *requests, rest = (rest + os.read(0, 65536)).split(b"\0")
        for request in requests:
            # What one waits for may be what another one asks for.
            start_new_thread(answer, (request.decode(),))


if sys.argv[1] == "serve":
    serve()
else:
    status, said = value(sys.argv[2], sys.stdin.read())
    print(said, end="", file=sys.stderr if status else sys.stdout)
    sys.exit(status)
