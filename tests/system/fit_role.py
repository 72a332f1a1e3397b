# SPDX-License-Identifier: GPL-2.0-or-later
"""The trainings of fit_roles.bats: fit_role.py tasks | server PORT | world.

The data is a file with words. "until FILE": it goes on until there is FILE. "fail N": task N ends
with status 93. The model is a file "model", with the first word, and one file for each task or
worker. Of a server: "later": it answers 202 first. "refuse": it answers 500. "drop": it closes the
connection. "die": it ends with status 5.
"""

import os
import sys
import time

import light

RANK = os.environ.get("RANK", "0")


def words_of(call):
    return light.read(call["trainData"]).split()


def wait_for(words):
    while "until" in words and not os.path.exists(words[words.index("until") + 1]):
        time.sleep(0.1)


def write(call, words):
    model = call["modelDir"]
    light.write(f"{model}/rank-{RANK}", os.environ.get("WORLD_SIZE", "1"))
    if RANK == "0":
        before = call["previousModelDir"]
        start = light.read(before + "/model") + " " if before else ""
        light.write(model + "/model", start + words[0])


def serve(port):
    # To import this is most of what a start costs.
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        trained = None  # the status of the training; None: it goes on

        def answer(self, status, text=""):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self):
            self.answer(200 if self.path == "/ready" else Handler.trained or 202)

        def train(self, call, words):
            wait_for(words)
            write(call, words)
            Handler.trained = 200

        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            call = light.parse_json(content.decode())
            words = words_of(call)
            print("called", self.path, call["datasetInfo"]["name"], flush=True)
            if "die" in words:
                os._exit(5)
            if "drop" in words:
                self.close_connection = True
            elif "refuse" in words:
                self.answer(500, "\nno such base model\nmore\n")
            elif "later" in words:
                threading.Thread(target=self.train, args=(call, words), daemon=True).start()
                self.answer(202)
            else:
                self.train(call, words)
                self.answer(200)

        def log_message(self, *_arguments):
            """Nothing is logged."""

    http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()


if sys.argv[1] == "server":
    serve(int(sys.argv[2]))
call = light.load_json(os.environ["ELASTIC_FIT"])
words = words_of(call)
print("trains", sys.argv[1], RANK, os.environ["WORLD_SIZE"], os.environ["ELASTIC_ROLE"], flush=True)
if sys.argv[1] == "world":
    print("checkpoints", os.environ["ELASTIC_CHECKPOINT_DIR"], flush=True)
wait_for(words)
if "fail" in words and words[words.index("fail") + 1] == RANK:
    sys.exit(93)
write(call, words)
