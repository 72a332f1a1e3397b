# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of ray.bats: tasks and actors of Ray on workers that come and go.

Tasks append their number to $LOG/computed. Each waits until there is $LOG/go, so that all workers
are wanted; the last ones wait for $LOG/taken. $LOG/result says what has come of it. Then the
program asks for two workers, and writes how many there are to $LOG/alive, until there is $LOG/end.
"""

import collections
import os
import time
from pathlib import Path

import ray
from ray.autoscaler.sdk import request_resources
from slurm_elastic.ray import RoleCluster

LOG = Path(os.environ["LOG"])
TASKS, FIRST = 150, 130


@ray.remote(num_cpus=1, max_retries=-1)
def square(number):
    while not (LOG / ("go" if number < FIRST else "taken")).exists():
        time.sleep(0.05)
    time.sleep(0.2)
    with open(LOG / "computed", "a", encoding="ascii") as file:
        file.write(f"{number}\n")
    return number * number


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Adder:
    def add(self, *numbers):
        return sum(numbers)


def alive():
    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def put(name, text):
    (LOG / "part").write_text(text)
    (LOG / "part").rename(LOG / name)


if __name__ == "__main__":
    with RoleCluster(object_store_memory=80 << 20, idle=3) as cluster:
        ray.init(address=cluster.address, log_to_driver=False)
        adders = [Adder.remote() for _ in range(2)]
        tasks = [square.remote(number) for number in range(TASKS)]
        while len(alive()) < 4:
            time.sleep(0.1)
        put("four", "")
        halves = [adder.add.remote(*tasks[half::2]) for half, adder in enumerate(adders)]
        total = sum(ray.get(halves))
        computed = collections.Counter((LOG / "computed").read_text().split())
        dead = len([node for node in ray.nodes() if not node["Alive"]])
        put(
            "result",
            f"right={total == sum(number * number for number in range(TASKS))} "
            f"computed={len(computed)} again={sum(computed.values()) - len(computed)} left={dead}\n",
        )
        del tasks, halves, adders
        request_resources(num_cpus=2)
        while not (LOG / "end").exists():
            put("alive", f"{len(alive())}\n")
            time.sleep(0.2)
        ray.shutdown()
