# SPDX-License-Identifier: GPL-2.0-or-later
"""A server of serve.bats: serve_program.py PORT MODELS [RELEASE].

GET /MODEL is answered with the version of the model, or 404. GET /ready is 200 once all models of
the file are loaded, GET /release says RELEASE. It reads the file again when it is another one. A
model with a file "broken" cannot be loaded: at the start the server ends, later it keeps what it
has. A file "slow" has the seconds that a start takes, or the path of a FILE: then it waits until
there is FILE.all, or FILE, which it removes. It also waits as long as there is a file "hold". A
request with X-Sleep takes as many seconds as that says.
"""

import http.server
import json
import os
import sys
import threading
import time
from pathlib import Path

FILE = Path(sys.argv[2])
RELEASE = sys.argv[3] if len(sys.argv) > 3 else "none"
loaded = {}


def load():
    """Load what the file says; False if something of it cannot be."""
    models = {}
    whole = True
    for model in json.loads(FILE.read_text())["models"]:
        path = Path(model["path"])
        if (path / "broken").exists():
            whole = False
            if model["name"] in loaded:
                models[model["name"]] = loaded[model["name"]]
            continue
        assert (path / "complete.json").exists(), path
        models[model["name"]] = model["version"]
    loaded.clear()
    loaded.update(models)
    return whole


def stamp():
    status = FILE.stat()
    return status.st_mtime_ns, status.st_ino


def watch(last):
    while True:
        time.sleep(0.1)
        if stamp() != last:
            last = stamp()
            load()


def wait_as(slow):
    if not slow.startswith("/"):
        time.sleep(float(slow))
        return
    while not Path(slow + ".all").exists():
        try:
            Path(slow).unlink()
            return
        except FileNotFoundError:
            time.sleep(0.1)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        """Our models, and whether we are ready."""
        name = self.path[1:]
        time.sleep(float(self.headers.get("X-Sleep", "0")))
        own = {"ready": str(os.getpid()), "release": RELEASE}
        text = own.get(name) or loaded.get(name)
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_arguments):
        """Nothing is logged."""


first = stamp()
for entry in json.loads(FILE.read_text())["models"]:
    slow = Path(entry["path"]) / "slow"
    if slow.exists():
        wait_as(slow.read_text().strip())
    while (Path(entry["path"]) / "hold").exists():
        time.sleep(0.1)
if not load():
    sys.exit(1)
threading.Thread(target=watch, args=(first,), daemon=True).start()
http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
