# SPDX-License-Identifier: GPL-2.0-or-later
"""What a change of worlds moved of a sharded state, and what it had to. No clock, no files.

The rows of a tensor are cut into equal parts, in the order of the ranks. A change must move what
a rank of the new world needs and did not hold in the old one.

  received   bytes that the ranks of the new world got
  least      what they lacked: no change can move less
  floor      seconds that such bytes take over the same connections when nothing else is done
  grown      memory: the greatest amount by which a rank's grew in the change. The old part is in
             what it had before, so this is to be the new part and a few parcels
"""

import json
from fractions import Fraction
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

SLACK = 64e6  # bytes of parcels that a rank may hold beside its old and its new part
FACTOR, BASE = 1.5, 0.3  # of the floor, and seconds: what a change may take beyond a step

Place = Tuple[int, int]  # rank, and size of the world


def _part(place: Place) -> Tuple[Fraction, Fraction]:
    rank, size = place
    return Fraction(rank, size), Fraction(rank + 1, size)


def lacking(places: Sequence[Tuple[Optional[Place], Place]]) -> Fraction:
    """Which share of the state has to move.

    places  of each rank of the new world: its place in the old one (None: it was not there), and
            in the new one
    """
    total = Fraction(0)
    for before, after in places:
        start, stop = _part(after)
        total += stop - start
        if before is not None:
            first, last = _part(before)
            total -= max(Fraction(0), min(stop, last) - max(start, first))
    return total


def change(lines: Iterable[str], event: float, size: int) -> Dict[str, float]:
    """The figures of the first world of `size` ranks after the event, of what train_sharded.py has
    noted; none if it has noted nothing of that world, or a rank is missing.
    """
    notes = [json.loads(line) for line in lines if line.endswith("\n")]
    probes = [note for note in notes if "probe" in note]
    world: Dict[int, Dict] = {}
    for note in notes:
        if "received" in note and note["time"] >= event and note["size"] == size:
            world.setdefault(note["rank"], note)
    if len(world) != size or not probes:
        return {}
    # What the probe moves is three quarters of the state.
    state = probes[0]["bytes"] * 4 / 3
    places = [(note["was"] and tuple(note["was"]), (rank, size)) for rank, note in world.items()]
    least = float(lacking(places)) * state
    stayed = [note["grown"] for note in world.values() if note["was"]]
    return {
        "received": sum(note["received"] for note in world.values()),
        "least": least,
        "floor": probes[0]["probe"] * least / probes[0]["bytes"],
        "grown": max(stayed),
        "part": state / size,
    }


def verdicts(measures: Sequence[Dict]) -> List[Tuple[bool, str]]:
    """(held, sentence) for each promise and change."""
    found = []
    for measure in measures:
        if "least" not in measure:
            continue
        name = f"{measure['megabytes']} MB, {measure['step']}, round {measure['round']}, {measure['change']}:"
        limit = FACTOR * measure["floor"] + BASE
        own = measure["beyond"]
        found.append((own <= limit, f"{name} beyond a step {own:.2f} s, at most {limit:.2f} s"))
        most = measure["part"] + SLACK
        own = measure["grown"]
        found.append(
            (own <= most, f"{name} memory {own / 1e6:.0f} MB more, at most {most / 1e6:.0f} MB")
        )
    return found


def markdown(measures: Sequence[Dict]) -> str:
    """A table of all changes; empty if nothing was noted."""
    rows = [measure for measure in measures if "least" in measure]
    if not rows:
        return ""
    lines = [
        "| MB | change | moved, MB | must move, MB | these alone take, s | between steps, s | "
        "beyond a step, s | memory: grew by, MB | new part, MB |",
        "|---" * 9 + "|",
    ]
    for row in rows:
        lines.append(
            f"| {row['megabytes']} | {row['change']} | {row['received'] / 1e6:.0f} | "
            f"{row['least'] / 1e6:.0f} | {row['floor']:.2f} | {row['between']:.2f} | "
            f"{row['beyond']:.2f} | "
            f"{max(0, row['grown']) / 1e6:.0f} | {row['part'] / 1e6:.0f} |"
        )
    return "\n".join(lines) + "\n"
