#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers of an elastic job that meet at its store, and clients that nobody wants: store.py WHAT
ARGUMENT.

meet FILE      process groups one after the other, 20 at least, until FILE exists; once FILE.lost
               exists, rank 0 is killed while all others wait for a key; the next world is a new one
hostile PATH   what a process of the job's user may send to the socket PATH
refused PATH   another user at the socket"""

import datetime
import json
import os
import signal
import socket
import struct
import sys
import time

LIMIT = datetime.timedelta(seconds=300)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def form(marker):
    import torch
    import torch.distributed as dist
    from slurm_elastic._store import AgentStore

    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = AgentStore(timeout=LIMIT)
    before, group, more = None, 0, b"yes"
    while more == b"yes":
        group += 1
        if group > 20:  # what comes at the same time takes its time
            time.sleep(0.2)
        place = dist.PrefixStore(f"group{group}", store)
        dist.init_process_group("gloo", store=place, rank=rank, world_size=size, timeout=LIMIT)
        values = torch.tensor([rank + group, 1.0], dtype=torch.float64)
        dist.all_reduce(values)
        if values.tolist() != [size * (size - 1) / 2 + size * group, size]:
            sys.exit(f"wrong: group {group} has {values.tolist()}")
        dist.destroy_process_group()
        if group == 5:
            before = descriptors()
        if rank == 0:
            store.set(f"more{group}", "yes" if group < 20 or not os.path.exists(marker) else "no")
        more = store.get(f"more{group}")
    now = descriptors()
    print(
        f"right: rank {rank} of {size}" if now <= before else f"wrong: {before} to {now} fds",
        flush=True,
    )
    store.close()


def meet(marker):
    if os.environ["ELASTIC_GENERATION"] == "1":
        form(marker)
    lost(marker + ".lost")


def lost(marker):
    from slurm_elastic._store import AgentStore, StoreGone, StoreTimeout

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = AgentStore(timeout=LIMIT)
    if os.environ["ELASTIC_GENERATION"] != "1":
        try:
            store.wait(["old"], datetime.timedelta(seconds=0.2))
        except StoreTimeout as error:
            print(f"right: rank {rank} finds nothing: {error}")
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    store.set("old", "1")
    if rank == 0:
        store.wait([f"waits{other}" for other in range(1, size)])
        while not os.path.exists(marker):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    store.set(f"waits{rank}", "")
    try:
        store.get("never")
    except StoreGone as error:
        print(f"gone: rank {rank}: {error}", flush=True)
        sys.exit(1)


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(60)
    directory = os.open(os.path.dirname(path), os.O_PATH)
    connection.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    os.close(directory)
    return connection


def frame(message):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


def exactly(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError
        data += piece
    return data


def ask(connection, **request):
    connection.sendall(frame({"id": 1, "gen": 1, "attempt": 1, **request}))
    return json.loads(exactly(connection, *struct.unpack(">I", exactly(connection, 4))))


def is_dropped(connection):
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def hostile(path):
    for bad in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 5000, frame(b"[[["), frame({"op": "set"})):
        client = connect(path)
        try:
            client.sendall(bad)
        except ConnectionError:
            pass
        print("dropped:", is_dropped(client))
    # Half a frame, then silence; they are held until the end.
    held = [connect(path) for _ in range(10)]
    for client in held:
        client.sendall(struct.pack(">I", 3000000) + b'{"id":1,"op":"set","value":"')
    for request in (
        {"op": "nothing"},
        {"op": "set", "key": 7},
        {"op": "set", "key": "k", "value": "no base64!"},
        {"op": "set", "key": "k", "value": {}},
        {"op": "add", "key": "k", "amount": "1"},
        {"op": "get", "key": "k" * 2000, "timeout": 0},
        {"op": "wait", "keys": ["k"] * 5000, "timeout": 0},
        {"op": "wait", "keys": "k", "timeout": 0},
        {"op": "num_keys", "gen": -1},
    ):
        with connect(path) as client:
            print("answered:", ask(client, **request)["error"])
    with connect(path) as client:
        print("answered:", ask(client, op="get", key="k", attempt=77, timeout=60)["error"])
        print("answered:", ask(client, op="get", key="hostile", timeout=0.1)["error"])
    # Asks for a large value again and again, and reads nothing.
    value = "A" * (4 * 349524)
    with connect(path) as client:
        ask(client, op="set", key="hostile", value=value)
        request = {"id": 2, "gen": 1, "attempt": 1, "op": "get", "key": "hostile"}
        try:
            while True:
                client.sendall(frame(request) * 100)
        except (ConnectionError, TimeoutError):
            print("dropped: True")
    # Sets a large value again and again, and reads nothing.
    with connect(path) as client:
        request["op"], request["value"] = "set", value
        for _ in range(100):
            client.sendall(frame(request))
        print("answered:", ask(client, op="delete", key="hostile").get("error"))
    print("held:", sum(1 for client in held if client.send(b"A") == 1))


def refused(path):
    try:
        client = connect(path)
    except PermissionError as error:
        print("refused:", error.strerror)
        return
    print("refused:", is_dropped(client))


if __name__ == "__main__":
    {"meet": meet, "hostile": hostile, "refused": refused}[sys.argv[1]](sys.argv[2])
