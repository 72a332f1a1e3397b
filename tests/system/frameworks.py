#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Is a training by a framework that was resized the training of one process?

    frameworks.py LOGDIR REFERENCE

Both directories have a file for each process, of JSON lines for its steps: epoch, step, rank,
world, indices, global_step, rate, total (of the parameters). Exit status 0 if each epoch of LOGDIR
has each sample once, each step was made by all ranks of one world with the global step, the rate
and, within 1e-9, the parameters of the same step of REFERENCE; else 1 and a line for what differs.
"""

import collections
import glob
import json
import os
import sys


def read(directory):
    steps, processes = collections.defaultdict(list), {}
    for path in glob.glob(os.path.join(directory, "*")):
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        processes[path] = {(line["epoch"], line["step"]) for line in lines}
        for line in lines:
            steps[line["epoch"], line["step"]].append(line)
    return steps, processes


def main():
    steps, processes = read(sys.argv[1])
    reference, _ = read(sys.argv[2])
    wrong, sizes = [], []
    if sorted(steps) != sorted(reference):
        wrong.append(f"{len(steps)} steps, {len(reference)} would be right")
    for number, lines in sorted(steps.items()):
        ranks, size = sorted(line["rank"] for line in lines), lines[0]["world"]
        sizes += [size] if sizes[-1:] != [size] else []
        if ranks != list(range(size)) or {line["world"] for line in lines} != {size}:
            wrong.append(f"step {number}: ranks {ranks} of {size}")
        for right in reference.get(number, []):
            if sorted(index for line in lines for index in line["indices"]) != sorted(
                right["indices"]
            ):
                wrong.append(f"step {number}: other samples")
            for line in lines:
                if abs(line["total"] - right["total"]) > 1e-9:
                    wrong.append(
                        f"step {number}: parameters {line['total']}, {right['total']} would be right"
                    )
                for name in ("global_step", "rate"):
                    if line[name] != right[name]:
                        wrong.append(
                            f"step {number}: {name} {line[name]}, {right[name]} would be right"
                        )
    print("\n".join(wrong[:20]) if wrong else "ok")
    print("sizes", *sizes)
    print(
        f"{sum(made == set(steps) for made in processes.values())} processes have made all {len(steps)} steps"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
