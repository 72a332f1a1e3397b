#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training without a model that keeps snapshots, for system tests.

Usage: snapshots.py LOG EVERY [save=STEP [again]] [deaf]

Rank 0 appends to LOG "start INCARNATION GENERATION STEP" and a line "step STEP" for each; every so
many steps it keeps a snapshot, and waits for it. save=STEP: one checkpoint is saved then, and no
snapshot is kept after, but with again. deaf: goes on whatever happens, until it is killed.
"""

import os
import signal
import sys
import time

import slurm_elastic

options = dict(word.partition("=")[::2] for word in sys.argv[3:])
log, every, save_at = sys.argv[1], int(sys.argv[2]), int(options.get("save", 0))
if "deaf" in options:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
state = slurm_elastic.load_latest() or {"step": 0, "weights": b""}
first = os.environ["RANK"] == "0"


def note(*words):
    if first:
        with open(log, "a") as file:
            print(*words, file=file)


note("start", os.environ["ELASTIC_INCARNATION"], os.environ["ELASTIC_GENERATION"], state["step"])
assert state["weights"] == b"w" * 1000 * state["step"], "the state is not whole"
while True:
    time.sleep(0.05)
    state["step"] += 1
    state["weights"] = b"w" * 1000 * state["step"]
    note("step", state["step"])
    told = slurm_elastic.elastic_event_detected()
    if told and "deaf" not in options:
        slurm_elastic.save(state)
        break
    if state["step"] == save_at:
        slurm_elastic.save(state)
    elif state["step"] % every == 0 and ("again" in options or not 0 < save_at < state["step"]):
        slurm_elastic.snapshot(state)
        slurm_elastic.wait_for_snapshot()
