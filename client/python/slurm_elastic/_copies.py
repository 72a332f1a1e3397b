# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of buffers, and of parameters that no optimizer has.

Most such parameters never change, those of a frozen backbone for example: they are not copied.
Others change, such as an encoder that is a moving average of another one. All are watched; a
parameter that is seen to change is copied from then on. PyTorch counts the changes of a tensor, but
not changes through its `.data`, which many moving averages use. Therefore a few elements of each
parameter are compared now and then.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Set

import torch

from ._torch_compat import buffers_of, is_norm, local, parameters_of, version_of

_LOOKS = 256  # boundaries at most from one look at elements to the next


class _Copied:
    """A copy of one tensor of a module. The module may replace the tensor, or have None.

    holder, name  the module's dictionary, and the tensor's name in it.
    silent        PyTorch does not count all changes of this tensor.
    """

    def __init__(
        self, holder: Dict[str, Any], name: str, silent: bool, copies: Dict[int, torch.Tensor]
    ):
        self._holder, self._name, self._is_silent = holder, name, silent
        self._take(holder[name], copies)

    def _take(self, tensor: Any, copies: Dict[int, torch.Tensor]) -> None:
        """copies: those made already, by the tensor's id. Several modules may have one tensor."""
        self._tensor = tensor
        self._copy: Any = None
        self._version = -1
        if tensor is not None:
            if id(tensor) not in copies:
                copies[id(tensor)] = tensor.detach().clone()
            self._copy = copies[id(tensor)]
            self._is_silent = self._is_silent or tensor.is_inference()
            self._version = -1 if self._is_silent else version_of(tensor)

    def keep(self) -> None:
        tensor = self._holder[self._name]
        if tensor is not self._tensor:
            self._take(tensor, {})
        elif tensor is not None and (self._is_silent or version_of(tensor) != self._version):
            if tensor.shape == self._copy.shape:
                self._copy.copy_(tensor)
                self._version = -1 if self._is_silent else version_of(tensor)
            else:
                self._take(tensor, {})

    def restore(self) -> None:
        if self._tensor is not None and self._tensor.is_inference():
            self._tensor = self._copy  # it cannot be written to
        elif self._tensor is not None and (
            self._is_silent or version_of(self._tensor) != self._version
        ):
            self._tensor.copy_(self._copy)
        self._holder[self._name] = self._tensor


def _column(tensor: torch.Tensor) -> torch.Tensor:
    """A few elements of a tensor: one for each index of the first dimension."""
    tensor = local(tensor.detach())
    while tensor.dim() > 1 and tensor.numel():
        tensor = tensor.select(-1, 0)
    return tensor.clone()


class _Watched(NamedTuple):
    """A parameter, and what it was at the last look."""

    parameter: torch.nn.Parameter
    version: int
    column: torch.Tensor

    def has_changed(self) -> bool:
        column = _column(self.parameter)
        kinds = [(each.device, each.dtype) for each in (column, self.column)]
        return (
            version_of(self.parameter) != self.version
            or kinds[0] != kinds[1]
            or not torch.equal(column, self.column)
        )


class Copies:
    """Copies of some modules, as they were at the last boundary. It is created at a boundary.

    changing  ids of the parameters that have been seen to change. It is added to, and passed to the
              next world.
    """

    def __init__(
        self, modules: Sequence[torch.nn.Module], optimizers: Sequence[Any], changing: Set[int]
    ):
        self._modules, self._optimizers, self._changing = modules, optimizers, changing
        # keep() is called here for the first time, and after the first step for the second.
        self._boundaries, self._next_look = 0, 2
        self._find()

    def _find(self) -> None:
        """Look for all buffers and parameters, and copy them."""
        parts = {id(part): part for module in self._modules for part in module.modules()}.values()
        self._holders = [buffers_of(part) for part in parts]
        self._count = self._count_buffers()
        copies: Dict[int, torch.Tensor] = {}
        # A scripted module's dictionary cannot be iterated; its keys() can.
        self._copied = [
            _Copied(buffers_of(part), name, is_norm(part), copies)
            for part in parts
            for name in buffers_of(part).keys()  # noqa: SIM118
        ]
        self._watched: List[_Watched] = []
        # Without optimizers nothing is undone: nobody knows how far a step has come.
        seen = {
            id(each)
            for optimizer in self._optimizers
            for group in optimizer.param_groups
            for each in group["params"]
        }
        for part in parts if self._optimizers else ():
            for name, parameter in parameters_of(part).items():
                if parameter is None or id(parameter) in seen or parameter.is_inference():
                    continue
                seen.add(id(parameter))
                if id(parameter) in self._changing:
                    self._copied.append(_Copied(parameters_of(part), name, True, copies))
                else:
                    self._watched.append(
                        _Watched(parameter, version_of(parameter), _column(parameter))
                    )
        self._parameters = [each.parameter for each in self._watched]
        self._versions = [each.version for each in self._watched]

    def _count_buffers(self) -> int:
        return sum(map(len, self._holders))

    def _look(self) -> bool:
        """Whether a watched parameter or the number of buffers has changed."""
        changed = {id(each.parameter) for each in self._watched if each.has_changed()}
        self._changing |= changed
        return bool(changed) or self._count_buffers() != self._count

    def keep(self) -> None:
        """Copy what has changed: this is a boundary."""
        self._boundaries += 1
        is_time = self._boundaries == self._next_look
        if is_time:
            self._next_look += min(self._boundaries, _LOOKS)
        is_suspicious = (
            is_time
            or self._count_buffers() != self._count
            or list(map(version_of, self._parameters)) != self._versions
        )
        if is_suspicious and self._look():
            self._find()
            return
        if self._copied:
            try:
                with torch.no_grad():
                    for each in self._copied:
                        each.keep()
            except KeyError:  # a buffer is gone
                self._find()

    def restore(self) -> bool:
        """Go back to the boundary. False: something changed of which there is no copy."""
        with torch.no_grad():
            for each in self._copied:
                each.restore()
        return not self._look()
