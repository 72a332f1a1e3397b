# SPDX-License-Identifier: GPL-2.0-or-later
"""Who sends which rows to whom when a sharded state goes to another set of processes.

A tensor is cut along its first dimension. What a process holds or needs of it are ranges of rows,
(first, behind the last). Everything here is arithmetic: no tensors, no communication. All processes
that call a function with equal arguments get equal results.

A plan moves only rows that a process needs and does not hold: that is the least there can be. Where
several processes hold a row, the one that sends less sends it.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

Range = Tuple[int, int]

PASSES = 8  # over the rows that several processes hold, until their loads no longer change


class Missing(LookupError):
    """Rows that a process needs, and none holds."""


class Move(NamedTuple):
    """Rows `start` to `stop` go from one process to another."""

    start: int
    stop: int
    source: int
    target: int


def chunk(rows: int, count: int, index: int) -> Range:
    """The rows of part `index` of `count`, as torch.chunk() and Shard(0) cut them.

    All parts are of equal size but the last ones, which may be smaller or empty.
    """
    size = -(-rows // count)
    return min(index * size, rows), min((index + 1) * size, rows)


def _covers(ranges: Sequence[Range], start: int, stop: int) -> bool:
    """Whether one of the ranges has all of these rows, of which none is an end of a range."""
    return any(first <= start and stop <= last for first, last in ranges)


def _cuts(*owners: Sequence[Sequence[Range]]) -> Iterator[Range]:
    """The stretches between all ends of ranges: a process has all rows of a stretch, or none."""
    ends = sorted({end for each in owners for ranges in each for pair in ranges for end in pair})
    return zip(ends, ends[1:])


class _Task(NamedTuple):
    """Rows that a process needs, and who holds them."""

    start: int
    stop: int
    target: int
    holders: List[int]


def _tasks(have: Sequence[Sequence[Range]], need: Sequence[Sequence[Range]]) -> Iterator[_Task]:
    for start, stop in _cuts(have, need):
        holders = [each for each, ranges in enumerate(have) if _covers(ranges, start, stop)]
        for target, ranges in enumerate(need):
            if target in holders or not _covers(ranges, start, stop):
                continue
            if not holders:
                raise Missing(f"no process holds the rows {start} to {stop}")
            yield _Task(start, stop, target, holders)


def _shares(rows: int, weight: int, holders: Sequence[int], load: Sequence[int]) -> Dict[int, int]:
    """How many of some rows each holder sends, so that the busiest one has as little as can be."""
    order = sorted(holders, key=lambda each: (load[each], each))
    used = len(order)
    while used > 1:  # those that have more to send than all would have after this send nothing
        level = (sum(load[each] for each in order[:used]) + rows * weight) / used
        if load[order[used - 1]] < level:
            break
        used -= 1
    level = (sum(load[each] for each in order[:used]) + rows * weight) / used
    shares = {each: int((level - load[each]) // weight) for each in order[:used]}
    for each in order[: rows - sum(shares.values())]:
        shares[each] = shares.get(each, 0) + 1
    return shares


def plan(
    have: Sequence[Sequence[Range]],
    need: Sequence[Sequence[Range]],
    weight: int = 1,
    load: Optional[List[int]] = None,
) -> List[Move]:
    """The moves after which each process has the rows that it needs.

    The rows of a move are within one range of its source, and within one of its target.

    have, need  for each process, ranges of rows.
    weight      bytes of a row.
    load        for each process, the bytes that it sends otherwise; the new ones are added.

    Raises Missing, without having added anything.
    """
    load = [0] * len(have) if load is None else load
    weight = max(weight, 1)  # rows of tensors with another dimension of 0 have no bytes
    tasks = sorted(_tasks(have, need), key=lambda each: (len(each.holders), each))
    shares: List[Dict[int, int]] = [{} for _ in tasks]
    for _ in range(PASSES):
        changed = False
        for number, task in enumerate(tasks):
            for holder, rows in shares[number].items():
                load[holder] -= rows * weight
            found = _shares(task.stop - task.start, weight, task.holders, load)
            for holder, rows in found.items():
                load[holder] += rows * weight
            changed = changed or found != shares[number]
            shares[number] = found
        if not changed:
            break
    moves = []
    for task, share in zip(tasks, shares):
        start = task.start
        for holder, rows in sorted(share.items()):
            if rows:
                moves.append(Move(start, start + rows, holder, task.target))
                start += rows
    return sorted(moves)


def _common(ranges: Sequence[Range], others: Sequence[Range]) -> List[Range]:
    """What is in a range and in one of the others."""
    pairs = [(max(a, c), min(b, d)) for a, b in ranges for c, d in others]
    return [(start, stop) for start, stop in pairs if start < stop]


def _held_by_none(have: Sequence[Sequence[Range]], kept: Sequence[Sequence[Range]]) -> List[Range]:
    """Rows of some process that are in none of what is kept."""
    return [
        (start, stop)
        for start, stop in _cuts(have, kept)
        if any(_covers(ranges, start, stop) for ranges in have)
        and not any(_covers(ranges, start, stop) for ranges in kept)
    ]


def before_leaving(
    rows: int,
    have: Sequence[Sequence[Range]],
    parts: Sequence[Optional[Tuple[int, int]]],
    is_known: bool = True,
) -> List[List[Range]]:
    """What each process needs before some leave, so that those that stay have all rows.

    have      for each process, ranges of rows.
    parts     for each process, (number, count) of its part in the next world; None: it leaves.
    is_known  the parts are what the processes will need. Else they may need others. So nothing
              moves but rows that only leaving processes hold.

    A process that stays needs its next part. Rows that only leaving processes hold, and that are
    in no such part, are newcomers': they are given to those that stay in equal shares.
    """
    need: List[List[Range]] = [
        []
        if part is None
        else [each for each in [chunk(rows, part[1], part[0])] if each[0] < each[1]]
        for part in parts
    ]
    stay = [each for each, part in enumerate(parts) if part is not None]
    if not is_known:
        lost = _held_by_none(have, [have[each] for each in stay])
        need = [_common(each, lost) for each in need]
    orphans = _held_by_none(have, [[*have[each], *need[each]] for each in stay])
    total = sum(stop - start for start, stop in orphans)
    given = 0
    for start, stop in orphans:
        while start < stop:
            number = given * len(stay) // total
            # The first row that the next one gets.
            end = -(-(number + 1) * total // len(stay))
            part = min(stop - start, end - given)
            need[stay[number]].append((start, start + part))
            start, given = start + part, given + part
    return need


def likely_parts(
    ranks: Sequence[Optional[int]], size: int, counts: Sequence[int]
) -> Tuple[List[Optional[Tuple[int, int]]], bool]:
    """The parts that processes will have in the next world, and whether that is known.

    ranks   their ranks there; None: it leaves.
    size    of the next world. Ranks that no process has are newcomers'.
    counts  for each process, the number of parts in this world.

    Without replicas each rank has one part. With replicas (HSDP), it is the script that makes as
    many of them or makes them as large as before. The first is assumed, where it can be.
    """
    replicas = len(counts) // max(counts)
    is_flat = all(each == len(counts) for each in counts)
    count = size // replicas if size % replicas == 0 else size
    parts = [None if rank is None else (rank % count, count) for rank in ranks]
    return parts, is_flat
