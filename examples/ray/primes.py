# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the primes below 1,000,000 by tasks of Ray, and adds them up in actors."""

import ray
from slurm_elastic.ray import RoleCluster

BELOW = 1_000_000
PIECE = 2_500
KNOWN = 78_498  # primes below 1,000,000


@ray.remote(num_cpus=1, max_retries=-1)
def primes(begin):
    """How many primes there are from begin on, in a piece."""
    return sum(
        all(number % divisor for divisor in range(2, int(number**0.5) + 1))
        for number in range(max(2, begin), begin + PIECE)
    )


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Adder:
    """Has no state of its own: on another node, it goes on as here."""

    def add(self, *numbers):
        return sum(numbers)


if __name__ == "__main__":
    with RoleCluster(role="worker", cpus=1, object_store_memory=100 << 20, idle=10) as cluster:
        ray.init(address=cluster.address, log_to_driver=False)
        adders = [Adder.remote() for _ in range(2)]
        pieces = [primes.remote(begin) for begin in range(0, BELOW, PIECE)]
        halves = [adder.add.remote(*pieces[half::2]) for half, adder in enumerate(adders)]
        found = sum(ray.get(halves))
        nodes = len(ray.nodes()) - 1
        ray.shutdown()
    print(f"{found} primes below {BELOW}, on {nodes} workers", flush=True)
    if found != KNOWN:
        raise SystemExit(f"there are {KNOWN}")
