#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that bench/serve --preempted asks: serve_replica.py PORT AT-SIGTERM.

Each POST takes 0.1 s; GET is answered at once. At SIGTERM it "dies", or "ends": it takes no more
connections, and ends what it has.
"""

import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, AT_SIGTERM = int(sys.argv[1]), sys.argv[2]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        time.sleep(0.1)
        self.do_GET()

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False


server = Server(("0.0.0.0", PORT), Handler)
if AT_SIGTERM == "ends":
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(poll_interval=0.02)
server.server_close()
