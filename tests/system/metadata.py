# SPDX-License-Identifier: GPL-2.0-or-later
"""Metadata services of clouds over HTTP, for nodes that share one machine.

python3 metadata.py DIR serves on a free port of 127.0.0.1 and writes it to DIR/port. DIR/NODE
holds the seconds that the node has left when the notice is written. It is an event of Azure for all
machines, as in a scale set. While there is DIR/NODE.advice, the cloud advises to replace the node.
While there is DIR/hangs, no answer comes to its end. When DIR/expired is new, all tokens so far
have expired. DIR/log has a line for each request: node, method, path, status.
"""

import datetime
import glob
import http.server
import os
import secrets
import sys
import time

UTC = datetime.timezone.utc
DIRECTORY = sys.argv[1]
LONG_POLL_TURN = 0.05  # seconds
PROGRAMS = ("elasticrun\n", "elastic-notice\n")
tokens = {}  # token: when it was made


def inode_of(port, own):
    """Of the socket with this port that leads to our own: several may have it, to different
    addresses. An old connection from the same port has none any more."""
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            if (
                fields[1].endswith(f":{port:04X}")
                and fields[2].endswith(f":{own:04X}")
                and fields[9] != "0"
            ):
                return fields[9]
    return None


def has_socket(process, inode):
    for file in glob.glob(f"{process}/fd/*"):
        try:
            if os.readlink(file) == f"socket:[{inode}]":
                return True
        except OSError:
            pass  # it has been closed since
    return False


def find_node(port, own):
    inode = inode_of(port, own)
    for process in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{process}/comm") as comm, open(f"{process}/environ") as environ:
                if comm.read() not in PROGRAMS or not has_socket(process, inode):
                    continue
                for variable in environ.read().split("\0"):
                    if variable.startswith("SLURMD_NODENAME="):
                        return variable.split("=", 1)[1]
        except OSError:
            pass
    return None


def node_of(port, own):
    """The node whose agent, or epilog, has this port: a cloud knows it by its address."""
    for _ in range(3):
        node = find_node(port, own)
        if node is not None:
            return node
        time.sleep(0.05)
    return "-"


def end_of(node):
    """When the node is taken away; None: not."""
    try:
        with open(f"{DIRECTORY}/{node}") as file:
            return os.path.getmtime(file.name) + float(file.read())
    except (OSError, ValueError):
        return None


def is_advised(node):
    return os.path.exists(f"{DIRECTORY}/{node}.advice")


