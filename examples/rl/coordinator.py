# SPDX-License-Identifier: GPL-2.0-or-later
"""Stands between collectors and learners, and says how many collectors there should be.

It ends, and the job with it, when the last 100 episodes had the reward that is asked for.
"""

import argparse
import collections
import hmac
import http.server
import os
import socket
import sys
import threading
import time
import urllib.parse
from contextlib import suppress

import cartpole
import numpy
from slurm_elastic import roles

HELD = 20.0  # seconds that a request waits at most for what it asks for
LARGEST = 1 << 24  # bytes of a request
ATONCE = 256  # connections, each of which has a thread


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reward", type=float, default=475.0)
    parser.add_argument("--batch", type=int, default=2048, metavar="SAMPLES")
    parser.add_argument(
        "--collectors",
        default="auto",
        metavar="auto|N",
        help="auto: twice as many, as long as the learners wait most of the time",
    )
    parser.add_argument("--time", type=float, default=1800, metavar="SECONDS", help="at most")
    return parser.parse_args()


class Training:
    """What is known of the training. All methods may be called by any thread."""

    def __init__(self, batch, reward):
        self._news = threading.Condition()
        self._batch_size, self._wanted = batch, reward
        self._weights, self._version = None, -1  # -1: no learner has come yet
        self._fragments = collections.deque()
        self._numbers = {}  # of a collector's start: its next fragment
        self._batch, self._batch_number = None, -1
        self._lengths = collections.deque(maxlen=100)
        self._learner_came = self._waited = 0.0
        self.samples, self.over = 0, False

    def reward(self):
        """Of the last 100 episodes; 0 as long as there are fewer."""
        with self._news:
            full = len(self._lengths) == self._lengths.maxlen
            return float(numpy.mean(self._lengths)) if full else 0.0

    def end(self):
        with self._news:
            self.over = True
            self._news.notify_all()

    def wait_for_update(self, update, timeout):
        """Until that update has been made. False: it has not."""
        with self._news:
            return self._news.wait_for(lambda: self._version >= update or self.over, timeout)

    def starved(self):
        """The part of its time that the learner has waited for the last batch."""
        with self._news:
            return self._waited

    # ---- what is asked: (status, arrays) ---------------------------------------------------------

    def weights(self, after):
        with self._news:
            self._news.wait_for(lambda: self.over or self._version >= 0, HELD)
            if self.over:
                return 410, None
            if self._version <= after or self._weights is None:
                return 204, None
            return 200, dict(self._weights, version=numpy.array(self._version))

    def learned(self, update, weights):
        with self._news:
            if update > self._version:
                self._weights, self._version = weights, update
                self._learner_came = time.monotonic()
                self._news.notify_all()
            return 200, None

    def fragment(self, start, number, arrays):
        """It waits while there is enough for the next two batches."""
        with self._news:
            self._news.wait_for(lambda: self.over or self._held() < 2 * self._batch_size, HELD)
            if self.over:
                return 410, None
            if number < self._numbers.get(start, 0):
                return 200, None  # it has come twice
            self._numbers[start] = number + 1
            self._lengths.extend(arrays.pop("lengths"))
            self._fragments.append(arrays)
            self._news.notify_all()
            return 200, None

    def batch(self, update):
        with self._news:
            if update < self._batch_number:  # the learners have gone back to a checkpoint
                self._version = self._batch_number = -1
            if self._version < update and not self.over:
                return 409, None
            self._news.wait_for(lambda: self.over or self._make_batch(update), 1.0)
            if self.over:
                return 410, None
            if self._batch_number != update:
                return 204, None
            return 200, self._batch

    # ---- with the lock held ----------------------------------------------------------------------

    def _held(self):
        return sum(len(fragment["seen"]) for fragment in self._fragments)

    def _make_batch(self, update):
        """Is the batch of that number there? All who ask for it get the same one."""
        if self._batch_number == update:
            return True
        if self._held() < self._batch_size:
            return False
        parts, count = [], 0
        while count < self._batch_size:
            parts.append(self._fragments.popleft())
            count += len(parts[-1]["seen"])
        self._batch = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
        self._batch_number = update
        self.samples += count
        self._waited = time.monotonic() - self._learner_came
        self._news.notify_all()
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    """GET /weights?after=N and /batch?update=N.

    POST /learned?update=N and /fragment?from=REPLICA&start=S&number=N.
    """

    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds for each part of a request
    training = None
    secret = None

    def do_GET(self):
        if self._is_ours():
            self._answer(None)

    def do_POST(self):
        """What strangers send is not even read: it has no place in memory."""
        length = self.headers.get("Content-Length", "")
        if not self._is_ours():
            return
        if not length.isdigit() or int(length) > LARGEST:
            self.send_error(413)
        else:
            self._answer(self.rfile.read(int(length)))

    def _is_ours(self):
        given = self.headers.get("Authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {self.secret}".encode()):
            self.server.trust(self.request)
            return True
        self.send_error(401)  # which ends the connection
        return False

    def _answer(self, body):
        try:
            status, arrays = self._call(body)
        except (KeyError, ValueError) as error:
            self.send_error(400, str(error))
            return
        data = b"" if arrays is None else cartpole.pack(arrays)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _call(self, body):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if body is None and url.path == "/weights":
            return self.training.weights(int(query["after"]))
        if body is None and url.path == "/batch":
            return self.training.batch(int(query["update"]))
        if body is not None and url.path == "/learned":
            return self.training.learned(int(query["update"]), cartpole.unpack(body))
        if body is not None and url.path == "/fragment":
            start = query["from"], int(query["start"])
            return self.training.fragment(start, int(query["number"]), cartpole.unpack(body))
        return 404, None

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Connections beyond ATONCE are closed: collectors try again.

    So are those that do not show the secret in time: a stranger could send a byte now and then.
    """

    request_queue_size = 128
    proof = 10.0  # seconds in which a connection has to show the secret

    def __init__(self, *args):
        self._room = threading.BoundedSemaphore(ATONCE)
        self._strangers = {}  # connections, and until when they may be some
        super().__init__(*args)

    def trust(self, request):
        self._strangers.pop(request, None)

    def service_actions(self):
        """The server calls it twice a second."""
        now = time.monotonic()
        for request, until in list(self._strangers.items()):
            if until < now:
                with suppress(OSError):  # it has ended meanwhile
                    request.shutdown(socket.SHUT_RDWR)

    def process_request(self, request, client_address):
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._strangers[request] = time.monotonic() + self.proof
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self.trust(request)
            self._room.release()
            raise

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.trust(request)
            self._room.release()

    def handle_error(self, request, client_address):
        pass  # a collector that Slurm has killed


def adapt(starved):
    """Twice as many collectors while learners wait for most of their time."""
    (role,) = roles.status("collector")
    if starved and role.ready >= role.target < role.maximum:
        roles.scale("collector", min(2 * role.target, role.maximum))


def main():
    args = parse_arguments()
    started = time.monotonic()
    training = Training(args.batch, args.reward)
    Handler.training, Handler.secret = training, cartpole.make_secret()
    server = Server(("", roles.me().ports["data"]), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    roles.ready()
    if args.collectors != "auto":
        roles.scale("collector", int(args.collectors))
    update, since = 1, started
    while time.monotonic() - started < args.time:
        if not training.wait_for_update(update, 1.0):
            continue
        took, since = time.monotonic() - since, time.monotonic()
        (role,) = roles.status("collector")
        reward = training.reward()
        print(
            f"update {update}: {training.samples} samples of {role.ready} collectors, reward {reward:.0f}",
            flush=True,
        )
        if reward >= args.reward:
            break
        if args.collectors == "auto":
            adapt(training.starved() > took / 2)
        update += 1
    training.end()
    seconds = time.monotonic() - started
    reached = training.reward() >= args.reward
    print(f"reward={training.reward():.0f} samples={training.samples} seconds={seconds:.0f}")
    sys.stdout.flush()
    os._exit(0 if reached else 1)  # requests that are held do not matter any more


if __name__ == "__main__":
    main()
