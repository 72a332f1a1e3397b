# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that speaks the part of vLLM's API that is about adapters: lora_server.py PORT [old].

vLLM itself needs a GPU. This one answers as its documents say: GET /health, GET /v1/models,
POST /v1/load_lora_adapter (lora_name, lora_path, load_inplace), POST /v1/unload_lora_adapter, and
POST /v1/completions, whose text is the version of the adapter. `old`: it does not know
load_inplace, as releases of vLLM before it. An adapter is a directory with adapter_config.json.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OLD = "old" in sys.argv[2:]
adapters = {}
busy = []  # one entry for each slow request
lock = threading.Lock()


def failed(message, kind="BadRequestError", status=400):
    return status, {"object": "error", "message": message, "type": kind, "code": status}


def load(body):
    name, path = body.get("lora_name"), body.get("lora_path")
    if not name or not path:
        return failed("Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput")
    with lock:
        if name in adapters and (OLD or not body.get("load_inplace")):
            return failed(f"The lora adapter '{name}' has already been loaded.", "InvalidUserInput")
        if not (Path(path) / "adapter_config.json").exists():
            return failed(f"No adapter found for {path}", "NotFoundError", 404)
        adapters[name] = path
    return 200, f"Success: LoRA adapter '{name}' added successfully."


def unload(body):
    with lock:
        if body.get("lora_name") not in adapters:
            return failed("The lora adapter cannot be found.", "NotFoundError", 404)
        del adapters[body["lora_name"]]
    return 200, f"Success: LoRA adapter '{body['lora_name']}' removed successfully."


def complete(body):
    if body.get("prompt") == "slow":
        busy.append(None)
        while not Path(__file__).with_name("answer").exists():
            time.sleep(0.1)
        busy.pop()
    path = adapters.get(body.get("model"))
    if path is None and body.get("model") != "base":
        return failed(f"The model `{body.get('model')}` does not exist.", "NotFoundError", 404)
    text = Path(path).name if path else "base"
    return 200, {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}],
    }


def models(_body):
    cards = [{"id": "base", "object": "model", "root": "base", "parent": None}]
    with lock:
        cards += [
            {"id": name, "object": "model", "root": path, "parent": "base"}
            for name, path in sorted(adapters.items())
        ]
    return 200, {"object": "list", "data": cards}


ANSWERS = {
    ("GET", "/health"): lambda _body: (200, {"pid": os.getpid(), "busy": len(busy)}),
    ("GET", "/metrics"): lambda _body: (200, f"lora_server_adapters {len(adapters)}\n"),
    ("GET", "/v1/models"): models,
    ("POST", "/v1/load_lora_adapter"): load,
    ("POST", "/v1/unload_lora_adapter"): unload,
    ("POST", "/v1/completions"): complete,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Health and list."""
        self.serve("GET")

    def do_POST(self):
        """All others."""
        self.serve("POST")

    def serve(self, method):
        text = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = json.loads(text) if text else {}
        answer = ANSWERS.get((method, self.path.partition("?")[0]))
        status, said = answer(body) if answer else failed("Not Found", "NotFoundError", 404)
        data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        kind = "text/plain" if self.path == "/metrics" else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments):
        """Nothing is logged."""


ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
