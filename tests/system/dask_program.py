# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of dask.bats: 2,000 short tasks whose results are all needed at the end.

Each task appends its number to $LOG/computed as it ends. $LOG/begun appears after 300 of them. The
second half waits for $LOG/go, and until a worker has left. $LOG/result says: the result, how many
tasks finished more than once as the scheduler sees it, how many tasks ran to their end more than
once, how many workers came, and how many had left before the second half.
"""

import collections
import os
import time
from pathlib import Path

from distributed import Client, wait
from distributed.diagnostics.plugin import SchedulerPlugin
from slurm_elastic.dask import RoleCluster

LOG = Path(os.environ["LOG"])
TASKS = 2000


def square(number):
    time.sleep(0.03)
    with open(LOG / "computed", "a", encoding="ascii") as file:
        file.write(f"{number}\n")
    return number * number


class Finished(SchedulerPlugin):
    """Counts how often each task has finished, and the workers."""

    name = "finished"

    def __init__(self):
        self.times = collections.Counter()
        self.workers = collections.Counter()
        self.left = 0

    def transition(self, key, start, finish, *_arguments, **_more):
        if start == "processing" and finish == "memory":
            self.times[key] += 1
            if len(self.times) == 300:
                (LOG / "begun").touch()

    def add_worker(self, scheduler, worker):
        self.workers[scheduler.workers[worker].name] += 1

    def remove_worker(self, scheduler, worker, **_more):
        self.left += 1


if __name__ == "__main__":
    with RoleCluster(insecure=True) as cluster, Client(cluster) as client:
        finished = Finished()
        cluster.scheduler.add_plugin(finished)
        cluster.adapt(minimum=0, maximum=7)
        futures = client.map(square, range(TASKS // 2))
        wait(futures)
        while not ((LOG / "go").exists() and finished.left):
            time.sleep(0.05)
        left = finished.left
        futures += client.map(square, range(TASKS // 2, TASKS))
        total = client.submit(sum, futures).result()
        computed = collections.Counter((LOG / "computed").read_text().split())
        text = (
            f"right={total == sum(i * i for i in range(TASKS))} "
            f"finished_again={sum(times > 1 for times in finished.times.values())} "
            f"computed_again={sum(times > 1 for times in computed.values())} "
            f"workers={len(finished.workers)} left={left}\n"
        )
        (LOG / "part").write_text(text)
        (LOG / "part").rename(LOG / "result")
        print(text, flush=True)
