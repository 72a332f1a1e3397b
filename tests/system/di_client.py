# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of DI-orchestrator v1alpha1, as that of DI-engine: di_client.py URL JOB FILE.

Any status but 200 ends it. It adds collectors, deletes one, reports one as failed, and makes
FILE.ready. From then on it looks, and adds one more, until that one is there.
"""

import http.client
import json
import sys
import time
import urllib.parse
from pathlib import Path

URL, JOB, FILE = urllib.parse.urlsplit(sys.argv[1]), *sys.argv[2:]
WHO = {"namespace": JOB, "coordinator": "coordinator-0"}
REPLICAS = "/v1alpha1/replicas"
LIST = f"{REPLICAS}?namespace={JOB}&coordinator=coordinator-0"


class Client:
    def __init__(self):
        """One connection, which is kept."""
        self.connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=300)

    def ask(self, method, path, body, verb):
        """The data of the reply. It has the body of GET, and no Content-Type, as DI-engine's."""
        self.connection.request(method, path, json.dumps(body))
        response = self.connection.getresponse()
        text = response.read().decode()
        print(method, path, body, response.status, text, flush=True)
        assert response.status == 200
        message = f"successfully {verb} replicas"
        assert text.startswith(f'{{"success":true,"code":0,"message":"{message}","data":')
        return json.loads(text)["data"]

    def collectors(self):
        """The names, and where they listen."""
        data = self.ask("GET", LIST, {}, "get")
        assert list(data) == ["namespace", "coordinator", "collectors", "learners"]
        assert data["namespace"] == JOB and data["coordinator"] == "coordinator-0"
        urls = [url.split(":") for url in data["collectors"]]
        assert all(host.endswith(f".{JOB}") for host, _ in urls)
        return {host.rsplit(".", 1)[0]: int(port) for host, port in urls}

    def wait(self, expected):
        """Until the collectors are as expected."""
        for _ in range(3000):
            if expected(self.collectors()):
                return
            time.sleep(0.1)
        sys.exit("the collectors are not as expected")


client = Client()
assert client.collectors() == {}
client.ask("POST", REPLICAS, {"collectors": {"replicas": 3, "gpus": "0"}, **WHO}, "create")
client.wait(lambda found: len(found) == 3)
client.ask("DELETE", REPLICAS, {**WHO, "collectors": {"replicas": 2}}, "delete")
client.wait(lambda found: list(found) == ["collector-0"])
body = {**WHO, "collectors": ["collector-0", "collector-0"], "learners": []}
client.ask("POST", f"{REPLICAS}/failed", body, "recreate")
client.wait(lambda found: not found)
client.wait(lambda found: list(found) == ["collector-0"])
Path(f"{FILE}.ready").touch()
for _ in range(30):  # the leader is killed meanwhile
    client.collectors()
    time.sleep(0.1)
client.ask("POST", REPLICAS, {**WHO, "collectors": {"replicas": 1, "cpus": "2"}}, "create")
client.wait(lambda found: len(found) == 2)
