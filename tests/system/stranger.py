#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What strangers send to the leader of an elastic job: stranger.py WHAT ADDRESS PORT BASE
[ARGUMENT].

garbage, half     bytes that are no handshake; half of a message, then silence
no-munge          a handshake with a credential that munge has not made
credential        a true handshake, with a credential of whoever runs this; ARGUMENT: munge's socket
                  and the uid of the job's user, "SOCKET UID"
crowd             ARGUMENT connections at once that say nothing, until stdin ends
squat             listens on BASE ports in a row, from PORT on or from where they are free, and
                  says nothing, until stdin ends; ARGUMENT "exactly": from PORT on

Each connection is waited for until the leader ends it; what the leader says is printed. Exit status
1 if it does not end one within PATIENCE seconds.
"""

import base64
import json
import os
import resource
import select
import socket
import struct
import subprocess
import sys
import time

PATIENCE = 180
NONCE = "ab" * 32


def frame(message):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


def hello(base, role="agent"):
    return frame({"t": "hello", "v": 2, "role": role, "base": base, "nonce": NONCE})


def connect(address, port):
    return socket.create_connection((address, port), timeout=PATIENCE)


def exactly(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return data


def receive(connection):
    """One message, None at the end of the connection."""
    head = exactly(connection, 4)
    body = head and exactly(connection, struct.unpack(">I", head)[0])
    return body and json.loads(body)


def until_ended(connection):
    """Print what comes until the leader ends the connection."""
    try:
        while (message := receive(connection)) is not None:
            print(message.get("reason") or message["t"])
    except ConnectionError:
        pass
    connection.close()


def send(connection, data):
    try:
        connection.sendall(data)
    except ConnectionError:
        pass


def garbage(address, port, base, _):
    noise = b"\xff" + os.urandom(100000)
    for data in (
        noise,
        b"GET / HTTP/1.0\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\x20\x01",
        b"\xff\xff\xff\xff",
        frame(b"[" * 4000),
        frame(b"17"),
        frame(b'{"t":"hello"'),
        frame({"t": "join", "node": "n6", "job": 1, "restarts": 0, "nodeid": 0, "slots": 1}),
        frame({"t": "hello", "v": 2, "role": [], "base": {}, "nonce": None}),
        hello(base) + frame({"t": "show"}),
        hello(base) + b"\xff" * 64,
    ):
        connection = connect(address, port)
        send(connection, data)
        until_ended(connection)


def half(address, port, base, _):
    held = []
    for data in (b"", b"\0", b'\0\0\0\x40{"t":', hello(base)[:-1], hello(base)):
        connection = connect(address, port)
        send(connection, data)
        held.append(connection)
    for connection in held:
        until_ended(connection)


def prove(address, port, base, make):
    """A handshake with the credential that make returns for the payload."""
    connection = connect(address, port)
    send(connection, hello(base))
    answer = receive(connection)
    if answer is None or answer["t"] != "challenge":
        print(answer and answer.get("reason"))
    else:
        payload = {"role": "agent", "base": base, "port": int(port)}
        payload |= {"nonce": answer["nonce"], "key": "cd" * 32}
        send(connection, frame({"t": "proof", "cred": make(json.dumps(payload))}))
    until_ended(connection)


def no_munge(address, port, base, _):
    prove(address, port, base, lambda payload: "")
    prove(address, port, base, lambda payload: payload)
    forged = base64.b64encode(os.urandom(120)).decode()
    prove(address, port, base, lambda payload: f"MUNGE:{forged}:")


def credential(address, port, base, argument):
    munge_socket, uid = argument.split()

    def make(payload):
        command = ["munge", f"--socket={munge_socket}", f"--restrict-uid={uid}"]
        return subprocess.run(
            command, input=payload, capture_output=True, check=True, text=True
        ).stdout.strip()

    prove(address, port, base, make)


def crowd(address, port, _, argument):
    """Until stdin is closed: so many connections that say nothing, those that end begun anew."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = min(int(argument), hard - 64)
    poll, held, begun, most = select.epoll(), {}, 0, 0
    poll.register(sys.stdin, select.EPOLLIN)
    while True:
        while len(held) < wanted:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((address, port))
            held[connection.fileno()] = connection
            poll.register(connection, select.EPOLLIN | select.EPOLLHUP)
            begun += 1
        if most == 0:
            most = wanted
            print(f"holding {wanted}", flush=True)
        for fd, _event in poll.poll(1):
            if fd == sys.stdin.fileno():
                print(f"begun {begun}")
                return 0
            poll.unregister(fd)
            held.pop(fd).close()


def squat(_address, port, count, argument):
    held = []
    while len(held) < int(count):
        try:
            held.append(socket.create_server(("", port + len(held))))
        except OSError:
            if argument == "exactly":  # somebody tries whether it is free
                time.sleep(0.1)
                continue
            port += len(held) + 1
            held.clear()
    print(f"listening on {port}-{port + len(held) - 1}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    what = {
        "garbage": garbage,
        "half": half,
        "no-munge": no_munge,
        "credential": credential,
        "crowd": crowd,
        "squat": squat,
    }[sys.argv[1]]
    try:
        sys.exit(what(sys.argv[2], int(sys.argv[3]), sys.argv[4], " ".join(sys.argv[5:])))
    except TimeoutError:
        sys.exit(f"the leader has not ended a connection within {PATIENCE} s")
