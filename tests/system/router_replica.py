#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A replica of a shard as router.bats needs one: router_replica.py FILE NAME MODEL...

It writes its port to FILE. It answers POST with its name if the body asks for one of its models,
with 404 else, and with 500 if the body has "poison". GET /ready is 200, GET /count how many POST
there have been, and each GET that asks for another protocol is 426.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE, NAME, *MODELS = sys.argv[1:]


class Replica(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if "Upgrade" in self.headers:
            self.answer(426, NAME)
            return
        text = str(Replica.count) if self.path == "/count" else NAME
        self.answer(200 if self.path in ("/ready", "/count") else 404, text)

    def do_POST(self):
        Replica.count += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "poison" in body:
            self.answer(500, NAME)
            return
        self.answer(200 if body["model"] in MODELS else 404, NAME)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Replica)
with open(f"{FILE}.new", "w") as file:
    print(server.server_port, file=file)
os.replace(f"{FILE}.new", FILE)
server.serve_forever()
