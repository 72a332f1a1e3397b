# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of spot zones: how many nodes of a zone can be had, one number each five minutes."""

import json
import random
from pathlib import Path

GAP = 300  # seconds
NODES = 16
DAYS = 16

# What the public traces of 16 nodes show (Wu et al., NSDI 2024): a zone has all of its nodes, or
# none, or for a short time some. How it goes on from each, and how long it stays, in samples: short
# stays, and now and then a long one.
NEXT = {
    "none": (("all", 0.6), ("some", 0.4)),
    "all": (("none", 0.55), ("some", 0.45)),
    "some": (("all", 0.5), ("none", 0.5)),
}
STAYS = {"none": (8, 150), "all": (8, 150), "some": (3, 10)}  # mean of short and of long ones
LONG = 0.12


def generate(seed, nodes=NODES, days=DAYS):
    """A made-up trace, in the format of the public ones. The same seed makes the same trace."""
    rng = random.Random(seed)
    state, data = rng.choice(("none", "all")), []
    while len(data) < days * 24 * 3600 // GAP:
        stay = 1 + int(rng.expovariate(1 / STAYS[state][rng.random() < LONG]))
        for _ in range(stay):
            data.append({"none": 0, "all": nodes}.get(state, rng.randint(1, nodes - 1)))
        (first, share), (second, _) = NEXT[state]
        state = first if rng.random() < share else second
    return {"metadata": {"gap_seconds": GAP}, "data": data[: days * 24 * 3600 // GAP]}


def write(folder, zones, seed):
    """Traces of so many zones, as FOLDER/zone-1.json and so on. The paths."""
    paths = []
    for zone in range(1, zones + 1):
        path = Path(folder) / f"zone-{zone}.json"
        path.write_text(json.dumps(generate(f"{seed}-{zone}")) + "\n")
        paths.append(path)
    return paths


def find(folder):
    """The traces of a folder, by name. ValueError if there is none."""
    paths = sorted(Path(folder).glob("*.json"))
    if not paths:
        raise ValueError(f"{folder}: there is no trace (*.json) in it")
    return paths


def samples(path):
    return len(json.loads(Path(path).read_text())["data"])


def spread(count, runs, seed):
    """First samples of so many runs, evenly spread over `count` samples; the first is random."""
    first = random.Random(seed).random()
    return [int((run + first) * count / runs) for run in range(runs)]


def starts(paths, runs, seed):
    """The same for traces that are used together."""
    return spread(min(samples(path) for path in paths), runs, seed)
