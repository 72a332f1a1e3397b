#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A script of the Python package that changes the size of its own job.

library.py once: calls everything once, and prints what is answered.
library.py DIRECTORY: from 2 nodes it gives back what the job grows to by itself, asks for one more,
and ends on 3; rank 0 writes what happens to DIRECTORY/log.
"""

import os
import sys

import slurm_elastic as elastic


def call_all():
    print(
        elastic.init(),
        elastic.wait_event(0.01),
        attempt(elastic.request_nodes, 1),
        attempt(elastic.release_nodes, "n1"),
        attempt(elastic.request_result),
        attempt(elastic.cancel_request, "1.0.1"),
        attempt(elastic.checkpoint_done),
        attempt(elastic.report_progress, 1, 2),
    )


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except (elastic.ElasticError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def main(directory):
    elastic.init()
    rank, nodes = int(os.environ["RANK"]), int(os.environ["ELASTIC_NODES"])
    log = open(os.path.join(directory, "log"), "a", buffering=1)
    asked = os.path.join(directory, "asked")

    def say(*words):
        if rank == 0:
            print(*words, file=log)

    def change(what, function, *arguments):
        """Ask, and go on until the next world begins."""
        if rank == 0:
            with open(asked, "a") as file:
                print(elastic.generation(), what, file=file)
            say(what, attempt(function, *arguments))
        while True:
            event = elastic.wait_event(60)
            if event:
                say("event", event.kind)
                sys.exit(0)

    done = []
    if os.path.exists(asked):
        with open(asked) as file:
            # What rank 0 of this world has asked for already is not done for those that come up
            # later.
            done = [line.split()[1] for line in file if int(line.split()[0]) < elastic.generation()]
    say("nodes", nodes)
    if "release" not in done:
        if nodes == 2:
            while elastic.wait_event() is None:
                pass
            sys.exit(0)
        change("release", elastic.release_nodes, 1)
    if rank == 0:
        result = elastic.request_result(timeout=180)
        say("result", result.done, result.nodes, repr(result.reason))
    if "request" in done:
        return  # ranks may end one after the other: that is not a failure
    if rank == 0:
        say(attempt(elastic.request_nodes, 5))
        say(attempt(elastic.request_nodes, 0))
        say(attempt(elastic.release_nodes, ["elsewhere"]))
        say(attempt(elastic.cancel_request, "1.2.3"))
        say(attempt(elastic.report_progress, -1))
        say(elastic.request_result(), elastic.report_progress(3, 4, "epochs"))
    change("request", elastic.request_nodes, 1)


if sys.argv[1] == "once":
    call_all()
else:
    main(sys.argv[1])
