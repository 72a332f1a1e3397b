# SPDX-License-Identifier: GPL-2.0-or-later
"""The least distances that a sequence of jobs could have on leaf switches below one switch, for
bench/placement.

Pure: a cluster is the number of free nodes on each leaf, a job the number of its nodes on each. Two
nodes are one level apart unless they are on one leaf.
"""


def splits(free, count):
    """All ways to take so many nodes."""
    if not free:
        return [()] if count == 0 else []
    return [
        (taken, *rest)
        for taken in range(min(count, free[0]) + 1)
        for rest in splits(free[1:], count - taken)
    ]


def add(a, b):
    return tuple(x + y for x, y in zip(a, b))


def hops(world):
    """Average levels between two nodes."""
    size = sum(world)
    if size < 2:
        return 0
    return 1 - sum(nodes * (nodes - 1) for nodes in world) / (size * (size - 1))


def least_hops(free, own, count):
    """Of a job that has nodes own, after it has taken so many more."""
    return min(hops(add(own, split)) for split in splits(free, count))


def as_slurm(free, count):
    """The nodes that select/cons_tres takes: of the leaves that are enough the smallest, else the
    largest.
    """
    taken, left = [0] * len(free), list(free)
    while count > 0:
        enough = [leaf for leaf, nodes in enumerate(left) if nodes >= count]
        leaf = (
            min(enough, key=lambda i: left[i])
            if enough
            else max(range(len(left)), key=lambda i: left[i])
        )
        take = min(count, left[leaf])
        taken[leaf] += take
        left[leaf] = 0 if not enough else left[leaf] - take
        count -= take
    return tuple(taken)


def _choices(step, free):
    if step[0] == "end":
        return [None]
    if step[0] == "rigid":
        return [as_slurm(free, step[2])]
    return splits(free, step[3] if step[0] == "extension" else step[2])


def _after(jobs, step, choice):
    jobs = dict(jobs)
    if choice is None:
        del jobs[step[1]]
    else:
        jobs[step[1]] = (
            step[2] if step[0] == "extension" else step[1] if step[0] == "base" else None,
            choice,
        )
    return jobs


def _worlds(jobs):
    """The nodes of each elastic job on each leaf."""
    worlds = {}
    for base, nodes in jobs.values():
        if base is not None:
            worlds[base] = add(worlds[base], nodes) if base in worlds else nodes
    return worlds.values()


def best_sum(sequence, leaves, leaf_size, width):
    """The least sum of hops of all elastic jobs after each step of a sequence (bench/placement's),
    if all of it is known before: searched for among the best so many states after each step, so
    that it may not be the very least. Rigid jobs are where Slurm puts them.
    """
    states = {(): (0.0, {})}
    for step in sequence:
        found = {}
        for cost, jobs in states.values():
            free = [leaf_size] * leaves
            for _, nodes in jobs.values():
                free = [x - y for x, y in zip(free, nodes)]
            for choice in _choices(step, free):
                after = _after(jobs, step, choice)
                total = cost + sum(map(hops, _worlds(after)))
                key = tuple(sorted((name, nodes) for name, (_, nodes) in after.items()))
                if key not in found or total < found[key][0]:
                    found[key] = (total, after)
        states = dict(sorted(found.items(), key=lambda item: item[1][0])[:width])
    return min(cost for cost, _ in states.values())
