# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts to 300, or until the job changes its size: then it begins anew."""

import os
import time

import slurm_elastic

if not slurm_elastic.init():
    raise SystemExit("not started by elasticrun, or libelastic is not in the container")
print(
    f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} on {os.environ['SLURMD_NODENAME']}:",
    f"{len(os.listdir('/dev/shm'))} files in /dev/shm",
    flush=True,
)
for _ in range(300):
    if slurm_elastic.elastic_event_detected():
        break
    time.sleep(0.1)
