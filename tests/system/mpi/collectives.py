# SPDX-License-Identifier: GPL-2.0-or-later
"""An mpi4py program that knows nothing of slurm-elastic: initialised by its import, collectives of
objects and buffers.
"""

import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()

assert world.allgather((rank, "x" * rank)) == [(r, "x" * r) for r in range(size)]
assert world.bcast({"from": 0} if rank == 0 else None) == {"from": 0}
assert world.alltoall([rank * 100 + to for to in range(size)]) == [
    r * 100 + rank for r in range(size)
]
mine, total = numpy.full(100_000, rank, dtype="d"), numpy.empty(100_000, dtype="d")
world.Allreduce(mine, total)
assert (total == size * (size - 1) / 2).all()
world.Barrier()
if rank == 0:
    print(f"mpi4py {size} ranks: right", flush=True)
sys.exit(0)
