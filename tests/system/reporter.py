# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of roles_reports.bats: reporter.py tell COUNT | follow.

tell reports COUNT times, one after the other, and writes the numbers into $LOG/told. It waits for
$LOG/go after the first one, and a moment after each as long as there is no $LOG/killed. follow
writes a line "NUMBER PATH" into $LOG/followed for each report that it hears of.
"""

import os
import sys
import time
from pathlib import Path

from slurm_elastic import roles

LOG = Path(os.environ["LOG"])


def tell(count):
    with open(LOG / "told", "a", encoding="ascii", buffering=1) as told:
        for i in range(count):
            number = roles.report(f"/data/{i}", size=i, loss=0.5, tags=["a b", i])
            print(number, file=told)
            if i == 0:
                while not (LOG / "go").exists():
                    time.sleep(0.1)
            elif not (LOG / "killed").exists():
                time.sleep(0.2)


def follow():
    last = 0
    with open(LOG / "followed", "a", encoding="utf-8", buffering=1) as followed:
        while True:
            found = roles.reports(after=last)
            for each in found:
                print(each.number, each.path, file=followed)
            last = found.last


if sys.argv[1] == "tell":
    tell(int(sys.argv[2]))
else:
    follow()
