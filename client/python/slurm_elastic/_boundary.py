# SPDX-License-Identifier: GPL-2.0-or-later
"""What a step that cannot end has changed in a training state, and how it is undone.

Before its optimizers step, a step changes little: buffers, parameters that no optimizer has, random
numbers, values of the script. A copy of these is made at each boundary. After the optimizers have
begun their step nothing can be undone: a copy of all parameters would cost as much as a step. If
all optimizers have ended their step, the step counts as complete.
"""

from __future__ import annotations

import copy
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from . import _generators, _mistakes
from ._copies import Copies
from ._torch_compat import (
    calls_closure_first,
    forget_unscaling,
    has_step_hooks,
    pass_for_step,
    scaler_tensors,
)
from .sampler import ElasticSampler

_CONSTANTS = (int, float, bool, str, bytes, type(None))


class Standing(NamedTuple):
    """The steps that a rank can offer, as numbers of steps made; -1: none."""

    whole: int
    """It can go on from there."""
    complete: int
    """It has only the parameters from there, and what comes with the optimizers' step."""


def newest(standings: Sequence[Standing]) -> Tuple[int, List[int]]:
    """The step from which all ranks go on, and the ranks that have it; (-1, []): the beginning.

    A committed step comes first. A step that is only complete counts if no rank has a whole state.
    """
    step = max(each.whole for each in standings)
    if step >= 0:
        return step, [rank for rank, each in enumerate(standings) if each.whole == step]
    step = max(each.complete for each in standings)
    if step >= 0:
        return step, [rank for rank, each in enumerate(standings) if each.complete == step]
    return -1, []


class Stepping:
    """Counts how often each optimizer has begun and ended its step since the last boundary.

    A step with a closure begins when the closure has ended for the first time, if that is known:
    until then the closure has made gradients, and no parameter has changed. Lightning makes all
    steps so.
    """

    def __init__(self, optimizers: Sequence[Any]):
        self._begun, self._ended = [0] * len(optimizers), [0] * len(optimizers)
        self.confirm: Optional[Callable[[], None]] = None
        """Called before the first optimizer steps. None: there is no need."""
        for number, optimizer in enumerate(optimizers):
            if has_step_hooks(optimizer):
                # The arguments begin with the optimizer itself.
                optimizer.register_step_pre_hook(
                    lambda one, args, kwargs, number=number: self._arguments(
                        number, one, args, kwargs
                    )
                )
                optimizer.register_step_post_hook(
                    lambda *_, number=number: self._count(self._ended, number)
                )
            else:
                optimizer.step = self._counting(optimizer.step, optimizer, number)

    def check(self) -> None:
        """Raises what confirm() raises."""
        if self.confirm is not None:
            self.confirm()

    def _arguments(
        self, number: int, optimizer: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]
    ) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """What an optimizer gets for its step instead of these, when that is called."""
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None or not calls_closure_first(optimizer):
            self._begin(number)
            return args, kwargs
        before = self._begun[number]

        def watched() -> Any:
            result = closure()
            if self._begun[number] == before:
                self._begin(number)
            return result

        return args[:1], {**kwargs, "closure": watched}

    def _begin(self, number: int) -> None:
        if self.none:
            self.check()
        self._count(self._begun, number)

    @staticmethod
    def _count(counts: List[int], number: int) -> None:
        counts[number] += 1
        if counts[number] == _mistakes.FORGOTTEN:
            _mistakes.tell_of_forgotten_commit()

    def _counting(self, step: Callable[..., Any], optimizer: Any, number: int) -> Any:
        def counting(*args: Any, **kwargs: Any) -> Any:
            (_, *others), kwargs = self._arguments(number, optimizer, args, kwargs)
            result = step(*others, **kwargs)
            self._count(self._ended, number)
            return result

        pass_for_step(counting, step)
        return types.MethodType(counting, optimizer)

    def begin(self) -> None:
        """A new step begins: count from 0."""
        if any(self._begun):
            self._begun, self._ended = [0] * len(self._begun), [0] * len(self._begun)

    @property
    def none(self) -> bool:
        return not any(self._begun)

    @property
    def all(self) -> bool:
        return bool(self._ended) and all(each == 1 for each in self._begun + self._ended)


