#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training without a model whose rank 1 is slow: for tests of metrics.

Usage: slow_rank.py STEPS

The ranks make steps of equal length, as if they waited for each other, and report what they have
needed themselves.
"""

import os
import sys
import time

import slurm_elastic

steps, rank = int(sys.argv[1]), int(os.environ["RANK"])
own = 0.05 if rank == 1 else 0.02
for step in range(1, steps + 1):
    time.sleep(0.05)
    slurm_elastic.report_step_time(own)
    slurm_elastic.report_progress(step, steps)
    if slurm_elastic.elastic_event_detected():
        slurm_elastic.leave()
