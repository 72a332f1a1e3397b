# SPDX-License-Identifier: GPL-2.0-or-later
"""How many steps a rank has made, and what is left of its state when a step cannot end.

A step cannot end when a worker or a node is lost. What the step has changed is then undone, or the
step counts as made, or the rank has lost its state: Boundary and Stepping say which.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Set

import torch

from ._boundary import Boundary, Standing, Stepping, drop_gradients
from ._parts import is_optimizer, is_scaler
from .sampler import ElasticSampler


class Progress:
    """The steps of one rank.

    model, parts  of the training state.
    values        returns the plain values of the state, by name.
    set_values    sets them.
    rng           as in live.State.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        parts: Sequence[Any],
        values: Callable[[], Dict[str, Any]],
        set_values: Callable[[Dict[str, Any]], None],
        rng: Optional[str],
    ) -> None:
        self.steps = 0
        """Steps made in the whole training."""
        # A new process may have other random parameters than the others have. Its state is whole
        # when it has received or read one, or has ended the first step of a world.
        self.is_whole = False
        """Whether this rank has the whole state after `steps` steps."""
        self.complete = -1
        """Steps made, if it has only what the optimizers' step has changed; -1: not even that."""
        self._has_part = False  # the model has a part of a step that could not end
        self._is_first_step = False  # of this world
        self._model, self._parts, self._rng = model, parts, rng
        self._values, self._set_values = values, set_values
        self._samplers = [part for part in parts if isinstance(part, ElasticSampler)]
        self._optimizers = [part for part in parts if is_optimizer(part)]
        self._scalers = [part for part in parts if is_scaler(part)]
        self._stepping: Optional[Stepping] = None
        self._boundary: Optional[Boundary] = None
        # The ids of parameters that change although no optimizer has them: kept over worlds.
        self._changing: Set[int] = set()

    # ---- in a world ------------------------------------------------------------------------------

    def watch(self) -> None:
        """From now on a worker can be lost: note how far each optimizer's step has come."""
        if self._stepping is None:
            self._stepping = Stepping(self._optimizers)

    def begin_world(self, confirm: Optional[Callable[[], None]] = None) -> None:
        """Training begins in a new world; this rank has the state.

        confirm  called before the optimizers of a step step. It raises an exception if what they
                 would use may be wrong, since a worker is lost.
        """
        drop_gradients(self._model)
        if self._stepping is None:
            return
        self._stepping.confirm = confirm
        self._is_first_step = True
        self._stepping.begin()
        kinds = {"optimizers": self._optimizers, "scalers": self._scalers}
        self._boundary = Boundary(
            self._model, self._parts, kinds, self._values, self._rng, self._changing
        )

    def end_world(self) -> None:
        """Nothing has to be undone any more."""
        self._boundary = None

    def end_step(self) -> bool:
        """Count a step. True: it was the first one of this world."""
        if self._stepping is not None and self._stepping.none:
            self._stepping.check()  # a scaler that has found infinite gradients, say
        self._count_step()
        is_first, self._is_first_step = self._is_first_step, False
        # After the first step the ranks of a new training have equal parameters, too.
        self.is_whole = self.is_whole or is_first
        return is_first

    def keep(self) -> None:
        """A later undo() goes back to here."""
        if self._boundary is not None:
            self._boundary.keep()

    def _count_step(self) -> None:
        for sampler in self._samplers:
            sampler.commit()
        self.steps += 1
        if self._stepping is not None:
            self._stepping.begin()

    @property
    def has_stepped(self) -> Optional[bool]:
        """Whether an optimizer has begun its step since the last boundary; None: nobody counts."""
        if self._stepping is None or not self._optimizers:
            return None
        return not self._stepping.none

    # ---- when a step cannot end ------------------------------------------------------------------

    def undo(self) -> None:
        """Undo the step that has begun, if that is possible. Without effect before training begins.

        If no optimizer has begun its step, all goes back to the last boundary. Otherwise the state
        is not whole; `complete` says whether all optimizers have ended their step.
        """
        boundary, self._boundary = self._boundary, None
        if boundary is None or self._stepping is None:
            return
        if self._stepping.none and self._optimizers:
            values, is_undone = boundary.restore()
            self._set_values(values)
            self.is_whole = self.is_whole and is_undone
            self._has_part = self._has_part or not is_undone
        else:
            self.is_whole = False
            self._has_part = True
            self.complete = self.steps + 1 if self._stepping.all else -1
        self._stepping.begin()

    @property
    def standing(self) -> Standing:
        """The steps that this rank can offer to others."""
        return Standing(self.steps if self.is_whole else -1, self.complete)

    @property
    def farthest(self) -> int:
        """The steps of what this rank has, whole or not; -1: it has made none.

        For the case that no rank has a whole state.
        """
        return self.steps if self.steps or self._has_part else -1

    def go_on_from(self, step: int) -> None:
        """Take what this rank has for the whole state after so many steps."""
        if not self.is_whole:
            self._count_step()
            self.is_whole = True
        assert self.steps == step

    def go_on_from_complete(self) -> bool:
        """Take a step that all optimizers have ended for whole. False: this rank has no state."""
        if not self.is_whole and self.complete >= 0:
            self.go_on_from(self.complete)
        return self.is_whole

    def load(self, steps: int) -> None:
        """The state was received or read; it is whole after so many steps."""
        self.steps, self.is_whole, self.complete = steps, True, -1
