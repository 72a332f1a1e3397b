# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the losses of two trainings of examples/digits, step by step.

    losses.py TOLERANCE REFERENCE FILE

REFERENCE, FILE: what was given to --log. Exit status 0 if both have the same steps, and the global
loss of each is equal within TOLERANCE, relatively, in each world that has made it.
"""

import collections
import glob
import json
import sys


def read(path):
    """{(epoch, step): [global loss of each world that all its ranks have logged]}"""
    ranks = collections.defaultdict(dict)
    for name in [path, *glob.glob(glob.escape(path) + ".*")]:
        with open(name) as file:
            for line in file:
                if not line.endswith("\n"):
                    continue  # its worker was killed while it wrote
                record = json.loads(line)
                key = record["epoch"], record["step"], record["generation"], record["world"]
                ranks[key][record["rank"]] = record["loss"]
    steps = collections.defaultdict(list)
    for (epoch, step, _, world), losses in ranks.items():
        if len(losses) == world:
            steps[epoch, step].append(sum(losses.values()) / world)
    return steps


def main():
    tolerance = float(sys.argv[1])
    reference, found = read(sys.argv[2]), read(sys.argv[3])
    wrong = sorted(set(reference) ^ set(found))
    largest = 0.0
    for place in set(reference) & set(found):
        right = reference[place][0]
        for loss in found[place]:
            largest = max(largest, abs(loss - right) / abs(right))
    print(
        f"{len(found)} steps, {len(wrong)} only in one training, largest difference {largest:.1e}"
    )
    return 0 if found and not wrong and largest <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
