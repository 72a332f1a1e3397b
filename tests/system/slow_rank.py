#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training without a model that is slow somewhere: for tests of metrics and stragglers.

Usage: slow_rank.py STEPS [NODE]

The ranks make steps of equal length, as if they waited for each other, and report what they have
needed themselves. On NODE, if one is named, a worker really sleeps longer. Else rank 1 only says
so.
"""

import os
import sys
import time

import slurm_elastic

steps, slow = int(sys.argv[1]), sys.argv[2:]
# Where it is measured, a step is long beside what a busy machine adds to it.
STEP, LONG, SHORT = 0.2 if slow else 0.05, 0.18, 0.06
claimed = 0.05 if os.environ["RANK"] == "1" else 0.02
for step in range(1, steps + 1):
    begun = time.monotonic()
    if slow:
        time.sleep(LONG if os.environ["SLURMD_NODENAME"] in slow else SHORT)
        slurm_elastic.report_step_time(time.monotonic() - begun)
    else:
        slurm_elastic.report_step_time(claimed)
    time.sleep(max(0, begun + STEP - time.monotonic()))
    slurm_elastic.report_progress(step, steps)
    if slurm_elastic.elastic_event_detected():
        slurm_elastic.leave()
