#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""examples/serve: the server with real models of digits, by a file and by requests."""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import tap

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES / "serve"))

if tap.HAS_TORCH:
    import serve
    import train

    import client


class Place:
    """A repository with two models, and a server."""

    def __init__(self, directory):
        self.path = Path(directory)
        self.repository = self.path / "repository"
        self.right = {}
        for task in ("digit", "parity"):
            model, self.right[task] = train.train(task, 60)
            self.write(model, task, "000001")

    def write(self, model, name, version):
        directory = self.repository / name / version
        train.write(model, directory)
        (directory / "complete.json").write_text("{}")

    def models(self, *names, version="000001"):
        """The file for load: file."""
        listed = [
            {"name": name, "version": version, "path": str(self.repository / name / version)}
            for name in names
        ]
        new = self.path / "models.new"
        new.write_text(json.dumps({"shard": "shard_1", "epoch": 1, "models": listed}))
        os.replace(new, self.path / "models.json")


@tap.needs_torch
@unittest.skipUnless(importlib.util.find_spec("sklearn"), "there are no digits of scikit-learn")
class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.place = Place(cls.directory.name)
        cls.samples = client.held_out()

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def serve(self, models):
        server = serve.Server(("127.0.0.1", 0), models)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def call(self, url, body=None):
        """Status and answer. With a body it is a POST."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data), timeout=280) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def right(self, url, model, task):
        rows = [pixels for pixels, _ in self.samples]
        labels, _ = client.ask(url, model, rows, tries=1)
        wanted = [client.TASKS[task](digit) for _, digit in self.samples]
        return sum(map(int.__eq__, labels, wanted)) / len(wanted)

    def test_by_requests(self):
        url = self.serve(serve.Models(self.place.repository))
        self.assertEqual(self.call(f"{url}/v2/health/ready"), (200, {}))
        self.assertEqual(self.call(f"{url}/v2/models/digit")[0], 404)
        self.assertEqual(self.call(f"{url}/v2/repository/models/digit/load", {})[0], 200)
        self.assertAlmostEqual(self.right(url, "digit", "digit"), self.place.right["digit"])
        index = self.call(f"{url}/v2/repository/index", {})[1]
        self.assertEqual([one["state"] for one in index], ["READY", "UNAVAILABLE"])
        self.assertEqual(self.call(f"{url}/v2/repository/models/digit/unload", {})[0], 200)
        self.assertEqual(self.call(f"{url}/v2/models/digit/ready")[0], 404)
        for name in ("..", "none", ".git"):
            self.assertEqual(self.call(f"{url}/v2/repository/models/{name}/load", {})[0], 404)

    def test_by_a_file(self):
        models = serve.Models()
        url = self.serve(models)
        path = self.place.path / "models.json"
        self.assertEqual(self.call(f"{url}/v2/health/ready")[0], 503)
        # Not ready before all of them are there.
        bad = self.place.repository / "bad" / "000001"
        bad.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, bad.parent)
        (bad / "model.pt").write_text("nothing")
        self.place.models("parity", "bad")
        threading.Thread(target=serve.follow_file, args=(models, path), daemon=True).start()
        self.until(lambda: self.call(f"{url}/v2/models/parity/ready")[0] == 200)
        self.assertEqual(self.call(f"{url}/v2/health/ready")[0], 503)
        self.place.models("parity")
        self.until(lambda: self.call(f"{url}/v2/health/ready")[0] == 200)
        self.assertAlmostEqual(self.right(url, "parity", "parity"), self.place.right["parity"])
        # Another version, while it answers.
        model, _ = train.train("digit", 60)
        self.place.write(model, "parity", "000002")
        self.place.models("parity", version="000002")
        self.until(lambda: self.call(f"{url}/v2/models/parity")[1]["versions"] == ["000002"])
        self.place.models()
        self.until(lambda: self.call(f"{url}/v2/models/parity")[0] == 404)

    def test_refused(self):
        models = serve.Models(self.place.repository)
        models.load("digit")
        url = self.serve(models)
        for body in (
            b"nothing",
            b"[]",
            {"inputs": []},
            {"inputs": [{"name": "image", "shape": [1, 63], "data": [0] * 63}]},
            {"inputs": [{"name": "image", "shape": [2, 64], "data": [0] * 64}]},
            {"inputs": [{"name": "image", "shape": [10**9, 64], "data": []}]},
            {"inputs": [{"name": "image", "shape": [1, 64], "data": ["x"] * 64}]},
        ):
            status, answer = self.call(f"{url}/v2/models/digit/infer", body)
            self.assertEqual(status, 400, body)
            self.assertIn("error", answer)
        self.assertEqual(self.call(f"{url}/v2/nothing")[0], 404)
        self.assertEqual(self.call(f"{url}/v2/health/ready")[0], 200)

    def until(self, condition):
        ended = threading.Event()
        for _ in range(600):
            if condition():
                return
            ended.wait(0.1)
        self.fail("in vain")


if __name__ == "__main__":
    tap.main()
