# SPDX-License-Identifier: GPL-2.0-or-later
"""A training of steps.py that writes down the signals for the program, for signals.bats.

Usage: signals.py steps.py LOGDIR STEPS STEP_SECONDS

Each rank appends a line "NAME RANK" to LOGDIR.signals. A file LOGDIR.eat makes rank 1 use up its
memory.
"""

import os
import runpy
import signal
import sys
import threading
import time

log, meal = f"{sys.argv[2]}.signals", f"{sys.argv[2]}.eat"


def note(number, _frame):
    with open(log, "a") as file:
        file.write(f"{signal.Signals(number).name} {os.environ['RANK']}\n")


def eat():
    while not os.path.exists(meal):
        time.sleep(0.1)
    os.unlink(meal)
    full = []
    while True:
        full.append(b"x" * 10_000_000)


if os.environ["RANK"] == "1":
    threading.Thread(target=eat, daemon=True).start()
for each in (signal.SIGUSR1, signal.SIGHUP):
    signal.signal(each, note)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
