#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who sends which rows to whom when shards change hands: tables, and random cases."""

import random
import unittest

import tap
from slurm_elastic import _reshard
from slurm_elastic._reshard import Move, chunk


def rows_of(ranges):
    return {row for start, stop in ranges for row in range(start, stop)}


def parts(rows, count):
    return [[chunk(rows, count, index)] for index in range(count)]


class Chunks(unittest.TestCase):
    def test_they_are_those_of_a_table(self):
        for rows, count, expected in (
            (8, 4, [(0, 2), (2, 4), (4, 6), (6, 8)]),
            (8, 3, [(0, 3), (3, 6), (6, 8)]),
            (5, 4, [(0, 2), (2, 4), (4, 5), (5, 5)]),
            (2, 4, [(0, 1), (1, 2), (2, 2), (2, 2)]),
            (0, 2, [(0, 0), (0, 0)]),
        ):
            with self.subTest(rows=rows, count=count):
                self.assertEqual([chunk(rows, count, each) for each in range(count)], expected)

    @tap.needs_torch
    def test_they_are_those_of_torch_chunk(self):
        import torch

        for rows in range(1, 40):
            for count in range(1, 12):
                found = [each.tolist() for each in torch.arange(rows).chunk(count)]
                found += [[]] * (count - len(found))
                ours = [list(range(*chunk(rows, count, each))) for each in range(count)]
                self.assertEqual(ours, found)


class Tables(unittest.TestCase):
    def test_growth_from_two_to_four(self):
        have = [*parts(8, 2), [], []]
        # Rank 1 gives away its upper half, rank 0 its own, and rank 1 gets rows from rank 0.
        self.assertEqual(
            _reshard.plan(have, parts(8, 4)),
            [Move(2, 4, 0, 1), Move(4, 6, 1, 2), Move(6, 8, 1, 3)],
        )

    def test_shrinking_from_four_to_three_with_uneven_parts(self):
        self.assertEqual(
            _reshard.plan(parts(8, 4), [*parts(8, 3), []]),
            [Move(2, 3, 1, 0), Move(4, 6, 2, 1), Move(6, 8, 3, 2)],
        )

    def test_nothing_moves_if_nothing_changes(self):
        self.assertEqual(_reshard.plan(parts(7, 3), parts(7, 3)), [])

    def test_two_replicas_send_a_half_each(self):
        whole = [(0, 8)]
        self.assertEqual(
            _reshard.plan([whole, whole, []], [whole, whole, whole]),
            [Move(0, 4, 0, 2), Move(4, 8, 1, 2)],
        )

    def test_a_sender_that_has_more_to_do_sends_less(self):
        load = [20, 0, 0]
        moves = _reshard.plan([[(0, 4)], [(0, 4)], []], [[], [], [(0, 4)]], 10, load)
        self.assertEqual(moves, [Move(0, 1, 0, 2), Move(1, 4, 1, 2)])
        self.assertEqual(load, [30, 30, 0])

    def test_rows_that_nobody_has_are_missing(self):
        load = [5, 5]
        with self.assertRaisesRegex(_reshard.Missing, "the rows 2 to 4"):
            _reshard.plan([[(0, 2)], []], [[(0, 2)], [(2, 4)]], 1, load)
        self.assertEqual(load, [5, 5])

    def test_before_one_leaves(self):
        self.assertEqual(
            _reshard.before_leaving(8, parts(8, 4), [(0, 3), (1, 3), None, (2, 3)]),
            [[(0, 3)], [(3, 6)], [], [(6, 8)]],
        )

    def test_before_one_leaves_and_another_one_comes(self):
        # Rank 0 leaves. Its rows 0 to 2 are rank 0's again, who was rank 1; rows 6 to 8, which the
        # newcomer will need, stay with rank 3.
        self.assertEqual(
            _reshard.before_leaving(8, parts(8, 4), [None, (0, 4), (1, 4), (2, 4)]),
            [[], [(0, 2)], [(2, 4)], [(4, 6)]],
        )
        # The last one leaves: the rows for the newcomer are shared out.
        self.assertEqual(
            _reshard.before_leaving(8, parts(8, 2), [(0, 2), None]),
            [[(0, 4), (4, 8)], []],
        )

    def test_before_a_replica_leaves_nothing_moves(self):
        for have, parts_then in (
            (parts(8, 2) * 3, [(0, 4), (1, 4), (2, 4), (3, 4), None, None]),
            ([[(0, 8)]] * 3, [(0, 2), (1, 2), None]),
        ):
            with self.subTest(have=have):
                need = _reshard.before_leaving(8, have, parts_then, is_known=False)
                self.assertEqual(need, [[]] * len(have))

    def test_before_both_leave_that_hold_some_rows_these_go_to_those_who_will_need_them(self):
        self.assertEqual(
            _reshard.before_leaving(8, parts(8, 2) * 2, [(0, 1), None, (0, 1), None], False),
            [[(4, 8)], [], [(4, 8)], []],
        )
        # Rows 6 to 8 are none's who stays.
        self.assertEqual(
            _reshard.before_leaving(8, parts(8, 4) * 2, [(0, 3), None, None, None] * 2, False),
            [[(2, 3), (3, 4), (4, 6)], [], [], [], [(2, 3), (6, 8)], [], [], []],
        )

    def test_the_parts_of_the_next_world(self):
        for name, arguments, expected in (
            ("no replicas", ([0, 1, None, 2], 3, [4] * 4), ([(0, 3), (1, 3), None, (2, 3)], True)),
            ("one process", ([0], 2, [1]), ([(0, 2)], True)),
            ("two replicas of two", ([0, None, 1, None], 2, [2] * 4), ([(0, 1), None] * 2, False)),
            ("no two", ([0, 1, 2, None], 3, [2] * 4), ([(0, 3), (1, 3), (2, 3), None], False)),
        ):
            with self.subTest(name):
                self.assertEqual(_reshard.likely_parts(*arguments), expected)