def _copy(value: Any) -> Any:
    return value if isinstance(value, _CONSTANTS) else copy.deepcopy(value)


def _put_back(group: Dict[str, Any], taken: Dict[str, Any]) -> None:
    for key, value in taken.items():
        if isinstance(value, torch.Tensor) and isinstance(group.get(key), torch.Tensor):
            group[key].copy_(value)  # others may have this tensor, a graph of CUDA say
        else:
            group[key] = value


class Boundary:
    """A copy of what a step changes before its optimizers step, as it was at the last boundary.

    The optimizers' parameters and state are not in it: only the optimizers' step changes them.
    Parts that are modules are treated like the model. Other parts are copied through their
    state_dict(), which should be small.

    model, parts  of the training state.
    kinds         the parts that are "optimizers" and "scalers".
    values        returns the plain values of the state, by name.
    rng           as in live.State.
    changing      ids of parameters that change although no optimizer has them; it is added to.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        parts: Sequence[Any],
        kinds: Dict[str, List[Any]],
        values: Callable[[], Dict[str, Any]],
        rng: Any,
        changing: Set[int],
    ):
        modules = [model, *(part for part in parts if isinstance(part, torch.nn.Module))]
        self._copies = Copies(modules, kinds["optimizers"], changing)
        self._samplers = [part for part in parts if isinstance(part, ElasticSampler)]
        self._optimizers, self._scalers = kinds["optimizers"], kinds["scalers"]
        known = [*self._samplers, *self._optimizers, *self._scalers]
        others = [
            part
            for part in parts
            if not any(part is each for each in known) and not isinstance(part, torch.nn.Module)
        ]
        # Schedulers: a dictionary of numbers.
        self._light = [part for part in others if hasattr(part, "last_epoch")]
        self._others = [part for part in others if not hasattr(part, "last_epoch")]
        self._values, self._rng = values, rng
        self.keep()

    def keep(self) -> None:
        """Copy: this is a boundary."""
        self._copies.keep()
        self._positions = [(sampler.epoch, sampler.committed) for sampler in self._samplers]
        self._groups = [
            {
                key: value.clone() if isinstance(value, torch.Tensor) else value
                for key, value in group.items()
                if key != "params"
            }
            for optimizer in self._optimizers
            for group in optimizer.param_groups
        ]
        self._scales = [
            [each.clone() for each in scaler_tensors(scaler)] for scaler in self._scalers
        ]
        self._light_states = [dict(part.state_dict()) for part in self._light]
        self._states = [copy.deepcopy(part.state_dict()) for part in self._others]
        self._taken = {name: _copy(value) for name, value in self._values().items()}
        if self._rng == "shared":
            self._generators = _generators.snapshot()
        elif self._rng == "own":
            self._generators = {"torch": torch.get_rng_state()}
            if torch.cuda.is_initialized():
                self._generators["cuda"] = torch.cuda.get_rng_state()

    def restore(self) -> Tuple[Dict[str, Any], bool]:
        """Go back to the boundary. Returns the values, and whether all else is as it was there."""
        is_undone = self._copies.restore()
        for sampler, position in zip(self._samplers, self._positions):
            sampler._place(*position)
        groups = (group for optimizer in self._optimizers for group in optimizer.param_groups)
        for group, taken in zip(groups, self._groups):
            _put_back(group, taken)
        for scaler, scales in zip(self._scalers, self._scales):
            for tensor, value in zip(scaler_tensors(scaler), scales):
                tensor.copy_(value)
            forget_unscaling(scaler)
        for part, state_dict in zip(self._light + self._others, self._light_states + self._states):
            part.load_state_dict(state_dict)
        if self._rng == "shared":
            _generators.restore(self._generators)
        elif self._rng == "own":
            torch.set_rng_state(self._generators["torch"])
            if "cuda" in self._generators:
                torch.cuda.set_rng_state(self._generators["cuda"])
        return {name: _copy(value) for name, value in self._taken.items()}, is_undone


def drop_gradients(model: torch.nn.Module) -> None:
    """Set all gradients to None: after a step that could not end they are incomplete sums."""
    for parameter in model.parameters():
        parameter.grad = None
