#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A live.State that is sharded by fully_shard(), over gloo: worlds of several processes that grow
and shrink, against a training that does not. With elastic jobs: tests/pypi/sharded.bats.
"""

import os
import unittest
from unittest import mock

import processes
import tap

# A process of a training. SIZES are those of the worlds; a process that leaves comes back as a
# newcomer, with a new model. KIND: "adamw" or "sgd"; "hsdp": in two replicas where the size is
# even; "lost": those that leave give nothing; "saved": each world writes a checkpoint; "anew": all
# processes begin each world with a new model.
TRAIN = """
import datetime, os, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from slurm_elastic import ElasticSampler, _membership, _reshard, _transfer, live

torch.set_num_threads(1)
process, directory, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sizes = [int(each) for each in sys.argv[4].split(",")]
leaving = sys.argv[5:]  # WORLD:PROCESS of those that leave though others of higher rank stay
STEPS, BATCH = 3, 12
_transfer.PARCEL_BYTES, _transfer.PARCELS = 256, 3  # several parcels for the larger tensors
_transfer.SENT = datetime.timedelta(seconds=30)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(13, 8)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 9), nn.Tanh(), nn.Linear(9, 8)) for _ in range(2))
        self.frozen = nn.Linear(8, 8)
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter(torch.full((2,), 0.5))
        self.register_buffer("seen", torch.zeros(3))
        self.frozen.requires_grad_(False)
    def forward(self, x):
        y = self.embedding(x)
        for layer in self.layers:
            y = y + layer(y)
        self.seen += 1
        return self.head(self.frozen(y)) * self.scale.sum()

