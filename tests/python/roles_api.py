# SPDX-License-Identifier: GPL-2.0-or-later
"""Stands in for the HTTP interface of a job with roles: `worker` from 0 to 12, and a `program`."""

import http.server
import json
import socketserver
import threading


class _Socket(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class RolesApi:
    def __init__(self, path=None):
        """It listens at once; url is what ELASTIC_API would be. path: at this socket instead."""
        self.asked = []  # lines "METHOD PATH BODY" of all changes
        self.removing = None  # is called with the name of a replica that is removed
        self.broken = None  # bytes that are sent instead of an answer
        self.replicas = {"worker": {}, "program": {}}
        self.put("program", 0, "ready", 1)
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self):
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length).decode()
                status, message, data = api.answer(self.command, self.path, body)
                text = json.dumps({"code": status, "message": message, "data": data}).encode()
                text = api.broken or text
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PATCH = do_POST = do_DELETE = _answer

            def log_message(self, *_arguments):
                """Nothing is logged."""

        if path:
            self._server = _Socket(path, Handler)
        else:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            self._server.daemon_threads = True
            self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def put(self, role, index, state, start):
        """That replica is in this state; it is gone for None."""
        replicas = dict(self.replicas[role])
        replicas.pop(index, None)
        if state is not None:
            tasks = [{"task": 0, "node": "n1", "address": "127.0.0.1", "ports": {}}]
            replicas[index] = {
                "role": role,
                "name": f"{role}-{index}",
                "state": state,
                "start": start,
                "reason": "",
                "tasks": tasks if state in ("starting", "ready", "draining") else [],
            }
        self.replicas[role] = replicas

    def _role(self, name):
        return {
            "name": name,
            "kind": "replicas",
            "ready": sum(each["state"] == "ready" for each in self.replicas[name].values()),
            "target": len(self.replicas[name]),
            "min": 0,
            "max": 12,
            "leads": name == "program",
            "size": "so many",
            "more": "",
        }

    def reports(self, path):
        """Those of numbers 5 to 6; nothing new comes after them."""
        after = int(path.partition("?after=")[2] or 0)
        if after > 6:
            return 409, f"job 1: the last report has number 6, not {after}", None
        if after == 6:
            return 200, "no reports", None
        entry = {"time": 1.5, "role": "worker", "replica": "worker-3"}
        made = {"path": "/d", "size": 4, "loss": 0.5, "tags": ["x"]}
        found = [
            {"number": 5, "report": made, **entry},
            {"number": 6, "report": {"path": "/e"}, **entry},
        ]
        data = {
            "job": 1,
            "first": 5,
            "last": 6,
            "missed": max(0, 4 - after),
            "reports": [each for each in found if each["number"] > after],
        }
        return 200, "2 reports", data

    def answer(self, method, path, body):
        if method != "GET":
            self.asked.append(" ".join(filter(None, [method, path, body])))
        if path.startswith("/v1/reports"):
            return self.reports(path)
        if path.endswith("/report"):
            return 200, "report 7", {"number": 7}
        parts = path.split("/")[2:]  # roles, ROLE, replicas, NAME, failed
        if len(parts) == 1:
            return 200, "epoch 1", {"roles": [self._role(name) for name in self.replicas]}
        name = parts[1]
        if name not in self.replicas:
            return 404, f"there is no role '{name}'", None
        if method == "PATCH":
            count = json.loads(body)["replicas"]
            if count > 12:
                return 409, f"{count} replicas of {name}: allowed are 0 to 12", None
            return 200, f"{name}: {count} replicas", self._role(name)
        if method == "GET" and len(parts) == 2:
            return 200, "so many", self._role(name)
        if method == "GET":
            return 200, "so many", {"job": 1, "replicas": list(self.replicas[name].values())}
        index = int(parts[3].rpartition("-")[2])
        if method == "DELETE":
            if self.removing:
                self.removing(parts[3])
            self.put(name, index, "draining", self.replicas[name][index]["start"])
            return 200, f"{parts[3]} goes", None
        return 200, f"{parts[3]} is replaced", None
