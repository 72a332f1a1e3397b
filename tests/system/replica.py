# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of the replicas in roles.bats: replica.py lead | serve PORT | gang.

Each start writes a file NAME.TASK.START with its process id into $LOG, and NAME.TASK.START.drained
when SIGTERM has asked it to end. A server with a file NAME.TASK.START.sick answers with status 503.
"""

import os
import signal
import sys
import time

import light

LOG = os.environ["LOG"]
ME = ".".join(os.environ[f"ELASTIC_{name}"] for name in ("REPLICA", "TASK", "START"))


def note(suffix, text):
    part = f"{LOG}/.{ME}{suffix}"
    light.write(part, text + "\n")
    os.rename(part, f"{LOG}/{ME}{suffix}")


def end(_number, _frame):
    note(".drained", "")
    sys.exit(0)


def lead():
    """Ends with the status that the file says. For a moment the file is there and empty."""
    while not (os.path.exists(LOG + "/end") and (said := light.read(LOG + "/end"))):
        time.sleep(0.05)
    sys.exit(int(said))


def serve(port):
    """Everything is found; the answer is our name."""
    light.serve(port, lambda *_: (503 if os.path.exists(f"{LOG}/{ME}.sick") else 200, ME))


def gang():
    """All tasks meet at MASTER_PORT of rank 0, and then stay."""
    # That is most of what a start costs.
    import socket

    from slurm_elastic import roles

    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["RANK"] == "0":
        with socket.create_server(("", where[1])) as server:
            for _ in range(int(os.environ["WORLD_SIZE"]) - 1):
                with server.accept()[0] as other:
                    other.sendall(b"met")
    else:
        for _ in range(3000):
            try:
                with socket.create_connection(where, 120) as other:
                    assert other.recv(3) == b"met"
                    break
            except ConnectionRefusedError:
                time.sleep(0.1)
        else:
            sys.exit("rank 0 is not there")
    names = ("RANK", "SLURMD_NODENAME", "SLURM_NODELIST")
    note(".met", " ".join(os.environ[name] for name in names))
    roles.ready()
    while True:
        time.sleep(1)


signal.signal(signal.SIGTERM, end)
print("started", flush=True)
note("", str(os.getpid()))
{"lead": lead, "serve": lambda: serve(int(sys.argv[2])), "gang": gang}[sys.argv[1]]()
