# SPDX-License-Identifier: GPL-2.0-or-later
"""A training state of which each rank has a part: PyTorch's fully_shard (FSDP2).

The script's function shards the model anew in each world, on a mesh of that world. Between two
worlds the model is as the script has built it, with parameters that have no memory. What this rank
had of each parameter, and of what the optimizers keep for it, is held in pieces: rows of the first
dimension. Ranks send each other the rows that they lack; _reshard says which.

Tensors that are cut in other ways, inside a unit of nodes (tensor parallelism), are held by
position: all units are cut alike, and what a rank has is the row of its place in the unit.

A parameter is the same object in all worlds, so optimizers and schedulers keep what they have.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

import torch
import torch.distributed as dist

from . import _reshard, _torch_compat, _world
from ._final import final
from ._reshard import Range, chunk
from ._transfer import exchange, meet

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

ShardFunction = Callable[[torch.nn.Module, "DeviceMesh"], Any]
Key = Tuple[Any, ...]
"""("model", name) of a parameter; (number of the optimizer, name of the parameter, name) of what an
optimizer keeps for it."""


class Kind(NamedTuple):
    """Of a sharded tensor, as a whole. It stands for the tensor where its parts are elsewhere."""

    shape: Tuple[int, ...]
    dtype: torch.dtype

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        numbers = 1
        for size in self.shape[1:]:
            numbers *= size
        return numbers * self.dtype.itemsize

    def empty(self, rows: Range, device: Any) -> torch.Tensor:
        shape = (rows[1] - rows[0], *self.shape[1:])
        return torch.empty(shape, dtype=self.dtype, device=device)


class Piece(NamedTuple):
    """Some rows of a sharded tensor."""

    rows: Range
    tensor: torch.Tensor

    def part(self, start: int, stop: int) -> torch.Tensor:
        return self.tensor[start - self.rows[0] : stop - self.rows[0]]


class Moved(NamedTuple):
    """Bytes that this rank has sent and received in a change."""

    sent: int
    received: int


def _part(pieces: List[Piece], start: int, stop: int) -> torch.Tensor:
    """Rows that one of the pieces has."""
    for each in pieces:
        if each.rows[0] <= start and stop <= each.rows[1]:
            return each.part(start, stop)
    raise LookupError(f"no piece has the rows {start} to {stop}")


def _size(tensors: Dict[int, List[torch.Tensor]]) -> int:
    return sum(t.numel() * t.element_size() for each in tensors.values() for t in each)


def replicated(model: torch.nn.Module) -> Dict[str, torch.Tensor]:
    """Parameters and buffers that all ranks have alike."""
    named = (*model.named_parameters(), *model.named_buffers())
    return {name: each.data for name, each in named if not _torch_compat.is_dtensor(each)}


def _sharded_dimension(tensor: Any) -> Optional[int]:
    """The dimension of the mesh along which a tensor is sharded by rows; None: it is sharded in
    another way.
    """
    found = [number for number, each in enumerate(tensor.placements) if each.is_shard(0)]
    others = [
        each for each in tensor.placements if not each.is_shard(0) and not each.is_replicate()
    ]
    return found[0] if len(found) == 1 and not others else None


def _check_in_unit(name: str, tensor: Any, number: int, size: int) -> None:
    """Raises TypeError unless all units have the whole tensor, each position an equal part of it.

    number, size  of this rank's unit.
    """
    where = f"{name} is placed as {tensor.placements}"
    parts = [1] * len(tensor.shape)
    for dimension, placement in enumerate(tensor.placements):
        if placement.is_replicate():
            continue
        ranks = _torch_compat.mesh_line(tensor.device_mesh, dimension)
        if any(rank // size != number for rank in ranks):
            raise TypeError(
                f"{where}: live mode moves tensors that are sharded along their dimension 0, by one "
                "dimension of the mesh, or in any way inside a unit (--elastic-replica=N). Else "
                "restart mode, with save(dcp=True)"
            )
        parts[placement.dim] *= len(ranks)
    if any(rows % count for rows, count in zip(tensor.shape, parts)):
        raise TypeError(
            f"{where}, its shape is {tuple(tensor.shape)}: live mode moves parts of equal size"
        )


class Sharding:
    """Of one model and its optimizers.

    function  shards the model on a mesh: the script's own.
    """

    def __init__(
        self, model: torch.nn.Module, optimizers: List[Any], function: ShardFunction
    ) -> None:
        self._model, self._optimizers, self._function = model, optimizers, function
        self._names = {id(each): name for name, each in model.named_parameters()}
        for number, optimizer in enumerate(optimizers):
            for each in (p for group in optimizer.param_groups for p in group["params"]):
                if id(each) not in self._names:
                    raise final(
                        TypeError(
                            f"optimizer {number} has a parameter of shape {tuple(each.shape)} that is "
                            "not one of the model: a sharded state cannot keep it"
                        )
                    )
        kept = {id(p) for one in optimizers for group in one.param_groups for p in group["params"]}
        for name, each in model.named_parameters():
            if each.requires_grad and id(each) not in kept:
                raise final(
                    TypeError(
                        f"{name} is trained, and no optimizer of the state has it: give live.State all "
                        "optimizers, since fully_shard() makes new parameters, or call "
                        "requires_grad_(False)"
                    )
                )
        # In the module's own dictionaries a tied parameter is there several times.
        self._places = [
            (model.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2], id(each))
            for path, each in model.named_parameters(remove_duplicate=False)
        ]
        self._sharded: Dict[str, Any] = {}  # parameters by name, once they are sharded
        self._skeleton: Any = None  # while the model is sharded
        self._is_installed = False  # the sharded model has its values
        self._pieces: Dict[Key, List[Piece]] = {}
        self._is_borrowed = False  # the memory of some pieces belongs to copies
        self._index, self._count = 0, 1  # this rank's part, in this world
        self._by_position = False  # the parts are those of places in a unit
        self._shapes: Dict[str, Tuple[int, ...]] = {}  # of the kinds of parameters, by name
        self.is_fresh = True
        """The model is as the script has built it: no rank has been told to shard it."""
        self.moved = Moved(0, 0)
        """In the newest change."""

    # ---- the model in a world --------------------------------------------------------------------

    def apply(self) -> None:
        """Shard the model on this world's mesh. Its values come with move(), read() or begin()."""
        self._skeleton = _torch_compat.Skeleton(self._model)
        before = dict(self._model.named_parameters())
        if self._sharded:
            self._put({name: self._hollow(name, each) for name, each in before.items()})
        else:
            self._device = next(iter(before.values())).device
        mesh = _torch_compat.mesh_of_all(self._device.type)
        self._function(self._model, mesh)
        self.is_fresh = False
        after = dict(self._model.named_parameters())
        if list(after) != list(before):
            raise final(
                TypeError("shard() has changed the names of parameters: it may only shard them")
            )
        self._made = {name: each for name, each in after.items() if _torch_compat.is_dtensor(each)}
        if not self._made:
            raise final(TypeError("shard() has sharded no parameter: it has to call fully_shard()"))
        self._check(after)
        if not self._sharded:
            self._sharded = dict(self._made)
            self._names = {id(each): name for name, each in after.items()}
            for group in (each for one in self._optimizers for each in one.param_groups):
                name_of = {id(each): name for name, each in before.items()}
                group["params"] = [after[name_of[id(each)]] for each in group["params"]]

    def _check(self, parameters: Dict[str, Any]) -> None:
        for name, each in parameters.items():
            if name not in self._made and each.requires_grad:
                raise final(
                    TypeError(
                        f"shard() has left out {name}, which is trained: no rank would sum its "
                        "gradients. Call fully_shard() for the whole model, after its layers"
                    )
                )
        cuts: Set[Tuple[int, int]] = set()
        for each in self._made.values():
            dimension, mesh = _sharded_dimension(each), each.device_mesh
            if dimension is None:
                cuts.clear()
                break
            cuts.add((mesh.get_local_rank(dimension), mesh.size(dimension)))
        self._by_position = len(cuts) != 1
        if self._by_position:
            unit = _world.unit()
            for name, each in self._made.items():
                _check_in_unit(name, each, unit.number, unit.size)
            cuts = {(unit.rank, unit.size)}
        ((self._index, self._count),) = cuts
        self._shapes = {name: self._kind(each).shape for name, each in self._made.items()}

    def _kind(self, tensor: Any) -> Kind:
        """Of a sharded tensor, in a world."""
        if not self._by_position:
            return Kind(tuple(tensor.shape), tensor.dtype)
        return Kind((self._count, *_torch_compat.local(tensor).shape), tensor.dtype)

    def _rows_of(self, tensor: Any) -> torch.Tensor:
        """What this rank has of a sharded tensor."""
        local: torch.Tensor = _torch_compat.local(tensor)
        return local.unsqueeze(0) if self._by_position else local

    def _hollow(self, name: str, parameter: Any) -> Any:
        """A parameter without memory in the place of one that is sharded."""
        if name not in self._sharded:
            return parameter
        empty = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
        return torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)

    def _put(self, parameters: Dict[str, Any]) -> None:
        """Set the model's parameters by name, tied ones at all their places."""
        by_first_place: Dict[int, str] = {}
        for (module, attribute, identity), (path, _) in zip(
            self._places, self._model.named_parameters(remove_duplicate=False)
        ):
            name = by_first_place.setdefault(identity, path)
            setattr(module, attribute, parameters[name])

    def _install(self, tensors: Dict[Key, torch.Tensor]) -> None:
        """Give the sharded model and the optimizers their values."""
        parameters = dict(self._model.named_parameters())
        for name, made in self._made.items():
            parameter = self._sharded[name]
            part = self._dtensor(made, tensors["model", name], made.shape)
            _torch_compat.set_dtensor(parameter, part)
            parameters[name] = parameter
        self._put(parameters)
        for number, name, entry, key, value in self._kept():
            if isinstance(value, Kind):
                made = self._made[name]
                whole = made.shape if self._by_position else value.shape
                entry[key] = self._dtensor(made, tensors[number, name, key], whole)
        self._pieces, self._is_borrowed = {}, False
        self._is_installed = True

    def _dtensor(self, like: Any, rows: torch.Tensor, shape: Any) -> Any:
        """A tensor of a shape, placed like a parameter, of which this rank has these rows."""
        local = rows[0] if self._by_position else rows
        return _torch_compat.dtensor(local, like.device_mesh, like.placements, shape)

    def detach(self) -> None:
        """Undo apply(): the mesh is no longer used. What this rank has is held in pieces.

        Without effect if the model is not sharded.
        """
        if self._skeleton is None:
            return
        if self._is_installed:
            self._pieces = {
                key: [Piece(chunk(kind.rows, self._count, self._index), local)]
                for key, kind, local in self._parts()
            }
            for number, name, entry, key, value in self._kept():
                if (number, name, key) in self._pieces:
                    entry[key] = self._kind(value)
        for parameter in self._sharded.values():
            parameter.grad = None
        self._is_installed = False
        self._made = {}
        self._skeleton.restore()
        self._skeleton = None
        self._put({**dict(self._model.named_parameters()), **self._sharded})

    # ---- what is sharded -------------------------------------------------------------------------

    def _kept(self) -> Iterator[Tuple[int, str, Dict[str, Any], str, Any]]:
        """What optimizers keep for parameters: the optimizer's number, the parameter's name, the
        dictionary, a key and its value.
        """
        for number, optimizer in enumerate(self._optimizers):
            for parameter, entry in optimizer.state.items():
                for key, value in list(entry.items()):
                    yield number, self._names[id(parameter)], entry, key, value

    def _parts(self) -> Iterator[Tuple[Key, Kind, torch.Tensor]]:
        """What this rank has of each sharded tensor."""
        for name, each in self._sharded.items():
            yield ("model", name), self._kind(each), self._rows_of(each)
        for number, name, _, key, value in self._kept():
            if not _torch_compat.is_dtensor(value):
                continue
            if self._is_movable(name, value):
                yield (number, name, key), self._kind(value), self._rows_of(value)
            else:
                raise TypeError(f"{key} of {name} in an optimizer is placed as {value.placements}")

    def _is_movable(self, name: str, value: Any) -> bool:
        """Whether what an optimizer keeps for a parameter is cut as that is."""
        if not self._by_position:
            return _sharded_dimension(value) is not None
        made = self._made[name]
        return bool(value.shape == made.shape and value.placements == made.placements)

    def _kinds(self) -> Dict[Key, Kind]:
        """All sharded tensors: equal on all ranks, in equal order, once optimizers are."""
        found: Dict[Key, Kind] = {
            ("model", name): Kind(self._shapes[name], each.dtype)
            for name, each in self._sharded.items()
        }
        for number, name, _, key, value in self._kept():
            if isinstance(value, Kind):
                found[number, name, key] = value
        return found

    def held(self) -> Dict[int, List[Range]]:
        """The rows that this rank holds of all tensors with so many rows."""
        found: Dict[int, List[Range]] = {}
        for key, kind in self._kinds().items():
            ranges = [
                each.rows for each in self._pieces.get(key, []) if each.rows[0] < each.rows[1]
            ]
            known = found.setdefault(kind.rows, ranges)
            if known != ranges:
                raise RuntimeError(f"{key} is held in other parts than tensors of equal length")
        return found

    @property
    def cut(self) -> Tuple[int, int]:
        """(number of this rank's part, number of parts) in this world."""
        return self._index, self._count

    @property
    def shares_samples(self) -> bool:
        """Ranks may have the same samples: the model is cut inside units as well."""
        return self._by_position

    # ---- optimizers, without what is sharded -----------------------------------------------------

    def optimizer_state(self, optimizer: Any) -> Dict[str, Any]:
        """Like state_dict(), with parameters by name and a Kind for each sharded tensor."""
        groups = [
            {**group, "params": [self._names[id(each)] for each in group["params"]]}
            for group in optimizer.param_groups
        ]
        number = next(n for n, each in enumerate(self._optimizers) if each is optimizer)
        state: Dict[str, Dict[str, Any]] = {}
        for owner, name, _, key, value in self._kept():
            if owner == number:
                is_sharded = _torch_compat.is_dtensor(value)
                whole = self._kind(value) if is_sharded else value
                state.setdefault(name, {})[key] = whole
        return {"param_groups": groups, "state": state}

    def load_optimizer_state(self, optimizer: Any, saved: Dict[str, Any]) -> None:
        """Take over what optimizer_state() has returned on another rank."""
        parameters = dict(self._model.named_parameters())
        parameters.update(self._sharded)
        for group, other in zip(optimizer.param_groups, saved["param_groups"]):
            group.update((key, value) for key, value in other.items() if key != "params")
        optimizer.state.clear()
        for name, entry in saved["state"].items():
            optimizer.state[parameters[name]] = dict(entry)

    # ---- parts that change hands -----------------------------------------------------------------

    def drop(self) -> None:
        """Forget what this rank holds: it is of another step than that of the others."""
        self._pieces, self._is_borrowed = {}, False

    def adopt(self, parts: List[Dict[Key, Tuple[Kind, Range, torch.Tensor]]]) -> None:
        """Hold these instead, each as parts() returns it. Their memory is only read."""
        self.drop()
        self._is_borrowed = True
        for each in parts:
            for key, (_, rows, tensor) in each.items():
                pieces = self._pieces.setdefault(key, [])
                if all(piece.rows != rows for piece in pieces):
                    pieces.append(Piece(rows, tensor))

    def begin(self) -> None:
        """The model goes on with the values that it was sharded with."""
        self._is_installed = True

    def _new(self, key: Key, kind: Kind, rows: Range) -> Piece:
        """A piece with these rows, with what this rank holds of them; or one that it holds."""
        pieces = self._pieces.get(key, [])
        for each in pieces:
            if each.rows == rows and not self._is_borrowed:
                return each
        piece = Piece(rows, self._room(key, kind, rows))
        for each in pieces:
            start, stop = max(rows[0], each.rows[0]), min(rows[1], each.rows[1])
            if start < stop:
                piece.part(start, stop).copy_(each.part(start, stop))
        return piece

    def _room(self, key: Key, kind: Kind, rows: Range) -> torch.Tensor:
        """Memory for rows: that with which a parameter was first sharded, if it was just now."""
        made = self._made.get(key[1]) if key[0] == "model" and self._skeleton is not None else None
        if made is not None and made is self._sharded[key[1]]:
            local = self._rows_of(made)
            if not local.is_meta and local.shape[0] == rows[1] - rows[0]:
                return local
        return kind.empty(rows, self._device)

    def _receive(
        self, have: List[Dict[int, List[Range]]], need: Dict[int, List[List[Range]]]
    ) -> Dict[Key, List[Piece]]:
        """Exchange rows with all ranks. Returns the pieces of this rank that it needs.

        have  for each rank, what held() has returned there.
        need  for each number of rows, what each rank needs.

        Raises Missing if no rank has some rows, ConnectionError and others if a rank is lost.
        """
        rank, kinds, load = dist.get_rank(), self._kinds(), [0] * len(have)
        moves: Dict[int, List[_reshard.Move]] = {}
        for rows, needed in need.items():
            weight = sum(each.row_bytes for each in kinds.values() if each.rows == rows)
            held = [each.get(rows, []) for each in have]
            moves[rows] = _reshard.plan(held, needed, weight, load)
        found: Dict[Key, List[Piece]] = {}
        going: Dict[int, List[torch.Tensor]] = {}
        coming: Dict[int, List[torch.Tensor]] = {}
        for key, kind in kinds.items():
            found[key] = [self._new(key, kind, each) for each in need[kind.rows][rank]]
            for move in moves[kind.rows]:
                if move.source == rank:
                    part = _part(self._pieces[key], move.start, move.stop)
                    going.setdefault(move.target, []).append(part)
                elif move.target == rank:
                    part = _part(found[key], move.start, move.stop)
                    coming.setdefault(move.source, []).append(part)
        exchange(going, coming)
        self.moved = Moved(self.moved.sent + _size(going), self.moved.received + _size(coming))
        return found

    def _add(self, found: Dict[Key, List[Piece]]) -> None:
        for key, pieces in found.items():
            known = self._pieces.setdefault(key, [])
            known.extend(each for each in pieces if not any(each is other for other in known))

    def move(self, have: List[Dict[int, List[Range]]], cuts: List[Tuple[int, int]]) -> None:
        """Give each rank its part for this world, and the model its values. A collective call.

        have  for each rank, what held() has returned there.
        cuts  for each rank, its cut.
        """
        classes = {each.rows for each in self._kinds().values()}
        need = {rows: [[chunk(rows, count, index)] for index, count in cuts] for rows in classes}
        found = self._receive(have, need)
        # A loss from here on finds this rank with its new part as well as with its old one.
        self._add(found)
        meet()
        self._install({key: pieces[0].tensor for key, pieces in found.items()})

    def hand_over(
        self,
        following: Optional[Tuple[int, int]],
        first: Callable[[List[bool]], None] = lambda stay: None,
    ) -> None:
        """Before some ranks leave: those that stay get what is theirs then. A collective call of
        all ranks of a world, which ends.

        following  (rank, size) of this process in the next world; None: it leaves.
        first      is called before any rows are sent, with whether each rank stays.
        """
        self.moved = Moved(0, 0)
        self.detach()
        table: List[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(table, (following, self.held(), self._count))
        places = [each[0] for each in table]
        stay = [place is not None for place in places]
        if all(stay) or not any(stay):
            return
        first(stay)
        ranks = [None if place is None else place[0] for place in places]
        size = max(place[1] for place in places if place is not None)
        have = [each[1] for each in table]
        parts, is_known = _reshard.likely_parts(ranks, size, [each[2] for each in table])
        need = {
            rows: _reshard.before_leaving(rows, [each[rows] for each in have], parts, is_known)
            for rows in self.held()
        }
        found = self._receive(have, need)
        self._add(found)
        meet()
        if is_known and following is not None and size == sum(rank is not None for rank in ranks):
            self._pieces = found  # there are no newcomers, who would need the others

    # ---- files -----------------------------------------------------------------------------------

    def parts(self) -> Dict[Key, Tuple[Kind, Range, torch.Tensor]]:
        """For a checkpoint: what this rank has of each sharded tensor, in a world."""
        return {
            key: (kind, chunk(kind.rows, self._count, self._index), local)
            for key, kind, local in self._parts()
        }

    def read(self, files: List[Dict[Key, Tuple[Kind, Range, torch.Tensor]]]) -> None:
        """Take this rank's part from what all ranks of another world have written.

        Raises Missing if the files do not have all rows.
        """
        tensors: Dict[Key, torch.Tensor] = {}
        self._pieces = {}
        for key, kind in self._kinds().items():
            rows = chunk(kind.rows, self._count, self._index)
            have = [[each[key][1]] if key in each else [] for each in files]
            piece = Piece(rows, self._room(key, kind, rows))
            for move in _reshard.plan([*have, []], [*([] for _ in files), [rows]]):
                source = Piece(*files[move.source][key][1:])
                piece.part(move.start, move.stop).copy_(source.part(move.start, move.stop))
            tensors[key] = piece.tensor
        self._install(tensors)
