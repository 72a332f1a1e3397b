# SPDX-License-Identifier: GPL-2.0-or-later
"""A server of serve.bats: serve_program.py PORT MODELS [RELEASE].

GET /MODEL is answered with the version of the model, or 404. GET /ready is 200 once all models of
the file are loaded, GET /release says RELEASE. It reads the file again when it is another one. A
model with a file "broken" cannot be loaded: at the start the server ends, later it keeps what it
has. A file "slow" has the seconds that a start takes, or the path of a FILE: then it waits until
there is FILE.all, or FILE, which it removes. It also waits as long as there is a file "hold". A
request with X-Sleep takes as many seconds as that says.
"""

import _thread
import os
import sys
import time

import light

FILE = sys.argv[2]
RELEASE = sys.argv[3] if len(sys.argv) > 3 else "none"
loaded = {}


def load():
    """Load what the file says; False if something of it cannot be."""
    models = {}
    whole = True
    for model in light.load_json(FILE)["models"]:
        path = model["path"]
        if os.path.exists(path + "/broken"):
            whole = False
            if model["name"] in loaded:
                models[model["name"]] = loaded[model["name"]]
            continue
        assert os.path.exists(path + "/complete.json"), path
        models[model["name"]] = model["version"]
    loaded.clear()
    loaded.update(models)
    return whole


def stamp():
    status = os.stat(FILE)
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
    while not os.path.exists(slow + ".all"):
        try:
            os.unlink(slow)
            return
        except FileNotFoundError:
            time.sleep(0.1)


def answer(path, headers):
    """Our models, and whether we are ready."""
    name = path[1:]
    time.sleep(float(headers.get("x-sleep", "0")))
    own = {"ready": str(os.getpid()), "release": RELEASE}
    text = own.get(name) or loaded.get(name)
    return 404 if text is None else 200, text or ""


first = stamp()
for entry in light.load_json(FILE)["models"]:
    slow = entry["path"] + "/slow"
    if os.path.exists(slow):
        wait_as(light.read(slow).strip())
    while os.path.exists(entry["path"] + "/hold"):
        time.sleep(0.1)
if not load():
    sys.exit(1)
_thread.start_new_thread(watch, (first,))
light.serve(int(sys.argv[1]), answer)