def shard(model, mesh):
    if "units" in kind:
        mesh = init_device_mesh("cpu", (mesh.size(), 1), mesh_dim_names=("copy", "part"))
    elif "hsdp" in kind and mesh.size() % 2 == 0:
        mesh = init_device_mesh("cpu", (2, mesh.size() // 2), mesh_dim_names=("copy", "part"))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    # Some leave out what is not trained.
    options = {"ignored_params": set(model.frozen.parameters())} if "sgd" in kind else {}
    fully_shard(model, mesh=mesh, **options)

def build(is_sharded):
    torch.manual_seed(1)
    model = Net().double()
    trained = [each for each in model.parameters() if each.requires_grad]
    if "sgd" in kind:
        optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9, nesterov=True)
    else:
        optimizer = torch.optim.AdamW([{"params": trained[:2]}, {"params": trained[2:], "lr": 0.02}], lr=0.01, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)
    sampler = ElasticSampler(50, global_batch=BATCH, seed=3)
    return live.State(model, optimizer, scheduler, sampler, shard=shard if is_sharded else None, best=0.0)

plain = "lost" not in kind and "anew" not in kind
x = torch.arange(50) % 13
y = (x * 5 + 1) % 13

def train(state, steps, look):
    sampler = state._samplers[0]
    made = 0
    while made < steps:
        epoch = sampler.epoch
        sampler.set_epoch(epoch)
        for drawn in sampler:
            scale = sampler.loss_scale("sum")
            half = -(-len(drawn) // 2)
            with state.no_sync():
                output = state.ddp(x[drawn[:half]])
                (nn.functional.cross_entropy(output, y[drawn[:half]], reduction="sum") * scale).backward()
            # A rank with one sample adds nothing in the second part.
            rest = drawn[half:] or drawn[:1]
            output = state.ddp(x[rest])
            (nn.functional.cross_entropy(output, y[rest], reduction="sum") * scale * bool(drawn[half:])).backward()
            norm = nn.utils.clip_grad_norm_(state.model.parameters(), 0.3)
            norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
            state.best += 1
            state.step()
            look(drawn if scale else [], norm)
            made += 1
            if made == steps:
                return
        else:
            sampler.set_epoch(epoch + 1)

def whole(state):
    def full(value):
        return value.full_tensor() if isinstance(value, DTensor) else value
    found = {name: full(each).detach().clone() for name, each in (*state.model.named_parameters(), *state.model.named_buffers())}
    names = {id(each): name for name, each in state.model.named_parameters()}
    for parameter, entry in state._optimizers[0].state.items():
        for key, value in entry.items():
            found[names[id(parameter)], key] = full(value).detach().clone()
    return found

reference = build(False)

def leaver(number, each):
    return f"{number}:{each}" in leaving

# The processes of each world in the order of their ranks.
members, worlds = list(range(sizes[0])), []
for number, size in enumerate(sizes):
    if number:
        stay = [each for each in members if not leaver(number, each)][:size]
        free = [each for each in range(16) if each not in members]
        members = stay + free[: size - len(stay)]
    worlds.append(members)

state, old, between = None, 0, 0
for number, members in enumerate(worlds):
    samples, norms = [], []
    train(reference, STEPS, lambda drawn, norm: norms.append(norm))
    if process not in members:
        continue
    rank, size = members.index(process), len(members)
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=rank, world_size=size)
    if state is None:
        state = build(True)
        if number:
            # All that it brings along is wrong: what it has must come from the others.
            with torch.no_grad():
                for each in (*state.model.parameters(), *state.model.buffers()):
                    each.fill_(7)
    before = state._sharding.cut if state._sharding.held() else None
    identities = [id(each) for each in state.model.parameters()] if not state._sharding.is_fresh else None
    state._progress.watch()
    _membership.begin(state)
    state._progress.begin_world()
    kinds = [kind for kind, _, _ in state._sharding.parts().values()]
    def rows(kind, cut):
        return set() if cut is None else set(range(*_reshard.chunk(kind.rows, cut[1], cut[0])))
    def size_of(cut):
        return sum(len(rows(kind, cut)) * kind.row_bytes for kind, _, _ in state._sharding.parts().values())
    lacking = sum(len(rows(each, state._sharding.cut) - rows(each, before)) * each.row_bytes for each in kinds)
    # Where some come and others leave, rows of these may have gone to others before.
    if plain and number and not leaving:
        assert state._sharding.moved.received == lacking, (number, state._sharding.moved, lacking)
    # Between two worlds a rank has its old and its new part at most.
    new = size_of(state._sharding.cut)
    assert leaving or not plain or between <= old + new, (number, between, old, new)
    assert identities in (None, [id(each) for each in state.model.parameters()])
    found = []
    train(state, STEPS, lambda drawn, norm: found.append((drawn, norm)))
    for (drawn, norm), right in zip(found, norms):
        assert abs(norm - right) <= 1e-9 * right, (number, norm, right)
    drawn = [None] * size
    dist.all_gather_object(drawn, [each for each, _ in found])
    for step in range(STEPS):
        seen = [each for ranks in drawn for each in ranks[step]]
        assert len(seen) == len(set(seen)), seen
    ours, right = whole(state), whole(reference)
    assert list(ours) == list(right), (list(ours), list(right))
    for name, tensor in ours.items():
        assert tensor.shape == right[name].shape, name
        if name == "seen":
            continue
        error = (tensor - right[name]).abs().max() / right[name].abs().max().clamp(min=1e-30)
        assert error <= 1e-9, (number, name, float(error))
    assert state.steps == STEPS * (number + 1) and state.best == reference.best, (state.steps, state.best)
    assert all(isinstance(each, DTensor) for name, each in state.model.named_parameters() if "frozen" not in name)
    assert isinstance(state.model.frozen.weight, DTensor) == ("sgd" not in kind)
    assert state.model.head.weight is state.model.embedding.weight
    assert not state.model.frozen.weight.requires_grad
    if number + 1 < len(worlds):
        following = worlds[number + 1]
        old = size_of(state._sharding.cut)
        goes_on = process in following and "anew" not in kind
        if "saved" in kind:
            state.save()
        if plain:
            state._sharding.hand_over((following.index(process), len(following)) if goes_on else None)
        state._sharding.detach()
        between = sum(each.tensor.nbytes for pieces in state._sharding._pieces.values() for each in pieces)
    _membership.end(state)
    if number + 1 < len(worlds) and not goes_on:
        state, old, between = None, 0, 0
"""

# 200 MB of parameters and of what AdamW keeps for them go from two processes to four and back.
MEMORY = """
import sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from slurm_elastic import _membership, live

torch.set_num_threads(1)
process, directory = int(sys.argv[1]), sys.argv[2]
SIZES, BEYOND, ON_DISK = (2, 4, 2), 64 << 20, 1 << 20

def shard(model, mesh):
    for each in model:
        fully_shard(each, mesh=mesh)
    fully_shard(model, mesh=mesh)

def build():
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(16)))
    return live.State(model, torch.optim.AdamW(model.parameters()), shard=shard)

def field(name, file):
    with open(f"/proc/self/{file}") as lines:
        return int(dict(each.split(":", 1) for each in lines)[name].split()[0])