def moment(seconds, pattern, zone=UTC):
    return datetime.datetime.fromtimestamp(seconds, zone).strftime(pattern)


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text="", **headers):
        body = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        with open(f"{DIRECTORY}/log", "a") as log:
            log.write(f"{self.node} {self.command} {self.path} {int(code)}\n")

    def log_message(self, format, *args):
        pass

    def setup(self):
        super().setup()
        self.node = node_of(self.client_address[1], self.server.server_address[1])

    def do_PUT(self):
        for name in "X-aws-ec2-metadata-token", "X-aliyun-ecs-metadata-token":
            if self.path == "/latest/api/token" and self.headers.get(name + "-ttl-seconds"):
                token = secrets.token_urlsafe(40) + "=="
                tokens[token] = time.time()
                self.answer(200, token, **{name + "-ttl-seconds": "21600"})
                return
        self.answer(400)

    def has_token(self, name):
        try:
            expired = os.path.getmtime(f"{DIRECTORY}/expired")
        except OSError:
            expired = 0
        return tokens.get(self.headers.get(name), -1) > expired

    def spot(self, token, text):
        """What AWS, Alibaba and Tencent have in common: 404 as long as nothing happens."""
        end = end_of(self.node)
        if "X-Forwarded-For" in self.headers:
            self.answer(403)
        elif token and not self.has_token(token):
            self.answer(401)
        elif end is None:
            self.answer(404, "<html>404 - Not Found</html>")
        else:
            self.answer(200, text(end))

    def rebalance(self):
        if not self.has_token("X-aws-ec2-metadata-token"):
            self.answer(401)
        elif is_advised(self.node):
            self.answer(200, f'{{"noticeTime": "{moment(time.time(), "%Y-%m-%dT%H:%M:%SZ")}"}}')
        else:
            self.answer(404, "<html>404 - Not Found</html>")

    def google(self, text, etag):
        """Clients take nobody for Google's service who does not say so."""
        self.answer(200, text, **{"ETag": etag, "Metadata-Flavor": "Google"})

    def drip(self):
        self.send_response(200)
        self.end_headers()
        while os.path.exists(f"{DIRECTORY}/hangs"):
            self.wfile.write(b" ")
            time.sleep(0.1)

    def gcp(self, path, query):
        if self.headers.get("Metadata-Flavor") != "Google":
            self.answer(403)
            return
        if path == "maintenance-event":
            advised = is_advised(self.node)
            self.google("TERMINATE_ON_HOST_MAINTENANCE" if advised else "NONE", f"{advised:016x}")
            return
        known = dict(pair.split("=") for pair in query.split("&") if "=" in pair)
        until = time.time() + float(known.get("timeout_sec", 0))
        etag = f"{end_of(self.node) is not None:016x}"
        while known.get("last_etag") == etag and time.time() < until:
            time.sleep(LONG_POLL_TURN)
            etag = f"{end_of(self.node) is not None:016x}"
        self.google("TRUE" if int(etag, 16) else "FALSE", etag)

    def azure(self):
        events = [
            f'{{"EventId": "{node}", "EventType": "Preempt", "ResourceType": "VirtualMachine", '
            f'"Resources": ["{node}"], "EventStatus": "Scheduled", "NotBefore": '
            f'"{moment(end_of(node), "%a, %d %b %Y %H:%M:%S GMT")}"}}'
            for node in os.listdir(DIRECTORY)
            if end_of(node) is not None and node != "port"
        ]
        self.answer(200, f'{{"DocumentIncarnation": 1, "Events": [{", ".join(events)}]}}')

    def do_GET(self):
        path, _, query = self.path.partition("?")
        google = "/computeMetadata/v1/instance/"
        if os.path.exists(f"{DIRECTORY}/hangs"):
            self.drip()
        elif path == "/latest/meta-data/spot/instance-action":
            self.spot(
                "X-aws-ec2-metadata-token",
                lambda end: (
                    f'{{"action": "terminate", "time": "{moment(end, "%Y-%m-%dT%H:%M:%SZ")}"}}'
                ),
            )
        elif path == "/latest/meta-data/instance/spot/termination-time":
            self.spot("X-aliyun-ecs-metadata-token", lambda end: moment(end, "%Y-%m-%dT%H:%M:%SZ"))
        elif path == "/latest/meta-data/spot/termination-time":
            china = datetime.timezone(datetime.timedelta(hours=8))
            self.spot(None, lambda end: moment(end, "%Y-%m-%d %H:%M:%S", china))
        elif path == "/latest/meta-data/events/recommendations/rebalance":
            self.rebalance()
        elif path == "/latest/meta-data/iam/security-credentials/" and self.has_token(
            "X-aws-ec2-metadata-token"
        ):
            self.answer(200, "role")  # for botocore
        elif path == "/latest/meta-data/iam/security-credentials/role" and self.has_token(
            "X-aws-ec2-metadata-token"
        ):
            self.answer(
                200,
                '{"Code": "Success", "AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", '
                '"Expiration": "2099-01-01T00:00:00Z"}',
            )
        elif path in (google + "preempted", google + "maintenance-event"):
            self.gcp(path[len(google) :], query)
        elif self.headers.get("Metadata") != "true":
            self.answer(400 if path.startswith("/metadata/") else 404)
        elif path == "/metadata/instance/compute/name":
            self.answer(200, self.node)
        elif path == "/metadata/scheduledevents":
            self.azure()
        else:
            self.answer(404)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
server.daemon_threads = True
with open(f"{DIRECTORY}/port.new", "w") as port_file:
    port_file.write(f"{server.server_port}\n")
os.rename(f"{DIRECTORY}/port.new", f"{DIRECTORY}/port")
server.serve_forever()
