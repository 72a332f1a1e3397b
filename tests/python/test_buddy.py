#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of a sharded state in the memory of other nodes: who keeps whose and which of them count,
by tables and random cases; and trainings of several processes that lose some, against one that does
not.
"""

import random
import unittest

import processes
import tap
from slurm_elastic import _buddy
from slurm_elastic._buddy import Held, Round


def held(round, part, parts):
    return Held(round, part, parts, 100)


# Processes of a training, each on a node of its own. They make five steps, with copies behind the
# first, third and fifth, and a sixth. Then DEAD are lost. Those that are left, with NEW more, go on
# from a step that SOURCE names, and make three steps. KIND:
#   torn     rank 0 is lost while it sends its copy of step 5
#   late     rank 1 hears of the end of the first round only after step 3
#   damaged  what the buddy has of the lost one is not what it was
#   shrunk   before that, the last rank leaves, in a planned change: no step follows it
#   giving   the same, and DEAD are lost while it gives away its part
#   copying  the same, and DEAD are lost before that, while it gives away copies
#   joining  before that, the NEW ones join, and DEAD are lost while they get their parts
#   saved    there is a checkpoint of step 2
#   hsdp     replicas of two
#   tensor   tensor parallelism in units of two
TRAIN = """
import glob, os, sys, threading, time
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from slurm_elastic import ElasticSampler, _buddy_copies, _events, _membership, _sharding, _transfer
from slurm_elastic import live, unit, unit_mesh

torch.set_num_threads(1)
process, directory, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
size, new = int(sys.argv[4]), int(sys.argv[5])
dead = [int(each) for each in sys.argv[6].split(",")]
goes_on_from = int(sys.argv[7])
_buddy_copies.PARCEL_BYTES = 500  # several parcels
_transfer.PARCEL_BYTES = 256
has_units = "hsdp" in kind or "tensor" in kind
os.environ.update(LOCAL_WORLD_SIZE="1", ELASTIC_REPLICA_NODES="2")

def shard(model, mesh):
    if "tensor" in kind:
        mesh = unit_mesh("cpu", {"shard": 1, "tensor": 2})
        plan = {"1": ColwiseParallel(), "3": RowwiseParallel()}
        parallelize_module(model, mesh["tensor"], plan, src_data_rank=None)
        mesh = mesh["replicate", "shard"]
    elif "hsdp" in kind:
        mesh = unit_mesh("cpu")
    fully_shard(model[1], mesh=mesh)
    fully_shard(model, mesh=mesh)

def build(is_sharded):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(13, 7), nn.Linear(7, 10), nn.Tanh(), nn.Linear(10, 13)).double()
    model.register_buffer("seen", torch.zeros(1))
    # PyTorch makes no step of tensors on several meshes at once.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    sampler = ElasticSampler(200, global_batch=12, seed=3)
    options = {"shard": shard, "copy_every": 2} if is_sharded else {}
    return live.State(model, optimizer, scheduler, sampler, best=0.0, **options)

def train(state, steps, look=lambda drawn: None):
    sampler = state._samplers[0]
    sampler.set_epoch(0)
    for drawn in sampler:
        scale = sampler.loss_scale("sum")
        output = state.model(torch.tensor(drawn) % 13)
        (nn.functional.cross_entropy(output, torch.tensor(drawn) % 5, reduction="sum") * scale).backward()
        state.model.seen += 1
        state.best += 1
        state.step()
        look(drawn if scale else [])
        if state.steps == steps:
            return

def whole(state):
    def full(value):
        return value.full_tensor() if isinstance(value, DTensor) else value
    found = {name: full(each).detach().clone() for name, each in state.model.state_dict().items()}
    names = {id(each): name for name, each in state.model.named_parameters()}
    for parameter, entry in state._optimizers[0].state.items():
        for key, value in entry.items():
            found[names[id(parameter)], key] = full(value).detach().clone()
    return found

def compare(state, reference, what):
    assert (state.steps, state.best) == (reference.steps, reference.best), (what, state.steps, reference.steps)
    ours, right = whole(state), whole(reference)
    assert list(ours) == list(right)
    for name, tensor in ours.items():
        error = (tensor - right[name]).abs().max() / right[name].abs().max().clamp(min=1e-30)
        assert error <= 1e-9, (what, name, float(error))

def enter(name, rank, size):
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{name}", size), rank=rank, world_size=size)
    _membership.begin(state)
    if "tensor" in kind:  # the workers of a unit have the same samples
        state._samplers[0].set_world(unit().number, unit().units)
    state._progress.begin_world()
    state._copies.begin_world()

