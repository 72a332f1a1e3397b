#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Circles of calls and includes between the C files of a folder, and its layers.

Usage: calls.py FOLDER OBJECTS

FOLDER is the folder of sources, relative to the top of the tree, where this is run; OBJECTS is the
same folder of the build. A part is a .c file with its header. Part A lies above part B if

  - A's object needs a function or a variable that B's object defines (nm): the place that fills a
    table of functions needs them, the place that calls through the table does not;
  - A's .c file includes B's header.

Headers that include each other are looked at on their own. Prints each circle, with all that makes
it. Then it compares the parts with the table of layers in FOLDER/README.md, whose second column
has their names: a part needs only those below it, or on its left in its row. Prints what is wrong.
Exit status: 0 all is well, 1 it is not, 77 there is no complete build.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# A row of the table of layers: what it is called, its parts.
LAYER = re.compile(r"^\| [\w ]+ \| ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
NO_BUILD = 77


def find_object(objects, part):
    """The newest object of a part, of a library or a program; None: there is none."""
    found = [*objects.glob(f"*_a-{part}.o"), *objects.glob(f"{part}.o")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def symbols(path):
    """(defined, needed): two sets of names of an object."""
    text = subprocess.run(
        ["nm", "--extern-only", "--format=posix", path], capture_output=True, check=True, text=True
    ).stdout
    rows = [line.split() for line in text.splitlines()]
    return (
        {row[0] for row in rows if row[1] not in "Uw"},
        {row[0] for row in rows if row[1] in "Uw"},
    )


def graph_of_calls(objects):
    """From part to part, why."""
    tables = {part: symbols(path) for part, path in objects.items()}
    owner = {name: part for part, (defined, _) in tables.items() for name in defined}
    graph = defaultdict(lambda: defaultdict(list))
    for part, (_, needed) in tables.items():
        for name in sorted(needed):
            if owner.get(name, part) != part:
                graph[part][owner[name]].append(name)
    return graph


def add_includes(graph, sources, folder, ending):
    """The headers of this folder that its files with that ending include."""
    for source in sources:
        if source.suffix != ending:
            continue
        for header in INCLUDE.findall(source.read_text()):
            if Path(header).parent == folder and Path(header).stem != source.stem:
                graph[source.stem][Path(header).stem].append(Path(header).name)


def reachable(graph, start):
    """All parts that can be come to from one, itself only in a circle."""
    seen, left = set(), [start]
    while left:
        for part in graph.get(left.pop(), ()):
            if part not in seen:
                seen.add(part)
                left.append(part)
    return seen


def circles(graph):
    """Sets of parts of which each reaches all others."""
    reached = {part: reachable(graph, part) for part in list(graph)}
    found = {
        frozenset(other for other in reached if part in reached[other] and other in reached[part])
        for part in reached
        if part in reached[part]
    }
    return sorted(sorted(circle) for circle in found)


def show(graph, what):
    found = circles(graph)
    for circle in found:
        print(f"{what}: {' '.join(circle)}")
        for part in circle:
            for other in circle:
                if other in graph[part]:
                    print(f"  {part} -> {other}: {' '.join(graph[part][other])}")
    return bool(found)


def show_layers(graph, parts, readme):
    """Who is not in the table, and who needs what lies above."""
    rows = LAYER.findall(readme.read_text())
    order = [name for row in reversed(rows) for name in re.findall(r"`(\w+)`", row)]
    wrong = [f"{readme}: no layer has {part}" for part in parts if part not in order]
    wrong += [f"{readme}: there is no {part}" for part in order if part not in parts]
    wrong += [
        f"{readme}: {part} does not lie above {other}: {' '.join(names)}"
        for part, others in graph.items()
        for other, names in others.items()
        if part in order and other in order and order.index(part) < order.index(other)
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


def main(folder, objects):
    sources = sorted(folder.glob("*.[ch]"))
    built = {path.stem: find_object(objects, path.stem) for path in sources if path.suffix == ".c"}
    missing = [part for part, path in built.items() if path is None]
    if missing or not built:
        print(f"not built: {' '.join(missing)}")
        return NO_BUILD
    parts = graph_of_calls(built)
    add_includes(parts, sources, folder, ".c")
    headers = defaultdict(lambda: defaultdict(list))
    add_includes(headers, sources, folder, ".h")
    wrong = [show(parts, "parts that need each other"), show(headers, "headers in a circle")]
    readme = folder / "README.md"
    if readme.exists():
        wrong.append(show_layers(parts, sorted(built), readme))
    return int(any(wrong))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
