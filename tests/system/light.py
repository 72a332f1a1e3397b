# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs of system tests need, without what its import costs.

To import json, pathlib and http.server takes five times as long as to start Python, and a test
starts many replicas.
"""

import _json
import _thread
from _socket import AF_INET, SHUT_WR, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket


class Rules:
    """What the parser of the module json, which is written in C, wants to know."""

    strict, memo, object_hook, object_pairs_hook = True, {}, None, None
    parse_float, parse_int, parse_constant = float, int, float


def parse_json(text):
    value, end = _json.make_scanner(Rules)(text.strip(), 0)
    assert not text.strip()[end:], text
    return value


def load_json(path):
    return parse_json(read(path))


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _receive(there):
    """Return the path and the headers of a request, or None."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = there.recv(65536)
        if not part:
            return None
        text += part
    first, *lines = text.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    fields = (line.partition(":") for line in lines)
    return first.split(" ")[1], {name.lower(): value.strip() for name, _, value in fields}


def _handle(number, answer):
    there = socket(fileno=number)
    try:
        request = _receive(there)
        if request:
            status, text = answer(*request)
            there.sendall(f"HTTP/1.0 {status} \r\n\r\n{text}".encode())
            there.shutdown(SHUT_WR)
    except OSError:
        pass  # the client has gone
    finally:
        there.close()


def serve(port, answer):
    """Answer each GET, in a thread of its own, with the status and the text that answer(path,
    headers) returns; the headers have names in small letters.
    """
    here = socket(AF_INET, SOCK_STREAM)
    here.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    here.bind(("0.0.0.0", port))
    here.listen(128)
    while True:
        number, _ = here._accept()
        _thread.start_new_thread(_handle, (number, answer))