def leave(together):
    state._copies.end_world(together)
    state._sharding.detach()
    state._progress.end_world()

exchange = _sharding.exchange

def lost_in_exchange(going, coming):
    # The others have got what was on its way between them when libelastic ends their connections.
    if process in dead:
        os._exit(0)
    exchange(*({rank: rows for rank, rows in each.items() if rank not in dead} for each in (going, coming)))
    raise ConnectionError("torn")

exchange_apart = _buddy_copies.exchange_apart

def lost_while_copying(going, coming):
    open(f"{directory}/copies-{process}", "w").close()
    if process in dead:
        while len(glob.glob(f"{directory}/copies-*")) < size + 1:
            time.sleep(0.01)  # others may still hear of what there is to copy
        os._exit(0)
    for each in dead:
        try:
            dist.recv(torch.zeros(1), each)
        except RuntimeError:
            continue  # its connections have ended
        sys.exit("nobody is lost")
    exchange_apart(going, coming)

state, reference = build(True), build(False)
state._progress.watch()
rank = process
if process < size:
    enter("first", rank, size)
    third = threading.Event()
    if "late" in kind and rank == 1:
        end_round = state._copies.end_round
        state._copies.end_round = lambda *args: third.wait() and end_round(*args)
    train(state, 2)
    if "late" not in kind:
        state._copies.wait()  # who does not know of this round's end makes no copy in the next
    if "saved" in kind:
        state.save()
    train(state, 3)
    third.set()
    train(state, 4)
    state._copies.wait()
    if "torn" in kind and rank == 0:
        class Torn(_buddy_copies.Copying):
            def _send(self, tensor, target, tag):
                if tag == _buddy_copies._COPY and tensor.dtype == torch.uint8:
                    raise ConnectionError("torn")
                super()._send(tensor, target, tag)
        state._copies._copying.__class__ = Torn
    train(state, 5)
    if "torn" not in kind:
        state._copies.wait()
    train(state, 6)
    if "shrunk" in kind:
        leave(True)
        state._sharding.hand_over((rank, size - 1) if rank < size - 1 else None, state._copies.hand_over)
        _membership.end(state)
        size -= 1
        if rank == size:
            os._exit(0)
        enter("shrunk", rank, size)
    if "giving" in kind or "copying" in kind:
        _sharding.exchange = lost_in_exchange
        if "copying" in kind:
            _buddy_copies.exchange_apart = lost_while_copying
        size -= 1
        place = (rank, size) if rank < size else (-1, 0)
        _events.next_world = lambda timeout: _events.World(2, 1, *place, 0, 1, size, 0)
        state._copies.end_world(True)
        live._hand_over(state._sharding, state)
        if rank == size:
            os._exit(0)
        leave(True)
    elif "joining" in kind:
        leave(True)
    else:
        dist.barrier()
        if process in dead:
            os._exit(0)
        leave(False)
    if "damaged" in kind:
        for each in state._copies._copies:
            if each.held.part in dead:
                each.buffer[each.held.size // 2] += 1
    _membership.end(state)
else:  # all that it brings along is wrong
    with torch.no_grad():
        for each in state.model.parameters():
            each.fill_(7)
if "joining" in kind:
    _sharding.exchange = lost_in_exchange
    try:
        enter("joined", process, size + new)
        sys.exit("nobody is lost")
    except ConnectionError:
        leave(False)
        _membership.end(state, lost=True)
_sharding.exchange = exchange
left = [each for each in range(size) if each not in dead]
left += [each for each in range(int(sys.argv[4]), int(sys.argv[4]) + new)]
enter("second", left.index(process), len(left))
train(reference, goes_on_from)
compare(state, reference, "then")
seen = []
writes = "tensor" not in kind or unit().rank == 0
train(state, goes_on_from + 3, lambda drawn: seen.append(drawn if writes else []))
train(reference, goes_on_from + 3)
compare(state, reference, "later")
drawn = [None] * len(left)
dist.all_gather_object(drawn, seen)
for step in range(3):
    samples = [each for ranks in drawn for each in ranks[step]]
    assert len(samples) == len(set(samples)) == 12, samples
leave(True)
_membership.end(state)
"""


class Buddies(unittest.TestCase):
    def test_they_are_those_of_a_table(self):
        for local_ranks, nodes, expected in (
            ([0], [0], [None]),
            ([0, 1, 2], [0, 0, 0], [None, None, None]),
            ([0, 0], [0, 1], [1, 0]),
            ([0, 0, 0], [0, 1, 2], [1, 2, 0]),
            ([0, 1, 0, 1], [0, 0, 1, 1], [2, 3, 0, 1]),
            ([0, 1, 0], [0, 0, 1], [2, 2, 0]),
            ([0, 0, 1, 2, 0], [0, 1, 1, 1, 2], [1, 4, 4, 4, 0]),
        ):
            with self.subTest(local_ranks=local_ranks):
                self.assertEqual(_buddy.nodes_of(local_ranks), nodes)
                self.assertEqual(_buddy.buddies(nodes), expected)

    def test_they_are_on_another_node_and_each_keeps_its_share(self):
        for seed in range(300):
            chance = random.Random(seed)
            sizes = [chance.randint(1, 5) for _ in range(chance.randint(2, 6))]
            nodes = [node for node, size in enumerate(sizes) for _ in range(size)]
            found = _buddy.buddies(nodes)
            for rank, buddy in enumerate(found):
                self.assertNotEqual(nodes[rank], nodes[buddy], seed)
                # The ranks of one node are shared out evenly.
                wards = found.count(buddy)
                self.assertLessEqual(wards, -(-sizes[nodes[rank]] // sizes[nodes[buddy]]), seed)

    def test_when_they_are_due(self):
        due = [each for each in range(1, 30) if _buddy.is_due(each, 10)]
        self.assertEqual(due, [1, 11, 21])
        self.assertTrue(all(_buddy.is_due(each, 1) for each in range(1, 5)))


class Whole(unittest.TestCase):
    def test_tables(self):
        old, new, again = Round(10, 1), Round(20, 1), Round(10, 2)
        for holdings, expected in (
            ([[], []], (None, [])),
            # Each has its own and that of the other: one of them is enough.
            ([[held(new, 0, 2), held(new, 1, 2)], []], (new, [0])),
            # The newer one was torn: rank 1's part is nowhere.
            (
                [[held(old, 0, 2), held(new, 0, 2)], [held(old, 1, 2)]],
                (old, [0, 1]),
            ),
            # The buddy is dead, too.
            ([[held(new, 0, 4)], [held(new, 1, 4), held(new, 0, 4)]], (None, [])),
            # A step that was made again is not mixed with what it was before.
            ([[held(old, 0, 2)], [held(again, 1, 2)]], (None, [])),
            ([[held(old, 0, 2), held(again, 0, 2)], [held(again, 1, 2)]], (again, [0, 1])),
            # Of replicas one of each part counts.
            ([[held(new, 0, 2)], [held(new, 1, 2)], [held(new, 0, 2)]], (new, [0, 1, 2])),
        ):
            with self.subTest(holdings=holdings):
                self.assertEqual(_buddy.newest_whole(holdings), expected)


class Turns(unittest.TestCase):
    def test_ranks_do_not_take_turns_in_slow_rounds(self):
        """One rank hears of the first round's end behind the next boundary, the other before it."""
        ledgers = late, early = _buddy.Ledger(), _buddy.Ledger()
        first, before = _buddy.Round(1, 1), _buddy.Round(3, 1)
        for each in ledgers:
            self.assertTrue(each.begin(first))
        early.end(first, True)
        copied = [each.begin(before) for each in ledgers]
        self.assertEqual(copied, [False, True])
        late.end(first, True)
        for step in range(5, 40, 2):  # a round ends behind the next boundary
            round = _buddy.Round(step, 1)
            now = [each.begin(round) for each in ledgers]
            for each in ledgers:
                each.end(before, all(copied))
                if not any(now):  # nothing is sent: it ends at once
                    each.end(round, False)
            before, copied = round, now
        self.assertGreater(late.complete, first)
        self.assertEqual(late.complete, early.complete)


class World:
    """Ranks that copy, one per node, in a random order of events. What a rank has is what the shell
    keeps: its own copy once it has been taken and sent, that of its ward once it has arrived.

    every  steps from one copy to the next. If there are several, all copies arrive before the next
           ones are due, and there is room for each.
    """

    def __init__(self, chance, size, every=1):
        self.chance, self.size, self.every = chance, size, every
        self.buddies = _buddy.buddies(list(range(size)))
        self.ledgers = [_buddy.Ledger() for _ in range(size)]
        self.copies = [set() for _ in range(size)]
        self.steps = [0] * size
        self.queues = [[] for _ in range(size)]  # of rounds: [round, copied, state]
        self.votes = {}
        self.sent = set()  # (round, rank): that its buddy has
        self.known = None  # the newest round that any rank knows to be complete

    def boundary(self, rank):
        # Ranks of a sharded model are one step apart at most.
        if self.steps[rank] > min(self.steps):
            return
        is_due = _buddy.is_due(self.steps[rank] + 1, self.every)
        round = Round(self.steps[rank] + 1, 1)
        before = [job for queue in self.queues for job in queue if job[0] != round]
        if self.every > 1 and is_due and before:
            return
        self.steps[rank] += 1
        if not is_due:
            return
        copied = self.ledgers[rank].begin(round)
        if self.every == 1 and self.chance.random() < 0.1:  # no room for it
            copied = False
        self.queues[rank].append([round, copied, "sends"])

    def thread(self, rank):
        if not self.queues[rank]:
            return
        job = self.queues[rank][0]
        round, copied, state = job
        ward = self.buddies.index(rank)
        if state == "sends":
            self.sent.add((round, rank, copied))
            job[2] = "receives"
        elif state == "receives":
            word = next((w for r, who, w in self.sent if (r, who) == (round, ward)), None)
            if word is None:
                return
            if copied:
                self.copies[rank].add(held(round, rank, self.size))
            if word:
                self.copies[rank].add(held(round, ward, self.size))
            self.votes.setdefault(round, {})[rank] = copied and word
            job[2] = "votes"
        elif len(self.votes[round]) == self.size:
            is_complete = all(self.votes[round].values())
            self.ledgers[rank].end(round, is_complete)
            if is_complete:
                self.known = max(self.known or round, round)
            rounds = self.ledgers[rank].rounds
            self.copies[rank] = {each for each in self.copies[rank] if each.round in rounds}
            del self.queues[rank][0]

    def run(self, events):
        for _ in range(events):
            rank = self.chance.randrange(self.size)
            if self.chance.random() < 0.06:  # a step is long
                self.boundary(rank)
            else:
                self.thread(rank)


class Chance(unittest.TestCase):
    def test_whoever_dies_whenever_the_newest_complete_round_is_left(self):
        complete = 0
        for seed in range(1500):
            chance = random.Random(seed)
            world = World(chance, chance.randint(2, 6))
            world.run(chance.randint(0, 600))
            dead = chance.randrange(world.size)
            left = [[] if rank == dead else sorted(c) for rank, c in enumerate(world.copies)]
            found, ranks = _buddy.newest_whole(left)
            if world.known is not None:
                complete += 1
                self.assertIsNotNone(found, seed)
                self.assertGreaterEqual(found, world.known, seed)
            if found is not None:
                self.assertEqual(
                    {h.part for rank in ranks for h in left[rank] if h.round == found},
                    set(range(world.size)),
                )
            # Four copies at most: two of its own, two of another.
            self.assertLessEqual(max(map(len, world.copies)), 4, seed)
        self.assertGreater(complete, 700)

    def test_the_steps_since_two_copies_are_lost_at_most(self):
        most = 0
        for seed in range(1500):
            chance = random.Random(seed)
            every = chance.randint(2, 5)
            world = World(chance, chance.randint(2, 4), every)
            world.run(chance.randint(300, 1500))
            dead = chance.randrange(world.size)
            left = [[] if rank == dead else sorted(c) for rank, c in enumerate(world.copies)]
            found, _ = _buddy.newest_whole(left)
            if world.known is not None:
                # With the step in flight 2 * every.
                lost = max(world.steps) - found.step
                self.assertLess(lost, 2 * every, seed)
                most = max(most, lost / every)
        self.assertGreater(most, 1)

    def test_rounds_do_not_stop_after_one_that_failed(self):
        for seed in range(50):
            world = World(random.Random(seed), 3)
            world.run(4000)
            self.assertGreater(world.known.step, 20, seed)

    def test_before_some_leave_each_part_comes_to_two_nodes(self):
        for seed in range(1500):
            chance = random.Random(seed)
            sizes = [chance.randint(1, 3) for _ in range(chance.randint(1, 6))]
            nodes = [node for node, size in enumerate(sizes) for _ in range(size)]
            round, size = Round(5, 1), len(nodes)
            holdings = [[held(round, rank, size)] for rank in range(size)]
            for rank, buddy in enumerate(_buddy.buddies(nodes)):
                if buddy is not None:
                    holdings[buddy].append(held(round, rank, size))
            goes = [chance.random() < 0.5 for _ in sizes]
            stay = [not goes[node] for node in nodes]
            transfers = _buddy.before_leaving(holdings, nodes, stay)
            for each in transfers:
                self.assertIn(each.held, holdings[each.source], seed)
                self.assertTrue(stay[each.target], seed)
                self.assertNotIn(each.held, holdings[each.target], seed)
            if not any(goes):
                self.assertEqual(transfers, [])
            # One that stays is lost in the midst of it: what others send to others arrives.
            for dead in {node for node, leaves in enumerate(goes) if not leaves}:
                left = [list(each) if stay[rank] else [] for rank, each in enumerate(holdings)]
                for each in transfers:
                    if nodes[each.source] != dead:
                        left[each.target].append(each.held)
                left = [[] if nodes[rank] == dead else each for rank, each in enumerate(left)]
                if any(left):
                    self.assertEqual(_buddy.newest_whole(left)[0], round, seed)
            after = [list(holding) if stay[rank] else [] for rank, holding in enumerate(holdings)]
            for each in transfers:
                after[each.target].append(each.held)
            staying = {node for node, leaves in enumerate(goes) if not leaves}
            for dead in staying if len(staying) > 1 else ():
                left = [[] if nodes[rank] == dead else each for rank, each in enumerate(after)]
                self.assertEqual(_buddy.newest_whole(left)[0], round, seed)
            if len(staying) == 1:
                self.assertEqual(_buddy.newest_whole(after)[0], round, seed)


@processes.needs_sharding
class Lost(unittest.TestCase):
    def train(self, kind, size, new, dead, goes_on_from):
        """What the first one that goes on says."""
        numbers = [size, new, ",".join(map(str, dead)), goes_on_from]
        said = processes.run(self, TRAIN, size + new, kind, *numbers)
        return next(text for each, text in enumerate(said) if each not in dead)

    def assert_goes_on(self, said, where, steps):
        words = "a part of the sharded state is lost with its worker: goes on from "
        lines = [line for line in said.splitlines() if "goes on from" in line]
        self.assertEqual(lines, [f"slurm_elastic: {words}{where}: {steps} lost"])

    COPIES = "copies in the memory of other nodes"

    def test_one_of_three(self):
        said = self.train("plain", 3, 0, [1], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_one_is_lost_and_others_come(self):
        said = self.train("plain", 3, 2, [0], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_it_copies(self):
        said = self.train("torn", 3, 0, [0], 3)
        self.assert_goes_on(said, f"{self.COPIES}, step 3", "3 steps")

    def test_while_it_copies_after_a_round_that_was_late(self):
        said = self.train("late torn", 3, 0, [0], 1)
        self.assert_goes_on(said, f"{self.COPIES}, step 1", "5 steps")

    def test_in_a_smaller_world_before_its_first_step(self):
        said = self.train("shrunk", 4, 0, [2], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_another_one_gives_away_its_part(self):
        said = self.train("giving", 4, 0, [1], 5)
        self.assertIn("slurm_elastic: parts of the state were not handed over: ", said)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_its_buddy_gives_away_its_part_and_leaves(self):
        said = self.train("giving", 4, 0, [2], 5)
        self.assertIn("slurm_elastic: parts of the state were not handed over: ", said)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_its_buddy_gives_away_copies(self):
        said = self.train("copying", 4, 0, [2], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_it_gets_a_copy_of_one_that_leaves(self):
        # What that one sends to others arrives.
        said = self.train("copying", 4, 0, [0], 5)
        self.assertIn("slurm_elastic: parts of the state were not handed over: ", said)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_while_a_newcomer_gets_its_part(self):
        said = self.train("joining", 3, 1, [1], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_with_its_replica(self):
        said = self.train("hsdp", 4, 0, [0, 2], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_of_the_only_unit_with_tensor_parallelism(self):
        said = self.train("tensor", 2, 1, [1], 5)
        self.assert_goes_on(said, f"{self.COPIES}, step 5", "1 step")

    def test_with_its_buddy(self):
        said = self.train("saved", 4, 0, [1, 2], 2)
        self.assert_goes_on(said, "the newest checkpoint, step 2", "4 steps")

    def test_and_its_copy_is_damaged(self):
        said = self.train("saved damaged", 3, 0, [1], 2)
        self.assert_goes_on(said, "the newest checkpoint, step 2", "4 steps")


if __name__ == "__main__":
    tap.main()
