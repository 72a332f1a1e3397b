# SPDX-License-Identifier: GPL-2.0-or-later
"""For bench/roles: a program of Dask whose workers are taken away while they work. All results are
needed at the end.

    python3 roles_tasks.py replica|job DIRECTORY

`begun` appears in the directory once some tasks have finished, and `result` at the end, with JSON:
is the sum right, tasks, tasks that finished more than once, workers that left, seconds.
"""

import collections
import json
import os
import sys
import time
from pathlib import Path

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

TASKS = 3000
SECONDS = 0.1  # of a task
WORKERS = 12
BEGUN = 300


def square(number):
    time.sleep(SECONDS)
    return number * number


class Finished(SchedulerPlugin):
    """Counts how often each task has finished."""

    name = "finished"

    def __init__(self, directory):
        self.directory = directory
        self.times = collections.Counter()
        self.left = 0

    def transition(self, key, start, finish, *_arguments, **_more):
        if start == "processing" and finish == "memory":
            self.times[key] += 1
            if len(self.times) == BEGUN:
                (self.directory / "begun").touch()

    def remove_worker(self, scheduler, worker, **_more):
        self.left += 1


def begin(kind, directory):
    """The cluster, without workers."""
    if kind == "replica":
        from slurm_elastic.dask import RoleCluster

        return RoleCluster(insecure=True)
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None)
    path = directory / "scheduler"
    (directory / "new").write_text(cluster.scheduler_address)
    os.rename(directory / "new", path)
    return cluster


def main(kind, directory):
    with begin(kind, directory) as cluster, Client(cluster) as client:
        finished = Finished(directory)
        cluster.scheduler.add_plugin(finished)
        # An extension job for each node: so one that is taken has half of the workers.
        for count in (WORKERS // 2, WORKERS):
            if kind == "replica":
                cluster.scale(count)
            client.wait_for_workers(count, timeout=120)
        before, began = finished.left, time.time()
        futures = client.map(square, range(TASKS))
        right = client.submit(sum, futures).result() == sum(i * i for i in range(TASKS))
        result = {
            "right": right,
            "tasks": TASKS,
            "again": sum(times > 1 for times in finished.times.values()),
            "left": finished.left - before,
            "seconds": time.time() - began,
        }
        (directory / "new").write_text(json.dumps(result))
        os.rename(directory / "new", directory / "result")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
