# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks in the logs of a run that each epoch trained on each sample exactly once.

    python3 check_log.py [--epochs N] FILE

FILE is what was given to --log; FILE.1, FILE.2, ... of the other ranks are read with it. Each world
has a line, which says how many of its processes were not started for it, but stayed from the one
before. The last line is "lost=N repeated=N": samples that an epoch never trained on, and those it
trained on again, summed over the epochs. Exit status 0 if both are 0, 1 if not, 2 if the logs
cannot be used.
"""

import argparse
import collections
import glob
import json
import re
import sys


def read(path):
    """The records of all ranks. The last line may be cut: its worker was killed while it wrote."""
    others = [
        name
        for name in glob.glob(glob.escape(path) + ".*")
        if re.fullmatch(r"\d+", name[len(path) + 1 :])
    ]
    for name in [path, *others]:
        with open(name) as file:
            lines = file.read().split("\n")
        for number, line in enumerate(lines, 1):
            try:
                if line:
                    yield json.loads(line)
            except ValueError as error:
                if number < len(lines):
                    sys.exit(f"{name}:{number}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--epochs", type=int, metavar="N", help="that there must be; default: those begun"
    )
    parser.add_argument("file", metavar="FILE")
    args = parser.parse_args()

    counts = collections.defaultdict(collections.Counter)  # epoch -> index -> times
    worlds = {}  # generation -> (workers, processes by rank, steps)
    samples = set()
    try:
        for record in read(args.file):
            counts[record["epoch"]].update(record["indices"])
            samples.add(record["samples"])
            world = worlds.setdefault(record["generation"], (record["world"], {}, set()))
            world[1][record["rank"]] = record.get("process")
            world[2].add((record["epoch"], record["step"]))
    except (OSError, KeyError) as error:
        print(f"check_log: {error!r}", file=sys.stderr)
        return 2
    if len(samples) != 1:
        what = f"logs of datasets of {sorted(samples)} samples" if samples else "no step was logged"
        print(f"check_log: {args.file}: {what}", file=sys.stderr)
        return 2

    samples = samples.pop()
    before = set()
    for generation, (workers, ranks, steps) in sorted(worlds.items()):
        stayed = before & set(ranks.values())
        print(
            f"generation {generation}: {len(ranks)} of {workers} workers, {len(steps)} steps",
            end="",
        )
        print(f", {len(stayed)} processes stayed" if before else "")
        before = {process for process in ranks.values() if process}
    lost = repeated = 0
    for epoch in range(args.epochs or max(counts) + 1):
        unknown = [index for index in counts[epoch] if not 0 <= index < samples]
        if unknown:
            print(f"check_log: epoch {epoch}: sample {unknown[0]} of {samples}", file=sys.stderr)
            return 2
        missing = samples - len(counts[epoch])
        again = sum(counts[epoch].values()) - len(counts[epoch])
        if missing or again:
            print(f"epoch {epoch}: {missing} lost, {again} repeated")
        lost, repeated = lost + missing, repeated + again
    print(f"lost={lost} repeated={repeated}")
    return 1 if lost or repeated else 0


if __name__ == "__main__":
    sys.exit(main())