class Chance(unittest.TestCase):
    def case(self, chance):
        """A layout before, with replicas or odd ranges, and one behind it."""
        rows, size = chance.choice([1, 2, 3, 7, 16, 50, 101]), chance.randint(1, 7)
        kind = chance.choice(["shards", "replicas", "odd"])
        if kind == "shards":
            have = parts(rows, size)
        elif kind == "replicas":
            count = chance.randint(1, 3)
            have = parts(rows, count) * chance.randint(1, 3)
        else:
            have = [[] for _ in range(size)]
            for row in range(rows):
                for each in chance.sample(range(size), chance.randint(1, size)):
                    have[each].append((row, row + 1))
        processes = len(have) + chance.randint(0, 3)
        have += [[] for _ in range(processes - len(have))]
        stay = chance.sample(range(processes), chance.randint(1, processes))
        need = [[] for _ in range(processes)]
        for index, each in enumerate(stay):
            need[each] = [chunk(rows, len(stay), index)]
        return rows, have, need

    def test_each_needed_row_comes_once_from_one_that_has_it_and_no_other_row_moves(self):
        for seed in range(600):
            chance = random.Random(seed)
            _, have, need = self.case(chance)
            weight, load = chance.choice([1, 3, 8]), [chance.randint(0, 30) for _ in have]
            before = list(load)
            moves = _reshard.plan(have, need, weight, load)
            self.assertEqual(moves, _reshard.plan(have, need, weight, before.copy()))
            for target, ranges in enumerate(need):
                came = [row for m in moves if m.target == target for row in range(m.start, m.stop)]
                self.assertEqual(
                    sorted(came), sorted(rows_of(ranges) - rows_of(have[target])), seed
                )
            for move in moves:
                self.assertLess(move.start, move.stop)
                self.assertLessEqual(
                    rows_of([(move.start, move.stop)]), rows_of(have[move.source]), seed
                )
            for each, total in enumerate(load):
                sent = sum(m.stop - m.start for m in moves if m.source == each)
                self.assertEqual(total, before[each] + sent * weight)

    def test_no_row_could_be_sent_by_a_less_busy_process(self):
        for seed in range(600):
            _, have, need = self.case(random.Random(seed))
            load = [0] * len(have)
            for move in _reshard.plan(have, need, 1, load):
                for each, ranges in enumerate(have):
                    held = rows_of(ranges) & rows_of([(move.start, move.stop)])
                    if held:
                        self.assertLessEqual(load[move.source], load[each] + 2, seed)

    def test_replicas_send_as_much_as_each_other(self):
        for rows in (1, 7, 64, 101):
            for replicas in range(1, 5):
                for newcomers in range(1, 4):
                    whole, load = [(0, rows)], [0] * (replicas + newcomers)
                    have = [whole] * replicas + [[]] * newcomers
                    _reshard.plan(have, [whole] * len(have), 1, load)
                    self.assertLessEqual(max(load[:replicas]) - min(load[:replicas]), 1)

    def test_before_processes_leave_those_that_stay_get_all_rows(self):
        for seed in range(600):
            chance = random.Random(seed)
            rows, have, _ = self.case(chance)
            next_parts = [None] * len(have)
            stay = chance.sample(range(len(have)), chance.randint(1, len(have)))
            size = len(stay) + chance.randint(0, 2)
            for rank, each in enumerate(stay):
                next_parts[each] = (rank, size)
            is_known = chance.random() < 0.5
            need = _reshard.before_leaving(rows, have, next_parts, is_known)
            _reshard.plan(have, need)  # nothing is missing
            kept = set().union(*(rows_of(have[each]) for each in stay))
            left = set()
            for each, ranges in enumerate(need):
                if next_parts[each] is None:
                    self.assertEqual(ranges, [])
                    continue
                part = rows_of([chunk(rows, size, next_parts[each][0])])
                self.assertLessEqual(part if is_known else part - kept, rows_of(ranges))
                if not is_known:
                    self.assertFalse(rows_of(ranges) & kept, seed)
                left |= rows_of(ranges) | rows_of(have[each])
            self.assertEqual(left, set(range(rows)), seed)

    def bytes_moved(self, rows, have, ranks, count_then):
        """In both exchanges of a change in which some leave and none come, and the least."""
        size = sum(each is not None for each in ranks)
        counts = [rows // max(b - a for a, b in have[0])] * len(have)
        next_parts, is_known = _reshard.likely_parts(ranks, size, counts)
        need = _reshard.before_leaving(rows, have, next_parts, is_known)
        first = _reshard.plan(have, need)
        stay = [each for each, rank in enumerate(ranks) if rank is not None]
        kept = [need[each] if is_known else [*have[each], *need[each]] for each in stay]
        then = [[chunk(rows, count_then, ranks[each] % count_then)] for each in stay]
        second = _reshard.plan(kept, then)
        least = sum(len(rows_of(t) - rows_of(have[e])) for t, e in zip(then, stay))
        return sum(each.stop - each.start for each in (*first, *second)), least

    def test_what_moves_when_some_leave_is_the_least(self):
        for name, units, inside, leaving, count_then in (
            ("no replicas", 1, 6, [1, 3], 4),
            ("a unit leaves", 3, 2, [2, 3], 2),
            ("the first unit leaves", 3, 2, [0, 1], 2),
            ("a unit of one leaves", 4, 1, [1], 1),
            ("two replicas become smaller", 2, 4, [6, 7], 3),
            ("both holders of some rows leave", 2, 2, [1, 3], 1),
        ):
            with self.subTest(name):
                have = parts(24, inside) * units
                ranks = iter(range(len(have)))
                ranks = [None if each in leaving else next(ranks) for each in range(len(have))]
                moved, least = self.bytes_moved(24, have, ranks, count_then)
                self.assertEqual(moved, least)


if __name__ == "__main__":
    tap.main()
