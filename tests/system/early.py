#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""steps.py with something to do before its gate.

Usage: early.py DIR LOGDIR STEPS STEP_SECONDS

Appends a line "GENERATION RANK TIME" to DIR/born, waits while there is a file DIR/slow, and then is
steps.py.
"""

import os
import runpy
import sys
import time

here = sys.argv.pop(1)
with open(os.path.join(here, "born"), "a") as born:
    born.write(f"{os.environ['ELASTIC_GENERATION']} {os.environ['RANK']} {time.time():.3f}\n")
while os.path.exists(os.path.join(here, "slow")):
    time.sleep(0.05)
sys.argv[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps.py")
runpy.run_path(sys.argv[0], run_name="__main__")
