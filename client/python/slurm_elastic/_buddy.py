# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of a sharded state in the memory of other nodes: who keeps whose, and which count.

Every few steps all ranks of a world copy their parts: that is a round. A rank keeps its own copy,
and sends it to its buddy, a rank on another node. A round is complete when all ranks have sent
theirs, which they tell each other. Until then the complete round before it stays. So whenever a
node is lost, each part of the newest complete round is still on one node at least.

Everything here is arithmetic: no tensors, no communication, no clock. All ranks that call a
function with equal arguments get equal results.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple


class Round(NamedTuple):
    """Of copies that all ranks of a world have made at the same step. The larger one is newer."""

    step: int
    """Steps of the whole training."""
    generation: int
    """Of the world. A step that is made again, after a loss, has other copies."""


class Held(NamedTuple):
    """A copy that a rank holds, its own or that of another one."""

    round: Round
    part: int
    """Which one of the parts that the state was cut into."""
    parts: int
    size: int
    """In bytes."""


class Transfer(NamedTuple):
    """A copy goes from one rank to another."""

    held: Held
    source: int
    target: int


def nodes_of(local_ranks: Sequence[int]) -> List[int]:
    """The node of each rank, counted from 0. Ranks of a node follow each other, the first of them
    has the local rank 0.
    """
    nodes, number = [], -1
    for each in local_ranks:
        number += each == 0
        nodes.append(max(number, 0))
    return nodes


def buddies(nodes: Sequence[int]) -> List[Optional[int]]:
    """For each rank, the rank that keeps its copy: on the next node, in a ring.

    nodes  of each rank.

    With one node only nobody has a buddy. The ranks of a node are spread over those of the next
    one.
    """
    members: Dict[int, List[int]] = {}
    for rank, node in enumerate(nodes):
        members.setdefault(node, []).append(rank)
    if len(members) < 2:
        return [None] * len(nodes)
    order = list(members)
    following = dict(zip(order, [*order[1:], order[0]]))
    found: List[Optional[int]] = []
    for rank, node in enumerate(nodes):
        others = members[following[node]]
        found.append(others[members[node].index(rank) % len(others)])
    return found


def is_due(boundary: int, every: int) -> bool:
    """Whether copies are made at this boundary of a world, counted from 1: at the first one, and
    then every so many.

    The copies of the world before protect a new world only until another node is lost.
    """
    return (boundary - 1) % every == 0


class Ledger:
    """The rounds that a rank keeps copies of: the newest complete one, and one that is being made.

    A round is only begun when it is known what has become of the one before. Ranks may learn that
    at different times: one that does not know yet makes no copy, and the round counts for nobody.
    Nor does that rank make one in the next round, before it knows of this one: else ranks would
    take turns in slow rounds, and none would be complete.
    """

    def __init__(self) -> None:
        self.complete: Optional[Round] = None
        self.open: Optional[Round] = None
        self._under_way: Set[Round] = set()  # also those without this rank's copy

    def begin(self, round: Round) -> bool:
        """Whether this rank copies its part in this round."""
        is_free = not self._under_way
        self._under_way.add(round)
        if is_free:
            self.open = round
        return is_free

    def end(self, round: Round, is_complete: bool) -> None:
        """All ranks have told what has become of a round. It may be one without this rank's copy,
        which is not complete then.
        """
        self._under_way.discard(round)
        if round != self.open:
            return
        self.open = None
        if is_complete:
            self.complete = round

    def keep(self, round: Optional[Round]) -> None:
        """All ranks of a new world have agreed that this round is what is left. None: nothing."""
        self.complete, self.open = round, None
        self._under_way.clear()

    @property
    def rounds(self) -> Set[Round]:
        """Copies of all others may go."""
        return {each for each in (self.complete, self.open) if each is not None}


def newest_whole(holdings: Sequence[Sequence[Held]]) -> Tuple[Optional[Round], List[int]]:
    """The newest round of which there is a copy of each part, and the ranks that have copies of it;
    (None, []) if there is none.

    holdings  for each rank, the copies that it has as a whole.
    """
    parts: Dict[Round, Set[int]] = {}
    counts: Dict[Round, int] = {}
    for each in (held for holding in holdings for held in holding):
        parts.setdefault(each.round, set()).add(each.part)
        counts[each.round] = each.parts
    whole = [each for each in parts if parts[each] == set(range(counts[each]))]
    if not whole:
        return None, []
    newest = max(whole)
    having = [
        rank
        for rank, holding in enumerate(holdings)
        if any(each.round == newest for each in holding)
    ]
    return newest, having


def before_leaving(
    holdings: Sequence[Sequence[Held]], nodes: Sequence[int], stay: Sequence[bool]
) -> List[Transfer]:
    """What is sent before some ranks leave, so that any node of those that stay may be lost then.

    holdings  for each rank, the copies that it has.
    nodes     of each rank.
    stay      whether it goes on in the next world.

    Each part of the newest whole round is then on two nodes, if two stay. Those that have less to
    keep get more. A rank that leaves sends rather than one that stays. If the latter is lost
    meanwhile, the other copy of its part is on its way.
    """
    newest, _ = newest_whole(holdings)
    if newest is None:
        return []
    have: Dict[int, Dict[int, Held]] = {}  # by part and rank
    for rank, holding in enumerate(holdings):
        for each in holding:
            if each.round == newest:
                have.setdefault(each.part, {})[rank] = each
    staying = [rank for rank, stays in enumerate(stay) if stays]
    kept = {rank: sum(rank in holders for holders in have.values()) for rank in staying}
    sent = [0] * len(nodes)
    transfers = []
    for part in sorted(have):
        holders = dict(have[part])
        while True:
            safe = {nodes[rank] for rank in holders if stay[rank]}
            others = [rank for rank in staying if nodes[rank] not in safe]
            if len(safe) >= 2 or not others:
                break
            source = min(have[part], key=lambda rank: (stay[rank], sent[rank], rank))
            target = min(others, key=lambda rank: (kept[rank], rank))
            transfers.append(Transfer(have[part][source], source, target))
            sent[source] += 1
            kept[target] += 1
            holders[target] = have[part][source]
    return transfers
