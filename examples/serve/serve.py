# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves TorchScript models by the Open Inference Protocol (version 2), with nothing but the
standard library and torch.

    serve.py --port 8001 --models models.json    has the models of a file, looked at again and again
    serve.py --port 8001 --repository models/    loads them by requests: of a directory with
                                                 versions, or of a link to one of them

Requests are those of the protocol: GET /v2/health/ready, GET /v2/models/NAME, POST
/v2/models/NAME/infer; and of its model repository extension: POST /v2/repository/index and
/v2/repository/models/NAME/load or unload. A model is a directory with the file model.pt, which
takes an n x 64 tensor of floats.
"""

import argparse
import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import torch

BODY_MAX = 16 << 20
ROWS_MAX = 4096
FEATURES = 64
LOOK = 0.2  # seconds between two looks at the file


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Model(NamedTuple):
    name: str
    version: str
    run: torch.jit.ScriptModule


def load(name, version, path):
    module = torch.jit.load(str(Path(path) / "model.pt"), map_location="cpu")
    module.eval()
    return Model(name, version, module)


def size(model):
    """Bytes of its parameters and buffers: the service plans with it."""
    return sum(tensor.numel() * tensor.element_size() for tensor in model.run.state_dict().values())


class Models:
    """What is loaded. Readers take the dictionary as it is: it is replaced, never changed."""

    def __init__(self, repository=None):
        self.loaded = {}
        self.ready = repository is not None  # without a file nobody waits for models
        self.repository = repository
        self._lock = threading.Lock()

    def get(self, name):
        if name not in self.loaded:
            raise Refused(404, f"there is no model {name}")
        return self.loaded[name]

    def follow(self, wanted):
        """All of these and no others: (name, version, path). A version that cannot be loaded leaves
        the one of before, and the server not ready if there is none.
        """
        present, complete = {}, True
        for name, version, path in wanted:
            before = self.loaded.get(name)
            if before is not None and before.version == version:
                present[name] = before
                continue
            try:
                present[name] = load(name, version, path)
            except (OSError, RuntimeError, ValueError) as error:
                print(f"{name} {version}: {error}", flush=True)
                complete = False
                if before is not None:
                    present[name] = before
        self.loaded = present
        self.ready = self.ready or complete
        return complete

    def load(self, name):
        """The version to which the repository has a link, else the newest complete one."""
        with self._lock:
            version = self._newest(name)
            try:
                model = load(name, version.name, version)
            except (OSError, RuntimeError, ValueError) as error:
                raise Refused(400, f"{name} {version.name}: {error}") from error
            self.loaded = {**self.loaded, name: model}

    def unload(self, name):
        with self._lock:
            self.get(name)
            self.loaded = {key: model for key, model in self.loaded.items() if key != name}

    def index(self):
        names = set(self.loaded)
        if self.repository is not None:
            names |= {path.name for path in self.repository.iterdir() if path.is_dir()}
        return [
            {
                "name": name,
                "version": self.loaded[name].version,
                "state": "READY",
                "memory_usage": [{"type": "CPU", "id": 0, "byte_size": size(self.loaded[name])}],
            }
            if name in self.loaded
            else {"name": name, "state": "UNAVAILABLE", "reason": "it is not loaded"}
            for name in sorted(names)
        ]

    def _newest(self, name):
        if self.repository is None:
            raise Refused(400, "the models of this server come from a file")
        if name.startswith(".") or not (self.repository / name).is_dir():
            raise Refused(404, f"there is no model {name}")
        if (self.repository / name / "model.pt").exists():
            return (self.repository / name).resolve()  # a link to the version that is wanted
        versions = sorted(path.parent for path in (self.repository / name).glob("*/complete.json"))
        if not versions:
            raise Refused(404, f"no version of {name} is complete")
        return versions[-1]


def follow_file(models, path):
    """For a thread: models are as the file says. It is replaced at once, never written to."""
    seen, done = None, False
    while True:
        try:
            stat = path.stat()
            if (stat.st_ino, stat.st_mtime_ns) != seen or not done:
                wanted = json.loads(path.read_text())["models"]
                done = models.follow([(m["name"], m["version"], m["path"]) for m in wanted])
                seen = (stat.st_ino, stat.st_mtime_ns)
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{path}: {error!r}", flush=True)
        time.sleep(LOOK)


def infer(model, request):
    try:
        image = next(one for one in request["inputs"] if one["name"] == "image")
        rows, features = image["shape"]
        data = [float(value) for value in image["data"]]
    except (StopIteration, KeyError, TypeError, ValueError) as error:
        raise Refused(400, 'an input "image" of shape [n, 64] is needed') from error
    if features != FEATURES or not 0 < rows <= ROWS_MAX or len(data) != rows * features:
        raise Refused(400, f"the shape has to be [1 to {ROWS_MAX}, {FEATURES}], with its data")
    with torch.inference_mode():
        scores = model.run(torch.tensor(data).reshape(rows, features))
    output = {
        "name": "label",
        "shape": [rows],
        "datatype": "INT64",
        "data": scores.argmax(1).tolist(),
    }
    return {"model_name": model.name, "model_version": model.version, "outputs": [output]}


def metadata(model):
    return {
        "name": model.name,
        "versions": [model.version],
        "platform": "pytorch_torchscript",
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, FEATURES]}],
        "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
    }


def health(models, what):
    if what == "ready" and not models.ready:
        raise Refused(503, "models are being loaded")
    return {}


def answer(models, method, path, body):
    """What to answer to a request, as an object."""
    match (method, *path.strip("/").split("/")):
        case ("GET", "v2"):
            return {"name": "slurm-elastic", "version": "2", "extensions": ["model_repository"]}
        case ("GET", "v2", "health", ("live" | "ready") as what):
            return health(models, what)
        case ("GET", "v2", "models", name):
            return metadata(models.get(name))
        case ("GET", "v2", "models", name, "ready"):
            models.get(name)
            return {}
        case ("POST", "v2", "models", name, "infer"):
            return infer(models.get(name), body)
        case ("POST", "v2", "repository", "index"):
            return models.index()
        case ("POST", "v2", "repository", "models", name, ("load" | "unload") as what):
            getattr(models, what)(name)
            return {}
    raise Refused(404, f"there is nothing at {path}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    models: Models

    def do_GET(self):
        self._serve("GET", None)

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", "0"))
            if not 0 <= length <= BODY_MAX:
                raise ValueError(length)
            text = self.rfile.read(length)
            body = json.loads(text) if text else {}
        except ValueError:
            self.close_connection = True
            self._say(400, {"error": f"a body has JSON, and at most {BODY_MAX} bytes"})
            return
        self._serve("POST", body)

    def _serve(self, method, body):
        try:
            self._say(200, answer(self.models, method, self.path.partition("?")[0], body))
        except Refused as refused:
            self._say(refused.status, {"error": str(refused)})

    def _say(self, status, content):
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, address, models):
        super().__init__(address, type("Bound", (Handler,), {"models": models}))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--address", default="0.0.0.0", help="default: all of this node")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--models", type=Path, metavar="FILE")
    source.add_argument("--repository", type=Path, metavar="DIR")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    models = Models(args.repository)
    if args.models:
        threading.Thread(target=follow_file, args=(models, args.models), daemon=True).start()
    server = Server((args.address, args.port), models)
    # Requests that are there have ended by then: no new ones come to a replica that is to end.
    signal.signal(
        signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown, daemon=True).start()
    )
    server.serve_forever()


if __name__ == "__main__":
    main()
