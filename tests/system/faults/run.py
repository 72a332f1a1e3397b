#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tries rows of the table of faults: a real training for each mode suffers one after another.

    run.py [--only PATTERN]... [--write FILE] [--strict]

Runs on a testbed of 7 nodes with namespaces, with all files of this directory, live.py and
live_faults.py in the work directory. Prints a line for each row, in TAP. Exit status 1 if a row
failed.
"""

import argparse
import subprocess
import sys

from catalogue import FAULTS, LEADER_STAYS, NEEDS_ROOM
from job import BASE, Failed, TrainingJob
from table import Row, rows, write_table


class Run:
    """Rows one after another, in a training per mode as long as it lives."""

    def __init__(self, selected, strict):
        self.rows = selected
        self.strict = strict  # on an idle machine: what is slower than promised has failed
        self.results = []  # (row, what was found, seconds, steps, what is wrong)
        self.training = None
        self.of_training = []
        self.alone = False

    def add(self, row, found, seconds, steps, wrong):
        number = len(self.results) + 1
        self.results.append([row, found, seconds, steps, wrong])
        what = f"{row.fault}, {row.mode}, {row.where}"
        measured = (
            ""
            if seconds is None
            else f": {row.expected}, {seconds:.1f} s without a new step, {steps} steps repeated"
        )
        print(f"{'not ok' if wrong else 'ok'} {number} - {what}{measured}", flush=True)
        if wrong:
            print(f"# {wrong}", flush=True)

    def one(self, row):
        full = (
            self.training
            and row.where == "base"
            and self.training.lost == BASE - 1
            and "comes back" not in row.fault
        )
        # After these the leader is not where it was at first, or there is none.
        fresh = row.where == "all" or (row.where == "leader" and row.fault not in LEADER_STAYS)
        roomy = row.where == "base" and row.fault in NEEDS_ROOM
        if self.training and (
            self.training.mode != row.mode
            or self.training.is_roomy != roomy
            or full
            or fresh
            or self.alone
        ):
            self.close()
        self.alone = fresh
        try:
            self.training = self.training or TrainingJob(
                row.mode, snapshots=self.alone, roomy=roomy
            )
            seconds, steps = self.training.suffer(row, FAULTS[row.fault])
        except (
            Failed,
            AttributeError,
            IndexError,
            OSError,
            subprocess.CalledProcessError,
        ) as error:
            self.add(
                row, "failed", None, None, f"{type(error).__name__} {error}; {self.last_words()}"
            )
            self.give_up()
            return
        late = seconds > row.seconds
        wrong = f"{steps} steps repeated, {row.steps} are allowed" if steps > row.steps else None
        slow = f"slower than the {row.seconds:.0f} s that are promised" if late else None
        self.add(row, row.expected, seconds, steps, wrong or (slow if self.strict else None))
        if late and not self.strict:
            print(f"# {slow}", flush=True)
        if late or steps > row.steps:
            self.show()
        self.of_training.append(len(self.results))

    def last_words(self):
        return self.training.last_words() if self.training else "no job"

    def show(self):
        print("# " + self.last_words().replace(" | ", "\n# "), flush=True)

    def give_up(self):
        """This training is of no more use."""
        if self.training:
            self.training.cancel()
        self.training, self.of_training = None, []

    def close(self):
        """The end of a training, which is about all its rows."""
        if not self.training:
            return
        number = len(self.results) + 1
        try:
            wrong = self.training.end()
        except Failed as error:
            wrong = [str(error), self.last_words()]
            self.training.cancel()
        row = Row(
            f"(end of a training after {len(self.of_training)} faults)",
            self.training.mode,
            "all",
            "goes-on",
            0,
            0,
        )
        self.results.append([row, "end", None, None, "; ".join(wrong[:5]) or None])
        print(f"{'not ok' if wrong else 'ok'} {number} - {row.fault}, {row.mode}", flush=True)
        for line in wrong[:20]:
            print(f"# {line}", flush=True)
        self.training, self.of_training = None, []

    def all(self):
        for row in self.rows:
            self.one(row)
        self.close()
        print(f"1..{len(self.results)}")
        return any(wrong for *_, wrong in self.results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="rows that contain PATTERN"
    )
    parser.add_argument(
        "--write", metavar="FILE", help="put the rows into the table between the marks in FILE"
    )
    parser.add_argument(
        "--strict", action="store_true", help="what is slower than promised has failed"
    )
    args = parser.parse_args()
    chosen = [
        row
        for row in rows()
        if not args.only
        or any(each in f"{row.fault}, {row.mode}, {row.where}" for each in args.only)
    ]
    if not chosen:
        sys.exit(f"no row contains {args.only}")
    run = Run(chosen, args.strict)
    failed = run.all()
    if args.write:
        write_table(args.write, run.results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