def begin():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM is that of the future
    return field("VmRSS", "status"), field("write_bytes", "io")

def check(what, new):
    grown, written = (field("VmHWM", "status") - before[0]) << 10, field("write_bytes", "io") - before[1]
    print(what, "grown", grown >> 20, "new part", new >> 20, "on disk", written, file=sys.stderr)
    assert grown <= new + BEYOND, (what, grown, new)
    assert written <= ON_DISK, (what, written)

state = None
for number, size in enumerate(SIZES):
    if process >= size:
        continue
    if state is None:
        state = build()
        before = begin()
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=process, world_size=size)
    state._progress.watch()
    _membership.begin(state)
    state._progress.begin_world()
    if number == 0:
        state.model(torch.ones(1, 1024)).sum().backward()
        state.step()
    new = sum(rows.nbytes for _, _, rows in state._sharding.parts().values())
    assert new * size == 3 * 4 * sum(each.numel() for each in state.model.parameters()), new
    if number:
        check(f"world {number}", new)
    if number + 1 == len(SIZES):
        break
    before, following = begin(), SIZES[number + 1]
    state._sharding.hand_over((process, following) if process < following else None)
    state._sharding.detach()
    _membership.end(state)
    if process >= following:
        check("leaves", 0)
"""

# Rank 1 is to leave, and is lost before it has given its part away.
LOST = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from slurm_elastic import _events, _membership, live
rank, directory = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(1)
model = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
state = live.State(model, optimizer, shard=lambda model, mesh: fully_shard(model, mesh=mesh))
state._progress.watch()

def enter(number, rank, size):
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{number}", size), rank=rank, world_size=size)
    _membership.begin(state)
    state._progress.begin_world()

def step():
    model(torch.ones(2, 3)).square().mean().backward()
    state.step()

enter(0, rank, 2)
step()
state.save()
saved = model.weight.full_tensor().detach().clone()
step()
if rank == 1:
    os._exit(0)
_events.next_world = lambda timeout: _events.World(2, 1, 0, 1, 0, 1, 1, 0)
assert live._hand_over(state._sharding, state).size == 1
_membership.end(state)
enter(1, 0, 1)
assert state.steps == 1 and torch.equal(model.weight.full_tensor(), saved)
step()
"""


@processes.needs_sharding
class Resized(unittest.TestCase):
    def train(self, kind, sizes, *leaving):
        count = max(map(int, sizes.split(","))) + len(leaving)
        processes.run(self, TRAIN, count, kind, sizes, *leaving)

    def test_grown_and_shrunk_with_adamw(self):
        self.train("adamw", "2,4,3,1,2")

    def test_grown_and_shrunk_with_sgd(self):
        self.train("sgd", "1,3,4,2")

    def test_others_come_in_the_place_of_some(self):
        self.train("adamw", "3,3,2", "1:1", "2:0")

    def test_a_checkpoint_is_read_by_worlds_of_other_sizes(self):
        self.train("adamw saved anew", "3,2,4")

    def test_after_a_loss_all_go_on_from_the_checkpoint(self):
        self.train("sgd saved lost", "3,2,3", "1:0")

    def test_one_that_is_to_leave_is_lost_before_it_has_given_its_part(self):
        words = "slurm_elastic: parts of the state were not handed over: "
        self.assertEqual(processes.run(self, LOST, 2)[0].count(words), 1)

    def test_a_change_takes_no_more_memory_than_the_new_part_and_no_disk(self):
        said = processes.run(self, MEMORY, 4)
        self.assertEqual([each.count("grown") for each in said], [2] * 4, said)

    def test_replicas(self):
        self.train("adamw hsdp", "4,2,4")

    def test_replicas_whose_parts_differ_in_size(self):
        self.train("adamw hsdp", "6,3")

    def test_nothing_moves_when_a_replica_leaves(self):
        self.train("adamw units", "3,2")

    def test_the_loss_of_one_of_two_replicas_loses_nothing(self):
        self.train("adamw hsdp lost", "4,3", "1:1")


