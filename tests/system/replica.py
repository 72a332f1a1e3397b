# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of the replicas in roles.bats: replica.py lead | serve PORT | gang.

Each start writes a file NAME.TASK.START with its process id into $LOG, and NAME.TASK.START.drained
when SIGTERM has asked it to end. A server with a file NAME.TASK.START.sick answers with status 503.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path

LOG = Path(os.environ["LOG"])
ME = ".".join(os.environ[f"ELASTIC_{name}"] for name in ("REPLICA", "TASK", "START"))


def note(suffix, text):
    part = LOG / f".{ME}{suffix}"
    part.write_text(text + "\n")
    part.rename(LOG / f"{ME}{suffix}")


def end(_number, _frame):
    note(".drained", "")
    sys.exit(0)


def lead():
    """Ends with the status that the file says. For a moment the file is there and empty."""
    while not ((LOG / "end").exists() and (said := (LOG / "end").read_text())):
        time.sleep(0.05)
    sys.exit(int(said))


# Each imports what it needs: that is most of what its start costs.
def serve(port):
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            """Everything is found; the answer is our name."""
            self.send_response(503 if (LOG / f"{ME}.sick").exists() else 200)
            self.end_headers()
            self.wfile.write(ME.encode())

        def log_message(self, *_arguments):
            """Nothing is logged."""

    http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()


def gang():
    """All tasks meet at MASTER_PORT of rank 0, and then stay."""
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
