# SPDX-License-Identifier: GPL-2.0-or-later
"""A state in one file, with tensors as they lie in memory.

A thread can write it without holding up the thread that trains. The file:

    bytes 0..7    "ELSTATE1"
    8..15         length of the outline, little endian
    then          the outline: a pickle in which tensors are references
    then          the tensors, each at the next multiple of 64 bytes
"""

from __future__ import annotations

import io
import math
import pickle
import sys
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Tuple

MAGIC = b"ELSTATE1"
ALIGNMENT = 64  # bytes
PIECE = 16 << 20  # bytes that are written at once


class Outline(NamedTuple):
    """A state without its tensors, and the tensors: contiguous, on the host, not shared."""

    text: bytes
    tensors: List[Any]


def _is_plain(tensor: Any) -> bool:
    import torch

    return bool(
        tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type != "meta"
    )


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO, copy: Callable[[Any], Any]) -> None:
        super().__init__(file, protocol=4)
        self.tensors: List[Any] = []
        self._copy = copy
        # By id; the tensor is kept, so that no other gets the id.
        self._known: Dict[int, Tuple[Any, int]] = {}

    def persistent_id(self, value: Any) -> Any:
        torch = sys.modules.get("torch")  # without it there is no tensor
        if (
            torch is None
            or type(value) not in (torch.Tensor, torch.nn.Parameter)
            or not _is_plain(value)
        ):
            return None
        if id(value) not in self._known:
            self._known[id(value)] = (value, len(self.tensors))
            self.tensors.append(self._copy(value.detach()))
        number = self._known[id(value)][1]
        return ("tensor", number, str(value.dtype).split(".")[-1], tuple(value.shape))


def outline(state: Any, copy: Callable[[Any], Any]) -> Outline:
    """Split a state into a pickle and its tensors.

    copy  makes a contiguous tensor on the host from a tensor. It is called in the order of the
          tensors.
    """
    text = io.BytesIO()
    pickler = _Pickler(text, copy)
    pickler.dump(state)
    return Outline(text.getvalue(), pickler.tensors)


def _raw(tensor: Any) -> memoryview:
    """The bytes of a tensor, without a copy. Works for types that numpy does not have."""
    import torch

    return (
        memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
        if tensor.numel()
        else memoryview(b"")
    )


def _padding(at: int) -> int:
    return -at % ALIGNMENT


def size(found: Outline) -> int:
    """The size of the file, in bytes."""
    at = len(MAGIC) + 8 + len(found.text)
    for tensor in found.tensors:
        at += _padding(at) + tensor.numel() * tensor.element_size()
    return at


def write(found: Outline, sink: Callable[[Any], Any]) -> None:
    """Write the file: sink(bytes) is called for each piece."""
    at = 0
    head = MAGIC + len(found.text).to_bytes(8, "little")
    for block in (head, found.text):
        sink(block)
        at += len(block)
    for tensor in found.tensors:
        sink(bytes(_padding(at)))
        at += _padding(at)
        raw = _raw(tensor)
        for begin in range(0, len(raw), PIECE):
            sink(raw[begin : begin + PIECE])
        at += len(raw)


class _Unpickler(pickle.Unpickler):
    def __init__(self, text: bytes, tensor: Callable[[int, str, Tuple[int, ...]], Any]) -> None:
        super().__init__(io.BytesIO(text))
        self._tensor = tensor

    def persistent_load(self, reference: Any) -> Any:
        kind, number, dtype, shape = reference
        if kind != "tensor":
            raise pickle.UnpicklingError(f"unknown reference {kind!r}")
        return self._tensor(number, dtype, shape)


def view(buffer: Any) -> Any:
    """The same of a state that lies in memory, a tensor of bytes: its tensors are views of that.

    Raises and warns as read() does.
    """
    import torch

    raw = memoryview(buffer.numpy())
    if bytes(raw[: len(MAGIC)]) != MAGIC:
        raise pickle.UnpicklingError("not a state that snapshot() has written")
    begin = len(MAGIC) + 8
    at = begin + int.from_bytes(raw[len(MAGIC) : begin], "little")
    if at > len(raw):
        raise EOFError("the outline is cut")
    text = bytes(raw[begin:at])
    tensors: Dict[int, Any] = {}

    def tensor(number: int, dtype: str, shape: Tuple[int, ...]) -> Any:
        nonlocal at
        if number in tensors:
            return tensors[number]
        if number != len(tensors):
            raise pickle.UnpicklingError("tensors are not in order")
        kind = getattr(torch, dtype)
        at += _padding(at)
        end = at + math.prod(shape) * kind.itemsize
        if end > len(raw):
            raise EOFError("a tensor is cut")
        tensors[number] = buffer[at:end].view(kind).view(shape)
        at = end
        return tensors[number]

    return _Unpickler(text, tensor).load()


def read(file: BinaryIO, map_location: Any = "cpu") -> Any:
    """Read the state. Raises pickle.UnpicklingError or EOFError if this is no such file.

    As with any pickle, read only what you trust.
    """
    head = file.read(len(MAGIC) + 8)
    if head[: len(MAGIC)] != MAGIC or len(head) != len(MAGIC) + 8:
        raise pickle.UnpicklingError("not a state that snapshot() has written")
    length = int.from_bytes(head[len(MAGIC) :], "little")
    text = file.read(length)
    if len(text) != length:
        raise EOFError("the outline is cut")
    tensors: Dict[int, Any] = {}

    def tensor(number: int, dtype: str, shape: Tuple[int, ...]) -> Any:
        import torch

        if number in tensors:
            return tensors[number]
        if number != len(tensors):
            raise pickle.UnpicklingError("tensors are not in order")
        found = torch.empty(shape, dtype=getattr(torch, dtype))
        file.seek(_padding(file.tell()), io.SEEK_CUR)
        raw = _raw(found)
        if len(raw) and file.readinto(raw) != len(raw):  # type: ignore[attr-defined]
            raise EOFError("a tensor is cut")
        tensors[number] = (
            found.to(map_location) if isinstance(map_location, (str, torch.device)) else found
        )
        return tensors[number]

    return _Unpickler(text, tensor).load()