@processes.needs_sharding
class Mistakes(unittest.TestCase):
    """Each gives one line."""

    def setUp(self):
        import torch
        import torch.distributed as dist
        from slurm_elastic import live

        self.torch, self.dist, self.live = torch, dist, live
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def group(self):
        store = self.dist.HashStore()
        self.dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        self.addCleanup(self.dist.destroy_process_group)

    def assert_refused(self, words, function, kind=TypeError):
        with self.assertRaises(kind) as caught:
            function()
        self.assertRegex(str(caught.exception), words)
        self.assertNotIn("\n", str(caught.exception))

    def state(self, *parts, shard=None, **options):
        parts = parts or (self.optimizer,)
        shard = shard or (lambda model, mesh: None)
        return self.live.State(self.model, *parts, shard=shard, **options)

    def assert_refused_in_a_world(self, words, shard):
        from slurm_elastic import _membership

        self.group()
        state = self.state(shard=shard)
        self.assert_refused(words, lambda: _membership.begin(state))

    def test_an_optimizer_that_is_left_out(self):
        words = "^0.weight is trained, and no optimizer of the state has it: give live.State all"
        self.assert_refused(words, lambda: self.live.State(self.model, shard=lambda *_: None))
        other = self.torch.optim.SGD(self.model[0].parameters(), lr=1)
        self.assert_refused("^1.weight is trained", lambda: self.state(other))

    def test_an_optimizer_of_another_model(self):
        other = self.torch.optim.SGD(self.torch.nn.Linear(2, 5).parameters(), lr=1)
        words = r"^optimizer 1 has a parameter of shape \(5, 2\) that is not one of the model"
        self.assert_refused(words, lambda: self.state(self.optimizer, other))

    def test_what_shard_may_be(self):
        self.assert_refused("^shard=True: must be a function", lambda: self.state(shard=True))
        options = {"ddp_options": {"bucket_cap_mb": 1}}
        self.assert_refused("^ddp_options beside shard", lambda: self.state(**options), ValueError)
        self.state()  # what is in it is right
        for nodes, is_refused in (("1", False), ("4", True)):
            environment = {"ELASTIC_CHECKPOINT_URL": "s3://b/p", "ELASTIC_MAX_NODES": nodes}
            with mock.patch.dict(os.environ, environment):
                if is_refused:
                    words = (
                        "^shard with --checkpoint-dir=s3://.*: .* a directory that all nodes see"
                    )
                    self.assert_refused(words, self.state, ValueError)
                    self.live.State(self.model, self.optimizer)
                else:
                    self.state()

    def test_a_model_that_is_sharded_already(self):
        from torch.distributed.fsdp import fully_shard

        self.group()
        fully_shard(
            self.model, mesh=self.torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        )
        optimizer = self.torch.optim.AdamW(self.model.parameters())
        words = r"^the model is sharded by fully_shard\(\) already: give live.State the plain model"
        self.assert_refused(words, lambda: self.state(optimizer))
        self.assert_refused(words, lambda: self.live.State(self.model, optimizer))

    def test_a_function_that_shards_nothing(self):
        words = r"^shard\(\) has sharded no parameter: it has to call fully_shard\(\)"
        self.assert_refused_in_a_world(words, lambda model, mesh: None)

    def test_a_function_that_leaves_a_layer_out(self):
        from torch.distributed.fsdp import fully_shard

        words = r"^shard\(\) has left out 1.weight, which is trained"
        self.assert_refused_in_a_world(words, lambda model, mesh: fully_shard(model[0], mesh=mesh))

    def test_a_function_that_renames(self):
        def shard(model, mesh):
            model.more = self.torch.nn.Linear(2, 2)

        self.assert_refused_in_a_world(r"^shard\(\) has changed the names of parameters", shard)

    def test_the_state_of_one_rank(self):
        from slurm_elastic import _membership
        from torch.distributed.fsdp import fully_shard

        self.group()
        state = self.state(shard=lambda model, mesh: fully_shard(model, mesh=mesh))
        _membership.begin(state)
        words = r"^the state is sharded, .*: call state.save\(\) on all ranks$"
        self.assert_refused(words, state.state_dict)


@tap.needs_torch
class Without(unittest.TestCase):
    @unittest.skipIf(processes.have_fully_shard(), "there is fully_shard() for the host")
    def test_it_is_said_which_pytorch_has_it(self):
        import torch
        from slurm_elastic import live

        model = torch.nn.Linear(2, 2)
        with self.assertRaisesRegex(
            ValueError,
            r"^shard: PyTorch .* has no fully_shard\(\) that runs on the host, PyTorch 2.13",
        ):
            live.State(model, shard=lambda model, mesh: None)


if __name__ == "__main__":
    tap.main()
