# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the primes below 2,000,000 in pieces, on as many workers as the work needs."""

from distributed import Client
from slurm_elastic.dask import RoleCluster

BELOW = 2_000_000
PIECE = 2_000


def primes(begin):
    """How many primes there are from begin on, in a piece."""
    return sum(
        all(number % divisor for divisor in range(2, int(number**0.5) + 1))
        for number in range(max(2, begin), begin + PIECE)
    )


if __name__ == "__main__":
    # Without TLS: every user who reaches the ports can run programs as you. For work on a cluster
    # with other users give security= instead (README.md).
    with RoleCluster(role="worker", insecure=True) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=12)
        pieces = client.map(primes, range(0, BELOW, PIECE))
        print(client.submit(sum, pieces).result(), "primes below", BELOW, flush=True)
