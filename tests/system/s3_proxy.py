#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A bad network before an S3 server: passes requests on, but for those of its rules.

    s3_proxy.py ENDPOINT PORT_FILE LOG RULE...

A rule is KIND:COUNT:METHOD:REGEX, for the first COUNT requests that match (all with COUNT 0):

    503     the server is busy
    cut     the connection ends before anything is passed on
    lost    the request is passed on, and the connection ends before the answer
    half    the connection ends in the middle of the answer's content
    bare    the same, and the answer has no ETag
    begun   the connection ends before the answer's content
    silent  nothing comes back
    keep    the request is passed on, and the answer's content is in a file "kept"
    wait    the request is passed on when there is a file "go"
    else    (a path to a file) answer 200 with what the file has

PORT_FILE gets the port. LOG gets a line per request: METHOD PATH KIND, "-" where no rule matched.
"""

import http.client
import http.server
import os
import re
import sys
import threading
import time
import urllib.parse

BUSY = b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"


class Rule:
    def __init__(self, text):
        self.kind, count, self.method, regex = text.split(":", 3)
        self.left = int(count) or float("inf")
        self.regex = re.compile(regex)

    def takes(self, method, path):
        if self.left <= 0 or method != self.method or not self.regex.search(path):
            return False
        self.left -= 1
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rules = []
    server_of = ""
    log_path = ""
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def choose(self):
        with self.lock:
            kind = next((r.kind for r in self.rules if r.takes(self.command, self.path)), "-")
            with open(self.log_path, "a") as log:
                log.write(f"{self.command} {self.path} {kind}\n")
        return kind

    def ask(self, body):
        server = http.client.HTTPConnection(self.server_of, timeout=60)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                server.putheader(name, value)
        server.endheaders(body or None)
        answer = server.getresponse()
        return answer, answer.read()

    def send(self, status, headers, body, much=None):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        length = {n.lower(): v for n, v in headers}.get("content-length", str(len(body)))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:much])

    def keep(self, content):
        with open("kept.new", "wb") as file:
            file.write(content)
        os.rename("kept.new", "kept")

    def handle_one(self):
        kind = self.choose()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if kind == "503":
            self.send(503, [], BUSY)
        elif kind in ("cut", "lost"):
            if kind == "lost":
                self.ask(body)
            self.close_connection = True
        elif kind == "silent":
            self.rfile.read(1)  # until the client has had enough
            self.close_connection = True
        elif kind.startswith("/"):
            with open(kind, "rb") as file:
                self.send(200, [], file.read())
        else:
            while kind == "wait" and not os.path.exists("go"):
                time.sleep(0.05)
            answer, content = self.ask(body)
            if kind == "keep":
                self.keep(content)
            headers = answer.getheaders()
            if kind == "bare":
                headers = [(name, value) for name, value in headers if name.lower() != "etag"]
            much = {"half": len(content) // 2, "bare": len(content) // 2, "begun": 0}.get(kind)
            self.close_connection = much is not None
            self.send(answer.status, headers, content, much)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one


def main():
    endpoint, port_file, Handler.log_path = sys.argv[1:4]
    Handler.server_of = urllib.parse.urlsplit(endpoint).netloc
    Handler.rules = [Rule(text) for text in sys.argv[4:]]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(port_file + ".new", "w") as file:
        file.write(f"{server.server_address[1]}\n")
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


main()
