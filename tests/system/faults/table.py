# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of faults: its rows in table.txt, and the results of rows in a page of the manual."""

import collections
import os
import re

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.txt")
MARKS = ("<!-- table of scripts/faults: begin -->", "<!-- table of scripts/faults: end -->")
Row = collections.namedtuple("Row", "fault mode where expected seconds steps")


def rows():
    """Yields a Row for each line of table.txt."""
    with open(ROWS) as file:
        lines = [line for line in file.read().splitlines() if not line.startswith("#")]
    for line in lines:
        fault, mode, where, expected, seconds, steps = re.match(
            r"(.*?)\s{2,}(\S+)\s+(\S+)\s+(\S+)\s+(\d+)\s+(\d+)$", line
        ).groups()
        yield Row(fault, mode, where, expected, float(seconds), int(steps))


def begin_of_line(row):
    return f"| {row.fault} | {row.mode} | {row.where} | "


def line(row, found, seconds, steps, wrong):
    words = row.expected.replace("-", " ")
    if found == "failed":
        return f"{begin_of_line(row)}**not: {words}** | | |"
    late = f", not {row.seconds:.0f} s" if seconds > row.seconds else ""
    measured = f"{seconds:.1f} s{late} | {steps} |"
    return (
        f"{begin_of_line(row)}{words} | {measured}"
        if not wrong
        else f"{begin_of_line(row)}**not as promised** | {measured}"
    )


def write_table(path, results):
    """Lines of rows that were not run now stay as they are."""
    with open(path) as file:
        text = file.read()
    before, rest = text.split(MARKS[0])
    old, after = rest.split(MARKS[1])
    new = {result[0]: line(*result) for result in results if result[1] != "end"}
    lines = [
        "| fault | mode | node | what follows | longest pause | steps repeated |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows():
        kept = [each for each in old.splitlines() if each.startswith(begin_of_line(row))]
        lines += [new[row]] if row in new else kept
    with open(path + ".new", "w") as file:
        file.write(before + MARKS[0] + "\n" + "\n".join(lines) + "\n" + MARKS[1] + after)
    os.rename(path + ".new", path)
